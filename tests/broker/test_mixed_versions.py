"""A rolling upgrade from Kafka 3.9 to the newest: each node restarts as another version in turn.

Meanwhile leaders, coordinators and the controller are of either version; nobody opens a client
anew.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from pyspark_kafkaproto import Consumer, KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, NewTopic
from pyspark_kafkaproto.cluster.admin.features import level_of_release
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import ClientConfig, connections_for
from tests.broker.sharing import PARTITIONS, is_shared, open_member, poll_all
from tests.mixed import MixedBroker
from tests.settled import wait_until_settled
from tests.waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.long]

OLDEST = "3.9.1"
NODES = (1, 2, 3)
RECORDS = 20  # for each partition, each time
GROUPS = {f"spread-{number}" for number in range(12)}


@pytest.fixture(scope="module")
def trio():
    with MixedBroker([OLDEST] * len(NODES)) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka(trio):
    with KafkaCluster({"bootstrap.servers": trio.bootstrap_servers}) as cluster:
        yield cluster


@pytest.mark.parametrize("middle", ["4.1.1"])
def test_clients_go_on_through_a_rolling_upgrade(trio, kafka, new_name, middle):
    topic = new_name()
    partitions = {TopicPartition(topic, number) for number in range(PARTITIONS)}
    kafka.create_topics([NewTopic(topic, PARTITIONS, len(NODES))])
    until(lambda: len(kafka.find_leaders(partitions)) == PARTITIONS)
    config = {"bootstrap.servers": trio.bootstrap_servers}
    opened = partial(open_member, trio, topic, topic, heartbeat_interval_ms=200)
    members = [opened(group_protocol="classic", isolation_level="read_committed") for _ in NODES]
    rows, written = poll_all(members, is_shared(*members), "three members"), 0
    steps = [(1, middle), (2, DEFAULT_VERSION), (3, DEFAULT_VERSION), (1, DEFAULT_VERSION)]
    with (
        Producer(config, topic=topic) as plain,
        Producer(config | {"transactional.id": topic}, topic=topic) as transactional,
    ):
        for turn, step in enumerate([None, *steps]):
            if step is not None:
                trio.upgrade(*step)
                until(lambda: _is_whole(kafka, topic))
                kafka.elect_leaders(partitions)
            plain.send(_records("plain", turn))
            plain.flush()
            transactional.begin_transaction()
            transactional.send(_records("whole", turn))
            transactional.commit_transaction()
            transactional.begin_transaction()
            transactional.send(_records("dropped", turn))
            transactional.abort_transaction()
            written += 2 * PARTITIONS * RECORDS
            wait_until_settled(trio.bootstrap_servers, partitions)
            ends = kafka.get_latest_leader_offsets(partitions)
            rows += poll_all(members, partial(_are_at, members, ends), f"the ends, {turn}")
            assert rows == written, "nothing is read twice"
            _check_whatever_is_asked(kafka, topic, turn)
    for one in members:
        one.commit()
        one.close()
    assert kafka.get_consumer_offsets(topic, partitions) == ends
    assert _values(config, topic, partitions) == sorted(
        f"{name}-{turn}-{at}-{n}".encode()
        for name in ("plain", "whole")
        for turn in range(1 + len(steps))
        for at in range(PARTITIONS)
        for n in range(RECORDS)
    )


def _is_whole(kafka, topic):
    found = kafka.describe({topic}).topic(topic).partitions.values()
    return all(len(item.isr) == len(NODES) for item in found)


def _records(name, turn):
    return [
        ProducerRecord(f"{name}-{turn}-{at}-{n}", partition=at)
        for at in range(PARTITIONS)
        for n in range(RECORDS)
    ]


def _are_at(members, ends):
    found = {item: at for one in members for item, at in one.positions.items()}
    return found == ends


def _check_whatever_is_asked(kafka, topic, turn):
    """Of all coordinators, of all leaders, and of the controller through whichever broker."""
    first = TopicPartition(topic, 0)
    kafka.set_group_offsets({group: {first: turn} for group in GROUPS})
    found = kafka.get_group_offsets(GROUPS)
    assert {own[first].offset for own in found.values()} == {turn}
    assert {item.group for item in kafka.list_groups()} >= GROUPS
    assert {item.state for item in kafka.describe_groups({topic}).values()} == {"Stable"}
    assert len(kafka.describe_quorum().voters) == len(NODES)
    own = ConfigResource("topic", topic)
    for number in NODES:  # through one broker and through another: metadata names any
        name = f"{topic}-{turn}-{number}"
        kafka.create_topics([NewTopic(name, assignment={0: [number]})])
        until(lambda name=name: kafka.describe({name}).has(name))
        moved = TopicPartition(name, 0)
        kafka.reassign_partitions({moved: [number % len(NODES) + 1]})
        until(lambda: not kafka.list_reassignments())
        kafka.alter_configs({own: [ConfigChange("retention.ms", f"86400{turn}{number}0")]})
        kafka.delete_topics({name})


def _values(config, topic, partitions):
    reading = ClientConfig.parse(config | {"isolation.level": "read_committed"})
    ranges = tuple(OffsetRange(*item, 0, None) for item in sorted(partitions))
    batches = read_batches(ReadTask(ranges), reading, ReadSettings(), schema_for(["value"]))
    found = sorted(value for batch in batches for value in batch.column(0).to_pylist())
    connections_for(reading).close()
    return found


def test_the_new_protocol_waits_for_the_last_step(trio, kafka, new_name):
    """All nodes are new, what they say among themselves is not."""
    for node in NODES:
        if trio.versions[node] != DEFAULT_VERSION:
            trio.upgrade(node, DEFAULT_VERSION)
    topic = new_name()
    kafka.create_topics([NewTopic(topic, PARTITIONS, len(NODES))])
    until(lambda: kafka.describe({topic}).has(topic))
    given = {
        "bootstrap.servers": trio.bootstrap_servers,
        "group.id": topic,
        "group.protocol": "consumer",
    }
    with (
        Consumer(given, {topic}) as member,
        pytest.raises(BrokerError, match=r"kafkaproto features upgrade group\.version=1"),
    ):
        member.poll(10)
    newest = kafka.describe_features().by_name["metadata.version"]
    assert newest.finalized == level_of_release("metadata.version", "3.9")
    kafka.update_features({"metadata.version": newest.max_supported})
    kafka.update_features({"group.version": 1})
    until(lambda: kafka.describe_features().by_name["group.version"].finalized == 1)
    members = [open_member(trio, topic, topic, group_protocol="consumer") for _ in NODES]

    def is_let_in():
        """Not by each node in the same moment: the coordinator may hear of it later than others."""
        with suppress(BrokerError):
            members[0].poll(0.1)
        return bool(members[0].assignment)

    until(is_let_in)
    poll_all(members, is_shared(*members), "three members")
    for one in members:
        one.close()
