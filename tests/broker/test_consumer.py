"""Members of real groups: ours with those of other clients; a static one that comes back."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from pyspark_kafkaproto import Producer, SubscriptionPattern, TopicPartition
from pyspark_kafkaproto.devbroker.jars import version_key
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.rivals import java_member, librdkafka_member
from tests.broker.sharing import (
    PARTITIONS,
    RECORDS,
    are_at,
    check_three_clients,
    is_shared,
    make_topic,
    open_member,
    poll_all,
)
from tests.waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(kafka, new_name):
    return make_topic(kafka, new_name())


@pytest.fixture
def member(broker):
    """Makes our member of a group; properties as keywords with `_`."""

    def make(group, topic, listeners=None, **properties):
        given = {"heartbeat_interval_ms": 200, "session_timeout_ms": 20_000} | properties
        return open_member(broker, group, topic, listeners, **given)

    return make


def test_one_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    group = new_name("group")

    def ours():
        return member(group, topic)

    described = check_three_clients(broker, kafka, topic, group, ours, tmp_path)
    assert (described.state, described.assignor) == ("Stable", "range")


def test_a_cooperative_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    """Whoever leads it: what stays with a member is read on."""
    group, how, revoked = new_name("group"), "cooperative-sticky", []

    def ours():
        listeners = {"on_revoke": revoked.append}
        return member(group, topic, listeners, partition_assignment_strategy=how)

    described = check_three_clients(broker, kafka, topic, group, ours, tmp_path, "classic", how)
    assert (described.state, described.assignor) == ("Stable", how)
    given_up = sum(map(len, revoked))
    assert given_up == 4 + 2 + PARTITIONS, "to others, and closed twice"


def test_sticky_members_keep_what_they_had_whoever_leads(
    broker, kafka, topic, new_name, member, tmp_path
):
    """Java's member reads what ours says that it had, and the reverse: they take turns to lead."""
    group, how = new_name("group"), "sticky"
    make = lambda: member(group, topic, partition_assignment_strategy=how)  # noqa: E731
    ours, second = make(), make()
    poll_all((ours, second), is_shared(ours, second), "two members")
    with java_member(broker, group, topic, tmp_path, "classic", how) as java:
        poll_all((ours, second), is_shared(ours, second, java), "three members")
        assert kafka.describe_groups({group})[group].assignor == how
        had, javas = second.assignment, java.assignment
        ours.close()
        poll_all([second], is_shared(second, java), "who is left")
        assert had < second.assignment
        assert javas < java.assignment
        second.close()


@pytest.mark.parametrize("how", ["range", "cooperative-sticky"])
def test_members_by_a_pattern_read_what_is_made_later(broker, kafka, new_name, member, how):
    """Beside librdkafka's member, which leads: ours hear of topics made and deleted themselves."""
    group, prefix, rows = new_name("group"), new_name(), []
    old, new = f"{prefix}-old", f"{prefix}-new"
    make_topic(kafka, old)
    properties = {"metadata_max_age_ms": 500, "partition_assignment_strategy": how}
    pattern = SubscriptionPattern(f"{prefix}-(old|new)")
    with librdkafka_member(broker, group, f"^{prefix}-o.*", "classic", how) as rdkafka:
        poll_all([rdkafka], lambda: len(rdkafka.assignment) == PARTITIONS, "librdkafka's")
        ours = [member(group, pattern, **properties) for _ in range(2)]
        everyone = (*ours, rdkafka)

        def read_until(count):
            deadline = Deadline.after(45)
            while sum(rows) + rdkafka.count < count:
                deadline.check(f"reading {count}: {sum(rows)}, {rdkafka.count}")
                rows.append(poll_all(everyone, iter([False, True]).__next__, "one round"))

        rows.append(poll_all(everyone, is_shared(*everyone), "three members"))
        fill(kafka, dict.fromkeys(kafka.get_partitions({old}), RECORDS))
        fill(kafka, {TopicPartition(make_topic(kafka, f"{prefix}-newer", 1), 0): RECORDS})
        fill(kafka, dict.fromkeys(kafka.get_partitions({make_topic(kafka, new, 2)}), RECORDS))
        read_until((PARTITIONS + 2) * RECORDS)
        assert sum(item.topic == new for one in ours for item in one.assignment) == 2
        kafka.delete_topics({new})
        rows.append(poll_all(everyone, is_shared(*everyone), "the rest alone"))
        fill(kafka, dict.fromkeys(kafka.get_partitions({old}), 1))
        read_until((PARTITIONS + 2) * RECORDS + PARTITIONS)
        assert sum(rows) + rdkafka.count == (PARTITIONS + 2) * RECORDS + PARTITIONS
        for one in ours:
            one.close()


