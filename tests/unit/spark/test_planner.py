"""Ranges, pieces and groups: what the pure planner makes of bounds and sizes."""

import pytest

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark import planner
from pyspark_kafkaproto.spark.planner import (
    check_order,
    group_ranges,
    make_ranges,
    split_ranges,
    split_within,
)
from pyspark_kafkaproto.spark.starts import Earliest, Latest

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_ranges_are_sorted_and_open_bounds_stay_open():
    starts = {B0: Earliest(), A1: 5, A0: Earliest()}
    ends = {A0: Latest(), A1: Latest(), B0: 9}
    assert make_ranges(starts, ends) == [
        OffsetRange("a", 0, None, None),
        OffsetRange("a", 1, 5, None),
        OffsetRange("b", 0, None, 9),
    ]


def test_range_without_offsets_is_left_out():
    starts = {A0: 5, A1: 5, B0: 7}
    assert make_ranges(starts, {A0: 5, A1: 6, B0: 3}) == [OffsetRange("a", 1, 5, 6)]
    assert make_ranges({A0: 5}, {A0: Earliest()}) == []


def test_start_beyond_the_end_names_both_and_sparks_condition():
    with pytest.raises(ConfigError, match=r"\[COND\].*startingOffsets.*'a-0': 7.*the end.*5"):
        check_order("startingOffsets", {A0: 7}, {A0: 5}, "COND")
    check_order("startingOffsets", {A0: 5, A1: 9, B0: 3}, {A0: 5, A1: Latest()}, "COND")


def _ranges(count):
    return [OffsetRange("a", number, 0, number + 1) for number in range(count)]


@pytest.mark.parametrize("most", [None, 3, 4])
def test_each_range_is_its_own_group_unless_there_are_too_many(most):
    ranges = _ranges(3)
    assert group_ranges(ranges, most, []) == [[item] for item in ranges]


def test_heaviest_goes_first_to_the_lightest_and_groups_keep_the_order():
    groups = group_ranges(_ranges(5), 2, [1, 2, 3, 4, 5])
    assert [[item.partition for item in group] for group in groups] == [[0, 1, 4], [2, 3]]


def test_ranges_without_weight_are_spread_by_their_number():
    groups = group_ranges(_ranges(6), 3, [0] * 6)
    assert [len(group) for group in groups] == [2, 2, 2]


def test_ranges_of_one_partition_are_never_one_task():
    twice = [OffsetRange("a", 0, 0, 5), OffsetRange("a", 0, 7, 9)]
    with pytest.raises(ConfigError, match=r"maxPartitions.*a-0 has 2"):
        group_ranges(twice, 1, [5, 2])
    assert len(group_ranges(twice, 2, [5, 2])) == 2


def pieces(spans, max_records=None, min_partitions=None):
    """The pieces of closed ranges of one topic, one per partition: (partition, start, stop)."""
    ranges = [OffsetRange("a", number, *span) for number, span in enumerate(spans)]
    split = split_ranges(ranges, spans, max_records=max_records, min_partitions=min_partitions)
    return [(item.partition, item.start, item.stop) for item in split]


