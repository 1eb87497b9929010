"""Record batches, and the message sets before them, as trees: header, CRC, codec, records.

Whatever the bytes are, the tree says how far they make sense and why they stop doing so.
Formats: records/layout.py for magic 2; for 0 and 1 the message format of Kafka before 0.11:

    offset int64 · size int32 · crc uint32 · magic int8 · attributes int8 · timestamp int64 (magic
    1) · key and value, each an int32 of size (-1: null) and its bytes; compressed, the value is a
    message set of its own
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import compression, layout, lz4_header
from pyspark_kafkaproto.records.batch import BatchHeader, check_count, read_header
from pyspark_kafkaproto.records.compression import DecompressionFailed
from pyspark_kafkaproto.records.record import Record, Walk
from pyspark_kafkaproto.wire.trace import Node

RECORDS_MAX = 10_000
_LIMIT_BYTES = 64 << 20
_DEPTH_MAX = 1  # a compressed message holds messages, and those are not compressed

_BATCH_FIELDS = (
    ("base_offset", 0, "q"),
    ("length", 8, "i"),
    ("partition_leader_epoch", 12, "i"),
    ("magic", 16, "b"),
    ("crc", 17, "I"),
    ("attributes", 21, "h"),
    ("last_offset_delta", 23, "i"),
    ("base_timestamp", 27, "q"),
    ("max_timestamp", 35, "q"),
    ("producer_id", 43, "q"),
    ("producer_epoch", 51, "h"),
    ("base_sequence", 53, "i"),
    ("record_count", 57, "i"),
)
_MESSAGE_FIELDS = (
    ("offset", 0, "q"),
    ("size", 8, "i"),
    ("crc", 12, "I"),
    ("magic", 16, "b"),
    ("attributes", 17, "b"),
    ("timestamp", 18, "q"),
)
_KINDS = {"q": "int64", "i": "int32", "h": "int16", "b": "int8", "I": "uint32"}
_FLAGS = (
    (layout.LOG_APPEND_TIME, "log append time"),
    (layout.TRANSACTIONAL, "transactional"),
    (layout.CONTROL, "control"),
    (layout.DELETE_HORIZON, "delete horizon"),
)
_MARKERS = {layout.ABORT_MARKER: "ABORT", layout.COMMIT_MARKER: "COMMIT"}


class Room:
    """What may still be opened of one message: few bytes on the wire can hold very many records.

    Attributes:
        records: so many more records and headers.
        batches: so many more batches and old messages.
        decompressed_bytes: so many more bytes.
    """

    def __init__(self, records_max: int = RECORDS_MAX) -> None:
        self.records = self.batches = records_max
        self.decompressed_bytes = _LIMIT_BYTES

    def decompress(self, codec: int, data: memoryview) -> memoryview:
        """The content of `data`; DecompressionFailed where there is no room for it."""
        content = bytes(compression.decompress(codec, data, self.decompressed_bytes))
        self.decompressed_bytes -= len(content)
        return memoryview(content)


def open_records(node: Node, room: Room | None = None) -> None:
    """Hang what is in a `records` field below its node.

    Args:
        node: its value is the field's content, which ends where the node ends.
        room: what bounds it, shared by the fields of a message.
    """
    if node.value is None:
        return
    data = memoryview(node.value).cast("B")
    _Opened(data, node.stop - len(data), room or Room()).open(node)


class _Full(Exception):
    """There is no room for a record."""


class _Walk(Walk):
    """Reads no record that there is no room for: one may have millions of headers."""

    def __init__(self, header: BatchHeader, records: memoryview, room: Room) -> None:
        super().__init__(header, records)
        self._room = room

    def _headers(self) -> list[tuple[memoryview, memoryview | None]]:
        start = self._pos
        cost = 1 + max(0, self._varint())
        if cost > self._room.records:
            raise _Full
        self._pos = start
        headers = super()._headers()
        self._room.records -= cost
        return headers


class _Opened:
    """One field's batches; `base` is the position of its first byte in the frame, -1 for none."""

    def __init__(self, data: memoryview, base: int, room: Room, depth: int = 0) -> None:
        self._data = data
        self._base = base
        self._room = room
        self._depth = depth

    def open(self, parent: Node) -> None:
        """All of them, one after the other."""
        pos = index = 0
        while pos < len(self._data):
            if not self._room.batches:
                left = len(self._data) - pos
                parent.add("more", *self._range(pos, len(self._data)), f"{left} bytes")
                return
            self._room.batches -= 1
            pos = self._one(parent, index, pos)
            index += 1

    def _range(self, start: int, stop: int) -> tuple[int, int]:
        return (-1, -1) if self._base < 0 else (self._base + start, self._base + stop)

    def _one(self, parent: Node, index: int, pos: int) -> int:
        """What begins at `pos`, and the position behind it."""
        data = self._data
        left = len(data) - pos
        node = parent.add(f"[{index}]", *self._range(pos, len(data)))
        if left <= layout.MAGIC_POS:
            node.problem = f"the first {left} bytes of a batch that was cut"
            node.value = bytes(data[pos:])
            return len(data)
        magic = data[pos + layout.MAGIC_POS]
        (length,) = Struct(">i").unpack_from(data, pos + layout.LENGTH_POS)
        stop = pos + layout.LOG_OVERHEAD + length
        if magic not in layout.MIN_LENGTHS or length < layout.MIN_LENGTH:
            node.problem = f"no batch: magic {magic}, length {length}"
            node.value = bytes(data[pos:])
            return len(data)
        node.stop = self._range(pos, min(stop, len(data)))[1]
        names = _BATCH_FIELDS if magic == layout.MAGIC_V2 else _MESSAGE_FIELDS[: 5 + magic]
        self._header(node, pos, min(stop, len(data)), names)
        if stop > len(data):
            node.problem = f"cut: {len(data) - pos} of {stop - pos} bytes are there"
        elif magic == layout.MAGIC_V2:
            self._batch(node, pos)
        else:
            self._message(node, pos, stop, magic)
        return min(int(stop), len(data))

    def _header(
        self, node: Node, pos: int, stop: int, names: tuple[tuple[str, int, str], ...]
    ) -> None:
        for name, offset, kind in names:
            field = Struct(">" + kind)
            start = pos + offset
            if start + field.size > stop:
                return
            (value,) = field.unpack_from(self._data, start)
            child = node.add(name, *self._range(start, start + field.size), value)
            child.kind = _KINDS[kind]

    # Magic 2

    def _batch(self, node: Node, pos: int) -> None:
        try:
            header = read_header(self._data, pos, _LIMIT_BYTES)
            assert header is not None  # noqa: S101  the caller has seen that it is whole
            self._say(node, header)
            self._records(node, header)
        except (CorruptRecords, DecompressionFailed) as error:
            node.problem = error.reason if isinstance(error, CorruptRecords) else str(error)

    def _say(self, node: Node, header: BatchHeader) -> None:
        """What follows from the header: codec, flags, last offset, whether the CRC is right."""
        computed = compression.crc32c(self._data[header.pos + layout.ATTRIBUTES_POS : header.stop])
        if computed != header.crc:
            node.problem = f"its CRC-32C is {computed:#010x}, the header says {header.crc:#010x}"
        node.add("crc_is", value="wrong" if node.problem else "right")
        node.add("codec", value=compression.NAMES.get(header.codec, f"unknown ({header.codec})"))
        flags = [name for bit, name in _FLAGS if header.attributes & bit]
        node.add("flags", value=", ".join(flags) or "none")
        node.add("last_offset", value=header.last_offset)

    def _records(self, node: Node, header: BatchHeader) -> None:
        start = header.pos + layout.HEADER_SIZE
        body = self._data[start : header.stop]
        base = -1 if self._base < 0 else self._base + start
        if header.codec and body:
            body = self._room.decompress(header.codec, body)
            base = -1
        inner = node.add("records", *self._range(start, header.stop))
        check_count(header, len(body))
        walk = _Walk(header, body, self._room)
        pos = shown = 0
        with suppress(_Full):
            for record in walk:
                _record(inner, record, header, (body, base, pos, walk.pos))
                pos = walk.pos
                shown += 1
        if header.record_count > shown:
            inner.add("more", value=f"{header.record_count - shown} records")

    # Magic 0 and 1

    def _message(self, node: Node, pos: int, stop: int, magic: int) -> None:
        data = self._data
        crc = int.from_bytes(data[pos + layout.LOG_OVERHEAD : pos + layout.MAGIC_POS])
        computed = compression.crc32(data[pos + layout.MAGIC_POS : stop])
        if computed != crc:
            node.problem = f"its CRC-32 is {computed:#010x}, the header says {crc:#010x}"
        node.add("crc_is", value="wrong" if node.problem else "right")
        codec = data[pos + 17] & layout.CODEC_MASK
        node.add("codec", value=compression.NAMES.get(codec, f"unknown ({codec})"))
        at = pos + layout.MESSAGE.size
        at += layout.MESSAGE_TIMESTAMP.size if magic == layout.MAGIC_V1 else 0
        for name in ("key", "value"):
            at, content = self._sized(node, name, at, stop)
            if at < 0:
                return
        if codec and content is not None:
            if magic == layout.MAGIC_V0 and codec == compression.LZ4:
                content = lz4_header.repaired(content)
            self._inner_set(node, codec, content)

    def _sized(self, node: Node, name: str, pos: int, stop: int) -> tuple[int, memoryview | None]:
        """A size and its bytes: the position behind, -1 where it goes beyond the message."""
        size = int.from_bytes(self._data[pos : pos + 4], signed=True)
        end = pos + 4 + max(0, size)
        if pos + 4 > stop or size < -1 or end > stop:
            node.problem = f"the size of its {name} goes beyond it"
            return -1, None
        content = None if size < 0 else self._data[pos + 4 : end]
        child = node.add(name, *self._range(pos + 4, end))
        child.kind, child.is_null = "bytes", content is None
        child.value = None if content is None else bytes(content)
        return end, content

    def _inner_set(self, node: Node, codec: int, content: memoryview) -> None:
        if self._depth >= _DEPTH_MAX:
            node.problem = "compressed messages inside compressed messages"
            return
        try:
            inner = self._room.decompress(codec, content)
        except DecompressionFailed as error:
            node.problem = str(error)
            return
        below = node.add("messages")
        _Opened(inner, -1, self._room, self._depth + 1).open(below)


