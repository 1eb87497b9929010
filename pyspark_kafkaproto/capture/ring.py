"""The last frames of a connection, kept in case something goes wrong.

Of each frame only the start is kept, without secrets, so that a ring costs little whatever the
frames hold: next to nothing per frame, and some 16 KiB per connection at most.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from pyspark_kafkaproto.capture.recorder import Address, Recorder
from pyspark_kafkaproto.capture.secrets import Speakers

FRAMES_KEPT = 16
START_BYTES = 1024


class Kept(NamedTuple):
    """The start of one frame. direction: `sent` or `received`."""

    time_ns: int
    direction: str
    start: bytes
    size_bytes: int


class Ring:
    """Remembers the last frames of one connection.

    Attributes:
        frames: what it remembers, the oldest first.
    """

    def __init__(self, client: Address, broker: Address) -> None:
        self._ends = client, broker
        self._speakers = Speakers()
        self.frames: deque[Kept] = deque(maxlen=FRAMES_KEPT)

    def on_frame(self, direction: str, payload: memoryview) -> None:
        """The hook of `net.Connection`."""
        is_sent = direction == "sent"
        hide = self._speakers.hide_request if is_sent else self._speakers.hide_response
        start = bytes(hide(payload)[:START_BYTES])
        self.frames.append(Kept(time.time_ns(), direction, start, len(payload)))

    def write(self, recorder: Recorder) -> None:
        """Everything that is remembered, as a connection of a capture."""
        frames = list(self.frames)
        if not frames:
            return
        track = recorder.connection(*self._ends, time_ns=frames[0].time_ns)
        for kept in frames:
            track.kept(kept.direction, kept.start, kept.size_bytes, kept.time_ns)
