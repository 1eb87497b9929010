"""Fetch sessions of a fake node (KIP-227), as Kafka keeps them.

Who answers a Fetch sees all that is asked for, whatever the request names of it; what goes out says
nothing of partitions of which there is nothing new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.wire.declaration import NO_ID

NOT_FOUND = 70
INVALID_EPOCH = 71
TOPIC_ID_ERROR = 106

_FIRST_VERSION = 7
_FIRST_VERSION_BY_ID = 13
_NO_SESSION = -1
_BEGIN = 0
_FIRST_ID = 500
_UNKNOWN = -1

Key = tuple[str, bytes, int]  # a topic's name or id, the other empty, and the partition
Partition = FetchResponse.Topic.Partition


def with_values(struct: Any, **values: Any) -> Any:
    """Another one, with these values in place of its own."""
    own = {name: getattr(struct, name) for name in type(struct).NAMES}
    return type(struct)(**own | values)


def is_farewell(request: FetchRequest) -> bool:
    """Whether it ends a session, and does nothing else."""
    return request.session_epoch == _NO_SESSION and request.session_id > 0 and not request.topics


@dataclass(slots=True)
class _Asked:
    """A partition of a session, and what was said of it last."""

    terms: FetchRequest.Topic.Partition
    high_watermark: int = _UNKNOWN
    log_start_offset: int = _UNKNOWN

    def has_news(self, data: Partition) -> bool:
        """Whether `data` has to be said; it counts as said then."""
        has_moved = (data.high_watermark, data.log_start_offset) != (
            self.high_watermark,
            self.log_start_offset,
        )
        self.high_watermark = _UNKNOWN if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return (
            has_moved
            or bool(data.records)
            or bool(data.error_code)
            or data.preferred_read_replica >= 0
            or data.diverging_epoch.end_offset >= 0
        )


@dataclass(slots=True)
class Session:
    """What one client asks for, in the order in which it is served."""

    session_id: int
    is_by_id: bool
    epoch: int = 1
    asked: dict[Key, _Asked] = field(default_factory=dict)

    def take(self, request: FetchRequest) -> None:
        """Note what the request names; what it names and forgets is forgotten, as in Kafka."""
        for topic in request.topics:
            for item in topic.partitions:
                key = self._key(topic, item.partition)
                if key in self.asked:
                    self.asked[key].terms = item
                else:
                    self.asked[key] = _Asked(item)
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                self.asked.pop(self._key(topic, number), None)

    def widened(self, request: FetchRequest) -> FetchRequest:
        """The request, with all that is asked for."""
        topics: list[FetchRequest.Topic] = []
        for (name, topic_id, _), item in self.asked.items():
            if topics and (topics[-1].topic, topics[-1].topic_id) == (name, topic_id):
                partitions = (*topics[-1].partitions, item.terms)
                topics[-1] = with_values(topics[-1], partitions=partitions)
            else:
                topics.append(
                    FetchRequest.Topic(topic=name, topic_id=topic_id, partitions=(item.terms,))
                )
        return with_values(request, topics=tuple(topics))

    def narrowed(self, answer: FetchResponse) -> FetchResponse:
        """The answer, without what is nothing new; who had records is served last from now on."""
        news = tuple(self._news(answer, is_whole=self.epoch == 1))
        return with_values(answer, session_id=self.session_id, responses=news)

    def _news(self, answer: FetchResponse, *, is_whole: bool) -> Iterator[FetchResponse.Topic]:
        for topic in answer.responses:
            partitions = []
            for data in topic.partitions:
                key = self._key(topic, data.partition_index)
                asked = self.asked.get(key)
                has_news = asked is None or asked.has_news(data)
                if is_whole or has_news:
                    partitions.append(data)
                if asked is not None and _has_batch(data.records) and not is_whole:
                    self.asked[key] = self.asked.pop(key)
            if partitions:
                yield with_values(topic, partitions=tuple(partitions))

    def _key(self, topic: Any, number: int) -> Key:
        return ("", topic.topic_id, number) if self.is_by_id else (topic.topic, NO_ID, number)


def _has_batch(records: Any) -> bool:
    """Whether there is more than a piece of one, which Kafka does not send in front."""
    found = bytes(records or b"")
    return len(found) > 12 and len(found) >= 12 + int.from_bytes(found[8:12])


class FakeSessions:
    """The sessions of all nodes.

    Attributes:
        most: how many there may be; who asks for another has none.
        named: each Fetch as it came, by node.
    """

    def __init__(self) -> None:
        self.most = 1000
        self.named: list[tuple[int, FetchRequest]] = []
        self._kept: dict[tuple[int, int], Session] = {}
        self._next_id = _FIRST_ID

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self) -> None:
        """As brokers do that start anew, or have others to remember."""
        self._kept.clear()

    def of(self, node_id: int, version: int, request: FetchRequest) -> Session | int | None:
        """The session that a request belongs to, which knows of it now; an error; or None."""
        self.named.append((node_id, request))
        is_by_id = version >= _FIRST_VERSION_BY_ID
        if request.session_epoch in (_NO_SESSION, _BEGIN):
            self._kept.pop((node_id, request.session_id), None)
            is_none = request.session_epoch == _NO_SESSION or version < _FIRST_VERSION
            if is_none or len(self._kept) >= self.most:
                return None
            self._next_id += 1
            session = Session(self._next_id, is_by_id)
            self._kept[node_id, session.session_id] = session
        else:
            found = self._kept.get((node_id, request.session_id))
            if found is None:
                return NOT_FOUND
            if request.session_epoch != found.epoch:
                return INVALID_EPOCH
            if is_by_id != found.is_by_id:
                return TOPIC_ID_ERROR
            found.epoch += 1
            session = found
        session.take(request)
        if not session.asked:
            del self._kept[node_id, session.session_id]
            return None
        return session

    def answered(self, session: Session, answer: FetchResponse) -> FetchResponse:
        """What goes out for an answer about all that is asked for."""
        is_empty = bool(answer.error_code or (answer.throttle_time_ms and not answer.responses))
        if is_empty and session.epoch == 1:
            self._kept = {key: item for key, item in self._kept.items() if item is not session}
        if answer.error_code or (is_empty and session.epoch == 1):
            return answer
        return session.narrowed(answer)
