"""Logs of the fake cluster: batches that are fetched and offsets that are listed as at a broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from pyspark_kafkaproto.records import NewRecord, encode_batch

if TYPE_CHECKING:
    from tests.fake_broker import Call, FakeCluster

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER = 6
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_ID = 100
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75

Answered = FetchResponse.Topic.Partition
Listed = ListOffsetsResponse.Topic.Partition


class Batch(NamedTuple):
    """An encoded batch, the offset after it and the epoch of the leader that wrote it."""

    data: bytes
    next_offset: int
    epoch: int = 0

    def longer(self, more_bytes: int) -> Batch:
        """The same with a header that says it is longer."""
        length = int.from_bytes(self.data[8:12]) + more_bytes
        return self._replace(data=self.data[:8] + length.to_bytes(4) + self.data[12:])


@dataclass(slots=True)
class FakeLog:
    """One partition's log.

    Attributes:
        start: the first offset that is still there.
        stop: the high watermark.
        stable: the last stable offset; None for the high watermark.
        newest_ms: no record is younger; None where all count as younger than any time.
        producers: what the leader knows of each producer id.
        epoch: the leader epoch of what is written from now on.
        cuts_first: whether even the first batch of an answer is cut at the size asked for, as
            brokers did before Fetch version 3.
    """

    start: int = 0
    stop: int = 0
    stable: int | None = None
    epoch: int = 0
    newest_ms: int | None = None
    cuts_first: bool = False
    aborted: list[tuple[int, int]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    producers: dict[int, Any] = field(default_factory=dict)  # see `fake_produce`
    cuts: dict[int, int] = field(default_factory=dict)  # by the epoch that ended so

    def append(self, *values: bytes, key: bytes | None = None, **fields: Any) -> None:
        """Write one batch at the end; its records have the same key."""
        places = {"base_offset": self.stop, "leader_epoch": self.epoch}
        data = encode_batch([NewRecord(value, key) for value in values], **places | fields)
        self.stop += len(values)
        self.batches.append(Batch(data, self.stop, self.epoch))

    def cut_off(self, offset: int) -> None:
        """Forget what lies beyond `offset`, which ends a batch; another epoch begins."""
        self.batches = [batch for batch in self.batches if batch.next_offset <= offset]
        self.stop = offset
        self.cuts[self.epoch] = offset
        self.epoch += 1

    def epoch_end(self, epoch: int) -> int:
        """Where what was written up to `epoch` ends; -1 of an epoch that has not begun."""
        ends = [end for before, end in self.cuts.items() if before >= epoch]
        return -1 if epoch > self.epoch else min([*ends, self.stop])

    def fill(self, batches: int, records: int = 10, size_bytes: int = 10) -> FakeLog:
        """Write `batches` batches of `records` records; each value begins with its offset."""
        for _ in range(batches):
            offsets = range(self.stop, self.stop + records)
            self.append(*(f"{offset} ".encode().ljust(size_bytes, b".") for offset in offsets))
        return self

    def fetch(
        self,
        partition: int,
        offset: int,
        most_bytes: int,
        *,
        is_first: bool,
        read_epoch: int = -1,
    ) -> Answered:
        """What a leader answers; the first records of an answer hold a whole batch (KIP-74)."""
        if not self.start <= offset <= self.stop:
            return Answered(
                partition_index=partition, error_code=OFFSET_OUT_OF_RANGE, high_watermark=-1
            )
        diverging = self._diverging(offset, read_epoch)
        if diverging:
            return Answered(
                partition_index=partition, high_watermark=self.stop, diverging_epoch=diverging
            )
        return Answered(
            partition_index=partition,
            high_watermark=self.stop,
            last_stable_offset=self.stop if self.stable is None else self.stable,
            log_start_offset=self.start,
            aborted_transactions=tuple(
                Answered.AbortedTransaction(producer_id=producer_id, first_offset=first)
                for producer_id, first in self.aborted
            ),
            records=self._block(offset, most_bytes, is_first=is_first),
        )

    def _diverging(self, offset: int, read_epoch: int) -> Answered.DivergingEpoch | None:
        """What speaks against records read up to `offset`, the last of them in `read_epoch`."""
        within = [batch for batch in self.batches if batch.epoch <= read_epoch]
        end = within[-1].next_offset if within else self.start
        known = within[-1].epoch if within else -1
        if read_epoch < 0 or (known == read_epoch and offset <= end):
            return None
        return Answered.DivergingEpoch(epoch=known, end_offset=end)

    def _block(self, offset: int, most_bytes: int, *, is_first: bool) -> bytes:
        """Batches from the one that holds `offset`, the last one cut at the size."""
        wanted = [batch.data for batch in self.batches if batch.next_offset > offset]
        least = len(wanted[0]) if wanted and is_first and not self.cuts_first else 0
        return b"".join(wanted)[: max(least, most_bytes)]

    def offset_at(self, timestamp: int, isolation_level: int = 0) -> int:
        """What ListOffsets answers for -2 (earliest), -1 (latest, or last stable), or a time."""
        if self.newest_ms is not None and timestamp > self.newest_ms:
            return -1
        is_stable = isolation_level == 1 and self.stable is not None
        end = self.stable if is_stable else self.stop
        return self.start if timestamp >= 0 else {-2: self.start, -1: end}[timestamp]


def fetch(cluster: FakeCluster, call: Call) -> FetchResponse:
    """The default answer to Fetch: from `cluster.logs`, by those who lead; in the order asked."""
    left = call.request.max_bytes
    topics = []
    for topic in call.request.topics:
        name = _name(cluster, topic)
        answered = []
        for asked in topic.partitions:
            error = _refusal(cluster, call, name, asked)
            if error:
                found = Answered(partition_index=asked.partition, error_code=error)
            else:
                log = cluster.logs[name, asked.partition]
                found = log.fetch(
                    asked.partition,
                    asked.fetch_offset,
                    max(0, min(left, asked.partition_max_bytes)),
                    is_first=left == call.request.max_bytes,
                    read_epoch=asked.last_fetched_epoch,
                )
                left -= len(found.records or b"")
            answered.append(found)
        topics.append(
            FetchResponse.Topic(
                topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(answered)
            )
        )
    return FetchResponse(responses=tuple(topics))


def _name(cluster: FakeCluster, topic: Any) -> str | None:
    if topic.topic:
        return topic.topic
    known = (name for name, item in cluster.topics.items() if item.topic_id == topic.topic_id)
    return next(known, None)


def _refusal(cluster: FakeCluster, call: Call, name: str | None, asked: Any) -> int:
    """The error code for one partition, 0 for none."""
    if name is None:
        return UNKNOWN_TOPIC_ID
    if name not in cluster.topics:
        return UNKNOWN_TOPIC_OR_PARTITION
    topic = cluster.topics[name]
    if topic.leaders[asked.partition] != call.node_id:
        return NOT_LEADER
    epoch = asked.current_leader_epoch
    if epoch in (-1, topic.epochs[asked.partition]):
        return 0
    return FENCED_LEADER_EPOCH if epoch < topic.epochs[asked.partition] else UNKNOWN_LEADER_EPOCH


def list_offsets(cluster: FakeCluster, call: Call) -> ListOffsetsResponse:
    """The default answer to ListOffsets, from `cluster.logs`."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponse.Topic(
                name=topic.name,
                partitions=tuple(_listed(cluster, topic, call.request.isolation_level)),
            )
            for topic in call.request.topics
        )
    )


def _listed(cluster: FakeCluster, topic: Any, isolation_level: int) -> Iterator[Listed]:
    for asked in topic.partitions:
        log = cluster.logs.get((topic.name, asked.partition_index))
        if log is None:
            yield Listed(
                partition_index=asked.partition_index, error_code=UNKNOWN_TOPIC_OR_PARTITION
            )
            continue
        offset = log.offset_at(asked.timestamp, isolation_level)
        yield Listed(partition_index=asked.partition_index, offset=offset, leader_epoch=log.epoch)


def epoch_ends(cluster: FakeCluster, call: Call) -> OffsetForLeaderEpochResponse:
    """The default answer to OffsetForLeaderEpoch, from `cluster.logs`."""
    part = OffsetForLeaderEpochResponse.Topic
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            part(
                topic=topic.topic,
                partitions=tuple(
                    part.Partition(
                        partition=asked.partition,
                        end_offset=cluster.logs[topic.topic, asked.partition].epoch_end(
                            asked.leader_epoch
                        ),
                    )
                    for asked in topic.partitions
                ),
            )
            for topic in call.request.topics
        )
    )
