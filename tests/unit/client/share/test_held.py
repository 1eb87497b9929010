"""What a range that was acquired takes: of memory, too."""

from __future__ import annotations

import tracemalloc

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.client.share.held import Acknowledge, Acquired, Held

OFFSETS = 1_000_000
MOST_BYTES_EACH = 6  # the marks themselves, and copies of them


def test_a_long_gap_takes_some_bytes_for_each_offset_and_no_more():
    """A compacted topic may have few records in very many offsets."""
    last = OFFSETS - 1
    tracemalloc.start()
    try:
        held = Held(Acquired(TopicPartition("t", 0), 0, last, 1), b"")
        held.note_gaps(1, last - 1)
        held.give(0, last)
        held.accept_given()
        said = held.say()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert said == [(0, 0, (1,)), (1, last - 1, (0,)), (last, last, (1,))]
    assert held.is_done
    assert peak < MOST_BYTES_EACH * OFFSETS


def test_what_was_handed_out_is_kept_until_it_is_said_for_good():
    held = Held(Acquired(TopicPartition("t", 0), 10, 19, 2), b"")
    assert not list(held.kept())
    held.give(12, 18)
    held.mark(Acknowledge.ACCEPT, 14, 15)
    held.mark(Acknowledge.RENEW, 17, 17)
    assert spans(held.kept()) == [(12, 18)]
    held.say()
    assert spans(held.kept()) == [(12, 13), (16, 18)]


def spans(kept):
    return [(one.first, one.last) for one in kept if one.delivery_count == 2]