def _record(
    parent: Node, record: Record, header: BatchHeader, place: tuple[memoryview, int, int, int]
) -> None:
    """One record's fields, each with its bytes; `place` is what `_Fields` takes, and the end."""
    body, base, start, stop = place
    node = parent.add(f"[{record.ordinal}]")
    if base >= 0:
        node.start, node.stop = base + start, base + stop
    node.add("offset", value=header.base_offset + record.offset_delta)
    timestamp = header.base_timestamp + record.timestamp_delta
    node.add("timestamp", value=header.max_timestamp if header.is_log_append_time else timestamp)
    fields = _Fields(node, body, base, start)
    for name in ("length", "attributes", "timestamp_delta", "offset_delta"):
        fields.number(name)
    fields.content("key")
    fields.content("value")
    for index in range(fields.number("header_count")):
        fields.content(f"header_key[{index}]")
        fields.content(f"header_value[{index}]")
    if header.is_control and record.key is not None and len(record.key) >= 4:
        _, kind = layout.CONTROL_KEY.unpack_from(record.key)
        node.add("marker", value=_MARKERS.get(kind, f"type {kind}"))


class _Fields:
    """Reads the fields of a record that `Walk` has found to be sound, for their positions."""

    def __init__(self, node: Node, body: memoryview, base: int, pos: int) -> None:
        self._node = node
        self._body = body
        self._base = base
        self._pos = pos

    def _add(self, name: str, start: int, value: object, kind: str) -> Node:
        node = self._node.add(name, value=value)
        node.kind = kind
        if self._base >= 0:
            node.start, node.stop = self._base + start, self._base + self._pos
        return node

    def number(self, name: str) -> int:
        """A varint, or the byte of attributes."""
        start = self._pos
        if name == "attributes":
            self._pos += 1
            value = self._body[start]
        else:
            value = self._varint()
        self._add(name, start, value, "int8" if name == "attributes" else "varint")
        return value

    def content(self, name: str) -> None:
        """A size and so many bytes, or null."""
        size = self._varint()
        start = self._pos
        self._pos += max(0, size)
        value = None if size < 0 else bytes(self._body[start : self._pos])
        self._add(name, start, value, "bytes").is_null = value is None

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._body[self._pos]
            self._pos += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
