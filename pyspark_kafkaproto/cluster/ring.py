"""The last frames of a connection, kept in case something goes wrong.

Of each frame only the start is kept: some 16 KiB per connection at most, and next to no time.
Nothing of the analyser is imported and nothing is decoded before a ring is written: executors pay
for the first at every start and for the second with every frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.net import Endpoint

if TYPE_CHECKING:
    from pyspark_kafkaproto.capture.recorder import Recorder, Track

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
    """

    def __init__(self, here: str, broker: Endpoint) -> None:
        self._here = here
        self._broker = broker
        # Of `Kept`'s fields, without names: remembering a frame takes half as long.
        self._frames: deque[tuple[int, str, bytes, int]] = deque(maxlen=FRAMES_KEPT)
        self._keep = self._frames.append

    def on_frame(self, direction: str, pieces: Sequence[memoryview], time_ns: int) -> None:
        """The hook of `net.Connection`."""
        start, size_bytes = pieces[0][:START_BYTES].tobytes(), len(pieces[0])
        for piece in pieces[1:]:
            start += piece[: START_BYTES - len(start)]
            size_bytes += len(piece)
        self._keep((time_ns, direction, start, size_bytes))

    @property
    def last_ns(self) -> int:
        """When the last frame was sent or received, ns since 1970; 0 before the first."""
        return self._frames[-1][0] if self._frames else 0

    def told(self) -> Iterator[Kept]:
        """What it remembers and can be read again, secrets left out.

        An answer whose request is forgotten is left out too: nobody knows what it holds.
        """
        from pyspark_kafkaproto.capture.secrets import Speakers  # noqa: PLC0415  see above

        speakers = Speakers()
        asked: set[bytes] = set()
        for kept in map(Kept._make, list(self._frames)):
            if kept.direction == _SENT:
                asked.add(kept.start[4:8])
                yield kept._replace(start=bytes(speakers.hide_request(kept.start)))
            elif kept.start[:_CORRELATION_STOP] in asked:
                yield kept._replace(start=bytes(speakers.hide_response(kept.start)))

    def open(self, recorder: Recorder, time_ns: int) -> Track:
        """Its connection in a capture."""
        from pyspark_kafkaproto.capture.recorder import Address  # noqa: PLC0415  see above

        here = Endpoint.parse(self._here)
        broker = Address(self._broker.host, self._broker.port)
        return recorder.connection(Address(here.host, here.port), broker, time_ns=time_ns)


def write_rings(rings: Iterable[Ring], recorder: Recorder) -> None:
    """Everything that they remember, in the order in which it was said."""
    tracks: dict[Ring, Track] = {}
    # Merged, not sorted: where the clock was set back, an answer still follows its request.
    for said in merge(*(_said(ring) for ring in rings), key=attrgetter("kept.time_ns")):
        kept = said.kept
        if said.ring not in tracks:
            tracks[said.ring] = said.ring.open(recorder, kept.time_ns)
        tracks[said.ring].kept(kept.direction, kept.start, kept.size_bytes, kept.time_ns)


class _Said(NamedTuple):
    ring: Ring
    kept: Kept


def _said(ring: Ring) -> Iterator[_Said]:
    return (_Said(ring, kept) for kept in ring.told())
