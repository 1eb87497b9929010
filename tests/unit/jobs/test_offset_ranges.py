"""The main job's parts without Spark: which ranges, which folder."""

import json

import pytest

from pyspark_kafkaproto import OffsetRange, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.jobs import offset_ranges
from pyspark_kafkaproto.jobs.offset_ranges import (
    starts,
    stops,
    uncommitted_ranges,
)


class Cluster:
    """A cluster with one topic `orders`, as the job sees it."""

    def __init__(self, earliest, latest, committed):
        self.earliest, self.latest, self.committed = earliest, latest, committed

    def get_partitions(self, topics):
        assert topics == {"orders"}
        return {TopicPartition("orders", number) for number in range(len(self.latest))}

    def get_consumer_offsets(self, group, partitions):
        assert group == "g"
        return {
            item: self.committed[item.partition]
            for item in partitions
            if item.partition in self.committed
        }

    def get_earliest_leader_offsets(self, partitions):
        return {item: self.earliest[item.partition] for item in partitions}

    def get_latest_leader_offsets(self, partitions):
        return {item: self.latest[item.partition] for item in partitions}


def ranges(*bounds):
    return [OffsetRange("orders", number, *item) for number, item in enumerate(bounds)]


def test_first_run_starts_at_the_earliest_offsets():
    cluster = Cluster(earliest=[3, 0], latest=[10, 0], committed={})
    assert uncommitted_ranges(cluster, "orders", "g") == ranges((3, 10), (0, 0))


def test_next_run_starts_where_the_group_has_committed():
    cluster = Cluster(earliest=[3, 0], latest=[10, 8], committed={0: 7})
    assert uncommitted_ranges(cluster, "orders", "g") == ranges((7, 10), (0, 8))


def test_committed_offset_beyond_the_end_is_never_committed_over():
    cluster = Cluster(earliest=[0], latest=[10], committed={0: 25})
    with pytest.raises(ConfigError, match=r"'g'.*offset 25 of orders-0, which holds 0 to 10"):
        uncommitted_ranges(cluster, "orders", "g")


def test_records_gone_before_they_were_read_are_not_passed_over():
    cluster = Cluster(earliest=[8], latest=[10], committed={0: 5})
    with pytest.raises(ConfigError, match=r"'g'.*offset 5 of orders-0, which holds 8 to 10.*reset"):
        uncommitted_ranges(cluster, "orders", "g")


def test_starts_and_stops_are_per_partition():
    both = ranges((0, 10), (5, 8))
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert starts(both) == {first: 0, second: 5}
    assert stops(both) == {first: 10, second: 8}


def test_servers_come_from_the_environment_or_the_arguments(monkeypatch):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "b-1:9092")
    assert offset_ranges._parse([]).bootstrap_servers == "b-1:9092"
    given = offset_ranges._parse(["--bootstrap-servers", "b-2:9092", "--group", "mine"])
    assert (given.bootstrap_servers, given.group) == ("b-2:9092", "mine")


def test_sample_events_are_keyed_lines():
    lines = offset_ranges._sample_events(12)
    assert len(lines) == 12
    for number, line in enumerate(lines):
        key, _, value = line.partition(":")
        assert key == f"device-{number % 10}"
        assert json.loads(value)["number"] == number
