"""Rows that were given to us and are not handed out yet: decoded when they are asked for."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from pyspark_kafkaproto.client.share.held import Held
from pyspark_kafkaproto.client.share.rows import Part, Parts
from pyspark_kafkaproto.client.share.session import ShareSession

_log = logging.getLogger(__name__)

_TOO_LATE: Final = (
    "%s: not handed out, and comes again: the lock of what was given to us ran out before it was "
    "polled for. Poll more often, or set max.poll.records lower, or the group's "
    "share.record.lock.duration.ms higher: brokers deliver a record only so often"
)


class Coming:
    """All of them, in the order in which answers came."""

    def __init__(self) -> None:
        self._rest: deque[_OfPartition] = deque()
        self._on_its_way: tuple[_OfPartition, Part] | None = None  # to who polls

    def add(self, session: ShareSession, parts: Parts, helds: Sequence[Held], until: float) -> None:
        """Rows of one partition, surely ours `until` then (time.monotonic)."""
        self._rest.append(_OfPartition(session, parts, helds, until))

    def next_part(self) -> Part | None:
        """The next rows, handed out from here on.

        Raises:
            CorruptRecords: behind the sound rows of its partition.
        """
        while self._rest:
            first = self._rest[0]
            part = first.next_part() if first.is_ours else None
            if part is not None:
                self._on_its_way = first, part
                part.held.give(part.first, part.last)
                return part
            self._drop_first()
        return None

    @property
    def has_more(self) -> bool:
        """Whether there may be rows that `next_part` gives."""
        return bool(self._rest)

    def note_arrived(self) -> None:
        """Who polls has the last rows."""
        self._on_its_way = None

    def take_back(self) -> None:
        """What was given since `note_arrived` has not arrived: it comes again."""
        if self._on_its_way is not None:
            source, part = self._on_its_way
            part.held.take_back(part.first, part.last)
            source.again = part
        self._on_its_way = None

    def close(self) -> None:
        """Nothing more of it is handed out."""
        while self._rest:
            self._drop_first()

    def _drop_first(self) -> None:
        self._rest[0].close()  # first: where an interrupt comes in between, it is closed again
        self._rest.popleft()


class _OfPartition:
    """Rows of one partition that are not handed out yet, and until when they are surely ours."""

    __slots__ = ("_helds", "_parts", "_session", "_until", "again")

    def __init__(
        self, session: ShareSession, parts: Parts, helds: Sequence[Held], until: float
    ) -> None:
        self._session = session
        self._until = until
        self._helds = helds
        self._parts = parts
        self.again: Part | None = None  # came out, but did not arrive

    @property
    def is_ours(self) -> bool:
        """Whether what was not handed out may still be: others have it once its lock runs out."""
        return self._session.lost is None and time.monotonic() < self._until

    def next_part(self) -> Part | None:
        """The next rows.

        Raises:
            CorruptRecords: behind the sound rows.
        """
        part, self.again = self.again, None
        return next(self._parts, None) if part is None else part

    def close(self) -> None:
        """No more of it is handed out: it goes back now, or by itself as its lock runs out."""
        if not self.is_ours:
            if self._session.lost is None and any(held.is_coming for held in self._helds):
                _log.warning(_TOO_LATE, self._helds[0].acquired.partition)
            for held in self._helds:
                held.drop_coming()
        self._parts.close()
        for held in self._helds:  # what an interrupt has ended before it began has released nothing
            held.release_coming()
