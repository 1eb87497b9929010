"""The usual packets of a large capture, taken at one go: pcap, Ethernet, IPv4, a connection known.

They are nearly all there is, and each costs less when nothing is made of it that is asked for once:
no packet, no segment. What is not usual, the opening and end of a connection among it, is left to
those who read each packet (pcap.py, link.py, conversation.py), and comes out the same from both.
The rest of a frame that has begun is taken natively where `_run.pyx` was built; that, too, comes
out the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.capture.conversation import Conversation
from pyspark_kafkaproto.capture.link import (
    ACK,
    ETHERNET,
    ETHERTYPE_IPV4,
    FIN,
    FRAGMENT_OFFSET,
    IP_POS,
    PLAIN,
    PLAIN_IPV4,
    PLAIN_STOP,
    PLAIN_TCP,
    RST,
    SYN,
    TCP,
    TCP_POS,
    TYPE_POS,
)
from pyspark_kafkaproto.capture.packets import PACKET_BYTES_MAX, PacketReader
from pyspark_kafkaproto.capture.pcap import HEADER_BYTES, PcapReader
from pyspark_kafkaproto.capture.sides import KAFKA, Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    _TakeRun = Callable[[bytes, int, bool, bytes, int, int], tuple[int, int, bytes, int, int]]

_LEAST_BYTES = HEADER_BYTES + PLAIN_STOP
_TURNS = ACK | FIN | RST | SYN


def _choose() -> _TakeRun | None:
    """What takes the rest of a frame; None where it was not built, and packets come one by one.

    The same word switches it off that asks for the references of `records`.
    """
    if os.environ.get("KAFKAPROTO_PURE") == "1":
        return None
    try:
        from pyspark_kafkaproto.capture._run import take_run  # noqa: PLC0415  see above
    except ImportError:
        return None
    return take_run


_take_run = _choose()


class FastPath:
    """Takes the usual packets that stand next in a reader's source."""

    def __init__(self, reader: PcapReader, conversation: Conversation) -> None:
        self._source = reader.source
        self._header = reader.header
        self._is_big_endian = reader.is_big_endian
        self._unit_ns = reader.unit_ns
        self._conversation = conversation

    def take(self) -> list[Any]:
        """The messages and notes of the next usual packets, up to the first that has any.

        Empty: the next packet is not usual, or not at hand as a whole.
        """
        conversation, source, unit_ns = self._conversation, self._source, self._unit_ns
        if conversation.waits_for_ends:
            return []
        read_header, read_headers = self._header.unpack_from, PLAIN.unpack_from
        flows, out = conversation.flows, conversation.out
        data, pos, end = source.data, source.pos, len(source.data)
        time_ns = conversation.time_ns
        while pos + _LEAST_BYTES <= end and not out:
            seconds, fraction, kept, _ = read_header(data, pos)
            frame = pos + HEADER_BYTES
            kind, first, total, fragment, protocol, flow, seq, ack, offset, flags = read_headers(
                data, frame + TYPE_POS
            )
            start = frame + TCP_POS + (offset >> 4) * 4
            stop = frame + IP_POS + total
            behind = frame + kept
            known = flows.get(flow)
            if (
                known is None
                or flags & _TURNS != ACK
                or kind != ETHERTYPE_IPV4
                or first != PLAIN_IPV4
                or protocol != TCP
                or fragment & FRAGMENT_OFFSET
                or offset < PLAIN_TCP
                or not start <= stop <= behind <= end
                or kept > PACKET_BYTES_MAX
            ):
                break
            pos = source.pos = behind
            time_ns = seconds * 1_000_000_000 + fraction * unit_ns
            connection, side = known
            connection.last_ns = time_ns
            assemblers = connection.assemblers
            if start < stop:
                assemblers[side].push(seq, data[start:stop], 0, time_ns)
            if assemblers[1 - side].waiting:
                assemblers[1 - side].acknowledge(ack)
            elif start < stop and not out:
                time_ns = self._take_rest(connection, side, flow, time_ns)
                pos = source.pos
        conversation.time_ns = time_ns
        return conversation.taken()

    def _take_rest(self, connection: Connection, side: int, flow: bytes, time_ns: int) -> int:
        """Go on with the frame at hand; the time of the last packet, `time_ns` if there is none.

        Only while nothing of either side waits: then an acknowledgment changes nothing.
        """
        assembler, source = connection.assemblers[side], self._source
        seq = assembler.next_seq
        if _take_run is None or seq is None or assembler.waiting or connection.kind != KAFKA:
            return time_ns
        left_bytes = connection.sides[side].frames.left_bytes
        if not left_bytes:
            return time_ns
        source.pos, count, payload, seconds, fraction = _take_run(
            source.data, source.pos, self._is_big_endian, flow, seq, left_bytes
        )
        if count:
            time_ns = connection.last_ns = seconds * 1_000_000_000 + fraction * self._unit_ns
            assembler.push(seq, payload, 0, time_ns)
        return time_ns


def fast_path_of(reader: PacketReader, conversation: Conversation) -> FastPath | None:
    """For a capture that has usual packets; None for another format or link layer."""
    if isinstance(reader, PcapReader) and reader.link_type == ETHERNET:
        return FastPath(reader, conversation)
    return None
