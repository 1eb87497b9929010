"""Blocks of record batches from the leaders of a task's partitions.

A large answer is read while it comes, and the next Fetch is on its way before the last piece of it
is decoded: its offsets are known from batch headers alone. One request asks for all open ranges of
a leader, so that a thousand small partitions take a few round trips. Positions move only over
batches that were received whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.client.block import Block
from pyspark_kafkaproto.client.coming import Coming, Sent, aborted_in
from pyspark_kafkaproto.client.directory import NO_EPOCH, Directory
from pyspark_kafkaproto.client.loss import LossPolicy
from pyspark_kafkaproto.client.memory import AnswerMemory
from pyspark_kafkaproto.client.processors import processors
from pyspark_kafkaproto.client.progress import RangeProgress
from pyspark_kafkaproto.client.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.client.requests import Chosen, Limits, Place, fetch_request
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    list_offsets_at,
)
from pyspark_kafkaproto.error_codes import (
    CORRUPT_MESSAGE,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    CorruptRecords,
    DeadlineExceeded,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.net import (
    Arrival,
    ClientConfig,
    Deadline,
    connections_for,
    retrying,
)
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.records import Skimmed, skim
from pyspark_kafkaproto.wire.cursor import Buffer

_log = logging.getLogger(__name__)

_LAST_VERSION_BY_NAME = 12
_FIRST_VERSION_WITH_READ_EPOCH = 12

# A small first block makes the first rows of `show()` and `limit` cheap.
_FIRST_BLOCK_BYTES = 64 << 10
# Of a large answer: a fraction of a processor's second cache, and much for a step in Python.
PIECE_BYTES = 256 << 10
# Enough to fill a response with small partitions.
_PARTITIONS_PER_REQUEST = 100
# How long a broker may hold an answer when a range's records have not shown up yet.
_MAX_WAIT_S = 0.5


class Part(NamedTuple):
    """What an answer says about one range."""

    progress: RangeProgress
    data: FetchResponse.Topic.Partition


class Fetcher:
    """Reads the ranges of one task, block by block.

    Args:
        task: what to read and where it lies.
        config: the client's configuration; connections are shared with others that use the same.
        settings: how to read.
        router: whom to ask through; None for one on this process's connections.
    """

    def __init__(
        self,
        task: ReadTask,
        config: ClientConfig,
        settings: ReadSettings,
        router: Router | None = None,
    ) -> None:
        router = router or Router(config, connections_for(config), task.leaders)
        self._config = config
        self._directory = Directory(task, router, fail_on_data_loss=settings.fail_on_data_loss)
        self._loss = LossPolicy(router, fail_on_data_loss=settings.fail_on_data_loss)
        self._task = task
        ahead = settings.receives_ahead
        self._receives_ahead = processors() > 1 if ahead is None else ahead
        self._open: list[RangeProgress] = []
        self._sent: Sent | None = None
        self._partition_bytes = min(_FIRST_BLOCK_BYTES, config.max_partition_fetch_bytes)
        self._response_bytes = _FIRST_BLOCK_BYTES
        self._memory = AnswerMemory()
        self._asked: list[RangeProgress] = []
        self._is_throttled = False
        self._min_bytes = 1
        self._coming: Coming | None = None
        self._broken: KafkaProtoError | None = None  # what ended the last answer before its time
        self._patience: Deadline | None = None  # for tries that bring not a single batch
        self.progress: list[RangeProgress] = []

    def blocks(self) -> Iterator[Block]:
        """All records of the task's ranges, each partition's in order.

        A block has to be done with before the next is asked for, or the generator is closed.

        Raises:
            DataLoss: records are gone and the settings say that this fails the read.
            KafkaProtoError: see the tree in `errors`.
        """
        self.progress = self._begin()
        self._open = [item for item in self.progress if not item.is_done]
        shown: Block | None = None
        try:
            while self._open:
                for block in self._next_blocks():
                    if shown is not None:
                        shown.leave()
                    shown = block
                    yield block
        finally:
            self._leave_nothing_in_flight()
            if shown is not None:
                shown.leave()
            self._memory.leave()

    def _begin(self) -> list[RangeProgress]:
        """Where each range starts and ends; open bounds cost one ListOffsets per leader each.

        A Fetch would tell the end too, but a leader just elected, or a follower, may not know yet
        how far records have been acknowledged; ListOffsets waits for that (KIP-207).
        """
        ranges = self._task.ranges
        earliest = self._bounds([item for item in ranges if item.start is None], EARLIEST_TIMESTAMP)
        latest = self._bounds([item for item in ranges if item.stop is None], LATEST_TIMESTAMP)
        begun = []
        for item in ranges:
            start = earliest[item.topic_partition] if item.start is None else item.start
            stop = latest[item.topic_partition] if item.stop is None else item.stop
            progress = RangeProgress(item, start, start, stop)
            if item.stop is None and stop < start:
                self._loss.end_came_back(progress)
            begun.append(progress)
        return begun

    def _bounds(self, ranges: list[OffsetRange], timestamp: int) -> dict[TopicPartition, int]:
        if not ranges:
            return {}
        partitions = [item.topic_partition for item in ranges]
        found = list_offsets_at(self._directory.router, partitions, timestamp)
        return {partition: offset or 0 for partition, offset in found.items()}

    def _next_blocks(self) -> Iterator[Block]:
        started = time.monotonic()
        deadline = self._patience or Deadline.after(self._config.default_api_timeout_s)
        self._patience = deadline
        try:
            answer = retrying(
                f"fetch from {self._open[0].range}",
                lambda: self._begin_exchange(deadline.sooner(self._config.request_timeout_s)),
                deadline,
                self._config.backoff,
                self._recover,
            )
        except BrokerError as error:
            self._leave_deleted(error)
            self._patience = None  # what is left has not been tried yet
            answer = []
        if isinstance(answer, Coming):
            yield from self._blocks_coming(answer, time.monotonic() - started)
        else:
            yield from self._blocks_there(answer, started)

    def _blocks_there(self, parts: list[Part], started: float) -> list[Block]:
        """The blocks of an answer that is there."""
        was_waiting = self._is_waiting()
        blocks = self._advance(parts)
        if was_waiting and self._is_waiting() and not blocks:
            time.sleep(self._config.retry_backoff_s)  # not every broker holds an empty answer
        self._account(blocks, time.monotonic() - started)
        if blocks or self._is_waiting() or self._is_throttled:  # who waits keeps a time of its own
            self._patience = None
        self._send_ahead()
        return blocks

    def _leave_deleted(self, error: BrokerError) -> None:
        """Give up the ranges of topics that were deleted; raises if that is not the error."""
        gone = [item for item in self._open if item.range.topic in self._directory.missing]
        if error.code != UNKNOWN_TOPIC_OR_PARTITION or not gone:
            raise error
        for item in gone:
            self._loss.topic_missing(item, error)
        self._directory.forget(item.topic_partition for item in gone)

    # One exchange

    def _exchange(self, deadline: Deadline) -> list[Part]:
        """The answer to what is in flight, or to a request sent now; one try."""
        sent, arrival = self._begin_answer(deadline, None)
        return self._whole_answer(sent, arrival, deadline)

    def _begin_exchange(self, deadline: Deadline) -> list[Part] | Coming:
        """The same, or the start of a large answer, to be read while it comes."""
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error
        sent, arrival = self._begin_answer(deadline, PIECE_BYTES)
        self._coming = Coming.of(sent, arrival, self._receive_more)
        return self._coming or self._whole_answer(sent, arrival, deadline)

    def _begin_answer(self, deadline: Deadline, piece_bytes: int | None) -> tuple[Sent, Arrival]:
        if self._sent is None:
            self._sent = self._send(deadline)
        sent = self._sent
        self._asked = list(sent.asked.values())
        arrival = sent.connection.begin(
            deadline, self._memory.take, piece_bytes, thread=self._receives_ahead
        )
        return sent, arrival

    def _whole_answer(self, sent: Sent, arrival: Arrival, deadline: Deadline) -> list[Part]:
        answer = sent.connection.finish(arrival, deadline).message
        self._sent = None
        self._is_throttled = sent.connection.is_throttled
        return self._accept(answer, sent)

    # An answer that is read while it comes

    def _blocks_coming(self, coming: Coming, spent_s: float) -> Iterator[Block]:
        coming.block.progress.report.fetch_s += spent_s
        yield coming.block
        coming.block.finish()  # who read it may not have needed all
        self._coming = None
        # One that broke off may have been put back to where it was good, done or not.
        self._open = [item for item in self.progress if not item.is_done]
        yield from coming.others

    def _receive_more(self, block: Block) -> None:
        """Wait for the next piece of the answer; what follows its last is asked for at once."""
        coming = self._coming
        if coming is None:
            raise LocalProtocolError("a block is read after the one that follows was asked for")
        began = time.monotonic()
        try:
            if not coming.receive_piece(PIECE_BYTES, self._config.request_timeout_s):
                return
            soon = Deadline.after(self._config.request_timeout_s)  # nothing is waited for
            parts = self._whole_answer(coming.sent, coming.arrival, soon)
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            self._break_off(coming, error)
        else:
            self._complete(coming, parts)
        finally:
            block.progress.report.fetch_s += time.monotonic() - began

    def _complete(self, coming: Coming, parts: list[Part]) -> None:
        """All of the answer is there: what it says of its first records, and what comes behind."""
        blocks = self._advance(parts)
        coming.others = [item for item in blocks if item.progress is not coming.block.progress]
        own = next((item for item in blocks if item.progress is coming.block.progress), None)
        coming.block.ends(coming.block.start if own is None else own.end)
        self._account(blocks, 0.0)
        if blocks:
            self._patience = None
        self._send_ahead()

    def _break_off(self, coming: Coming, error: KafkaProtoError) -> None:
        """The answer ended before its time: what came of it is good, the rest is asked for again.

        The next try begins with the error, so that it is waited and accounted for as others are.
        """
        self._leave_nothing_in_flight()
        self._broken = error
        block, progress = coming.block, coming.block.progress
        block.has_broken_off = True
        seen = _skim(progress, block.records)
        if seen.next_offset is None or seen.next_offset <= progress.position:
            block.ends(block.start)
            return
        own = self._take(progress, coming.data, block.records[: seen.pos], seen.next_offset)
        block.ends(own.end)
        self._directory.note_read(progress.topic_partition, seen.leader_epoch)
        self._account([own], 0.0)
        self._patience = None

    def _send_ahead(self) -> None:
        """Ask for the next block before this one is decoded, unless that would have to wait."""
        if not self._open or self._is_waiting() or self._is_throttled:
            return
        try:
            self._sent = self._send(Deadline.after(self._config.request_timeout_s))
        except (ConnectionFailed, DeadlineExceeded, BrokerError) as error:
            # The rows at hand are good: they go out first, and the next exchange meets the error
            # again inside the retry loop.
            _log.debug("fetching ahead failed, tried again after this block: %s", error)

    def _send(self, deadline: Deadline) -> Sent:
        """Ask for the first open range that has a leader, with all near ones of the same place."""
        near = self._open[:_PARTITIONS_PER_REQUEST]
        leaders = self._directory.leaders((item.topic_partition for item in near), deadline)
        return self._send_to(next(iter(self._by_place(near, leaders).values())), deadline)

    def _by_place(
        self, ranges: Iterable[RangeProgress], leaders: Mapping[TopicPartition, Leader]
    ) -> dict[Place, list[Chosen]]:
        """Those of `ranges` that have a leader, by where they are asked for, in their order.

        One request names one rack: ranges that stay with their leader are asked for apart.
        """
        places: dict[Place, list[Chosen]] = {}
        for item in ranges:
            leader = leaders.get(item.topic_partition)
            if leader is not None:
                place = leader.endpoint, self._directory.rack_for(item.topic_partition)
                places.setdefault(place, []).append((item, leader))
        return places

    def _send_to(self, chosen: list[Chosen], deadline: Deadline) -> Sent:
        """Ask one leader, or the follower that it named, for what comes next of `chosen`."""
        connection = self._directory.router.connect(chosen[0][1].endpoint, deadline)
        ids = {item.range.topic: self._directory.topic_id(item.range.topic) for item, _ in chosen}
        most = None if all(ids.values()) else _LAST_VERSION_BY_NAME
        version = connection.version_for(FetchRequest, most)
        compares = version >= _FIRST_VERSION_WITH_READ_EPOCH
        connection.send(self._request(chosen, compares=compares), deadline, version)
        names = {known: topic for topic, known in ids.items() if known}
        return Sent(connection, {item.topic_partition: item for item, _ in chosen}, names)

    def _request(self, chosen: list[Chosen], *, compares: bool) -> FetchRequest:
        """What to ask; `compares`: whether the broker can say that what was read is gone."""
        most = min(self._config.fetch_max_bytes, self._response_bytes)
        batch_bytes = max(item.batch_bytes for item, _ in chosen)
        limits = Limits(
            partition_bytes=max(self._partition_bytes, batch_bytes),
            response_bytes=max(most, batch_bytes),
            min_bytes=self._min_bytes,
            wait_s=self._wait_s(),
        )
        return fetch_request(
            chosen,
            self._directory,
            limits,
            compares=compares,
            is_read_committed=self._config.is_read_committed,
        )

    def _accept(self, answer: FetchResponse, sent: Sent) -> list[Part]:
        """The partitions that were answered; raises if there is an error and nothing else.

        Raises at once for an error that no retry mends. OFFSET_OUT_OF_RANGE is an answer here.
        """
        broker = str(sent.connection.endpoint)
        if answer.error_code:
            raise BrokerError(answer.error_code, "Fetch", "the request").at(broker)
        if answer.throttle_time_ms and not answer.responses:
            return []  # over its quota a client without a session is told to wait, and nothing else
        parts: list[Part] = []
        failures: dict[TopicPartition, BrokerError] = {}
        left = dict(sent.asked)
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
        if left:
            raise RemoteProtocolError(f"no answer for {', '.join(map(str, left))}", where="Fetch")
        return self._judge(parts, failures)

    def _judge(self, parts: list[Part], failures: dict[TopicPartition, BrokerError]) -> list[Part]:
        for_good = (error for error in failures.values() if not error.error.is_retriable)
        worst = next(for_good, None if parts else next(iter(failures.values()), None))
        if worst is not None:
            raise worst
        self._directory.forget(failures)
        for item in self._asked:
            item.report.retries += item.topic_partition in failures
        return parts

    def _recover(self, error: KafkaProtoError) -> None:
        """Before another try: what was in flight is lost, leaders may have moved."""
        self._leave_nothing_in_flight()
        for item in self._asked:
            item.report.retries += 1
        self._directory.forget_for(error)

    # Positions

    def _advance(self, parts: list[Part]) -> list[Block]:
        """Turn answers into blocks and move the positions over them."""
        self._partition_bytes = self._config.max_partition_fetch_bytes
        self._response_bytes = self._config.fetch_max_bytes
        is_empty = not any(part.data.records for part in parts)
        blocks: list[Block] = []
        cut: dict[RangeProgress, Skimmed] = {}
        doubted: list[TopicPartition] = []
        for progress, data in parts:
            if data.error_code == OFFSET_OUT_OF_RANGE:
                self._loss.reset(progress)
                if progress.stalled_since is not None:
                    doubted.append(progress.topic_partition)
                # If the offset is there after all, it is the epoch that the leader has not got.
                self._directory.note_read(progress.topic_partition, NO_EPOCH)
                continue
            if data.diverging_epoch.end_offset >= 0:
                self._take_truncation(progress, data.diverging_epoch.end_offset)
            elif is_empty:
                self._nothing_came(progress)
            elif data.records:
                seen = _skim(progress, data.records)
                if seen.next_offset is None:
                    cut[progress] = seen
                else:
                    blocks.append(self._take(progress, data, data.records, seen.next_offset))
                    self._directory.note_read(progress.topic_partition, seen.leader_epoch)
        for partition in doubted:  # not before all of the answer was judged by who is known
            self._directory.doubt(partition)
        self._fit_next_batch(blocks, cut)
        self._open = [item for item in self._open if not item.is_done]
        return blocks

    def _take_truncation(self, progress: RangeProgress, end: int) -> None:
        partition = progress.topic_partition
        self._loss.truncated(progress, self._directory.read_epoch(partition), end)
        self._directory.note_read(partition, NO_EPOCH)  # said once; the read goes on

    def _nothing_came(self, progress: RangeProgress) -> None:
        """The range has not ended, and its leader has nothing."""
        self._loss.wait_or_give_up(progress)
        self._directory.doubt(progress.topic_partition)

    def _take(
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
        is what shows a damaged one.
        """
        end = self._bounds([progress.range], LATEST_TIMESTAMP)[progress.topic_partition]
        if next_offset > end:
            raise CorruptRecords(
                f"its batches end at {next_offset}, beyond the end of the log, {end}",
                base_offset=progress.position,
            ).of(*progress.topic_partition)

    def _fit_next_batch(self, blocks: list[Block], cut: dict[RangeProgress, Skimmed]) -> None:
        """Ask for what a batch takes that did not fit, or for twice as much where it does not say.

        Brokers send the first batch whole whatever its size (KIP-74), so that is rare. A batch cut
        behind whole ones is not too large: those filled the answer.

        Raises:
            CorruptRecords: so much was asked for, and the batch is cut all the same.
        """
        first = self._asked[0] if blocks else next(iter(cut), None)
        if first is None or first not in cut:
            return
        batch_bytes = cut[first].missing_bytes or 2 * max(self._partition_bytes, first.batch_bytes)
        if batch_bytes <= first.batch_bytes:
            raise CorruptRecords(
                f"its header says {batch_bytes} bytes, which were asked for, and it did not come "
                "whole: the header is damaged, or the broker makes answers smaller than a batch",
                base_offset=first.position,
            ).of(*first.topic_partition)
        most = self._config.receive_message_max_bytes
        if batch_bytes > most:
            said = cut[first].missing_bytes or f"over {batch_bytes // 2}"
            raise RemoteProtocolError(
                f"a record batch of {said} bytes, at most {most} bytes are allowed "
                "(receive.message.max.bytes)",
                where=f"partition {first.topic_partition} at offset {first.position}",
            )
        first.batch_bytes = batch_bytes

    def _wait_s(self) -> float:
        """How long the broker may hold its answer when it has no records."""
        return _MAX_WAIT_S if self._is_waiting() else 0.0

    def _is_waiting(self) -> bool:
        """Whether the records that come next have not shown up yet."""
        return any(item.stalled_since is not None for item in self._open)

    def _account(self, blocks: list[Block], spent_s: float) -> None:
        total = sum(len(block.records) for block in blocks)
        for block in blocks:
            report = block.progress.report
            report.fetched_bytes += len(block.records)
            report.fetch_s += spent_s * len(block.records) / total

    def _leave_nothing_in_flight(self) -> None:
        """A connection with an answer still to come is of no use to others."""
        self._coming = None
        if self._sent is not None:
            self._sent.connection.close()
            self._sent = None


_ADVICE = {
    CORRUPT_MESSAGE: "the broker cannot read its own log there: the file is damaged",
    TOPIC_AUTHORIZATION_FAILED: "this user needs the right READ on the topic",
}


def _failure(partition: TopicPartition, code: int) -> BrokerError:
    return BrokerError(code, "Fetch", f"partition {partition}", _ADVICE.get(code, ""))


def _skim(progress: RangeProgress, records: Buffer) -> Skimmed:
    try:
        return skim(records)
    except CorruptRecords as error:
        raise error.of(*progress.topic_partition) from error
