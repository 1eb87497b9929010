"""Members of real groups: ours with those of other clients; a static one that comes back."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto import Consumer, KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.rivals import java_member, librdkafka_member

pytestmark = pytest.mark.broker

PARTITIONS = 6
RECORDS = 100  # in each partition, each time


@pytest.fixture(scope="module")
def kafka(broker):
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka, new_name):
    name = new_name()
    kafka.create_topics([NewTopic(name, PARTITIONS, 1)])
    deadline = Deadline.after(20)
    while not kafka.describe({name}).has(name):  # a busy broker hears of it a little later
        deadline.check(f"the topic {name}")
    return name


@pytest.fixture
def member(broker):
    """Makes our member of a group; properties as keywords with `_`."""

    def make(group, topic, **properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6000,
            "auto.commit.interval.ms": 200,
        }
        return Consumer(config | given, {topic}, columns=["partition", "offset"])

    return make


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


def test_one_group_of_three_clients(broker, kafka, topic, new_name, member, tmp_path):
    group, rows = new_name("group"), 0
    partitions = kafka.get_partitions({topic})
    ours = member(group, topic)
    rows += poll_all([ours], is_shared(ours), "our assignment")
    with java_member(broker, group, topic, tmp_path) as java:
        with librdkafka_member(broker, group, topic) as rdkafka:
            # We came first, so we lead and share out for all.
            everyone = (ours, java, rdkafka)
            rows += poll_all((ours, rdkafka), is_shared(*everyone), "three members")
            fill(kafka, dict.fromkeys(partitions, RECORDS))
            counted = lambda: rows + java.count + rdkafka.count  # noqa: E731 - read below, too
            deadline = Deadline.after(30)
            while counted() < PARTITIONS * RECORDS:
                deadline.check(f"reading all: {rows}, {java.count}, {rdkafka.count}")
                rows += poll_all((ours, rdkafka), iter([False, True]).__next__, "one round")
            assert (rows, java.count, rdkafka.count) == (2 * RECORDS,) * 3
            described = kafka.describe_groups({group})[group]
            assert (described.state, described.assignor) == ("Stable", "range")
            assert {len(item.assignment) for item in described.members} == {2}
            # Who leads now is somebody else; we come back as one of many.
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
    assert time.monotonic() - began < 4
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
