"""Reading while real brokers die and stall: every row once, whatever happens."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.net import ClientConfig, connections_for
from tests.fault.conftest import RECORDS, killed, stalled, wait_for_all

pytestmark = pytest.mark.fault

SCHEMA = schema_for(["partition", "offset"])


@pytest.fixture
def config(trio):
    """Small blocks, so that a read has a middle; and a stalled broker is given up soon."""
    properties = {
        "bootstrap.servers": trio.bootstrap_servers,
        "max.partition.fetch.bytes": 20_000,
        "request.timeout.ms": 3000,
    }
    config = ClientConfig.parse(properties)
    yield config
    connections_for(config).close()


def plan(kafka, topic):
    """One task for all partitions, with their leaders of this moment."""
    partitions = kafka.get_partitions({topic})
    stops = kafka.get_latest_leader_offsets(partitions)
    assert sum(stops.values()) == RECORDS
    ranges = tuple(OffsetRange(*item, 0, stops[item]) for item in sorted(partitions))
    topic_id = kafka.describe({topic}).topic(topic).topic_id
    return ReadTask(ranges, kafka.find_leaders(partitions), {topic: topic_id})


def offsets_of(batch):
    return list(zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True))


def assert_complete(task, found):
    expected = [
        (item.partition, offset) for item in task.ranges for offset in range(item.start, item.stop)
    ]
    assert sorted(found) == expected


@pytest.mark.parametrize("fault", [killed, stalled])
def test_leader_that_is_lost_costs_no_row(trio, kafka, topic, config, fault):
    wait_for_all(kafka, topic)
    task = plan(kafka, topic)
    batches = read_batches(task, config, ReadSettings(), SCHEMA)
    found = [row for _ in range(5) for row in offsets_of(next(batches))]
    assert 0 < len(found) < RECORDS / 2
    with fault(trio, task.leaders[TopicPartition(topic, found[-1][0])].node_id):
        for batch in batches:
            found += offsets_of(batch)
        assert_complete(task, found)
        # And a task that was planned before, but begins only now.
        late = read_batches(task, config, ReadSettings(), SCHEMA)
        assert_complete(task, [row for batch in late for row in offsets_of(batch)])
