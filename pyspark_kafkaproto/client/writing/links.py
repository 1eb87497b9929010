"""One leader and what is in flight to it: Produce requests out of batches."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError, UnsupportedVersion
from pyspark_kafkaproto.messages.produce import ProduceRequest, ProduceResponse
from pyspark_kafkaproto.net import Connection, Deadline, Endpoint, ProducerConfig
from pyspark_kafkaproto.wire.declaration import NO_ID

_log = logging.getLogger(__name__)

_LAST_VERSION_BY_NAME = 12
# Brokers say that they know the versions below, and refuse them (KAFKA-18659).
_FIRST_VERSION = 3
_HURRIED_S = 1.0
# A network takes more of a request after each round trip. Who takes nothing for longer has to wait
# until we come again, so that other leaders need not.
_STALL_S = 0.2


class SentProduce(NamedTuple):
    """A request in flight.

    batches: what it carries, by partition. topics: their names by topic id.
    """

    batches: Mapping[TopicPartition, tuple[PartitionQueue, Batch]]
    topics: Mapping[bytes, str]
    deadline: Deadline

    @property
    def size_bytes(self) -> int:
        """Of all its batches."""
        return sum(batch.size_bytes for _, batch in self.batches.values())


class Link:
    """The connection to one leader.

    Attributes:
        connection: that of the last request, None where it is of no use any more. With nothing in
            flight others may use it, and the next request takes whichever is kept.
        sent: what is in flight, the oldest first.
        has_failed: it could not be used the last time.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.connection: Connection | None = None
        self.sent: deque[SentProduce] = deque()
        self.has_failed = False

    @property
    def was_ended(self) -> bool:
        """Whether the broker has hung up since the last request, with nothing in flight."""
        connection = self.connection
        return connection is not None and not (connection.in_flight or connection.is_idle)

    @property
    def _in_use(self) -> Connection | None:
        """The connection while something of this link is in flight: it is nobody else's then."""
        return self.connection if self.sent else None

    def excuse(self, away_s: float) -> None:
        """Nobody was there to send the rest of a request: its time is not the broker's."""
        if self._in_use is not None and self._in_use.has_unsent:
            last = self.sent.pop()
            self.sent.append(last._replace(deadline=last.deadline.later(away_s)))

    def is_throttled(self, throttling: Collection[Endpoint]) -> bool:
        """Whether the broker wants silence for now.

        throttling: the brokers that want it on any connection of this thread: with nothing in
        flight the next request may take each.
        """
        if self._in_use is None:
            return self.endpoint in throttling
        return self._in_use.is_throttled

    def has_room(self, most: int, throttling: Collection[Endpoint]) -> bool:
        """Whether another request may go out now; `throttling` as above."""
        # When throttled `send` would wait, and all other leaders with it.
        if self.is_throttled(throttling) or len(self.sent) >= most:
            return False
        in_use = self._in_use
        return in_use is None or not (in_use.must_drain or in_use.has_unsent)

    def send(
        self,
        router: Router,
        config: ProducerConfig,
        chosen: Sequence[tuple[PartitionQueue, Batch]],
        deadline: Deadline,
        id_and_version: tuple[str | None, int | None],
        *,
        others_wait: bool,
    ) -> None:
        """Send one request with `chosen`.

        others_wait: other leaders have something to do: a broker that has just failed gets little
        of their time.

        Raises:
            ConnectionFailed, DeadlineExceeded: the broker cannot be reached, or takes nothing.
            UnsupportedVersion: the broker is too old.
        """
        if not self.sent:
            is_hurried = others_wait and self.has_failed
            within = deadline.sooner(_HURRIED_S) if is_hurried else deadline
            self.connection = router.connect(self.endpoint, within)
            self.has_failed = False
        connection = self.connection
        assert connection is not None  # noqa: S101 - there is one while something is in flight
        transactional_id, most = id_and_version
        if not all(queue.topic_id for queue, _ in chosen):
            most = min(most or _LAST_VERSION_BY_NAME, _LAST_VERSION_BY_NAME)
        version = connection.version_for(ProduceRequest, most)
        if version < _FIRST_VERSION:
            raise UnsupportedVersion(
                f"broker {self.endpoint} speaks Produce {version}: record batches need "
                f"{_FIRST_VERSION} or later"
            )
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=config.acks,
            timeout_ms=int(config.client.request_timeout_s * 1000),
            topic_data=_topics(chosen),
        )
        is_answered = config.acks != 0
        if is_answered:  # before: of what is sent and not noted, as by Ctrl-C, nobody hears out
            batches = {queue.partition: (queue, batch) for queue, batch in chosen}
            topics = {queue.topic_id or NO_ID: queue.partition.topic for queue, _ in chosen}
            self.sent.append(SentProduce(batches, topics, deadline))
        stall_s = _STALL_S if is_answered else None
        try:
            connection.send(request, deadline, version, is_answered=is_answered, stall_s=stall_s)
        except KafkaProtoError:
            if is_answered:
                self.sent.pop()
            raise

    def hear_out(self, deadline: Deadline) -> Iterator[tuple[SentProduce, ProduceResponse]]:
        """Wait for all answers, and give each with what it is to.

        What has not left as a whole is not waited for: brokers do nothing with a part.
        """
        connection = self.connection
        if connection is None:
            return
        answered = len(self.sent) - connection.has_unsent
        try:
            for _ in range(answered):
                answer = connection.receive(deadline).message
                yield self.sent.popleft(), answer
        except KafkaProtoError as error:
            _log.debug("%s has not answered all that it was sent: %s", self.endpoint, error)

    def drop(self) -> None:
        """Close the connection unless nothing is in flight; what is in flight is forgotten."""
        if self.connection is not None and self.sent:
            self.connection.close()
        self.connection = None
        self.sent.clear()


def _topics(chosen: Sequence[tuple[PartitionQueue, Batch]]) -> tuple[ProduceRequest.Topic, ...]:
    by_topic: dict[str, list[tuple[PartitionQueue, Batch]]] = {}
    for queue, batch in chosen:
        by_topic.setdefault(queue.partition.topic, []).append((queue, batch))
    return tuple(
        ProduceRequest.Topic(
            name=name,
            topic_id=pairs[0][0].topic_id or NO_ID,
            partition_data=tuple(
                ProduceRequest.Topic.Partition(index=queue.partition.partition, records=batch.data)
                for queue, batch in pairs
            ),
        )
        for name, pairs in by_topic.items()
    )
