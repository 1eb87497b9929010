"""Record batches and message sets as trees, whatever their bytes are."""

import zlib
from struct import pack

import pytest

from pyspark_kafkaproto.capture.batches import Room, open_records
from pyspark_kafkaproto.records import NewRecord, compression, encode_batch, layout
from pyspark_kafkaproto.records.encoding import sealed
from pyspark_kafkaproto.wire.trace import Node

RECORDS = [NewRecord(b"value", b"key", 1000, [(b"h", None)]), NewRecord(None, None, 1007)]
BASE = 100


def opened(data, **options):
    node = Node("records", BASE - 4, BASE + len(data), data)
    open_records(node, **options)
    return node


def values(node):
    return {child.name: child.value for child in node.children}


def message(value, magic=1, key=b"k", attributes=0, offset=5):
    sized = [b"" if c is None else c for c in (key, value)]
    sizes = [-1 if c is None else len(c) for c in (key, value)]
    stamp = pack(">q", 1234) if magic else b""
    rest = pack(">bb", magic, attributes) + stamp
    rest += pack(">i", sizes[0]) + sized[0] + pack(">i", sizes[1]) + sized[1]
    body = pack(">I", zlib.crc32(rest)) + rest
    return pack(">qi", offset, len(body)) + body


@pytest.mark.parametrize("codec", compression.NAMES)
def test_a_batch_is_opened_in_every_codec(codec):
    data = encode_batch(RECORDS, base_offset=40, codec=codec)
    (batch,) = opened(data).children
    said = values(batch)
    assert (batch.start, batch.stop, batch.problem) == (BASE, BASE + len(data), "")
    assert (said["crc_is"], said["codec"]) == ("right", compression.NAMES[codec])
    first, second = batch.children[-1].children
    assert values(first) == {
        "offset": 40,
        "timestamp": 1000,
        "length": values(first)["length"],
        "attributes": 0,
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key": b"key",
        "value": b"value",
        "header_count": 1,
        "header_key[0]": b"h",
        "header_value[0]": None,
    }
    assert (values(second)["value"], values(second)["timestamp"]) == (None, 1007)
    value = next(node for node in first.children if node.name == "value")
    place = data[value.start - BASE : value.stop - BASE] if value.start >= 0 else None
    assert place == (b"value" if codec == 0 else None)


def test_flags_and_markers_are_named():
    bits = layout.TRANSACTIONAL | layout.CONTROL
    marker = NewRecord(pack(">hi", 0, 0), pack(">hh", 0, layout.COMMIT_MARKER))
    (batch,) = opened(encode_batch([marker], attributes=bits, producer_id=7)).children
    assert values(batch)["flags"] == "transactional, control"
    assert values(batch.children[-1].children[0])["marker"] == "COMMIT"


def test_a_wrong_crc_is_said_and_the_records_are_shown_all_the_same():
    data = bytearray(encode_batch(RECORDS))
    data[20] ^= 1
    (batch,) = opened(bytes(data)).children
    assert "CRC-32C" in batch.problem
    assert values(batch)["crc_is"] == "wrong"
    assert len(batch.children[-1].children) == 2


def test_many_records_are_cut_off():
    (batch,) = opened(encode_batch([NewRecord(b"v")] * 10), room=Room(3)).children
    assert [node.name for node in batch.children[-1].children] == ["[0]", "[1]", "[2]", "more"]


def below(node):
    return sum(1 for _ in node.walk()) - 1


def test_all_batches_of_a_message_share_one_bound():
    many = encode_batch([NewRecord(b"")] * 300, codec=compression.GZIP)
    room = Room(500)
    first, second = (opened(many * 2, room=room) for _ in range(2))
    assert [len(batch.children[-1].children) for batch in first.children] == [300, 201]
    assert first.children[1].children[-1].children[-1].value == "100 records"
    assert [node.value for node in second.children[0].children[-1].children] == ["300 records"]


def test_the_number_of_batches_is_bounded():
    nodes = opened(encode_batch([NewRecord(b"v")]) * 20, room=Room(5)).children
    assert [node.name for node in nodes] == ["[0]", "[1]", "[2]", "[3]", "[4]", "more"]
    assert (nodes[-1].stop, nodes[-1].value) == (nodes[-2].stop + 15 * 69, f"{15 * 69} bytes")


