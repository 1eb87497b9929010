"""The main job's parts without Spark: which ranges, which folder, which table."""

import json
from pathlib import Path

import pytest

from pyspark_kafkaproto import OffsetRange, TopicPartition
from pyspark_kafkaproto.errors import ConfigError, DataLoss
from pyspark_kafkaproto.jobs import offset_ranges
from pyspark_kafkaproto.jobs.offset_ranges import (
    lag_table,
    starts,
    stops,
    uncommitted_ranges,
    write_rows,
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


class Rows:
    """Stands in for a DataFrame: writes one file, or fails half way."""

    def __init__(self, text, *, fails=False):
        self.text, self.fails, self.modes = text, fails, []

    @property
    def write(self):
        return self

    def mode(self, name):
        self.modes.append(name)
        return self

    def parquet(self, folder):
        Path(folder).mkdir(exist_ok=True)
        Path(folder, "part").write_text(self.text)
        if self.fails:
            raise RuntimeError("the disk is full")


def ranges(*bounds):
    return [OffsetRange("orders", number, *item) for number, item in enumerate(bounds)]


def folders(place):
    return {path.name: (path / "part").read_text() for path in place.iterdir()}


def test_first_run_starts_at_the_earliest_offsets():
    cluster = Cluster(earliest=[3, 0], latest=[10, 0], committed={})
    assert uncommitted_ranges(cluster, "orders", "g") == ranges((3, 10), (0, 0))


def test_next_run_starts_where_the_group_has_committed():
    cluster = Cluster(earliest=[3, 0], latest=[10, 8], committed={0: 7})
    assert uncommitted_ranges(cluster, "orders", "g") == ranges((7, 10), (0, 8))


def test_committed_offset_beyond_the_end_is_never_committed_over():
    cluster = Cluster(earliest=[0], latest=[10], committed={0: 25})
    with pytest.raises(DataLoss, match="committed offset 25 of orders-0, which ends at 10"):
        uncommitted_ranges(cluster, "orders", "g")


def test_starts_and_stops_are_per_partition():
    both = ranges((0, 10), (5, 8))
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert starts(both) == {first: 0, second: 5}
    assert stops(both) == {first: 10, second: 8}


def test_lag_table_has_a_line_per_partition():
    cluster = Cluster(earliest=[0, 0, 0], latest=[1000, 20, 5], committed={0: 1000, 1: 8})
    assert lag_table(cluster, "orders", "g").splitlines() == [
        "Group  Topic   Partition  Offset  LogSize  Lag",
        "g      orders  0          1000    1000     0",
        "g      orders  1          8       20       12",
        "g      orders  2          -       5        -",
    ]


def test_rows_land_in_a_folder_named_by_their_ranges(tmp_path):
    rows = Rows("1")
    folder = write_rows(rows, tmp_path / "out", ranges((0, 10), (5, 8)))
    assert folder == tmp_path / "out" / "ranges-0.0-10_1.5-8"
    assert folders(tmp_path / "out") == {"ranges-0.0-10_1.5-8": "1"}
    assert rows.modes == ["overwrite"]


def test_run_after_a_failed_commit_replaces_what_was_written(tmp_path):
    write_rows(Rows("first"), tmp_path, ranges((0, 10)))
    write_rows(Rows("again"), tmp_path, ranges((0, 10)))
    assert folders(tmp_path) == {"ranges-0.0-10": "again"}


def test_run_after_a_failed_commit_replaces_a_shorter_range_too(tmp_path):
    write_rows(Rows("first"), tmp_path, ranges((0, 10), (0, 5)))
    write_rows(Rows("more"), tmp_path, ranges((0, 25), (0, 5)))
    assert folders(tmp_path) == {"ranges-0.0-25_1.0-5": "more"}


def test_run_after_a_commit_leaves_what_was_written(tmp_path):
    write_rows(Rows("first"), tmp_path, ranges((0, 10), (0, 5)))
    write_rows(Rows("next"), tmp_path, ranges((10, 25), (5, 5)))
    assert folders(tmp_path) == {"ranges-0.0-10_1.0-5": "first", "ranges-0.10-25_1.5-5": "next"}


@pytest.mark.parametrize(
    "now", [((5, 20), (5, 5)), ((10, 20), (0, 5))], ids=["moved back", "committed in part"]
)
def test_folder_that_is_read_anew_in_part_is_neither_kept_nor_removed(tmp_path, now):
    write_rows(Rows("first"), tmp_path, ranges((0, 10), (0, 5)))
    with pytest.raises(ConfigError, match=r"ranges-0\.0-10_1\.0-5.*a part of what is read now"):
        write_rows(Rows("next"), tmp_path, ranges(*now))
    assert folders(tmp_path)["ranges-0.0-10_1.0-5"] == "first"


def test_write_that_fails_leaves_what_there_was_and_is_no_result(tmp_path):
    write_rows(Rows("first"), tmp_path, ranges((0, 10)))
    with pytest.raises(RuntimeError, match="disk is full"):
        write_rows(Rows("half", fails=True), tmp_path, ranges((0, 20)))
    assert [name for name in folders(tmp_path) if name.startswith("ranges")] == ["ranges-0.0-10"]
    write_rows(Rows("whole"), tmp_path, ranges((0, 20)))
    assert folders(tmp_path) == {"ranges-0.0-20": "whole"}


def test_folder_of_many_partitions_has_a_name_that_file_systems_take(tmp_path):
    many = ranges(*[(0, 10**12)] * 500)
    folder = write_rows(Rows("1"), tmp_path, many)
    assert len(folder.name) < 100
    written = json.loads((folder / "_ranges.json").read_text())
    assert [OffsetRange(*item) for item in written] == many


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
