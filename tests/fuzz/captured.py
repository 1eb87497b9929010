"""The target `capture`: any bytes as a capture file, or as what two sides of a connection sent.

The first byte of an input chooses. A file is read as it is. Segments come as a byte that says what
is special about the next one, a byte for its size, and its bytes; out of order, twice, cut, lost.
What comes out is shown in every way that there is. Laws: no exception but UnreadableCapture;
memory that was reserved is given back; no frame larger than it says; what is shown is text and
JSON; time by size, where nothing is decompressed.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator

from pyspark_kafkaproto.capture import Conversation, Limits, Message, Note, open_capture
from pyspark_kafkaproto.capture.about import about
from pyspark_kafkaproto.capture.link import ACK, FIN, IPV4, RST, SYN
from pyspark_kafkaproto.capture.packets import Packet
from pyspark_kafkaproto.capture.page import Page
from pyspark_kafkaproto.capture.report import as_json, detail_lines, line, note_as_json, note_line
from pyspark_kafkaproto.errors import UnreadableCapture
from tests.fuzz.oracle import allowed_s
from tests.unit.capture.wire import ipv4, tcp

FILE, WITH_START = 0x01, 0x02  # of the first byte
BROKER_SIDE, EARLY, AGAIN, CUT, BYTEWISE, ENDS, RESETS, OPENS = (1 << bit for bit in range(8))
LIMITS = Limits(buffered_bytes=1 << 14, connections=2)
SHOWN_MAX = 40  # messages of one input that are looked at in full
_PORTS = (50000, 9092)
_HOSTS = ("10.0.0.1", "10.0.0.2")


def capture(data: bytes) -> None:
    """One capture, to its end."""
    if not data:
        return
    conversation = Conversation(limits=LIMITS)
    began = time.process_time()
    items: list[Message | Note] = []
    packets = _file(data[1:]) if data[0] & FILE else _segments(data[0], data[1:])
    for packet in packets:
        items += conversation.feed(packet)
    items += conversation.finish()
    spent_s = time.process_time() - began
    # Plain Python, and a header of a packet that was built for every byte where it is bytewise.
    assert spent_s < 2 * allowed_s(64 * len(data)), f"{spent_s} s for {len(data)} bytes"
    assert conversation._shared.budget.left_bytes == LIMITS.buffered_bytes
    _show(items)


def _file(data: bytes) -> Iterator[Packet]:
    try:
        reader = open_capture(io.BytesIO(data))
    except UnreadableCapture:
        return
    yield from reader
    assert isinstance(reader.damage, str)


def _segments(choice: int, data: bytes) -> Iterator[Packet]:
    seqs = [choice << 24, 2**32 - 100]  # one of the two passes 2^32 soon
    if choice & WITH_START:
        for side in (0, 1):
            yield _packet(side, seqs, SYN | (ACK if side else 0), b"")
            seqs[side] += 1
    pos = 0
    while pos + 2 <= len(data):
        special, size = data[pos], data[pos + 1]
        payload = data[pos + 2 : pos + 2 + size]
        pos += 2 + size
        yield from _special(special, size, payload, seqs)


def _special(special: int, size: int, payload: bytes, seqs: list[int]) -> Iterator[Packet]:
    side = special & BROKER_SIDE
    ahead = size if special & EARLY else 0
    flags = ACK | (FIN if special & ENDS else 0) | (RST if special & RESETS else 0)
    if special & OPENS:
        flags = SYN
    pieces = [payload]
    if special & BYTEWISE:
        pieces = [payload[at : at + 1] for at in range(len(payload))]
    for piece in pieces:
        keep = len(piece) // 2 if special & CUT else len(piece)
        yield _packet(side, seqs, flags, piece, ahead, keep)
        seqs[side] += len(piece)
        if special & AGAIN:
            yield _packet(side, seqs, flags, piece, -len(piece))
    seqs[side] += ahead


def _packet(
    side: int, seqs: list[int], flags: int, payload: bytes, ahead: int = 0, keep: int | None = None
) -> Packet:
    own, other = seqs[side] + ahead, seqs[1 - side]
    segment = tcp(
        _PORTS[side], _PORTS[1 - side], own & 0xFFFFFFFF, other & 0xFFFFFFFF, flags, payload
    )
    whole = ipv4(_HOSTS[side], _HOSTS[1 - side], segment)
    lost = 0 if keep is None else len(payload) - keep
    return Packet(1_700_000_000 * 10**9, IPV4, whole[: len(whole) - lost], len(whole))


def _show(items: list[Message | Note]) -> None:
    """Everything that is shown to people and programs."""
    page = Page("fuzzed")
    for item in items[:SHOWN_MAX]:
        if isinstance(item, Note):
            note_line(item).encode()
            _as_bytes(note_as_json(item))
            continue
        assert item.lost_bytes >= 0
        assert item.skipped_bytes >= 0
        found = about(item)
        line(item, found).encode()
        "\n".join(detail_lines(item)).encode()
        _as_bytes(as_json(item, with_fields=True))
        page.add(item, found)
    page.html().encode()


def _as_bytes(shown: object) -> bytes:
    return json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()
