"""Limits of micro-batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.spark.stream.limits import backlog, offsets_for_bytes, share_out


def at(*offsets: int) -> dict[TopicPartition, int]:
    return {TopicPartition("t", number): offset for number, offset in enumerate(offsets)}


def test_a_limit_is_shared_in_proportion_to_backlogs() -> None:
    assert share_out(at(0, 100, 0), at(900, 200, 0), 100) == at(90, 110, 0)


def test_a_small_backlog_never_starves() -> None:
    assert share_out(at(0, 0), at(1_000_000, 1), 10) == at(9, 1)


def test_what_fits_is_taken_whole() -> None:
    assert share_out(at(0, 5), at(3, 9), 7) == at(3, 9)


def test_a_partition_without_a_start_keeps_its_end() -> None:
    ends = at(10, 20)
    starts = {TopicPartition("t", 0): 0}

    assert share_out(starts, ends, 5) == at(5, 20)


def test_bytes_become_offsets_by_their_mean() -> None:
    sizes = at(100, 100)
    mean = {item: 10.0 + 20 * item.partition for item in sizes}

    assert offsets_for_bytes(sizes, mean, 1_000) == 50
    assert offsets_for_bytes(sizes, mean, 10_000) == 200
    assert offsets_for_bytes(sizes, mean, 1) == 1
    assert offsets_for_bytes(at(0, 0), mean, 1_000) == 1


_OFFSETS = st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**40)), min_size=1, max_size=9)


@given(_OFFSETS, st.integers(1, 2**63 - 1))
def test_batches_within_a_limit_reach_the_end_and_skip_nothing(
    spans: list[tuple[int, int]], most: int
) -> None:
    starts = at(*(start for start, _ in spans))
    ends = at(*(start + size for start, size in spans))

    shared = share_out(starts, ends, most)

    assert shared.keys() == ends.keys()
    assert all(starts[item] <= shared[item] <= ends[item] for item in ends)
    # One more offset a partition at most than was allowed, and always progress.
    assert sum(backlog(starts, shared).values()) <= most + len(spans)
    assert shared != starts or starts == ends
