"""Connections and what is said on them: requests, and responses matched to them.

Kafka is recognised by its bytes, on whatever port. Who opened a connection is its client; where
the opening was not captured, the side on which requests are found. A response is matched by its
correlation id. TLS is recognised and said so, what is neither is counted and left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_kafkaproto.capture.link import (
    ACK,
    FIN,
    LINK_TYPES,
    RST,
    SYN,
    Segment,
    endpoints,
    reverse,
    tcp_segment,
)
from pyspark_kafkaproto.capture.message import Message, Peers
from pyspark_kafkaproto.capture.naming import named_topic
from pyspark_kafkaproto.capture.packets import Packet
from pyspark_kafkaproto.capture.sides import Connection, Shared
from pyspark_kafkaproto.capture.tcp import Budget
from pyspark_kafkaproto.wire.printable import counted

# How long what is missing before the ends of both streams may still come: a lost segment is sent
# again within it, mostly.
_LATE_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the memory, whatever a capture holds.

    Attributes:
        buffered_bytes: frames that are not complete, and segments that wait, of all connections.
        connections: open at the same time; the one that was silent longest is given up.
    """

    buffered_bytes: int = 128 << 20
    connections: int = 8192


class Note(NamedTuple):
    """Something about the capture that is no message.

    peers: None when it is about the capture as a whole.
    """

    time_ns: int
    peers: Peers | None
    text: str


class Conversation:
    """Packets in, messages and notes out.

    Attributes:
        time_ns: when the last packet was captured.
        connections: how many there were, whatever they carried.
        flows: addresses and ports of a sender and its receiver, to the connection and its side.
    """

    def __init__(self, ports: Collection[int] = (), limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._ports = frozenset(ports)
        self._shared = Shared(Budget(self._limits.buffered_bytes), Note)
        self.flows: dict[bytes, tuple[Connection, int]] = {}
        self._closing: dict[Connection, int] = {}  # and when it is over, whatever is missing
        self._unknown_links: set[int] = set()
        self.time_ns = 0
        self.connections = 0

    def feed(self, packet: Packet) -> list[Message | Note]:
        """What became complete with this packet."""
        self.time_ns = packet.time_ns
        if self._closing:
            self._end_late()
        if packet.comments:
            self._shared.learn_names(map(named_topic, packet.comments))
        segment = tcp_segment(packet.link_type, packet.data, packet.size_bytes)
        if segment is None:
            self._check_link(packet)
        else:
            self._segment(segment, packet)
        return self.taken()

    @property
    def out(self) -> list[Message | Note]:
        """What is complete and not taken."""
        return self._shared.out

    @property
    def waits_for_ends(self) -> bool:
        """Whether a connection has ended and lacks bytes: each packet may be what ends the wait."""
        return bool(self._closing)

    def taken(self) -> list[Message | Note]:
        """Take what is complete."""
        out = self._shared.out
        if out:
            self._shared.out = []
        return out

    def finish(self) -> list[Message | Note]:
        """What the end of the capture leaves: incomplete frames, and what is to be said."""
        for connection, side in self.flows.values():
            if side == 0:
                connection.finish()
                connection.release()
        self.flows.clear()
        self._closing.clear()
        if others := self._shared.others:
            text = f"{counted(others, 'connection')} carried neither Kafka nor TLS"
            self._shared.note(0, None, text)
        if undecided := self._shared.undecided:
            text = "too little to tell what is said: caught in the middle, or packets are cut"
            self._shared.note(0, None, f"{counted(undecided, 'connection')} had {text}")
        return self.taken()

    def _check_link(self, packet: Packet) -> None:
        link_type = packet.link_type
        if link_type not in LINK_TYPES and link_type not in self._unknown_links:
            self._unknown_links.add(link_type)
            text = f"link type {link_type} is not known here: its packets are passed over"
            self._shared.out.append(Note(packet.time_ns, None, text))

    def _segment(self, segment: Segment, packet: Packet) -> None:
        flow, seq, ack, flags, payload, missing_bytes = segment
        time_ns = packet.time_ns
        known = self.flows.get(flow)
        if known is None or (flags & SYN and not known[0].may_open(known[1], seq)):
            known = self._open(segment, known, packet.names)
            if known is None:
                return
        connection, side = known
        connection.last_ns = time_ns
        if flags & SYN:
            connection.assemblers[side].begin(seq + 1)
            seq = (seq + 1) & 0xFFFFFFFF
        if payload or missing_bytes:
            connection.assemblers[side].push(seq, payload, missing_bytes, time_ns)
        if flags & ACK:
            connection.assemblers[1 - side].acknowledge(ack)
        if flags & FIN:
            connection.assemblers[side].end(seq + len(payload) + missing_bytes)
        if flags & RST:
            for assembler in connection.assemblers:
                assembler.end()
        if flags & (FIN | RST) or connection in self._closing:
            self._close(connection)

    def _open(
        self,
        segment: Segment,
        known: tuple[Connection, int] | None,
        names: Mapping[bytes, str],
    ) -> tuple[Connection, int] | None:
        """A connection for the first of its segments; side 0 is who sent that."""
        sender, receiver = int.from_bytes(segment.flow[-4:-2]), int.from_bytes(segment.flow[-2:])
        if self._ports and not {sender, receiver} & self._ports:
            return None
        if segment.flow == reverse(segment.flow):
            return None  # an end that talks to itself: nobody could tell its directions apart
        if known is not None:
            known[0].finish()
            self._forget(known[0])
        elif not segment.flags & SYN and not segment.payload and not segment.missing_bytes:
            return None  # the last words of a connection, or an idle one: nothing to learn
        self.connections += 1
        client = self._client(segment, sender, receiver)
        pair = endpoints(segment.flow, names)
        if client == 1:
            pair = pair[1], pair[0]
        peers = Peers(self.connections, *pair)
        has_start = bool(segment.flags & SYN)
        is_named = bool(self._ports)
        opened = Connection(
            self._shared, peers, segment.flow, client, has_start=has_start, is_named=is_named
        )
        self._make_room()
        self.flows[segment.flow] = opened, 0
        self.flows[reverse(segment.flow)] = opened, 1
        return opened, 0

    def _client(self, segment: Segment, sender: int, receiver: int) -> int | None:
        """Which side is the client: 0, the sender of the first segment, or 1; None: not known."""
        if segment.flags & SYN:
            return 1 if segment.flags & ACK else 0
        if self._ports and (sender in self._ports) != (receiver in self._ports):
            return 0 if receiver in self._ports else 1
        return None

    def _make_room(self) -> None:
        """Give up a quarter of the connections when there are too many."""
        if len(self.flows) < 2 * self._limits.connections:
            return
        known = [connection for connection, side in self.flows.values() if side == 0]
        known.sort(key=lambda connection: connection.last_ns)
        for connection in known[: max(1, len(known) // 4)]:
            connection.finish()
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        connection.release()
        self._closing.pop(connection, None)
        self.flows.pop(connection.flow, None)
        self.flows.pop(reverse(connection.flow), None)

    def _close(self, connection: Connection) -> None:
        """An end of a stream. What is on its way may still come: the flow stays known."""
        if connection.is_closed:
            self._closing.pop(connection, None)
            connection.finish()
        elif connection.is_closing:
            self._closing.setdefault(connection, self.time_ns + _LATE_NS)

    def _end_late(self) -> None:
        """Wait no longer for what is missing before ends that were seen a while ago."""
        while self._closing:
            connection, until_ns = next(iter(self._closing.items()))
            if until_ns > self.time_ns:
                return
            del self._closing[connection]
            connection.finish()