def test_a_static_member_finds_its_partitions_again_and_fences_its_double(
    kafka, topic, new_name, member
):
    group = new_name("group")
    first = member(group, topic, group_instance_id="till-1")
    second = member(group, topic, group_instance_id="till-2")
    poll_all((first, second), is_shared(first, second), "two members")
    before, epoch = first.assignment, generation(second)
    first.close()
    again = member(group, topic, group_instance_id="till-1")
    poll_all((again, second), is_shared(again, second), "its coming back")
    assert again.assignment == before
    assert generation(second) == epoch  # nobody else was disturbed
    double = member(group, topic, group_instance_id="till-1")
    with pytest.raises(BrokerError, match=r"FENCED_INSTANCE_ID.*taken over"):
        poll_all((again, double, second), lambda: False, "the double")
    for one in (again, double, second):
        one.close()


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_static_member_of_a_cooperative_group_comes_back_beside_javas(
    broker, kafka, topic, new_name, member, tmp_path, is_leader
):
    """Nobody hears of it; only where it stays away the others get what it had, and keep theirs."""
    group, how, heard = new_name("group"), "cooperative-sticky", []

    def ours(name, **properties):
        note = lambda partitions: heard.append((name, partitions))  # noqa: E731
        listeners = {"on_revoke": note, "on_lost": note}
        given = {"group_instance_id": name, "partition_assignment_strategy": how}
        return member(group, topic, listeners, **given, **properties)

    first, second = ours("till-1"), ours("till-2")
    poll_all((first, second), is_shared(first, second), "two members")
    with java_member(broker, group, topic, tmp_path, "classic", how, "till-3") as java:
        poll_all((first, second), is_shared(first, second, java), "three members")
        leaves, stays = (first, second) if is_leader else (second, first)
        name = leaves.config.group_instance_id
        had, its, javas = leaves.assignment, stays.assignment, java.assignment
        epoch = generation(stays)
        leaves.close()
        heard.clear()
        again = ours(name)
        poll_all((again, stays), is_shared(again, stays, java), "its coming back")
        assert (again.assignment, stays.assignment, java.assignment) == (had, its, javas)
        assert (generation(stays), heard) == (epoch, [])
        fill(kafka, dict.fromkeys(kafka.get_partitions({topic}), RECORDS))
        poll_all((again, stays), lambda: java.count == 2 * RECORDS, "Java's rows")
        poll_all((again, stays), are_at((again, stays), RECORDS, PARTITIONS - 2), "our rows")
        described = kafka.describe_groups({group})[group]
        assert {item.instance_id for item in described.members} == {"till-1", "till-2", "till-3"}
        double = ours(name)
        with pytest.raises(BrokerError, match=r"FENCED_INSTANCE_ID.*taken over"):
            poll_all((again, double, stays), lambda: False, "the double")
        again.close()
        heard.clear()
        double.close()  # for good: its session ends
        poll_all([stays], is_shared(stays, java), "who is left")
        assert its < stays.assignment
        assert javas < java.assignment
        assert {name for name, _ in heard} == {name}, "its double alone, which has closed"
        stays.close()


BACK_S = 3600


