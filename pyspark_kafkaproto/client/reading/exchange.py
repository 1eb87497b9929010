"""A Fetch to a leader and its answer: who is asked, what errors mean, how positions move.

What every reader has in common. `fetch` reads ranges to their end with it, `group/tail` partitions
that have none; when to ask, whom first and how long to wait is theirs. Positions move only over
batches that were received whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.coming import SentFetch, aborted_in
from pyspark_kafkaproto.client.reading.directory import NO_EPOCH, Directory
from pyspark_kafkaproto.client.reading.loss import Bounds, LossPolicy
from pyspark_kafkaproto.client.reading.memory import AnswerMemory
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import ReadTask
from pyspark_kafkaproto.client.reading.requests import (
    LedRange,
    Limits,
    Place,
    Scope,
    Terms,
    fetch_request,
)
from pyspark_kafkaproto.client.reading.withheld import Withheld
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.error_codes import (
    CORRUPT_MESSAGE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    CorruptRecords,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.net import Arrival, ClientConfig, Deadline
from pyspark_kafkaproto.records import Skimmed, skim
from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.declaration import NO_ID

_LAST_VERSION_BY_NAME = 12
_FIRST_VERSION_WITH_READ_EPOCH = 12

# A small first block makes the first rows of `show()` and `limit` cheap.
_FIRST_BLOCK_BYTES = 64 << 10


class Part(NamedTuple):
    """What an answer says about one range."""

    progress: RangeProgress
    data: FetchResponse.Topic.Partition


class Exchanges(ABC):
    """The exchanges of one reader with the leaders of its partitions.

    Args:
        task: what to read and where it lies.
        config: the client's configuration.
        router: whom to ask through.
        loss: decides about records that are missing.
        fail_on_data_loss: whether a topic that is gone ends the read.
    """

    def __init__(
        self,
        task: ReadTask,
        config: ClientConfig,
        router: Router,
        loss: LossPolicy,
        *,
        fail_on_data_loss: bool,
    ) -> None:
        self._config = config
        self._directory = Directory(task, router, fail_on_data_loss=fail_on_data_loss)
        self._loss = loss
        self._open: list[RangeProgress] = []  # what is left to read
        self._asked: list[RangeProgress] = []  # what the last answer, or failure, is about
        self._unsaid = 0  # of how many of these that answer says nothing: nothing is new
        self._sent: SentFetch | None = None  # what is in flight
        self._memory = AnswerMemory()
        self._partition_bytes = min(_FIRST_BLOCK_BYTES, config.max_partition_fetch_bytes)
        self._response_bytes = _FIRST_BLOCK_BYTES
        self._min_bytes = 1
        self._is_throttled = False
        self._withheld = Withheld(config)

    @abstractmethod
    def _wait_s(self) -> float:
        """How long the broker may hold its answer when it has no records."""

    @abstractmethod
    def _nothing_came(self, progress: RangeProgress, bounds: Bounds) -> None:
        """The leader has nothing of a range that has not ended; `bounds` of all such ranges."""

    # Asking

    def _by_place(
        self, ranges: Iterable[RangeProgress], leaders: Mapping[TopicPartition, Leader]
    ) -> dict[Place, list[LedRange]]:
        """Those of `ranges` that have a leader, by where they are asked for, in their order.

        One request names one rack: ranges that stay with their leader are asked for apart.
        """
        places: dict[Place, list[LedRange]] = {}
        for item in ranges:
            leader = leaders.get(item.topic_partition)
            if leader is not None:
                place = leader.endpoint, self._directory.rack_for(item.topic_partition)
                places.setdefault(place, []).append((item, leader))
        return places

    def _send_to(self, place: Place, chosen: list[LedRange], deadline: Deadline) -> SentFetch:
        """Ask one leader, or the follower that it named, for what comes next of `chosen`."""
        endpoint, rack_id = place
        connection = self._directory.router.connect(endpoint, deadline)
        ids = {item.range.topic: self._directory.topic_id(item.range.topic) for item, _ in chosen}
        most = None if all(ids.values()) else _LAST_VERSION_BY_NAME
        version = connection.version_for(FetchRequest, most)
        terms = self._terms(chosen, ids, compares=version >= _FIRST_VERSION_WITH_READ_EPOCH)
        scope = self._next_scope(place, terms, is_by_id=version > _LAST_VERSION_BY_NAME)
        request = fetch_request(
            scope,
            self._limits(chosen),
            rack_id,
            is_read_committed=self._config.is_read_committed,
        )
        connection.send(request, deadline, version)
        names = {known: topic for topic, known in ids.items() if known}
        asked = {item.topic_partition: item for item, _ in chosen}
        return SentFetch(connection, asked, names, scope.is_whole)

    def _terms(
        self, chosen: list[LedRange], ids: Mapping[str, bytes | None], *, compares: bool
    ) -> list[Terms]:
        """What to ask of each; `compares`: whether the broker can say that what was read is gone.

        A partition whose next batch did not fit is asked for with as much as that takes.
        """
        read_epoch = self._directory.read_epoch if compares else lambda _: NO_EPOCH
        least = self._partition_bytes
        return [
            Terms(
                item.topic_partition,
                ids[item.range.topic] or NO_ID,
                item.position,
                leader.epoch,
                read_epoch(item.topic_partition),
                max(least, item.batch_bytes),
            )
            for item, leader in chosen
        ]

    def _limits(self, chosen: list[LedRange]) -> Limits:
        most = min(self._config.fetch_max_bytes, self._response_bytes)
        batch_bytes = max(item.batch_bytes for item, _ in chosen)
        return Limits(max(most, batch_bytes), self._min_bytes, self._wait_s())

    def _next_scope(self, place: Place, terms: list[Terms], *, is_by_id: bool) -> Scope:
        """What the next Fetch names of them: everything, as no broker keeps a session for us."""
        del place, is_by_id
        return Scope(terms)

    # Answers

    def _whole_answer(self, sent: SentFetch, arrival: Arrival, deadline: Deadline) -> list[Part]:
        answer = sent.connection.finish(arrival, deadline).message
        self._sent = None
        self._is_throttled = sent.connection.is_throttled
        return self._accept(answer, sent)

    def _accept(self, answer: FetchResponse, sent: SentFetch) -> list[Part]:
        """The partitions that were answered; raises if there is an error and nothing else.

        Raises at once for an error that no retry mends. OFFSET_OUT_OF_RANGE is an answer here.
        """
        broker = str(sent.connection.endpoint)
        self._unsaid = 0
        if answer.error_code:
            raise BrokerError(answer.error_code, "Fetch", "the request").at(broker)
        if self._withheld.note(sent.connection.endpoint, sent.asked, answer):
            return []  # over its quota a client is told to wait, and nothing else
        parts: list[Part] = []
        failures: dict[TopicPartition, BrokerError] = {}
        left = dict(sent.asked)  # what nothing is said of
        for topic in answer.responses:
            for data in topic.partitions:
                partition = TopicPartition(sent.named(topic), data.partition_index)
                progress = left.pop(partition, None)
                if progress is None:
                    raise RemoteProtocolError(f"{partition} was not asked for", where="Fetch")
                if self._directory.moves(partition, data):
                    continue
                if data.error_code in (0, OFFSET_OUT_OF_RANGE):
                    parts.append(Part(progress, data))
                else:
                    self._directory.note_failure(partition, data)
                    failures[partition] = _failure(partition, data.error_code).at(broker)
        if left and sent.is_whole:
            raise RemoteProtocolError(f"no answer for {', '.join(map(str, left))}", where="Fetch")
        self._unsaid = len(left)
        self._judge(failures, is_any_well=bool(parts or left))
        return parts

    def _judge(self, failures: Mapping[TopicPartition, BrokerError], *, is_any_well: bool) -> None:
        for_good = (error for error in failures.values() if not error.error.is_retriable)
        worst = next(for_good, None if is_any_well else next(iter(failures.values()), None))
        if worst is not None:
            raise worst
        self._directory.forget(failures)
        for item in self._asked:
            item.report.retries += item.topic_partition in failures

    def _recover(self, error: KafkaProtoError) -> None:
        """Before another try: what was in flight is lost, leaders may have moved."""
        self._note_failure(error)
        self._leave_nothing_in_flight()
        for item in self._asked:
            item.report.retries += 1
        self._directory.forget_for(error)

    def _note_failure(self, error: KafkaProtoError) -> None:
        """Of what is in flight, for whoever is asked next who leads."""
        if self._sent is not None:
            self._directory.router.note_failure(self._sent.connection.endpoint, error)

    def _leave_nothing_in_flight(self) -> None:
        """A connection with an answer still to come is of no use to others."""
        if self._sent is not None:
            self._sent.connection.close()
            self._sent = None

    # Positions

    def _advance(self, parts: list[Part]) -> list[Block]:
        """Turn answers into blocks and move the positions over them."""
        self._partition_bytes = self._config.max_partition_fetch_bytes
        self._response_bytes = self._config.fetch_max_bytes
        is_empty = not any(part.data.records for part in parts)
        blocks: list[Block] = []
        cut: dict[RangeProgress, Skimmed] = {}
        doubted: list[TopicPartition] = []
        missing = [
            item for item, data in parts if is_empty or data.error_code == OFFSET_OUT_OF_RANGE
        ]
        bounds = Bounds(self._directory.router, missing)
        for progress, data in parts:
            was_out_of_range = progress.is_out_of_range
            progress.is_out_of_range = data.error_code == OFFSET_OUT_OF_RANGE
            if progress.is_out_of_range:
                self._loss.reset(progress, bounds)
                is_doubted = progress.stalled_since is not None
                if is_doubted:
                    doubted.append(progress.topic_partition)
                # If the offset is there after all, it is the epoch that the leader has not got. Not
                # on one word: it may be of an old leader, and the log cut off at the next one.
                if was_out_of_range or not is_doubted:
                    self._directory.note_read(progress.topic_partition, NO_EPOCH)
                continue
            if data.diverging_epoch.end_offset >= 0:
                self._take_truncation(progress, data.diverging_epoch.end_offset)
            elif is_empty:
                self._nothing_came(progress, bounds)
            elif data.records:
                seen = skimmed(progress, data.records)
                if seen.next_offset is None:
                    cut[progress] = seen
                else:
                    blocks.append(self._block_of(progress, data, data.records, seen.next_offset))
                    self._directory.note_read(progress.topic_partition, seen.leader_epoch)
            else:
                progress.stalled_since = None  # others may have filled the answer
        for partition in doubted:  # not before all of the answer was judged by who is known
            self._directory.doubt(partition)
        self._fit_next_batches(parts, cut)
        self._open = [item for item in self._open if not item.is_done]
        return blocks

    def _take_truncation(self, progress: RangeProgress, end: int) -> None:
        partition = progress.topic_partition
        self._loss.truncated(progress, self._directory.read_epoch(partition), end)
        self._directory.note_read(partition, NO_EPOCH)  # said once; the read goes on

    def _block_of(
        self,
        progress: RangeProgress,
        data: FetchResponse.Topic.Partition,
        records: Buffer,
        next_offset: int,
    ) -> Block:
        """The block of an answer with whole batches, which end before `next_offset`."""
        if next_offset <= progress.position:
            raise RemoteProtocolError(
                f"asked from offset {progress.position}, the answer ends at {next_offset}",
                where=f"Fetch, partition {progress.topic_partition}",
            )
        if next_offset > data.high_watermark:
            self._check_end(progress, next_offset)
        block = Block(progress, memoryview(records), aborted_in(data))
        block.ends(next_offset)
        progress.position = next_offset
        progress.stalled_since = None
        progress.batch_bytes = 0
        return block

    def _check_end(self, progress: RangeProgress, next_offset: int) -> None:
        """Whether the log really goes to `next_offset`, which is more than the answer says.

        A leader notes the high watermark and then reads up to where it is by then: while others
        write, its answer may hold more. But the CRC does not cover a batch's base offset, and this
        is what shows a damaged one. Where another leader, or another topic of that name, has told
        the end, or the topic is gone, the next Fetch tells what has become of the log.
        """
        partition = progress.topic_partition
        try:
            end = list_bounds(self._directory.router, [partition], LATEST_TIMESTAMP)[partition]
        except BrokerError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return
        if next_offset > end and self._directory.is_up_to_date(partition):
            raise CorruptRecords(
                f"its batches end at {next_offset}, beyond the end of the log, {end}",
                base_offset=progress.position,
            ).of(*partition)

    def _fit_next_batches(self, parts: list[Part], cut: dict[RangeProgress, Skimmed]) -> None:
        """Ask for what a batch takes that did not fit.

        Brokers send the first batch whole whatever its size (KIP-74), so that is rare. Those before
        Fetch 3 cut each that is larger than asked for, and answer in an order of their own. A batch
        cut behind whole ones for less is not too large: those filled the answer.
        """
        first = next((progress for progress, data in parts if data.records), None)
        for progress, data in parts:
            if progress in cut:
                asked_bytes = max(self._partition_bytes, progress.batch_bytes)
                if progress is first or len(data.records or b"") >= asked_bytes:
                    self._fit_batch(progress, cut[progress].missing_bytes)

    def _fit_batch(self, progress: RangeProgress, missing_bytes: int) -> None:
        """Ask for `missing_bytes`, or for twice as much where the batch does not say.

        Raises:
            CorruptRecords: so much was asked for, and the batch is cut all the same.
        """
        batch_bytes = missing_bytes or 2 * max(self._partition_bytes, progress.batch_bytes)
        if batch_bytes <= progress.batch_bytes:
            raise CorruptRecords(
                f"its header says {batch_bytes} bytes, which were asked for, and it did not come "
                "whole: the header is damaged, or the broker makes answers smaller than a batch",
                base_offset=progress.position,
            ).of(*progress.topic_partition)
        most = self._config.receive_message_max_bytes
        if batch_bytes > most:
            said = missing_bytes or f"over {batch_bytes // 2}"
            raise RemoteProtocolError(
                f"a record batch of {said} bytes, at most {most} bytes are allowed "
                f"({self._config.named('receive.message.max.bytes')})",
                where=f"partition {progress.topic_partition} at offset {progress.position}",
            )
        progress.batch_bytes = batch_bytes


_ADVICE = {CORRUPT_MESSAGE: "the broker cannot read its own log there: the file is damaged"}


def _failure(partition: TopicPartition, code: int) -> BrokerError:
    return BrokerError(code, "Fetch", f"partition {partition}", _ADVICE.get(code, ""))


def skimmed(progress: RangeProgress, records: Buffer) -> Skimmed:
    """What the headers of these record batches say; errors name the partition."""
    try:
        return skim(records)
    except CorruptRecords as error:
        raise error.of(*progress.topic_partition) from error
