"""The primitive types, byte by byte as the protocol guide spells them."""

from array import array

import pytest

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.wire import types
from pyspark_kafkaproto.wire.cursor import Cursor, Writer

TEXT = types.Text(types.SHORT, nullable=True)
COMPACT_TEXT = types.Text(types.COMPACT, nullable=True)
BYTES = types.Binary(types.INT, nullable=True)
COMPACT_BYTES = types.Binary(types.COMPACT, nullable=True)
RECORDS = types.Records(types.INT, nullable=True)
INTS = types.FixedArray("int32", types.INT, nullable=True)
COMPACT_INTS = types.FixedArray("int32", types.COMPACT, nullable=True)
TEXTS = types.Array(TEXT, types.INT, nullable=True)

SPELLINGS = [
    (types.Fixed("bool"), True, "01"),
    (types.Fixed("int8"), -1, "ff"),
    (types.Fixed("int16"), 258, "0102"),
    (types.Fixed("int32"), -2, "fffffffe"),
    (types.Fixed("int64"), 1, "0000000000000001"),
    (types.Fixed("uint16"), 65_535, "ffff"),
    (types.Fixed("uint32"), 2**32 - 1, "ffffffff"),
    (types.Fixed("float64"), 1.5, "3ff8000000000000"),
    (types.Uuid(), bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
    (TEXT, None, "ffff"),
    (TEXT, "", "0000"),
    (TEXT, "aé", "000361c3a9"),
    (COMPACT_TEXT, None, "00"),
    (COMPACT_TEXT, "", "01"),
    (COMPACT_TEXT, "ab", "036162"),
    (BYTES, None, "ffffffff"),
    (BYTES, b"", "00000000"),
    (BYTES, b"\xff", "00000001ff"),
    (COMPACT_BYTES, None, "00"),
    (COMPACT_BYTES, b"\xff", "02ff"),
    (RECORDS, b"xyz", "0000000378797a"),
    (INTS, None, "ffffffff"),
    (INTS, (), "00000000"),
    (INTS, (1, -1), "0000000200000001ffffffff"),
    (COMPACT_INTS, None, "00"),
    (COMPACT_INTS, (), "01"),
    (COMPACT_INTS, tuple(range(9)), "0a" + "".join(f"{n:08x}" for n in range(9))),
    (TEXTS, ("a", None), "000000020001" + "61" + "ffff"),
]


@pytest.mark.parametrize(("codec", "value", "spelt"), SPELLINGS)
def test_known_bytes_both_ways(codec, value, spelt):
    writer = Writer()
    codec.write(writer, value)
    assert writer.getvalue().hex() == spelt
    cursor = Cursor(bytes.fromhex(spelt))
    assert codec.read(cursor) == value
    assert cursor.left == 0


def test_compact_size_over_seven_bits():
    writer = Writer()
    COMPACT_TEXT.write(writer, "x" * 127)
    assert writer.getvalue() == b"\x80\x01" + b"x" * 127


def test_the_longest_text():
    for codec in (TEXT, COMPACT_TEXT):
        writer = Writer()
        codec.write(writer, "x" * 32_767)
        assert codec.read(Cursor(writer.getvalue())) == "x" * 32_767


@pytest.mark.parametrize("codec", [BYTES, COMPACT_BYTES, RECORDS])
def test_what_is_written_is_counted_in_bytes_whatever_a_view_is_of(codec):
    writer = Writer()
    codec.write(writer, memoryview(array("i", [0, -1])))
    assert codec.read(Cursor(writer.getvalue())) == b"\0\0\0\0\xff\xff\xff\xff"


def test_records_are_a_slice_and_bytes_are_a_copy():
    assert isinstance(RECORDS.read(Cursor(b"\0\0\0\1x")), memoryview)
    assert type(BYTES.read(Cursor(b"\0\0\0\1x"))) is bytes


@pytest.mark.parametrize(
    ("codec", "spelt"),
    [
        (types.Text(types.SHORT, nullable=False), "ffff"),
        (types.Text(types.COMPACT, nullable=False), "00"),
        (types.Binary(types.INT, nullable=False), "ffffffff"),
        (types.Records(types.COMPACT, nullable=False), "00"),
        (types.FixedArray("int8", types.INT, nullable=False), "ffffffff"),
    ],
)
def test_null_where_none_is_allowed(codec, spelt):
    with pytest.raises(RemoteProtocolError, match="null where none is allowed"):
        codec.read(Cursor(bytes.fromhex(spelt)))
    with pytest.raises(LocalProtocolError, match="None where no null is allowed"):
        codec.write(Writer(), None)


@pytest.mark.parametrize(
    ("codec", "spelt", "reason"),
    [
        (TEXT, "fffe", "negative size -2"),
        (TEXT, "8000", "negative size -32768"),
        (TEXT, "7fff61", "32767 bytes are announced, 1 are left"),
        (TEXT, "0001ff", "not UTF-8"),
        (COMPACT_TEXT, "818002" + "78" * 32_768, "32768 bytes of text, the most is 32767"),
        (COMPACT_TEXT, "ffffffff0f", "4294967294 bytes of text, the most is 32767"),
        (BYTES, "7fffffff", "2147483647 bytes are announced, 0 are left"),
        (BYTES, "80000000", "negative size"),
        (INTS, "7fffffff00000000", "2147483647 elements are announced, 4 bytes left"),
        (INTS, "0000000200000001", "2 elements are announced, 4 bytes left"),
        (INTS, "fffffffe", "negative size -2"),
        (TEXTS, "7fffffff", "2147483647 elements are announced, 0 bytes left"),
        (types.Uuid(), "00", "16 bytes are announced, 1 are left"),
    ],
)
def test_damaged_sizes_and_counts(codec, spelt, reason):
    with pytest.raises(RemoteProtocolError, match=reason):
        codec.read(Cursor(bytes.fromhex(spelt)))


def test_a_damaged_element_is_named_by_its_index():
    with pytest.raises(RemoteProtocolError, match=r"^\[1\]: not UTF-8") as caught:
        TEXTS.read(Cursor(bytes.fromhex("00000002" + "000161" + "0001ff")))
    assert caught.value.path == "[1]"


@pytest.mark.parametrize(
    ("codec", "value", "reason"),
    [
        (TEXT, b"a", "expected str, got bytes"),
        (TEXT, "a\ud800b", r"'a\\ud800b' cannot be UTF-8.*: write it without '\\ud800'"),
        (TEXT, "x" * 999 + "\udcff" + "y" * 999, r"^'x{100}\\udcffy{99}' cannot be UTF-8"),
        (TEXT, "x" * 32_768, "32768 bytes of text, the most is 32767"),
        (COMPACT_TEXT, "x" * 32_768, "32768 bytes of text, the most is 32767"),
        (BYTES, "a", "expected bytes, got str"),
        (INTS, 5, "expected a tuple, got int"),
        (INTS, "12", "expected a tuple, got str"),
        (INTS, (1, 2**31), r"\[1\]: 2147483648 cannot be written"),
        (TEXTS, ("a", 1), r"\[1\]: expected str, got int"),
        (types.Uuid(), b"short", "an id is 16 bytes"),
        (types.Uuid(), None, "an id is 16 bytes, not None"),
        (types.Fixed("int8"), 128, "128 cannot be written"),
        (types.Fixed("float64"), 10**400, "cannot be written"),
    ],
)
def test_values_that_cannot_be_written(codec, value, reason):
    with pytest.raises(LocalProtocolError, match=reason):
        codec.write(Writer(), value)