def test_by_duration_begins_where_javas_consumer_does(broker, kafka, new_name, member):
    """KIP-1106: with what was written since; a partition without that begins at its end."""
    topic, now_ms = make_topic(kafka, new_name(), 3), int(time.time() * 1000)
    ages_s = {0: [2 * BACK_S, BACK_S + 60, BACK_S - 60, 60], 1: [2 * BACK_S], 2: []}
    rows = [(number, age) for number, ages in ages_s.items() for age in ages]
    config = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer(config, timestamp_column="timestamp") as producer:
        producer.send(
            pa.record_batch(
                {
                    "topic": [topic] * len(rows),
                    "partition": pa.array([number for number, _ in rows], pa.int32()),
                    "value": [str(age) for _, age in rows],
                    "timestamp": pa.array(
                        [1000 * (now_ms - 1000 * age) for _, age in rows], pa.timestamp("us", "UTC")
                    ),
                }
            )
        )
    reset = f"by_duration:PT{BACK_S}S"
    reader = member(new_name("group"), topic, auto_offset_reset=reset)
    expected = {TopicPartition(topic, number): end for number, end in ((0, 4), (1, 1), (2, 0))}
    found = poll_all([reader], lambda: reader.positions == expected, "all of them")
    assert found == 2
    reader.close()
    if version_key(broker.version) >= (4, 0):
        option = (
            "--command-property" if version_key(broker.version) >= (4, 2) else "--consumer-property"
        )
        told = broker.run_tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", broker.bootstrap_servers, "--topic", topic),
            *(option, f"auto.offset.reset={reset}", "--max-messages", "2"),
        )
        assert sorted(told.split()) == sorted(str(age) for age in ages_s[0][2:])


def test_who_closes_while_the_group_waits_for_others_is_not_kept(kafka, topic, new_name, member):
    """The broker holds our JoinGroup until all have come: leaving ends that, too."""
    group = new_name("group")
    idle = member(group, topic, max_poll_interval_ms=60_000)
    poll_all([idle], is_shared(idle), "an assignment")
    late = member(group, topic)
    deadline = Deadline.after(20)
    while len(kafka.describe_groups({group})[group].members) < 2 or not late.member_id:
        deadline.check("the second member")
        late.poll(0.05)
    began = time.monotonic()
    late.close()
    assert time.monotonic() - began < 20
    assert not late._keeper._thread.is_alive()
    idle.poll(0)
    idle.close()
    assert kafka.describe_groups({group})[group].state == "Empty"


def test_a_generation_that_ends_early_hands_rows_on(kafka, topic, new_name, member):
    """max.poll.interval.ms: the other member reads what this one did not commit."""
    group, only = new_name("group"), TopicPartition(topic, 0)
    fill(kafka, {only: RECORDS})
    slow = member(group, topic, max_poll_interval_ms=1000, enable_auto_commit="false")
    poll_all([slow], lambda: slow.positions.get(only) == RECORDS, "all rows")
    slow.commit({only: 40})
    quick = member(group, topic)
    rows = poll_all([quick], lambda: quick.positions.get(only) == RECORDS, "the others' rows")
    assert rows == RECORDS - 40
    with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
        slow.commit({only: RECORDS})
    quick.close()
    slow.close()


def generation(consumer):
    return consumer._membership.member.generation


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_positions_in_a_deleted_topic_are_not_committed_to_its_successor(
    broker, kafka, topic, new_name, protocol
):
    """Whoever began there would pass over its first rows."""
    if version_key(broker.version) < (4, 1):
        pytest.skip("offsets are committed by topic name, before Kafka 4.1")
    fill(kafka, {TopicPartition(topic, number): RECORDS for number in range(PARTITIONS)})
    group, own = new_name("group"), {"enable_auto_commit": "false", "group_protocol": protocol}
    with open_member(broker, group, topic, **own) as reader:
        poll_all([reader], are_at([reader], RECORDS), "all rows")
        before = reader.positions
        kafka.delete_topics([topic])
        until(lambda: not kafka.describe().has(topic), 30, "its end")
        make_topic(kafka, topic)
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_ID"):
            reader.commit(before)
        assert not kafka.get_consumer_offsets(group, before.keys())
