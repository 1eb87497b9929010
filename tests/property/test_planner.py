"""Whatever the ranges: the planner loses nothing, doubles nothing and spreads evenly."""

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.planner import group_ranges, plan_ranges
from pyspark_kafkaproto.spark.starts import Earliest, Latest

offsets = st.integers(0, 2**63 - 1)
partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 50))


@st.composite
def bounds(draw):
    """Starts and ends of some partitions, each start up to its end."""
    starts, ends = {}, {}
    for partition in draw(st.sets(partitions, max_size=40)):
        first, last = sorted((draw(offsets), draw(offsets)))
        starts[partition] = draw(st.sampled_from([first, Earliest()]))
        ends[partition] = draw(st.sampled_from([last, Latest()]))
    return starts, ends


@st.composite
def weighted_ranges(draw):
    """Ranges of different partitions with their weights."""
    weights = draw(st.dictionaries(partitions, st.integers(0, 10**12), max_size=60))
    return [OffsetRange(*item, 0, 1) for item in sorted(weights)], weights


@given(bounds())
def test_every_offset_between_the_bounds_is_in_exactly_one_range(given_bounds):
    starts, ends = given_bounds
    ranges = plan_ranges(starts, ends)
    assert [item.topic_partition for item in ranges] == sorted(
        partition for partition in starts if starts[partition] != ends[partition]
    )
    for item in ranges:
        start, end = starts[item.topic_partition], ends[item.topic_partition]
        assert item.start == (None if start == Earliest() else start)
        assert item.stop == (None if end == Latest() else end)


@given(partitions, offsets, offsets)
def test_start_beyond_the_end_is_never_planned(partition, start, end):
    try:
        ranges = plan_ranges({partition: start}, {partition: end})
    except ConfigError:
        assert start > end
    else:
        assert [item.count for item in ranges] == [end - start] * (end > start)


@given(weighted_ranges(), st.none() | st.integers(1, 80))
def test_groups_are_a_partition_of_the_ranges(ranges_and_weights, most):
    ranges, weights = ranges_and_weights
    groups = group_ranges(ranges, most, weights)
    assert sorted(item for group in groups for item in group) == ranges
    assert all(group == sorted(group) for group in groups)
    assert all(groups)
    assert len(groups) == min(len(ranges), most or len(ranges))


@given(weighted_ranges(), st.integers(1, 20))
def test_groups_differ_by_no_more_than_the_heaviest_range(ranges_and_weights, most):
    ranges, weights = ranges_and_weights
    loads = [
        sum(weights[item.topic_partition] for item in group)
        for group in group_ranges(ranges, most, weights)
    ]
    if len(ranges) > most:
        assert max(loads) - min(loads) <= max(weights.values())


@given(weighted_ranges(), st.integers(1, 20))
def test_planning_again_gives_the_same(ranges_and_weights, most):
    ranges, weights = ranges_and_weights
    assert group_ranges(ranges, most, weights) == group_ranges(ranges, most, dict(weights))
