"""The last frames of a connection, kept in case something goes wrong.

Of each frame only the start is kept: some 16 KiB per connection at most, and next to no time.
Nothing of the analyser is imported and nothing is decoded before a ring is written: executors pay
for the first at every start and for the second with every frame.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.net import Endpoint

if TYPE_CHECKING:
    from pyspark_kafkaproto.capture.recorder import Recorder

FRAMES_KEPT = 16
START_BYTES = 1024
_SENT = "sent"
_CORRELATION_STOP = 4  # of a response; in a request, the correlation id stands at 4 to 8


class Kept(NamedTuple):
    """The start of one frame. direction: `sent` or `received`."""

    time_ns: int
    direction: str
    start: bytes
    size_bytes: int


class Ring:
    """Remembers the last frames of one connection.

    Args:
        here: our end, as `host:port`.
        broker: the other.

    Attributes:
        frames: what it remembers, the oldest first.
    """

    def __init__(self, here: str, broker: Endpoint) -> None:
        self._here = here
        self._broker = broker
        self.frames: deque[Kept] = deque(maxlen=FRAMES_KEPT)

    def on_frame(self, direction: str, payload: memoryview, time_ns: int) -> None:
        """The hook of `net.Connection`."""
        start = bytes(payload[:START_BYTES])
        self.frames.append(Kept(time_ns, direction, start, len(payload)))

    def write(self, recorder: Recorder) -> None:
        """Everything that is remembered, as a connection of a capture; secrets are left out."""
        from pyspark_kafkaproto.capture.recorder import Address  # noqa: PLC0415  see above
        from pyspark_kafkaproto.capture.secrets import Speakers  # noqa: PLC0415

        frames = list(self.frames)
        if not frames:
            return
        ends = [Address(end.host, end.port) for end in (Endpoint.parse(self._here), self._broker)]
        track = recorder.connection(ends[0], ends[1], time_ns=frames[0].time_ns)
        speakers = Speakers()
        asked: set[bytes] = set()
        for kept in frames:
            if kept.direction == _SENT:
                asked.add(kept.start[4:8])
                start = bytes(speakers.hide_request(kept.start))
            elif kept.start[:_CORRELATION_STOP] in asked:
                start = bytes(speakers.hide_response(kept.start))
            else:  # its request is forgotten, so nobody knows whether it holds a secret
                rest = max(0, len(kept.start) - _CORRELATION_STOP)
                start = kept.start[:_CORRELATION_STOP] + bytes(rest)
            track.kept(kept.direction, start, kept.size_bytes, kept.time_ns)
