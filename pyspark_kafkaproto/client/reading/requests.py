"""What a Fetch asks: partitions of one leader, each from an offset on, and how much of them.

Protocol: by topic id from version 13 on (KIP-516), within a session of the broker's or without
(KIP-227).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.net import Endpoint

_NO_SESSION_ID = 0
_NO_SESSION = -1
_READ_COMMITTED = 1

LedRange = tuple[RangeProgress, Leader]
Place = tuple[Endpoint, str]
"""A broker, and the rack that a request names to it."""


class Limits(NamedTuple):
    """How much an answer may hold, and how long a broker may wait for it."""

    response_bytes: int
    min_bytes: int
    wait_s: float


class Terms(NamedTuple):
    """What is asked of a partition; `read_epoch` is -1 where nothing is to be compared."""

    partition: TopicPartition
    topic_id: bytes
    offset: int
    leader_epoch: int
    read_epoch: int
    most_bytes: int


class Scope(NamedTuple):
    """What a Fetch names: all that is asked for, or within a session what has changed of it."""

    terms: Collection[Terms]  # who comes first is served first
    forgotten: Collection[Terms] = ()
    session_id: int = _NO_SESSION_ID
    session_epoch: int = _NO_SESSION

    @property
    def is_whole(self) -> bool:
        """Whether it is all that is asked for, and the answer is about all of that."""
        return self.session_epoch <= 0


def fetch_request(
    scope: Scope, limits: Limits, rack_id: str, *, is_read_committed: bool
) -> FetchRequest:
    """The request for what comes next of partitions with one leader.

    Args:
        scope: which, and from where on.
        limits: of the answer.
        rack_id: the reader's, for the leader to name a follower there; "" for none.
        is_read_committed: whether to end where a transaction is still open.
    """
    return FetchRequest(
        max_wait_ms=round(limits.wait_s * 1000),
        min_bytes=limits.min_bytes,
        max_bytes=limits.response_bytes,
        isolation_level=_READ_COMMITTED if is_read_committed else 0,
        session_id=scope.session_id,
        session_epoch=scope.session_epoch,
        topics=tuple(_asked(scope.terms)),
        forgotten_topics_data=tuple(_forgotten(scope.forgotten)),
        rack_id=rack_id,
    )


def _asked(terms: Collection[Terms]) -> Iterator[FetchRequest.Topic]:
    for (topic, topic_id), group in _by_topic(terms):
        yield FetchRequest.Topic(
            topic=topic,
            topic_id=topic_id,
            partitions=tuple(
                FetchRequest.Topic.Partition(
                    partition=item.partition.partition,
                    current_leader_epoch=item.leader_epoch,
                    fetch_offset=item.offset,
                    last_fetched_epoch=item.read_epoch,
                    partition_max_bytes=item.most_bytes,
                )
                for item in group
            ),
        )


def _forgotten(terms: Collection[Terms]) -> Iterator[FetchRequest.ForgottenTopic]:
    for (topic, topic_id), group in _by_topic(terms):
        numbers = tuple(item.partition.partition for item in group)
        yield FetchRequest.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=numbers)


def _by_topic(terms: Collection[Terms]) -> Iterable[tuple[tuple[str, bytes], Iterator[Terms]]]:
    """Topics in the order of their first partitions, with theirs."""
    rank: dict[tuple[str, bytes], int] = {}
    for item in terms:
        rank.setdefault(_topic(item), len(rank))
    return groupby(sorted(terms, key=lambda item: rank[_topic(item)]), _topic)


def _topic(item: Terms) -> tuple[str, bytes]:
    return item.partition.topic, item.topic_id
