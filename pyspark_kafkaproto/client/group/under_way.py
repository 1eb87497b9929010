"""The Fetches of a member that are not answered yet, and memory for what comes of their answers.

Several answers may come at once, each into memory of its own. Whom to ask about what, and what an
answer means, is `tail`'s.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from pyspark_kafkaproto.client.reading.coming import SentFetch
from pyspark_kafkaproto.client.reading.memory import AnswerMemory
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.requests import Place
from pyspark_kafkaproto.net import Connection, Deadline, MakeBuffer, wait_for_answers


class Pending(NamedTuple):
    """A Fetch that is not answered yet: of which broker and rack, since when (time.monotonic)."""

    sent: SentFetch
    place: Place
    since: float

    @property
    def partitions(self) -> list[RangeProgress]:
        """What it asks for."""
        return list(self.sent.asked.values())


class UnderWay:
    """All of them, the oldest first.

    Args:
        max_wait_s: for how long a broker may hold its answer while it has nothing.
        request_timeout_s: how long nothing may come of an answer beyond that.
    """

    def __init__(self, max_wait_s: float, request_timeout_s: float) -> None:
        self._max_wait_s = max_wait_s
        self._timeout_s = request_timeout_s
        self._pending: list[Pending] = []
        self._filling: dict[Connection, AnswerMemory] = {}  # with what has come of their answers
        self._spare: list[AnswerMemory] = []

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def oldest(self) -> Pending:
        """Whoever was asked first."""
        return self._pending[0]

    @property
    def partitions(self) -> set[RangeProgress]:
        """What somebody is asked about."""
        return {item for one in self._pending for item in one.partitions}

    @property
    def places(self) -> set[Place]:
        """Who is asked."""
        return {one.place for one in self._pending}

    def add(self, sent: SentFetch, place: Place) -> None:
        """`sent` went out now."""
        self._pending.append(Pending(sent, place, time.monotonic()))

    def close(self) -> None:
        """Let go of all."""
        for one in self._pending:
            one.sent.connection.close()
        self._pending.clear()
        self._spare += self._filling.values()
        self._filling.clear()

    def first_come(self, timeout_s: float) -> Pending | None:
        """Who has answered, of several who was asked first; None: nobody in time.

        Waits no longer than until the oldest is due.
        """
        connections = [one.sent.connection for one in self._pending]
        wait_s = min(timeout_s, self.due(self.oldest).remaining_s)
        ready = wait_for_answers(connections, wait_s, self._buffer_for)
        return next((one for one in self._pending if one.sent.connection in ready), None)

    def due(self, one: Pending) -> Deadline:
        """By when its answer has to come, or more of it."""
        heard_at = max(one.since + self._max_wait_s, one.sent.connection.heard_at)
        return Deadline(heard_at + self._timeout_s, self._max_wait_s + self._timeout_s)

    def take(self, one: Pending, read: AnswerMemory) -> AnswerMemory:
        """`one` is under way no more.

        Args:
            one: who has answered, or failed.
            read: the memory of the answer before, which is done with.

        Returns:
            The memory that its answer comes into, or has begun to.
        """
        self._pending.remove(one)
        filled = self._filling.pop(one.sent.connection, None)
        if filled is None:
            return read
        self._spare.append(read)
        return filled

    def _buffer_for(self, connection: Connection) -> MakeBuffer:
        """Memory of its own for an answer that comes while others do."""

        def take(size_bytes: int) -> memoryview:
            memory = self._spare.pop() if self._spare else AnswerMemory()
            self._filling[connection] = memory
            return memory.take(size_bytes)

        return take