@pytest.mark.slow
def test_one_record_with_very_many_headers_is_left_out():
    data = encode_batch([NewRecord(b"v"), NewRecord(b"v", None, 0, [(b"", None)] * 50_000)])
    (batch,) = opened(data).children
    assert [node.name for node in batch.children[-1].children] == ["[0]", "more"]


def test_a_small_old_set_of_very_many_messages():
    inner = message(b"", key=None) * 100_000
    data = message(compression.compress(compression.GZIP, inner), attributes=1)
    assert len(data) < 30_000
    assert below(opened(data, room=Room(50))) < 1000


def test_compressed_messages_inside_compressed_ones_are_not_opened():
    packed = message(compression.compress(1, message(b"") * 1000), attributes=1)
    data = message(compression.compress(1, packed * 100), attributes=1)
    (outer,) = opened(data).children
    inner = outer.children[-1].children
    assert len(inner) == 100
    assert {node.problem for node in inner} == {"compressed messages inside compressed messages"}


@pytest.mark.slow
def test_what_is_decompressed_is_bounded_for_the_whole_message():
    room = Room()
    data = encode_batch([NewRecord(bytes(20 << 20))], codec=compression.ZSTD)
    batches = opened(data * 5, room=room).children
    assert [bool(batch.problem) for batch in batches] == [False] * 3 + [True] * 2


def test_a_cut_batch_an_unknown_magic_and_a_fragment():
    whole = encode_batch(RECORDS)
    _, cut = opened(whole + whole[:-5]).children
    assert cut.problem == f"cut: {len(whole) - 5} of {len(whole)} bytes are there"
    assert values(cut)["record_count"] == 2
    (unknown,) = opened(whole[:16] + b"\x09" + whole[17:]).children
    assert "magic 9" in unknown.problem
    (fragment,) = opened(whole[:10]).children
    assert "first 10 bytes" in fragment.problem


def test_damaged_records_are_said_with_the_ones_before_them():
    data = bytearray(encode_batch(RECORDS))
    data[-3] = 0x7F
    (batch,) = opened(sealed(bytes(data))).children
    assert "record 1 of 2" in batch.problem
    assert len(batch.children[-1].children) == 1


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set(magic):
    data = message(b"old", magic) + message(None, magic, key=None, offset=6)
    first, second = opened(data).children
    said = values(first)
    assert (said["offset"], said["magic"], said["crc_is"]) == (5, magic, "right")
    assert (said["key"], said["value"]) == (b"k", b"old")
    assert said.get("timestamp") == (1234 if magic else None)
    assert (values(second)["key"], values(second)["value"]) == (None, None)
    value = first.children[-1]
    assert data[value.start - BASE : value.stop - BASE] == b"old"


def test_a_compressed_message_set():
    inner = message(b"a", offset=0) + message(b"b", offset=1)
    (outer,) = opened(message(compression.compress(1, inner), attributes=1)).children
    assert values(outer)["codec"] == "gzip"
    below = outer.children[-1]
    assert [values(node)["value"] for node in below.children] == [b"a", b"b"]


def test_lz4_with_the_wrong_header_checksum_that_magic_0_has():
    packed = bytearray(compression.compress(compression.LZ4, message(b"a", magic=0)))
    packed[6] ^= 0x55  # the header checksum
    (outer,) = opened(message(bytes(packed), magic=0, attributes=3)).children
    assert [values(node)["value"] for node in outer.children[-1].children] == [b"a"]


def test_a_damaged_message_set():
    data = bytearray(message(b"old"))
    data[-1] ^= 1
    (wrong,) = opened(bytes(data)).children
    assert "CRC-32" in wrong.problem
    broken = message(b"old", attributes=1)
    assert "gzip" in opened(broken).children[0].problem
    sized = message(b"old")
    (beyond,) = opened(sized[:30] + b"\x7f" + sized[31:]).children
    assert "goes beyond it" in beyond.problem or "CRC" in beyond.problem
