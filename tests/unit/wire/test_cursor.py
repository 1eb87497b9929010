"""The bounded reader and the writer: nothing is read past the end, nothing is written wrong."""

from array import array
from struct import Struct as Layout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.wire.cursor import Cursor, Writer

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16_383, "ff7f"),
    (16_384, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "spelt"), VARINTS)
def test_unsigned_varint_both_ways(value, spelt):
    writer = Writer()
    writer.unsigned_varint(value)
    assert writer.getvalue().hex() == spelt
    cursor = Cursor(bytes.fromhex(spelt) + b"rest")
    assert cursor.unsigned_varint() == value
    assert cursor.left == 4


@pytest.mark.parametrize("spelt", ["", "80", "ff", "ffffff"])
def test_varint_cut_by_the_end(spelt):
    cursor = Cursor(bytes.fromhex(spelt))
    with pytest.raises(RemoteProtocolError, match="ends inside a varint"):
        cursor.unsigned_varint()


@pytest.mark.parametrize("spelt", ["ffffffff10", "ffffffff7f", "8080808080", "ffffffffff01"])
def test_varint_over_32_bits(spelt):
    with pytest.raises(RemoteProtocolError, match="five bytes or over 32 bits"):
        Cursor(bytes.fromhex(spelt)).unsigned_varint()


@pytest.mark.parametrize("value", [-1, 2**32])
def test_varint_that_cannot_be_written(value):
    with pytest.raises(LocalProtocolError, match="no unsigned 32-bit number"):
        Writer().unsigned_varint(value)


def test_take_is_a_slice_of_the_data_and_no_copy():
    data = bytearray(b"head-payload")
    cursor = Cursor(data)
    cursor.take(5)
    payload = cursor.take(7)
    data[5:6] = b"P"
    assert payload == b"Payload"


@pytest.mark.parametrize("size", [-1, 4, 2**31 - 1])
def test_take_more_than_is_left_moves_nothing(size):
    cursor = Cursor(b"abc")
    with pytest.raises(RemoteProtocolError, match=f"{size} bytes are announced, 3 are left"):
        cursor.take(size)
    assert cursor.pos == 0


def test_unpack_more_than_is_left_moves_nothing():
    cursor = Cursor(b"abc")
    with pytest.raises(RemoteProtocolError, match="4 bytes are announced, 3 are left"):
        cursor.unpack(Layout(">i"))
    assert cursor.pos == 0


def test_finish_refuses_what_is_left_over():
    cursor = Cursor(b"abc")
    cursor.take(1)
    with pytest.raises(RemoteProtocolError, match="2 bytes are left over"):
        cursor.finish()
    cursor.take(2)
    cursor.finish()


def test_a_view_of_wide_items_is_read_and_measured_in_bytes():
    wide = memoryview(bytes(8)).cast("i")
    assert Cursor(wide).left == 8
    writer = Writer()
    writer.put(wide)
    assert writer.size == len(writer.getvalue()) == 8


@pytest.mark.parametrize("value", [2**31, None, "1", 1.5])
def test_a_number_that_does_not_fit_its_layout(value):
    with pytest.raises(LocalProtocolError, match="cannot be written"):
        Writer().pack(Layout(">i"), value)


@given(st.lists(st.sampled_from([0, 1, 500, 32_767, 32_768, 100_000])))
def test_pieces_are_all_that_was_written_and_large_parts_are_not_copied(sizes):
    writer = Writer()
    parts = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    for part in parts:
        writer.put(part)
    pieces = writer.pieces()
    assert b"".join(pieces) == writer.getvalue()
    large = [id(part) for part in parts if len(part) >= 32_768]
    assert [id(piece.obj) for piece in pieces if id(piece.obj) in large] == large
    assert len(pieces) <= 2 * len(large) + 1


def test_pieces_are_counted_in_bytes():
    """What is left to send of one is told by bytes, whatever it holds."""
    numbers = memoryview(array("i", range(40_000)))
    writer = Writer()
    writer.put(numbers)
    assert list(map(len, writer.pieces())) == [writer.size]
    assert b"".join(writer.pieces()) == numbers.tobytes()
