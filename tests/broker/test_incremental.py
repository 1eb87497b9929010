"""Members by the protocol of KIP-848 in real groups: ours with those of other clients.

The broker is one of its own, which lets members beat often and sessions be short.
"""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import (
    Producer,
    ProducerRecord,
    SubscriptionPattern,
    TopicPartition,
)
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import BrokerError
from tests.broker.filling import fill
from tests.broker.sharing import (
    BEATS_OFTEN,
    PARTITIONS,
    RECORDS,
    check_three_clients,
    is_shared,
    make_topic,
    no_beat,
    open_member,
    poll_all,
)

pytestmark = pytest.mark.broker

QUICK = {
    **BEATS_OFTEN,
    "group.consumer.min.session.timeout.ms": "2000",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with DevBroker(tmp_path_factory.mktemp("quick"), properties=QUICK) as started:
        yield started


@pytest.fixture
def topic(kafka, new_name):
    return make_topic(kafka, new_name())


@pytest.fixture
def member(broker):
    """Makes our member of a group; properties as keywords with `_`."""
    made = []

    def make(group, topics, listeners=None, **properties):
        given = {"group_protocol": "consumer"} | properties
        made.append(open_member(broker, group, topics, listeners, **given))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_pattern_reads_what_matches(kafka, new_name, member):
    prefix = new_name()
    make_topic(kafka, f"{prefix}-b", 1)
    make_topic(kafka, f"{prefix}-a", 2)
    ours = member(new_name("group"), SubscriptionPattern(f"{prefix}-.*"))
    poll_all([ours], lambda: len(ours.assignment) == 3, "what is there")
    fill(kafka, {TopicPartition(f"{prefix}-b", 0): RECORDS})
    assert poll_all([ours], lambda: ours.positions.get((f"{prefix}-b", 0)), "rows") == RECORDS
    with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
        member(new_name("group"), SubscriptionPattern("(")).poll(10)


def test_one_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    group, revoked = new_name("group"), []

    def ours():
        return member(group, topic, {"on_revoke": revoked.append})

    described = check_three_clients(broker, kafka, topic, group, ours, tmp_path, "consumer")
    assert (described.state, described.type) == ("Stable", "consumer")
    given_up = [len(own) for own in revoked]
    assert sum(given_up) == 4 + 2 + PARTITIONS, "to others, and closed twice: what stays, stays"


def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(
    broker, kafka, topic, new_name, member, tmp_path
):
    """Members of both are in it meanwhile: the brokers translate (KIP-848, migration)."""
    group = new_name("group")
    partitions = kafka.get_partitions({topic})
    old = member(group, topic, group_protocol="classic", heartbeat_interval_ms=200)
    rows = poll_all([old], is_shared(old), "the classic member's")
    assert kafka.describe_groups({group})[group].type == "classic"
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    new = member(group, topic)
    rows += poll_all((old, new), is_shared(old, new), "both")
    both = kafka.describe_groups({group})[group]
    assert both.type == "consumer"
    assert {item.is_classic: item.assignment for item in both.members} == {
        True: old.assignment,
        False: new.assignment,
    }
    assert {TopicPartition(row.topic, row.partition): row.owner for row in kafka.lag({group})} == {
        item: one.member_id for one in (old, new) for item in one.assignment
    }
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    old.close()
    rows += poll_all([new], is_shared(new), "the new member's")
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    old = member(group, topic, group_protocol="classic", heartbeat_interval_ms=200)
    rows += poll_all((old, new), is_shared(old, new), "both again")
    new.close()
    is_read = lambda: set(old.positions.values()) == {3 * RECORDS}  # noqa: E731 - passed below
    rows += poll_all([old], lambda: is_shared(old)() and is_read(), "all of it")
    assert rows == 3 * PARTITIONS * RECORDS


def test_a_static_member_finds_its_partitions_again(kafka, topic, new_name, member):
    group, moved = new_name("group"), []
    first = member(group, topic, group_instance_id="till-1")
    second = member(group, topic, {"on_revoke": moved.append, "on_assign": moved.append})
    poll_all((first, second), is_shared(first, second), "two members")
    before, told = first.assignment, len(moved)
    first.close()
    again = member(group, topic, group_instance_id="till-1")
    poll_all((again, second), is_shared(again, second), "its coming back")
    assert again.assignment == before
    assert len(moved) == told, "nobody else was disturbed"
    double = member(group, topic, group_instance_id="till-1")
    with pytest.raises(BrokerError, match=r"UNRELEASED_INSTANCE_ID.*group\.instance\.id is alive"):
        poll_all((double, again, second), lambda: False, "the double")


def test_who_is_silent_for_a_session_is_given_up_and_others_read_on(
    kafka, topic, new_name, member, monkeypatch
):
    group, only = new_name("group"), TopicPartition(topic, 0)
    fill(kafka, {only: RECORDS})
    session = ConfigChange("consumer.session.timeout.ms", "6000")
    kafka.alter_configs({ConfigResource("group", group): [session]})
    lost = []
    silent = member(group, topic, {"on_lost": lost.append}, enable_auto_commit="false")
    poll_all([silent], lambda: silent.positions.get(only) == RECORDS, "all rows")
    silent.commit({only: 40})
    with monkeypatch.context() as held_back:
        held_back.setattr(silent._keeper._coordinator, "_beat", no_beat)
        heir = member(group, topic)
        rows = poll_all([heir], lambda: heir.positions.get(only) == RECORDS, "the others' rows")
    assert rows == RECORDS - 40
    poll_all([silent, heir], lambda: lost, "word of it")
    assert lost == [frozenset(kafka.get_partitions({topic}))]
    poll_all([silent, heir], is_shared(silent, heir), "its coming back")


def test_a_transaction_commits_for_a_member_through_epochs(broker, kafka, topic, new_name, member):
    group, copies = new_name("group"), new_name()
    make_topic(kafka, copies, 1)
    fill(kafka, {TopicPartition(topic, 0): RECORDS})
    ours = member(group, topic, enable_auto_commit="false")
    poll_all([ours], lambda: ours.positions.get(TopicPartition(topic, 0)) == RECORDS, "all rows")
    before = ours.group_member
    other = member(group, topic)
    poll_all([ours, other], is_shared(ours, other), "both")
    assert ours.group_member.generation > before.generation
    config = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": new_name("id")}
    with Producer(config, topic=copies) as producer:
        who, offsets = ours.group_member, ours.committable
        producer.begin_transaction()
        producer.send([ProducerRecord(b"copied")])
        producer.send_offsets_to_transaction(offsets, group, who)
        producer.commit_transaction()
        ours.close()
        producer.begin_transaction()
        producer.send([ProducerRecord(b"copied by who has left")])
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            producer.send_offsets_to_transaction(dict.fromkeys(offsets, 0), group, who)
        producer.abort_transaction()
    kept = {item: at.offset for item, at in offsets.items()}
    assert kafka.get_consumer_offsets(group, set(kept)) == kept


def test_a_refused_assignor_says_which_there_are(topic, new_name, member):
    with pytest.raises(
        BrokerError, match=r"UNSUPPORTED_ASSIGNOR.*uniform.*group\.remote\.assignor"
    ):
        member(new_name("group"), topic, group_remote_assignor="sticky").poll(10)
    ours = member(new_name("group"), topic, group_remote_assignor="range")
    poll_all([ours], is_shared(ours), "its assignment")
