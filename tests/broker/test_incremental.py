"""Members by the protocol of KIP-848 in real groups: ours with those of other clients.

The broker is one of its own, which lets members beat often and sessions be short.
"""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import (
    Consumer,
    KafkaCluster,
    Producer,
    ProducerRecord,
    SubscriptionPattern,
    TopicPartition,
)
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import BrokerError, DeadlineExceeded
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.rivals import java_member, librdkafka_member

pytestmark = pytest.mark.broker

PARTITIONS = 6
RECORDS = 100  # in each partition, each time
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "3000",
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    with DevBroker(tmp_path_factory.mktemp("quick"), properties=QUICK) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka(quick):
    with KafkaCluster({"bootstrap.servers": quick.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka, new_name):
    name = new_name()
    make_topic(kafka, name, PARTITIONS)
    return name


def make_topic(kafka, name, partitions):
    kafka.create_topics([NewTopic(name, partitions, 1)])
    deadline = Deadline.after(20)
    while not kafka.describe({name}).has(name):
        deadline.check(f"the topic {name}")


@pytest.fixture
def member(quick):
    """Makes our member of a group; properties as keywords with `_`."""
    made = []

    def make(group, topics, listeners=None, **properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = {
            "bootstrap.servers": quick.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
        }
        wanted = topics if isinstance(topics, SubscriptionPattern) else {topics}
        columns = ["topic", "partition", "offset"]
        made.append(Consumer(config | given, wanted, columns=columns, **(listeners or {})))
        return made[-1]

    yield make
    for one in made:
        one.close()


def poll_all(members, is_there, what):
    """Poll in turn until `is_there()`; how many rows ours gave."""
    deadline, rows = Deadline.after(45), 0
    while not is_there():
        deadline.check(what)
        for one in members:
            batch = one.poll(0.02) if isinstance(one, Consumer) else one.poll()
            rows += 0 if batch is None else batch.num_rows
    return rows


def is_shared(*members):
    """Whether each partition has one reader, and all have as many."""

    def look():
        owned = [one.assignment for one in members]
        share = PARTITIONS // len(members)
        return all(len(own) == share for own in owned) and len(set().union(*owned)) == PARTITIONS

    return look


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


def test_one_group_of_three_clients(quick, kafka, topic, new_name, member, tmp_path):
    group, rows, revoked = new_name("group"), 0, []
    partitions = kafka.get_partitions({topic})
    ours = member(group, topic, {"on_revoke": revoked.append})
    rows += poll_all([ours], is_shared(ours), "our assignment")
    with java_member(quick, group, topic, tmp_path, "consumer") as java:
        with librdkafka_member(quick, group, topic, "consumer") as rdkafka:
            everyone = (ours, java, rdkafka)
            rows += poll_all((ours, rdkafka), is_shared(*everyone), "three members")
            given_up = [item for own in revoked for item in own]
            assert len(given_up) == len(set(given_up)) == 4, "each at its time, the others stay"
            fill(kafka, dict.fromkeys(partitions, RECORDS))
            counted = lambda: rows + java.count + rdkafka.count  # noqa: E731 - read below, too
            deadline = Deadline.after(30)
            while counted() < PARTITIONS * RECORDS:
                deadline.check(f"reading all: {rows}, {java.count}, {rdkafka.count}")
                rows += poll_all((ours, rdkafka), iter([False, True]).__next__, "one round")
            assert (rows, java.count, rdkafka.count) == (2 * RECORDS,) * 3
            described = kafka.describe_groups({group})[group]
            assert (described.state, described.type) == ("Stable", "consumer")
            assert {len(item.assignment) for item in described.members} == {2}
            ours.close()
            poll_all([rdkafka], is_shared(java, rdkafka), "the two others")
            ours = member(group, topic)
            poll_all((ours, rdkafka), is_shared(ours, java, rdkafka), "our coming back")
        rows += poll_all([ours], is_shared(ours, java), "librdkafka's leaving")
    rows += poll_all([ours], is_shared(ours), "Java's leaving")
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    rows += poll_all([ours], lambda: set(ours.positions.values()) == {2 * RECORDS}, "the rest")
    ours.close()
    assert rows == (2 + PARTITIONS) * RECORDS  # nothing twice: all had committed when they left
    assert kafka.get_consumer_offsets(group, partitions) == dict.fromkeys(partitions, 2 * RECORDS)


def test_a_group_moves_to_the_new_protocol_and_back_while_it_reads(
    quick, kafka, topic, new_name, member, tmp_path
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
    assert kafka.describe_groups({group})[group].type == "consumer"
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


def no_beat(what, request):
    """What becomes of a heartbeat that never arrives."""
    raise DeadlineExceeded(what, 0)


def test_a_transaction_commits_for_a_member_through_epochs(quick, kafka, topic, new_name, member):
    group, copies = new_name("group"), new_name()
    make_topic(kafka, copies, 1)
    fill(kafka, {TopicPartition(topic, 0): RECORDS})
    ours = member(group, topic, enable_auto_commit="false")
    poll_all([ours], lambda: ours.positions.get(TopicPartition(topic, 0)) == RECORDS, "all rows")
    before = ours.group_member
    other = member(group, topic)
    poll_all([ours, other], is_shared(ours, other), "both")
    assert ours.group_member.generation > before.generation
    config = {"bootstrap.servers": quick.bootstrap_servers, "transactional.id": new_name("id")}
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
