"""Rows that were given to us and are not handed out yet: decoded when they are asked for."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

from pyspark_kafkaproto.client.share.held import Held
from pyspark_kafkaproto.client.share.rows import Part, Parts
from pyspark_kafkaproto.client.share.session import ShareSession


class Coming:
    """All of them, in the order in which answers came."""

    def __init__(self) -> None:
        self._rest: deque[_OfPartition] = deque()
        self._on_its_way: Part | None = None  # to who polls
        self._again: Part | None = None

    def add(self, session: ShareSession, parts: Parts, helds: Sequence[Held], until: float) -> None:
        """Rows of one partition, surely ours `until` then (time.monotonic)."""
        self._rest.append(_OfPartition(session, parts, helds, until))

    def next_part(self) -> Part | None:
        """The next rows, handed out from here on.

        Raises:
            CorruptRecords: behind the sound rows of its partition.
        """
        part, self._again = self._again, None
        if part is None:
            part = self._next_of_rest()
        if part is not None:
            self._on_its_way = part
            part.held.give(part.first, part.last)
        return part

    def note_arrived(self) -> None:
        """Who polls has the last rows."""
        self._on_its_way = None

    def take_back(self) -> None:
        """What was given since `note_arrived` has not arrived: it comes again."""
        part, self._on_its_way = self._on_its_way, None
        if part is not None:
            part.held.take_back(part.first, part.last)
            self._again = part

    def close(self) -> None:
        """Nothing more of it is handed out."""
        self._again = None
        while self._rest:
            self._rest.popleft().close()

    def _next_of_rest(self) -> Part | None:
        while self._rest:
            first = self._rest[0]
            part = next(first.parts, None) if first.is_ours else None
            if part is not None:
                return part
            self._rest.popleft().close()
        return None


class _OfPartition:
    """Rows of one partition that are not handed out yet, and until when they are surely ours."""

    __slots__ = ("_helds", "_session", "_until", "parts")

    def __init__(
        self, session: ShareSession, parts: Parts, helds: Sequence[Held], until: float
    ) -> None:
        self._session = session
        self._until = until
        self._helds = helds
        self.parts = parts

    @property
    def is_ours(self) -> bool:
        """Whether what was not handed out may still be: others have it once its lock runs out."""
        return self._session.lost is None and time.monotonic() < self._until

    def close(self) -> None:
        """No more of it is handed out: it goes back now, or by itself as its lock runs out."""
        if not self.is_ours:
            for held in self._helds:
                held.drop_coming()
        self.parts.close()
