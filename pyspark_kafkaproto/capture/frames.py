"""A byte stream to frames: four bytes of size, then so many bytes; and back on track after a loss.

In step, a frame ends where the next begins. A gap inside a frame of known size costs that frame's
end alone; any other gap, or a size that cannot be, loses the step. Then the next place is sought
that looks like a frame to whoever owns the stream, and it counts once its bytes have been read as
what they seem to be. What a frame may keep is bounded, and so are all of them together.
Source: Kafka's protocol guide ("Protocol"); frames up to the largest that brokers send.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import NamedTuple, Protocol

from pyspark_kafkaproto.capture.tcp import Budget
from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES

FRAME_BYTES_MAX = 1 << 28
_KEPT_BYTES_MAX = 64 << 20
# What a frame may keep without asking, and what of it is kept when there is no memory left.
_SMALL_BYTES = 16 << 10
HEAD_BYTES = 14  # of a request: API key, version, correlation id, size and start of the client id
_CUT_BYTES_MIN = 12  # size, API key, version and correlation id: to know a cut request by
_SIZE = Struct(">i")
# Found in the middle of other bytes: what is larger is more likely chance than a frame.
_SOUGHT_BYTES_MAX = 8 << 20
# Bytes of such frames that turned out to be none, at first and per byte passed over, up to which
# larger ones are tried: what they cost stays in proportion to the capture.
_IN_VAIN = ((4 << 20, 8, _SOUGHT_BYTES_MAX), (8 << 20, 16, 64 << 10))
_SOUGHT_BYTES_LEAST = 1 << 10


class Frame(NamedTuple):
    """One frame without its size prefix.

    payload: what is known of it, from its start. size_bytes: what its prefix says.
    time_ns: of the packet that ended it. skipped_bytes: passed over in search of it.
    """

    payload: bytes | bytearray
    size_bytes: int
    time_ns: int
    skipped_bytes: int


class FrameOwner(Protocol):
    """Who knows what the frames of a stream look like."""

    def is_plausible(self, head: bytes, size_bytes: int) -> bool:
        """Whether a frame can begin with `head`: all of it, HEAD_BYTES, or what was captured."""

    def is_sound(self, payload: bytes | bytearray) -> bool:
        """Whether a whole frame is what it seems."""

    def pattern(self) -> re.Pattern[bytes] | None:
        """Where frames can begin, prefix included; None where there is nothing to look for."""

    def take(self, frame: Frame) -> None:
        """A frame."""

    def refuse(self, start: bytes) -> bool:
        """The step was lost: at bytes that are no frame, or at a gap (b""). Whether to seek on."""


class Frames:
    """Cuts one direction of a connection into frames."""

    __slots__ = (
        "_budget",
        "_buffer",
        "_kept_max",
        "_need",
        "_owner",
        "_passed",
        "_rejected_bytes",
        "_reserved",
        "_size",
        "_skipped",
        "_sought",
        "_time_ns",
        "_wake",
        "is_in_step",
        "skipped_bytes",
    )

    def __init__(self, owner: FrameOwner, budget: Budget, *, is_in_step: bool) -> None:
        self.is_in_step = is_in_step
        self.skipped_bytes = 0
        self._owner = owner
        self._budget = budget
        self._buffer = bytearray()
        self._reserved = 0
        self._time_ns = 0
        self._skipped = 0
        self._rejected_bytes = 0
        self._next_frame()

    @property
    def is_inside(self) -> bool:
        """Whether a frame has begun in step, and has not ended."""
        return self._size >= 0 and self.is_in_step and not self._sought

    @property
    def left_bytes(self) -> int:
        """Bytes up to the end of the frame that has begun in step, or of what is kept of it.

        As many come to the same at once and piece by piece. 0: no such frame is at hand.
        """
        if not self.is_inside:
            return 0
        stop = self._need if self._passed else self._wake
        return stop - len(self._buffer) - self._passed

    def _next_frame(self) -> None:
        self._size = -1
        self._need = self._wake = SIZE_PREFIX_BYTES if self.is_in_step else 1
        self._kept_max = _KEPT_BYTES_MAX
        self._passed = 0
        self._sought = False
        if self._reserved:
            self._budget.release(self._reserved)
            self._reserved = 0

    def feed(self, chunk: bytes, time_ns: int) -> None:
        """The next bytes of the stream."""
        self._time_ns = time_ns
        if self._passed:
            chunk = self._pass(chunk)
        self._buffer += chunk
        if len(self._buffer) >= self._wake:
            self._cut()

    def gap(self, size_bytes: int, time_ns: int) -> None:
        """So many bytes are missing from the stream; -1: nobody knows how many."""
        self._time_ns = time_ns
        self._seek_whole()
        if self._size < 0 and self.is_in_step:
            self._begin_cut()
        known = len(self._buffer) + self._passed
        if self._size >= 0 and not self._sought and 0 < size_bytes <= self._need - known:
            self._passed += size_bytes
            if known + size_bytes == self._need:
                self._deliver(self._take_buffer())
        else:
            self._lose(b"")
            self._skip(len(self._buffer))

    def end(self) -> None:
        """The stream is over: what there is of a frame is one."""
        self._seek_whole()
        if self.is_inside:
            self._deliver(self._take_buffer())
        else:
            self._skip(len(self._buffer))
        self._next_frame()

    def begin_again(self, *, is_in_step: bool) -> None:
        """Pass over what is there: the owner has learnt something about the stream."""
        self._skip(len(self._buffer))
        self.is_in_step = is_in_step
        self._next_frame()

    # In step

    def _cut(self) -> None:
        """Take as many frames as there are."""
        while len(self._buffer) >= self._wake:
            if not self.is_in_step and self._size < 0:
                if not self._seek():
                    return
            elif self._size < 0:
                if not self._begin():
                    return
            elif len(self._buffer) >= self._need:
                self._complete()
            elif self._sought:  # cannot be verified without its end
                self._reject()
            else:
                self._passed = len(self._buffer) - self._kept_max
                del self._buffer[self._kept_max :]
                return

    def _begin(self) -> bool:
        """Look at the start of a frame; False when more of it is needed first."""
        (size,) = _SIZE.unpack_from(self._buffer)
        if not 0 <= size <= FRAME_BYTES_MAX:
            self._lose(bytes(self._buffer[:64]))
            return bool(self._buffer)
        wanted = SIZE_PREFIX_BYTES + min(size, HEAD_BYTES)
        if len(self._buffer) < wanted:
            self._wake = wanted
            return False
        head = bytes(self._buffer[SIZE_PREFIX_BYTES:wanted])
        if not self._owner.is_plausible(head, size):
            self._lose(bytes(self._buffer[:64]))
            return bool(self._buffer)
        self._announce(size)
        return True

    def _begin_cut(self) -> None:
        """A gap is near the start of a frame: what is there may be enough to know it."""
        if len(self._buffer) < _CUT_BYTES_MIN:
            return
        (size,) = _SIZE.unpack_from(self._buffer)
        head = bytes(self._buffer[SIZE_PREFIX_BYTES:])
        if SIZE_PREFIX_BYTES <= size <= FRAME_BYTES_MAX and self._owner.is_plausible(head, size):
            self._announce(size)

    def _announce(self, size: int) -> None:
        """A frame of this size begins: see how much of it may be kept."""
        self._size = size
        self._need = SIZE_PREFIX_BYTES + size
        if self._need > _SMALL_BYTES:
            wanted = min(self._need, _KEPT_BYTES_MAX)
            if self._budget.reserve(wanted):
                self._reserved = wanted
                self._kept_max = _KEPT_BYTES_MAX
            else:
                self._kept_max = _SMALL_BYTES
        self._wake = min(self._need, self._kept_max + 1)

    def _complete(self) -> None:
        if self._sought and not self._accept():
            return
        if len(self._buffer) == self._need:
            payload = self._take_buffer()
        else:
            payload = self._buffer[: self._need]
            del self._buffer[: self._need]
        self._deliver(payload)

    def _take_buffer(self) -> bytearray:
        payload, self._buffer = self._buffer, bytearray()
        return payload

    def _deliver(self, framed: bytearray) -> None:
        del framed[:SIZE_PREFIX_BYTES]
        frame = Frame(framed, self._size, self._time_ns, self._skipped)
        self._skipped = 0
        self._next_frame()
        self._owner.take(frame)

    def _pass(self, chunk: bytes) -> bytes:
        """Count bytes of a frame that are not kept; what follows the frame comes back."""
        known = len(self._buffer) + self._passed
        if known + len(chunk) < self._need:
            self._passed += len(chunk)
            return b""
        rest = chunk[self._need - known :]
        self._deliver(self._take_buffer())
        return rest

    # Out of step

    def _lose(self, start: bytes) -> None:
        """Nothing says any more where a frame begins; `start` says so, or a gap (b"")."""
        keep_seeking = self._owner.refuse(start)
        self.is_in_step = False
        self._next_frame()
        if not keep_seeking:
            self._skip(len(self._buffer))
        elif self._buffer:
            # What stands here was looked at already.
            self._skip(1)

    def _skip(self, size: int) -> None:
        del self._buffer[:size]
        self._skipped += size
        self.skipped_bytes += size

    def _seek(self) -> bool:
        """Find the next place that looks like a frame; False when more bytes are needed."""
        pattern = self._owner.pattern()
        found = pattern.search(self._buffer) if pattern else None
        if found is None:
            # The start of a frame may be at the end of what is there.
            keep = SIZE_PREFIX_BYTES + HEAD_BYTES - 1 if pattern else 0
            self._skip(max(0, len(self._buffer) - keep))
            self._wake = len(self._buffer) + 1
            return False
        start = found.start()
        del found  # it holds the buffer
        self._skip(start)
        (size,) = _SIZE.unpack_from(self._buffer)
        wanted = SIZE_PREFIX_BYTES + min(size, HEAD_BYTES)
        if len(self._buffer) < wanted:
            self._wake = wanted
            return False
        head = bytes(self._buffer[SIZE_PREFIX_BYTES:wanted])
        if size > self._sought_max() or not self._owner.is_plausible(head, size):
            self._skip(1)
            self._wake = 1
            return bool(self._buffer)
        self._announce(size)
        self._sought = True
        return True

    def _seek_whole(self) -> None:
        """What is sought does not go on: what seems to have begun is none, and may hold frames."""
        while self._buffer and not self.is_in_step:
            self._next_frame()
            self._skip(1)
            self._cut()

    def _sought_max(self) -> int:
        """How large a frame is tried: smaller, the more was read in vain."""
        for at_first, per_byte, size_max in _IN_VAIN:
            if self._rejected_bytes <= at_first + per_byte * self.skipped_bytes:
                return size_max
        return _SOUGHT_BYTES_LEAST

    def _accept(self) -> bool:
        """Whether a frame that was found by its looks is one."""
        if self._owner.is_sound(self._buffer[SIZE_PREFIX_BYTES : self._need]):
            self.is_in_step = True
            return True
        self._reject()
        return False

    def _reject(self) -> None:
        self._rejected_bytes += self._size
        self._next_frame()
        self._skip(1)