@pytest.mark.parametrize(
    ("spans", "options", "expected"),
    [
        ([(0, 10)], {"max_records": 10}, [(0, 0, 10)]),
        ([(0, 10)], {"max_records": 4}, [(0, 0, 3), (0, 3, 6), (0, 6, 10)]),
        ([(5, 6), (0, 4)], {"max_records": 2}, [(0, 5, 6), (1, 0, 2), (1, 2, 4)]),
        ([(0, 100)], {"min_partitions": 4}, [(0, n, n + 25) for n in (0, 25, 50, 75)]),
        ([(0, 5), (0, 7)], {"min_partitions": 2}, [(0, 0, 5), (1, 0, 7)]),
        # A small one stays whole, and the others share what is left.
        (
            [(0, 10_000), (0, 1)],
            {"min_partitions": 4},
            [(0, 0, 3333), (0, 3333, 6666), (0, 6666, 10_000), (1, 0, 1)],
        ),
        # So does one of whose size two would be, once other small ones are left out.
        (
            [(0, 14), (0, 14), (0, 14), (0, 58)],
            {"min_partitions": 10},
            [(0, 0, 14), (1, 0, 14), (2, 0, 14), (3, 0, 8), (3, 8, 16), (3, 16, 24),
             (3, 24, 32), (3, 32, 40), (3, 40, 49), (3, 49, 58)],
        ),
        # Half a piece counts as one more (Java's rounding).
        ([(0, 5), (0, 5)], {"min_partitions": 5}, [
            *[(0, 0, 1), (0, 1, 3), (0, 3, 5)], *[(1, 0, 1), (1, 1, 3), (1, 3, 5)]
        ]),
        # By size first; that makes enough of them.
        ([(0, 9)], {"max_records": 3, "min_partitions": 2}, [(0, 0, 3), (0, 3, 6), (0, 6, 9)]),
        # By size first, then in proportion.
        (
            [(0, 8)],
            {"max_records": 4, "min_partitions": 4},
            [(0, 0, 2), (0, 2, 4), (0, 4, 6), (0, 6, 8)],
        ),
        # There are no more pieces than offsets.
        ([(0, 2)], {"min_partitions": 10}, [(0, 0, 1), (0, 1, 2)]),
        ([(3, 3)], {"min_partitions": 10}, [(0, 3, 3)]),
        # One without records counts for none.
        ([(3, 3), (0, 4)], {"min_partitions": 2}, [(0, 3, 3), (1, 0, 2), (1, 2, 4)]),
    ],
)  # fmt: skip
def test_pieces_are_those_of_sparks_range_calculator(spans, options, expected):
    assert pieces(spans, **options) == expected


def test_a_small_range_does_not_keep_the_large_one_of_its_partition_whole():
    ranges = [OffsetRange("a", 0, 0, 1), OffsetRange("a", 0, 10, 10_000)]
    split = split_ranges(ranges, [(0, 1), (10, 10_000)], max_records=None, min_partitions=4)
    bounds = [(item.start, item.stop) for item in split]
    assert bounds == [(0, 1), (10, 3340), (3340, 6670), (6670, 10_000)]


def test_open_bounds_stay_open_in_the_outer_pieces():
    split = split_ranges(
        [OffsetRange("a", 0, None, None), OffsetRange("a", 1, None, None)],
        [(10, 40), (7, 7)],
        max_records=10,
        min_partitions=None,
    )
    assert [(item.partition, item.start, item.stop) for item in split] == [
        (0, None, 20),
        (0, 20, 30),
        (0, 30, None),
        (1, None, None),
    ]


def test_pieces_are_never_more_than_a_maximum():
    ranges = [OffsetRange("a", 0, 0, 5), OffsetRange("a", 1, 0, 5)]
    spans = [(0, 5), (0, 5)]
    assert len(pieces(spans, min_partitions=5)) == 6
    assert len(split_within(ranges, spans, 5, 5)) == 4
    assert len(split_within(ranges, spans, 5, 6)) == 6
    assert split_within(ranges, spans, 3, 2) == ranges


@pytest.mark.slow
def test_few_tries_find_how_often_to_split_whatever_the_number_of_ranges(monkeypatch):
    tries = []

    def counting(*args, **options):
        tries.append(options["min_partitions"])
        return split_ranges(*args, **options)

    monkeypatch.setattr(planner, "split_ranges", counting)
    # The sizes of many topics: a few large ones, and ever more that are ever smaller.
    spans = [(0, 500_000 // number) for number in range(1, 1001)]
    ranges = [OffsetRange("a", number, *span) for number, span in enumerate(spans)]
    found = len(split_within(ranges, spans, 1050, 1050))
    assert 1045 <= found <= 1050
    assert len(tries) <= 11


@pytest.mark.parametrize("option", ["max_records", "min_partitions"])
def test_too_many_pieces_are_refused_before_they_are_made(option):
    value = 1 if option == "max_records" else 10**12
    with pytest.raises(ConfigError, match="1000000 is the most"):
        pieces([(0, 10**12)], **{option: value})
