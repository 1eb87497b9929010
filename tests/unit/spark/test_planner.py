"""Ranges from bounds, groups from ranges. What holds for all inputs: tests/property."""

import pytest

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.planner import group_ranges, plan_ranges
from pyspark_kafkaproto.spark.starts import Earliest, Latest

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_one_range_per_partition_in_order_with_open_bounds_left_open():
    starts = {B0: Earliest(), A1: 5, A0: Earliest()}
    ends = {A0: Latest(), A1: Latest(), B0: 9}
    assert plan_ranges(starts, ends) == [
        OffsetRange("a", 0, None, None),
        OffsetRange("a", 1, 5, None),
        OffsetRange("b", 0, None, 9),
    ]


def test_range_without_offsets_is_left_out():
    assert plan_ranges({A0: 5, A1: 5}, {A0: 5, A1: 6}) == [OffsetRange("a", 1, 5, 6)]


def test_start_beyond_the_end_names_both():
    with pytest.raises(ConfigError, match=r"startingOffsets.*'a-0': 7.*beyond the end.*5"):
        plan_ranges({A0: 7}, {A0: 5})


def _ranges(count):
    return [OffsetRange("a", number, 0, number + 1) for number in range(count)]


def _weights(ranges):
    return {item.topic_partition: item.count for item in ranges}


@pytest.mark.parametrize("most", [None, 3, 4])
def test_each_range_is_its_own_group_unless_there_are_too_many(most):
    ranges = _ranges(3)
    assert group_ranges(ranges, most, {}) == [[item] for item in ranges]


def test_heaviest_goes_first_to_the_lightest_and_groups_keep_the_order():
    ranges = _ranges(5)  # weights 1 to 5
    groups = group_ranges(ranges, 2, _weights(ranges))
    assert [[item.partition for item in group] for group in groups] == [[0, 1, 4], [2, 3]]


def test_ranges_without_weight_are_spread_by_their_number():
    ranges = _ranges(6)
    groups = group_ranges(ranges, 3, dict.fromkeys(_weights(ranges), 0))
    assert [len(group) for group in groups] == [2, 2, 2]
