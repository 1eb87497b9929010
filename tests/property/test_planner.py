"""Whatever the ranges: the planner loses nothing, doubles nothing and spreads evenly."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.planner import (
    check_order,
    group_ranges,
    make_ranges,
    split_ranges,
    split_within,
)
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
    return [OffsetRange(*item, 0, 1) for item in sorted(weights)], list(weights.values())


@given(bounds())
def test_every_offset_between_the_bounds_is_in_exactly_one_range(given_bounds):
    starts, ends = given_bounds
    ranges = make_ranges(starts, ends)
    assert [item.topic_partition for item in ranges] == sorted(
        partition for partition in starts if starts[partition] != ends[partition]
    )
    for item in ranges:
        start, end = starts[item.topic_partition], ends[item.topic_partition]
        assert item.start == (None if start == Earliest() else start)
        assert item.stop == (None if end == Latest() else end)


@given(partitions, offsets, offsets)
def test_start_beyond_the_end_is_never_planned(partition, start, end):
    assert [item.count for item in make_ranges({partition: start}, {partition: end})] == (
        [end - start] * (end > start)
    )
    try:
        check_order("startingOffsets", {partition: start}, {partition: end}, "")
    except ConfigError:
        assert start > end
    else:
        assert start <= end


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
    by_partition = dict(zip(ranges, weights, strict=True))
    loads = [
        sum(by_partition[item] for item in group) for group in group_ranges(ranges, most, weights)
    ]
    if len(ranges) > most:
        assert max(loads) - min(loads) <= max(weights)


@given(weighted_ranges(), st.integers(1, 20))
def test_planning_again_gives_the_same(ranges_and_weights, most):
    ranges, weights = ranges_and_weights
    assert group_ranges(ranges, most, weights) == group_ranges(ranges, most, list(weights))


@st.composite
def sized_ranges(draw):
    """Ranges of different partitions, some open, with their spans as they are now."""
    ranges, spans = [], []
    for partition in sorted(draw(st.sets(partitions, max_size=12))):
        start = draw(st.integers(0, 2**62))
        span = (start, start + draw(st.integers(0, 2000)))
        opens = draw(st.sampled_from([(), (0,), (1,), (0, 1)]))
        bounds = [None if side in opens else span[side] for side in (0, 1)]
        ranges.append(OffsetRange(*partition, *bounds))
        spans.append(span)
    return ranges, spans


@given(sized_ranges(), st.none() | st.integers(1, 50), st.none() | st.integers(1, 60))
def test_pieces_join_to_what_was_split(sized, max_records, min_partitions):
    ranges, spans = sized
    pieces = split_ranges(ranges, spans, max_records=max_records, min_partitions=min_partitions)
    for item, (start, stop) in zip(ranges, spans, strict=True):
        own = [piece for piece in pieces if piece.topic_partition == item.topic_partition]
        assert (own[0].start, own[-1].stop) == (item.start, item.stop)
        edges = [start, *(piece.stop for piece in own[:-1]), stop]
        assert [piece.start for piece in own[1:]] == edges[1:-1]
        assert edges == sorted(edges)
        sizes = [after - before for before, after in pairwise(edges)]
        assert len(own) == 1 or 0 not in sizes
        assert max_records is None or max(sizes) <= max_records


@given(sized_ranges(), st.integers(1, 60), st.integers(0, 20))
def test_pieces_within_bounds_are_no_more_than_the_upper_one(sized, least, more):
    ranges, spans = sized
    pieces = split_within(ranges, spans, least, least + more)
    assert len(pieces) <= max(least + more, len(ranges))
    assert {piece.topic_partition for piece in pieces} == {item.topic_partition for item in ranges}
