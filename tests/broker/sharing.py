"""Groups that share a topic's partitions out: members polled in turn, whatever client they are."""

from __future__ import annotations

from pyspark_kafkaproto import Consumer, SubscriptionPattern
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.rivals import java_member, librdkafka_member

PARTITIONS = 6
RECORDS = 100  # in each partition, each time
# Properties of brokers that have members of KIP-848 beat five times a second.
BEATS_OFTEN = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}


def make_topic(kafka, name, partitions=PARTITIONS):
    """Create it; its name, once it is known: a busy broker hears of it a little later."""
    kafka.create_topics([NewTopic(name, partitions, 1)])
    deadline = Deadline.after(20)
    while not kafka.describe({name}).has(name):
        deadline.check(f"the topic {name}")
    return name


def open_member(broker, group, topics, listeners=None, **properties):
    """Our member of a group; properties as keywords with `_`."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    config = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 200,
    }
    wanted = topics if isinstance(topics, SubscriptionPattern) else {topics}
    return Consumer(config | given, wanted, columns=["partition", "offset"], **(listeners or {}))


def poll_all(members, is_there, what):
    """Poll in turn until `is_there()`; how many rows ours gave."""
    deadline, rows = Deadline.after(120), 0
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


def no_beat(what, request):
    """What becomes of a heartbeat that never arrives."""
    raise DeadlineExceeded(what, 0)


def are_at(members, offset, partitions=PARTITIONS):
    """Whether ours together have read so many partitions, all theirs, up to `offset`."""
    return lambda: [at for one in members for at in one.positions.values()] == [offset] * partitions


def check_three_clients(broker, kafka, topic, group, new_member, folder, *how):
    """Ours, Java's and librdkafka's member share, leave and come back: each row is read once.

    `how`: the protocol and the assignor of the others. Gives the group as it was described while
    they shared.
    """
    rows, partitions = 0, kafka.get_partitions({topic})
    ours = new_member()
    rows += poll_all([ours], is_shared(ours), "our assignment")
    with java_member(broker, group, topic, folder, *how) as java:
        with librdkafka_member(broker, group, topic, *how) as rdkafka:
            # In the classic protocol we came first, so we lead and share out for all.
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
            # Who leads now is somebody else; we come back as one of many.
            ours.close()
            poll_all([rdkafka], is_shared(java, rdkafka), "the two others")
            ours = new_member()
            poll_all((ours, rdkafka), is_shared(ours, java, rdkafka), "our coming back")
        rows += poll_all([ours], is_shared(ours, java), "librdkafka's leaving")
    rows += poll_all([ours], is_shared(ours), "Java's leaving")
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    rows += poll_all([ours], lambda: set(ours.positions.values()) == {2 * RECORDS}, "the rest")
    ours.close()
    assert rows == (2 + PARTITIONS) * RECORDS  # nothing twice: all had committed when they left
    assert kafka.get_consumer_offsets(group, partitions) == dict.fromkeys(partitions, 2 * RECORDS)
    assert {len(item.assignment) for item in described.members} == {2}
    return described
