"""What a Fetch asks: ranges of one leader, each from its position on, and how much of them.

Protocol: Fetch without a session (KIP-227), by topic id from version 13 on (KIP-516).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from pyspark_kafkaproto.client.reading.directory import NO_EPOCH, Directory
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster import Leader
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.wire.declaration import NO_ID

_NO_SESSION = -1
_READ_COMMITTED = 1

LedRange = tuple[RangeProgress, Leader]
Place = tuple[Endpoint, str]
"""A broker, and the rack that a request names to it."""


class Limits(NamedTuple):
    """How much an answer may hold, and how long a broker may wait for it."""

    partition_bytes: int
    response_bytes: int
    min_bytes: int
    wait_s: float


def fetch_request(
    chosen: Sequence[LedRange],
    directory: Directory,
    limits: Limits,
    *,
    compares: bool,
    is_read_committed: bool,
) -> FetchRequest:
    """The request for what comes next of ranges with one leader.

    Args:
        chosen: the ranges and their leader's epochs; who comes first is served first.
        directory: knows topic ids, racks and the epochs of what was read.
        limits: of the answer.
        compares: whether the broker can say that what was read is gone.
        is_read_committed: whether to end where a transaction is still open.
    """
    read_epoch = directory.read_epoch if compares else lambda _: NO_EPOCH
    # Topics stand in the order of their first partitions.
    rank = {item.range.topic: -number for number, (item, _) in enumerate(reversed(chosen))}
    topics = tuple(
        FetchRequest.Topic(
            topic=name,
            topic_id=directory.topic_id(name) or NO_ID,
            partitions=tuple(
                FetchRequest.Topic.Partition(
                    partition=item.range.partition,
                    current_leader_epoch=leader.epoch,
                    fetch_offset=item.position,
                    last_fetched_epoch=read_epoch(item.topic_partition),
                    partition_max_bytes=limits.partition_bytes,
                )
                for item, leader in group
            ),
        )
        for name, group in groupby(sorted(chosen, key=lambda pair: rank[_topic(pair)]), _topic)
    )
    return FetchRequest(
        max_wait_ms=round(limits.wait_s * 1000),
        min_bytes=limits.min_bytes,
        max_bytes=limits.response_bytes,
        isolation_level=_READ_COMMITTED if is_read_committed else 0,
        session_epoch=_NO_SESSION,
        topics=topics,
        rack_id=directory.rack_for(chosen[0][0].topic_partition),
    )


def _topic(pair: LedRange) -> str:
    return pair[0].range.topic
