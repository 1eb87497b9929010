"""What timestamps, distances and groups mean in offsets."""

import time
from types import SimpleNamespace
from typing import ClassVar

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.options import parse_read_options
from pyspark_kafkaproto.spark.resolving import resolve_ends, resolve_starts
from pyspark_kafkaproto.spark.starts import Earliest, Latest

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Cluster:
    """a-0 holds 10 to 100, a-1 is empty at 5; record n has timestamp 1000 n; group g read to 50."""

    bounds: ClassVar = {A0: (10, 100), A1: (5, 5)}

    def get_earliest_leader_offsets(self, partitions):
        return {item: self.bounds[item][0] for item in partitions}

    def get_latest_leader_offsets(self, partitions):
        return {item: self.bounds[item][1] for item in partitions}

    def get_leader_offsets_at(self, timestamps):
        found = {}
        for item, timestamp in timestamps.items():
            assert timestamp >= 0, "others mean something else to brokers: -1 is the end"
            first, last = self.bounds[item]
            offset = max(first, -(-timestamp // 1000))
            found[item] = offset if offset < last else None
        return found

    def get_consumer_offsets(self, group, partitions):
        assert group == "g"
        return {item: 50 for item in partitions if item == A0}


def options(**given):
    least = {"kafka.bootstrap.servers": "b-1:9092", "subscribe": "a", "kafka.group.id": "g"}
    return parse_read_options(least | {name.lower(): text for name, text in given.items()})


def start(**given):
    return resolve_starts(Cluster(), options(**given), [A0, A1])


def end(**given):
    return resolve_ends(Cluster(), options(**given), [A0, A1])


def test_earliest_and_latest_stay_open():
    assert start() == {A0: Earliest(), A1: Earliest()}
    assert end() == {A0: Latest(), A1: Latest()}


def test_offsets_are_each_ones_own():
    assert start(startingOffsets='{"a":{"0":20,"1":-2}}') == {A0: 20, A1: Earliest()}
    with pytest.raises(ConfigError, match="KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        start(startingOffsets='{"a":{"0":20}}')


def test_time_without_a_record_fails_and_names_the_partitions():
    with pytest.raises(ConfigError, match=r"startingTimestamp.*\{'a-1': 20000\}.*=latest"):
        start(startingTimestamp="20000")
    with pytest.raises(ConfigError, match=r"startingOffsetsByTimestamp.*\{'a-0': 100000"):
        start(startingOffsetsByTimestamp='{"a":{"0":100000,"1":0}}')


def test_time_without_a_record_is_the_end_when_told_so():
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert start(startingTimestamp="19001", **strategy) == {A0: 20, A1: 5}


def test_end_at_a_time_without_a_record_is_the_latest_offset_of_the_moment():
    """Left open, a read would have records of that time and later that come before its tasks."""
    assert end(endingTimestamp="20000") == {A0: 20, A1: 5}
    assert end(endingOffsetsByTimestamp='{"a":{"0":200000,"1":0}}') == {A0: 100, A1: 5}


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_record_that_comes_while_times_are_asked_for_is_on_its_side_of_them(behind):
    class Written(Cluster):
        """a-1 gets a record of the time 5000, late enough, behind one of the questions."""

        asked = 0

        def then(self, found):
            self.asked += 1
            if self.asked == behind:
                self.bounds = self.bounds | {A1: (5, 6)}
            return found

        def get_latest_leader_offsets(self, partitions):
            return self.then(super().get_latest_leader_offsets(partitions))

        def get_leader_offsets_at(self, timestamps):
            return self.then(super().get_leader_offsets_at(timestamps))

    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    given = options(startingTimestamp="4000", **strategy)
    assert resolve_starts(Written(), given, [A1]) == {A1: 5}
    assert resolve_ends(Written(), options(endingTimestamp="4000"), [A1]) == {A1: 5}


def test_times_must_name_all_partitions():
    with pytest.raises(ConfigError, match="KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        end(endingOffsetsByTimestamp='{"a":{"0":1}}')


def test_so_long_ago_is_counted_from_now(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 70.0)
    assert start(startingOffsets="-10s") == {A0: 60, A1: 5}
    assert end(endingOffsets="-10s") == {A0: 60, A1: 5}
    assert start(startingOffsets="-1w") == {A0: 10, A1: 5}


def test_distances_end_at_the_other_end_of_the_log():
    assert start(startingOffsets="latest-30") == {A0: 70, A1: 5}
    assert start(startingOffsets="latest-3000") == {A0: 10, A1: 5}
    assert end(endingOffsets="earliest+30") == {A0: 40, A1: 5}
    assert end(endingOffsets="earliest+3000") == {A0: 100, A1: 5}


@pytest.mark.parametrize(
    ("fallback", "bound"),
    [({}, Earliest()), ({"committedFallback": "latest-0000001"}, 5)],
)
def test_group_goes_on_where_it_has_committed(fallback, bound):
    assert start(startingOffsets="committed", **fallback) == {A0: 50, A1: bound}


@pytest.mark.parametrize("fallback", ["earliest", "error"])
def test_share_group_is_refused_for_nothing_is_ever_committed_to_it(fallback):
    """Else a query would begin at the fallback each time it has no checkpoint."""
    cluster = Cluster()
    cluster.get_consumer_offsets = lambda group, partitions: {}
    cluster.describe_groups = lambda groups: {
        name: SimpleNamespace(type="share") for name in groups
    }
    given = options(startingOffsets="committed", committedFallback=fallback)
    with pytest.raises(ConfigError, match=r"kafka\.group\.id.*'g'.*it is a share group, to which"):
        resolve_starts(cluster, given, [A0, A1])
    with pytest.raises(ConfigError, match="share group"):
        resolve_ends(cluster, options(endingOffsets="committed"), [A0])
    cluster.describe_groups = lambda groups: {
        name: SimpleNamespace(type="classic") for name in groups
    }
    given = options(startingOffsets="committed", committedFallback="earliest")
    assert resolve_starts(cluster, given, [A0]) == {A0: Earliest()}


@pytest.mark.parametrize("fallback", ["earliest", "error"])
def test_where_all_is_committed_nothing_falls_back(fallback):
    given = options(startingOffsets="committed", committedFallback=fallback)
    assert resolve_starts(Cluster(), given, [A0]) == {A0: 50}


def test_nothing_committed_is_an_error_when_told_so():
    with pytest.raises(ConfigError, match=r"startingOffsets.*'g' has committed nothing for a-1"):
        start(startingOffsets="committed", committedFallback="error")


def test_end_at_what_was_committed_leaves_out_the_rest():
    assert end(endingOffsets="committed") == {A0: 50, A1: Earliest()}
