"""A block that is still coming: read as far as it is there, and waited for where it ends."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import ConnectionFailed
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.unit.records.batches import rows_of

BATCHES = [
    encode_batch([NewRecord(b"%02d" % (first + i) * 20) for i in range(10)], base_offset=first)
    for first in range(0, 50, 10)
]
BLOCK = b"".join(BATCHES)
SIZE = len(BATCHES[0])


class Coming:
    """Memory that fills up to one of `stops` with each call of `more`."""

    def __init__(self, *stops):
        self.memory = bytearray(b"\xee" * len(BLOCK))
        self.left = list(stops)
        self.arrived = 0

    def more(self):
        if self.left:
            self.arrived = self.left.pop(0)
            self.memory[: self.arrived] = BLOCK[: self.arrived]
        return self.arrived

    def options(self):
        return {"arrived": self.arrived, "more": self.more}


@pytest.mark.parametrize("step", [1, 7, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE])
def test_all_rows_come_whatever_the_pieces(decode, step):
    coming = Coming(*range(step, len(BLOCK), step), len(BLOCK))
    assert rows_of(decode(coming.memory, **coming.options())) == rows_of(decode(BLOCK))


def test_what_is_there_is_all_when_no_more_comes(decode):
    coming = Coming(2 * SIZE + 30)
    decoded = decode(coming.memory, **coming.options())
    assert (decoded.rows, decoded.pos, decoded.next_offset) == (20, 2 * SIZE, 20)


def test_a_block_of_which_a_part_is_there_and_no_more_will_come(decode):
    assert decode(BLOCK, arrived=SIZE + 1).rows == 10


def test_a_full_chunk_is_handed_out_before_more_is_waited_for(decode):
    coming = Coming(SIZE, 2 * SIZE)
    first = decode(coming.memory, chunk_bytes=1, **coming.options())
    assert (first.rows, coming.arrived) == (10, SIZE)
    options = {"pos": first.pos, "start": first.next_offset, "chunk_bytes": 1}
    assert decode(coming.memory, **options, **coming.options()).next_offset == 20


def test_nothing_is_waited_for_behind_the_stop(decode):
    coming = Coming(SIZE, 2 * SIZE, 3 * SIZE)
    decode(coming.memory, stop=15, **coming.options())
    assert coming.arrived == 2 * SIZE


def test_an_error_of_waiting_goes_through(decode):
    def fail():
        raise ConnectionFailed("a broker", "receive", "it is gone")

    with pytest.raises(ConnectionFailed, match="it is gone"):
        decode(BLOCK, arrived=SIZE, more=fail)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"arrived": len(BLOCK) + 1}, "bytes of 7"),
        ({"arrived": -1}, "-1 bytes"),
        ({"arrived": SIZE, "pos": SIZE + 1}, "have arrived, after"),
        ({"arrived": SIZE, "more": lambda: SIZE - 1}, "have arrived, after"),
        ({"arrived": SIZE, "more": lambda: len(BLOCK) + 1}, "have arrived, after"),
    ],
)
def test_what_cannot_have_arrived_is_refused(decode, options, text):
    with pytest.raises(ValueError, match=text.replace("of 7", f"of {len(BLOCK)}")):
        decode(BLOCK, **options)
