"""One direction of a TCP connection: segments in, bytes in their order and gaps out.

Sequence numbers count modulo 2^32. What comes twice is dropped, what overlaps is cut, what comes
early waits until the bytes before it arrive. When they will not (the receiver has acknowledged
them, so the capture lost them; or too much waits), the gap is passed on with its size.
Source: RFC 9293, section 3.4.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

_MASK = 0xFFFFFFFF
_HALF = 1 << 31
# How many more segments, of either direction, a hole that was acknowledged is waited for: what
# several queues of a network card deliver can stand a few packets out of order in a capture.
_PATIENCE_SEGMENTS = 8
# Segments that lie far behind everything: the port serves a new connection whose SYN was lost.
_STRAYS_MAX = 8
_WINDOW_BYTES_MAX = 1 << 30
# Bytes of a connection that may stand before its SYN in a capture: what is sent at first.
_LATE_SYN_BYTES_MAX = 1 << 16
# What a segment that waits takes beside its payload.
_WAITING_BYTES = 256


class Sink(Protocol):
    """Where the bytes go."""

    def feed(self, chunk: bytes, time_ns: int) -> None:
        """The next bytes."""

    def gap(self, size_bytes: int, time_ns: int) -> None:
        """So many bytes are missing; -1: nobody knows how many."""


class Budget:
    """Memory that all connections share.

    Attributes:
        left_bytes: what is left of it.
    """

    __slots__ = ("left_bytes",)

    def __init__(self, size_bytes: int) -> None:
        self.left_bytes = size_bytes

    def reserve(self, size_bytes: int) -> bool:
        """Take a part, if it is there."""
        if size_bytes > self.left_bytes:
            return False
        self.left_bytes -= size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        """Give a part back."""
        self.left_bytes += size_bytes


class Assembler:
    """Puts the segments of one direction in order.

    Attributes:
        sink: gets the bytes.
        missing_bytes: the sum of all gaps of a known size.
        waiting: what came early, a heap of (bytes beyond the hole's start, sequence number,
            payload, missing bytes, time).
    """

    __slots__ = (
        "_acknowledged",
        "_base",
        "_budget",
        "_end",
        "_first",
        "_next",
        "_strays",
        "_waits",
        "missing_bytes",
        "sink",
        "waiting",
    )

    def __init__(self, sink: Sink, budget: Budget) -> None:
        self.sink = sink
        self.missing_bytes = 0
        self._budget = budget
        self._next: int | None = None
        self._end: int | None = None
        self._first = 0
        self._base = 0
        self.waiting: list[tuple[int, int, bytes, int, int]] = []
        self._waits = 0
        self._strays = 0
        self._acknowledged = False

    @property
    def next_seq(self) -> int | None:
        """The sequence number of the next byte; None before the first."""
        return self._next

    @property
    def has_end(self) -> bool:
        """Whether the sender has ended the stream, or the connection was reset."""
        return self._end is not None

    @property
    def is_finished(self) -> bool:
        """Whether the stream has come to its end: its FIN may stand before the last segments."""
        if self._end is None or self._next is None:
            return self._end is not None
        return (self._next - self._end) & _MASK < _HALF

    def end(self, seq: int | None = None) -> None:
        """The stream ends before `seq`, that of a FIN; None: here, whatever is missing."""
        self._end = (self._next or 0) if seq is None else seq & _MASK

    def begin(self, seq: int) -> None:
        """The stream begins with `seq`: that of a SYN, plus one."""
        if self._next is None:
            self._next = self._first = seq & _MASK

    def has_begun_at(self, seq: int) -> bool:
        """Whether a SYN with this number can be one of the same connection, once more or late."""
        late = (self._first - seq - 1) & _MASK
        return self._next is None or late < _LATE_SYN_BYTES_MAX

    def push(self, seq: int, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        """A segment of one byte at least; `missing_bytes` of its end were not captured."""
        if self._next is None:
            self._next = self._first = seq
        if seq == self._next and not self.waiting:
            self._deliver(payload, missing_bytes, time_ns)
            return
        ahead = (seq - self._next) & _MASK
        if ahead >= _HALF:
            self._overlapping(seq, payload, missing_bytes, time_ns)
        elif ahead > _WINDOW_BYTES_MAX:
            self._stray(seq, payload, missing_bytes, time_ns)
        else:
            self._hold(seq, payload, missing_bytes, time_ns)
        self._go_on(time_ns)

    def acknowledge(self, ack: int) -> None:
        """The other side has everything before `ack`, whatever the capture shows."""
        if not self.waiting:
            return
        first = self.waiting[0][1]
        self._acknowledged = self._acknowledged or (ack - first) & _MASK < _HALF
        self._go_on(0)

    def flush(self) -> None:
        """Nothing more will come: pass on what waits."""
        while self.waiting:
            self._skip_hole()

    def _deliver(self, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        assert self._next is not None  # noqa: S101  `push` has set it
        self._next = (self._next + len(payload) + missing_bytes) & _MASK
        self._strays = 0
        if payload:
            self.sink.feed(payload, time_ns)
        if missing_bytes:
            self.missing_bytes += missing_bytes
            self.sink.gap(missing_bytes, time_ns)

    def _overlapping(self, seq: int, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        """A segment that begins before the next byte, or with it: what is new of it counts."""
        assert self._next is not None  # noqa: S101  `push` has set it
        known = (self._next - seq) & _MASK
        if known >= len(payload) + missing_bytes:
            if known > _WINDOW_BYTES_MAX:
                self._stray(seq, payload, missing_bytes, time_ns)
        else:
            left = missing_bytes - max(0, known - len(payload))
            self._deliver(payload[known:], left, time_ns)

    def _stray(self, seq: int, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        self._strays += 1
        if self._strays > _STRAYS_MAX:
            self.flush()
            self.sink.gap(-1, time_ns)
            self._next = seq
            self._deliver(payload, missing_bytes, time_ns)

    def _hold(self, seq: int, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        assert self._next is not None  # noqa: S101  `push` has set it
        if not self._budget.reserve(len(payload) + _WAITING_BYTES):
            self._deliver_early(seq, payload, missing_bytes, time_ns)
            return
        if not self.waiting:
            self._base = self._next
        beyond = (seq - self._base) & _MASK
        heappush(self.waiting, (beyond, seq, payload, missing_bytes, time_ns))

    def _deliver_early(self, seq: int, payload: bytes, missing_bytes: int, time_ns: int) -> None:
        """There is no memory to wait for what is missing before a segment: it stays a hole."""
        while self.waiting and (seq - self.waiting[0][1]) & _MASK < _HALF:
            self._skip_hole()
        self._jump(seq, time_ns)
        self._overlapping(seq, payload, missing_bytes, time_ns)

    def _go_on(self, time_ns: int) -> None:
        """Deliver what waits and can be delivered; give a hole up when it will stay one."""
        self._drain(time_ns)
        if not self.waiting:
            return
        if self._acknowledged:
            self._waits += 1
        if self._waits > _PATIENCE_SEGMENTS:
            self._skip_hole()

    def _drain(self, time_ns: int) -> None:
        """What waited until `time_ns` counts from then on: nobody could read it before."""
        while self.waiting:
            _, seq, payload, missing_bytes, captured_ns = self.waiting[0]
            assert self._next is not None  # noqa: S101  something waits for it
            known = (self._next - seq) & _MASK
            if known >= _HALF:
                return
            heappop(self.waiting)
            self._budget.release(len(payload) + _WAITING_BYTES)
            self._waits, self._acknowledged = 0, False
            time_ns = max(time_ns, captured_ns)
            self._overlapping(seq, payload, missing_bytes, time_ns)

    def _skip_hole(self) -> None:
        first = self.waiting[0]
        self._jump(first[1], first[4])
        self._drain(first[4])

    def _jump(self, seq: int, time_ns: int) -> None:
        assert self._next is not None  # noqa: S101  something waits for it
        size = (seq - self._next) & _MASK
        if not 0 < size < _HALF:
            return
        self.missing_bytes += size
        self._next = seq
        self.sink.gap(size, time_ns)
