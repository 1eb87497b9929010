"""Reading from a real broker: what Kafka's own producer wrote comes back, row by row."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import DataLoss
from pyspark_kafkaproto.net import ClientConfig, connections_for
from tests.fault.reading import wait_until_gone
from tests.waiting import until

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def config(broker):
    """Reads a client configuration for the broker; connections end with the module."""
    opened = []

    def parse(**properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        opened.append(ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers} | given))
        return opened[-1]

    yield parse
    for each in opened:
        connections_for(each).close()


@pytest.fixture(scope="module")
def kafka(config):
    with KafkaCluster(config()) as cluster:
        yield cluster


def plan(kafka, topic, *, start=None, stop=None):
    """One task for all partitions of a topic."""
    partitions = kafka.get_partitions({topic})
    ranges = tuple(OffsetRange(*item, start, stop) for item in sorted(partitions))
    topic_id = kafka.describe({topic}).topic(topic).topic_id
    return ReadTask(ranges, kafka.find_leaders(partitions), {topic: topic_id})


def read(task, config, *names, settings=None):
    schema = schema_for(names)
    return [
        tuple(row.values())
        for batch in read_batches(task, config, settings or ReadSettings(), schema)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_console_producer_wrote_is_read_back(kafka, config, broker, new_topic, codec):
    topic = new_topic(2)
    lines = [f"key-{n % 7}:value {n} {'x' * (n % 50)}" for n in range(500)]
    broker.produce(topic, lines, key_separator=":", properties={"compression.type": codec})
    rows = read(plan(kafka, topic), config(), "partition", "offset", "key", "value")
    assert sorted((key, value) for _, _, key, value in rows) == sorted(
        tuple(line.encode().split(b":")) for line in lines
    )
    for partition in (0, 1):
        own = [row for row in rows if row[0] == partition]
        assert own, "the keys are spread over both partitions"
        assert [offset for _, offset, _, _ in own] == list(range(len(own)))
        written = [line.encode().split(b":")[1] for line in lines]
        order = [written.index(value) for _, _, _, value in own]
        assert order == sorted(order)


def test_block_size_changes_nothing_in_the_rows(kafka, config, broker, new_topic):
    topic = new_topic(3)
    broker.produce_perf(topic, 3000, 100, properties={"batch.size": "2000"})
    task, names = plan(kafka, topic), ("partition", "offset", "value")
    expected = sorted(read(task, config(), *names))
    assert len(expected) == 3000
    for block_bytes in (1, 1000, 100_000):
        small = config(max_partition_fetch_bytes=block_bytes, fetch_max_bytes=2 * block_bytes)
        assert sorted(read(task, small, *names)) == expected


def test_range_is_clipped_and_columns_are_pruned(kafka, config, broker, new_topic):
    topic = new_topic(1)
    broker.produce(topic, [f"{n}" for n in range(100)])
    task = plan(kafka, topic, start=37, stop=61)
    assert read(task, config(), "value") == [(f"{n}".encode(),) for n in range(37, 61)]
    assert read(task, config(), "offset") == [(n,) for n in range(37, 61)]


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_transaction_markers_are_passed_over_and_end_a_range(
    kafka, config, transactional_topic, level
):
    # The marker is the last of the log: the range ends with an offset that is no row. It is written
    # soon after the coordinator has told the producer that all is committed.
    partitions = kafka.get_partitions({transactional_topic})
    until(lambda: list(kafka.get_latest_leader_offsets(partitions).values()) == [501])
    offsets = read(plan(kafka, transactional_topic), config(isolation_level=level), "offset")
    assert len(offsets) == len(set(offsets)) == 500
    assert max(offsets) == (499,)


@pytest.fixture(scope="module")
def transactional_topic(broker, new_name, new_topic):
    """A topic whose records were all written in transactions."""
    topic = new_topic(1)
    broker.produce_perf(topic, 500, 100, properties={"transactional.id": new_name("producer")})
    return topic


def test_empty_topic_gives_no_rows_at_once(kafka, config, new_topic):
    assert read(plan(kafka, new_topic(4)), config(), "offset") == []


def test_deleted_records_are_a_data_loss_or_passed_over(
    kafka, config, broker, kafka_tool, new_topic, tmp_path
):
    topic = new_topic(1)
    broker.produce(topic, [f"{n}" for n in range(10)])
    file = tmp_path / "offsets.json"
    file.write_text(
        f'{{"partitions":[{{"topic":"{topic}","partition":0,"offset":6}}],"version":1}}'
    )
    kafka_tool("DeleteRecordsCommand", "--offset-json-file", str(file))
    only = TopicPartition(topic, 0)
    assert kafka.get_earliest_leader_offsets({only}) == {only: 6}
    assert kafka.get_latest_leader_offsets({only}) == {only: 10}
    task = plan(kafka, topic, start=0, stop=10)
    with pytest.raises(DataLoss, match=rf"\[0, 10\) for topic partition {topic}-0.*6 to 10"):
        read(task, config(), "offset")
    lenient = ReadSettings(fail_on_data_loss=False)
    assert read(task, config(), "offset", settings=lenient) == [(n,) for n in range(6, 10)]
    assert read(plan(kafka, topic), config(), "offset") == [(n,) for n in range(6, 10)]


def test_topic_created_again_is_noticed(kafka, config, broker, kafka_tool, new_topic):
    topic = new_topic(1)
    broker.produce(topic, ["old"] * 3)
    task = plan(kafka, topic, start=0, stop=3)
    kafka_tool("TopicCommand", "--delete", "--topic", topic)
    wait_until_gone(kafka, task, config())
    with pytest.raises(DataLoss, match=f"PARTITIONS_DELETED.*{topic} was deleted"):
        read(task, config(), "value")
    broker.create_topic(topic, 1)
    broker.produce(topic, ["new"] * 5)
    with pytest.raises(DataLoss, match="deleted and created again"):
        read(task, config(), "value")
    lenient = ReadSettings(fail_on_data_loss=False)
    assert read(task, config(), "value", settings=lenient) == [(b"new",)] * 3
