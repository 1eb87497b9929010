"""The way out of a connection: the last request, as far as the kernel has not taken it.

Knows bytes and who looks at them, not what they ask. Whatever fails here may have sent a part of a
frame: `connection` closes then.
"""

from __future__ import annotations

from time import time_ns

from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.observing import OnFrame
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.wire.frame import SIZE_PREFIX_BYTES


class Outgoing:
    """One request at a time: the next one goes when nothing of the last is left.

    Attributes:
        unsent: what has not left, in pieces.
    """

    __slots__ = ("_on_frame", "_transport", "unsent")

    def __init__(self, transport: Transport, on_frame: OnFrame | None) -> None:
        self._transport = transport
        self._on_frame = on_frame
        self.unsent: list[memoryview] = []

    def send(
        self, frame: list[memoryview], deadline: Deadline, stall_s: float | None, *, is_secret: bool
    ) -> None:
        """Send all of a frame, or what goes of it until nothing went for `stall_s`.

        Args:
            frame: in pieces, the first of them with its size.
            deadline: when to give up.
            stall_s: None: until the deadline.
            is_secret: nobody is to look at it.
        """
        # Taken first: the answer can be on its way before the system call comes back.
        began_ns = time_ns() if self._on_frame else 0
        self.unsent = frame
        if stall_s is None:
            self.send_rest(deadline)
        else:
            self.send_more(stall_s)
        if self._on_frame and not is_secret:
            self._on_frame("sent", [frame[0][SIZE_PREFIX_BYTES:], *frame[1:]], began_ns)

    def send_more(self, stall_s: float = 0.0) -> None:
        """Send what goes of what is left, until nothing goes for so long."""
        while self.unsent and (count := self._transport.send_some(self.unsent, stall_s)):
            self.unsent = _without(self.unsent, count)

    def send_rest(self, deadline: Deadline) -> None:
        """Send all of what is left."""
        for piece in self.unsent:
            self._transport.send(piece, deadline)
        self.unsent = []

    def drop(self) -> None:
        """What is left is not sent any more."""
        self.unsent = []


def _without(pieces: list[memoryview], count: int) -> list[memoryview]:
    """What stands behind the first `count` bytes."""
    for number, piece in enumerate(pieces):
        if count < len(piece):
            return [piece[count:], *pieces[number + 1 :]]
        count -= len(piece)
    return []
