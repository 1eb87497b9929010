"""What a broker remembers of our Fetches, so that each names no more than has changed (KIP-227).

A session is the broker's. It holds which partitions are asked for, and from where on, and answers
are about those alone of which there is something new. What was said to the broker is noted here: a
session is good as long as every Fetch of it was answered, one after the other. Else it is begun
anew, with a Fetch that names everything and ends the one before: brokers keep a thousand, by
default, for all their clients. One that keeps no more gives none, and is told everything each time.
Where the first answer is lost, nobody knows the id of what the broker may keep for two minutes: so
none is begun for a while. A member that closes ends its own, and waits for no answer to that.
What is asked, and what an answer means, is `tail`'s.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection
from typing import Final

from pyspark_kafkaproto.client.reading.requests import Limits, Place, Scope, Terms, fetch_request
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.net import Connection, Deadline, Endpoint

_log = logging.getLogger(__name__)

_NONE: Final = 0
_FIRST_EPOCH: Final = 0  # of a Fetch that names everything, and ends the session that it names
_LAST_EPOCH: Final = 2**31 - 1
_NO_EPOCH: Final = -1  # the same, and no session is begun

_WITHOUT_S: Final = 10.0  # after one was begun that nobody can end

_TO_END_S: Final = 0.1  # for all that a member has
_OF_NOTHING: Final = Limits(response_bytes=0, min_bytes=0, wait_s=0.0)


class FetchSession:
    """Our side of a session with one broker."""

    def __init__(self) -> None:
        self._id = _NONE
        self._epoch = _FIRST_EPOCH
        self._said: dict[TopicPartition, Terms] = {}
        self._is_by_id = False
        self._is_answered = True
        self._is_begun = False  # by the last Fetch
        self._begins_after = Deadline.after(0)

    def next_scope(self, terms: list[Terms], *, is_by_id: bool) -> Scope:
        """What the next Fetch has to name, so that the broker knows all of `terms`.

        Until `note_answer` that Fetch counts as lost.

        Args:
            terms: what is asked for, of different partitions.
            is_by_id: whether the Fetch names topics by their ids. A session does not change that.
        """
        if not self._is_answered and self._is_begun:
            self._begins_after = Deadline.after(_WITHOUT_S)
        if not self._is_answered or is_by_id != self._is_by_id:
            self.begin_anew()
        said, self._said = self._said, {item.partition: item for item in terms}
        self._is_answered, self._is_by_id = False, is_by_id
        is_whole = self._epoch == _FIRST_EPOCH
        self._is_begun = is_whole and self._begins_after.has_passed
        if is_whole:
            return Scope(terms, (), self._id, _FIRST_EPOCH if self._is_begun else _NO_EPOCH)
        changed = [item for item in terms if said.get(item.partition) != item]
        return Scope(changed, self._forgotten(said), self._id, self._epoch)

    def note_answer(self, answer: FetchResponse) -> None:
        """The answer to the last Fetch has come, and is one or an error about all of it."""
        self._is_answered = True
        if answer.error_code or answer.session_id == _NONE:
            self.begin_anew()
            return
        self._id = answer.session_id
        self._epoch = self._epoch + 1 if self._epoch < _LAST_EPOCH else _FIRST_EPOCH + 1

    def begin_anew(self) -> None:
        """The next Fetch names everything. The id stays, for the broker to end what it may have."""
        self._epoch = _FIRST_EPOCH
        self._said = {}

    def last_scope(self) -> Scope | None:
        """What ends the session at the broker, and begins none; None: there is none known of."""
        return None if self._id == _NONE else Scope((), (), self._id, _NO_EPOCH)

    def _forgotten(self, said: dict[TopicPartition, Terms]) -> list[Terms]:
        """What the broker is to ask for no more; a topic made again is another one.

        But for those who name it: what a Fetch forgets is forgotten, though it names it, too.
        """
        return [
            item
            for partition, item in said.items()
            if partition not in self._said
            or (self._is_by_id and self._said[partition].topic_id != item.topic_id)
        ]


class FetchSessions:
    """Those of a member. They outlive a `Tail`, so that no broker keeps more than one of it."""

    def __init__(self) -> None:
        self._of: defaultdict[Place, FetchSession] = defaultdict(FetchSession)

    def at(self, place: Place) -> FetchSession:
        """The one of a broker, and of the rack that is named to it."""
        return self._of[place]

    def begin_anew(self) -> None:
        """All of them; who reads on from here has heard no answer yet."""
        for session in self._of.values():
            session.begin_anew()

    def end(self, connections: Collection[Connection]) -> None:
        """Have brokers forget them, as far as they can be told at once; no answer is waited for.

        Brokers read what was sent before a connection was closed, and behind a Fetch that they hold
        still. One that is told nothing forgets a session when it needs the room.

        Args:
            connections: those there are; they are of no use afterwards.
        """
        deadline = Deadline.after(_TO_END_S)
        for place, session in self._of.items():
            scope = session.last_scope()
            connection = None if scope is None else _free(place[0], connections)
            if scope is None or connection is None or deadline.has_passed:
                continue
            request = fetch_request(scope, _OF_NOTHING, place[1], is_read_committed=False)
            try:
                version = connection.version_for(FetchRequest)
                connection.send(request, deadline, version, stall_s=0.0)
            except KafkaProtoError as error:
                _log.debug("a fetch session was not ended: %s", error)
        self._of.clear()


def _free(endpoint: Endpoint, connections: Collection[Connection]) -> Connection | None:
    """One that takes a request now; best one on which no answer is to come before."""
    free = [
        one
        for one in connections
        if one.endpoint == endpoint
        and (one.is_idle or (one.is_open and one.in_flight))
        and not (one.is_throttled or one.has_unsent)
    ]
    return min(free, key=lambda one: one.in_flight, default=None)
