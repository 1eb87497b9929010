"""Blocks of record batches from the leaders of a task's partitions, up to the ends of its ranges.

A large answer is read while it comes, and the next Fetch is on its way before the last piece of it
is decoded: its offsets are known from batch headers alone. One request asks for those of the first
hundred open ranges that one leader has, so that a thousand small partitions take a few round trips.
What a Fetch asks for and what its answer means stands in `exchange`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress

from pyspark_kafkaproto.client.processors import spare_threads
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.coming import Coming, SentFetch
from pyspark_kafkaproto.client.reading.exchange import Exchanges, Part, skimmed
from pyspark_kafkaproto.client.reading.gone import note_there
from pyspark_kafkaproto.client.reading.loss import Bounds, LossPolicy
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    CorruptRecords,
    DeadlineExceeded,
    KafkaProtoError,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for, retrying
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.records import read_header
from pyspark_kafkaproto.records.compression import NONE

_log = logging.getLogger(__name__)

# Of a large answer: a fraction of a processor's second cache, and much for a step in Python.
PIECE_BYTES = 256 << 10
# The same where nobody receives meanwhile: as much as a broker sends ahead (its
# socket.send.buffer.bytes, 100 kB), so that it sends the next piece while this one is decoded.
_PIECE_ALONE_BYTES = 96 << 10
# Enough to fill a response with small partitions.
_PARTITIONS_PER_REQUEST = 100
# From this size on records that are not compressed are decoded so fast that with two processors a
# thread which receives meanwhile takes more than it gives (docs/benchmarks.md).
_LIGHT_RECORD_BYTES = 64
# How long a broker may hold an answer when a range's records have not shown up yet.
_MAX_WAIT_S = 0.5


class Fetcher(Exchanges):
    """Reads the ranges of one task, block by block.

    Args:
        task: what to read and where it lies.
        config: the client's configuration; connections are shared with others that use the same.
        settings: how to read.
    """

    def __init__(
        self,
        task: ReadTask,
        config: ClientConfig,
        settings: ReadSettings,
    ) -> None:
        router = Router(config, connections_for(config), task.leaders)
        fail = settings.fail_on_data_loss
        loss = LossPolicy(router, fail_on_data_loss=fail)
        super().__init__(task, config, router, loss, fail_on_data_loss=fail)
        self._task = task
        spare = spare_threads(settings.uses_threads)
        self._receives_ahead = spare > 0
        self._is_scarce = spare == 1 and settings.uses_threads is None  # others may want it, too
        self._has_little_to_hide = False  # by what came last
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
        there = [
            each for each in ranges if each.start is not None or each.topic_partition in earliest
        ]
        latest = self._ends([item for item in there if item.stop is None])
        begun = []
        for item in ranges:
            start = earliest.get(item.topic_partition) if item.start is None else item.start
            stop = latest.get(item.topic_partition) if item.stop is None else item.stop
            if start is None or stop is None:
                begun.append(RangeProgress(item, 0, 0, 0))  # its topic was deleted
                continue
            progress = RangeProgress(item, start, start, stop)
            if item.stop is None and stop < start:
                self._loss.end_came_back(progress)
            self._loss.check_end(progress, start)
            begun.append(progress)
        return begun

    def _ends(self, ranges: list[OffsetRange]) -> dict[TopicPartition, int]:
        """The latest offset of each; others are asked, too, where one lies before its start."""
        starts = {item.topic_partition: item.start or 0 for item in ranges}
        return self._directory.router.believed(
            lambda: self._bounds(ranges, LATEST_TIMESTAMP),
            lambda ends: all(end >= starts[item] for item, end in ends.items()),
        )

    def _bounds(self, ranges: list[OffsetRange], timestamp: int) -> dict[TopicPartition, int]:
        """Of each; of one whose topic was deleted none, where that is not to fail the read.

        A broker may lag behind the others: it is not believed before request.timeout.ms.
        """
        gives_up = Deadline.after(self._config.request_timeout_s)
        partitions = [item.topic_partition for item in ranges]
        while partitions:
            try:
                found = list_bounds(self._directory.router, partitions, timestamp)
            except BrokerError as error:
                topics, lost = self._deleted(error, partitions)
                is_certain = gives_up.has_passed
                believed = self._loss.topics_deleted(topics, error, is_certain=is_certain)
                left = self._loss.partitions_deleted(lost, error, is_certain=is_certain)
                partitions = [
                    item for item in partitions if item.topic not in believed and item not in left
                ]
            else:
                for topic in {item.topic for item in partitions}:
                    note_there(self._task.topic_ids.get(topic))
                return found
        return {}

    def _deleted(
        self, error: BrokerError, partitions: list[TopicPartition]
    ) -> tuple[dict[str, bytes], list[TopicPartition]]:
        """What was planned by id and is not there: topics, and partitions of others that are.

        Raises:
            BrokerError: `error`, where all is there.
        """
        ids = self._task.topic_ids
        topics = {item.topic for item in partitions}
        planned = {topic: topic_id for topic in topics if (topic_id := ids.get(topic))}
        if error.code != UNKNOWN_TOPIC_OR_PARTITION or not planned:
            raise error
        found = self._directory.router.described(planned.keys())
        gone = {topic: topic_id for topic, topic_id in planned.items() if not found.has(topic)}
        lost = [item for item in partitions if found.has_lost(item, planned.get(item.topic))]
        if not gone and not lost:
            raise error
        return gone, lost

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
        """Give up the ranges of what was deleted; raises if that is not the error."""
        directory = self._directory
        gone = [item for item in self._open if item.range.topic in directory.missing]
        lost = [item for item in self._open if item.topic_partition in directory.lost]
        if error.code != UNKNOWN_TOPIC_OR_PARTITION or not (gone or lost):
            raise error
        for item in gone:
            self._loss.topic_missing(item, error, directory.topic_id(item.range.topic))
        for item in lost:
            self._loss.partition_missing(item, error)
        directory.forget(item.topic_partition for item in (*gone, *lost))

    def _account(self, blocks: list[Block], spent_s: float) -> None:
        total = sum(len(block.records) for block in blocks)
        for block in blocks:
            report = block.progress.report
            report.fetched_bytes += len(block.records)
            report.fetch_s += spent_s * len(block.records) / total

    # One exchange

    def _begin_exchange(self, deadline: Deadline) -> list[Part] | Coming:
        """The answer to what is in flight, or to a request sent now; one try.

        Of a large answer it is the start, to be read while it comes.
        """
        if self._broken is not None:
            error, self._broken = self._broken, None
            raise error
        if self._sent is None:
            self._sent = self._send(deadline)
        sent = self._sent
        self._asked = list(sent.asked.values())
        ahead = self._receives_ahead and not self._has_little_to_hide
        piece_bytes = PIECE_BYTES if ahead else _PIECE_ALONE_BYTES
        arrival = sent.connection.begin(deadline, self._memory.take, piece_bytes, thread=ahead)
        self._coming = Coming.of(sent, arrival, self._receive_more)
        return self._coming or self._whole_answer(sent, arrival, deadline)

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
            self._has_little_to_hide = self._is_scarce and _is_light(blocks[-1].records)
        self._send_ahead()

    def _break_off(self, coming: Coming, error: KafkaProtoError) -> None:
        """The answer ended before its time: what came of it is good, the rest is asked for again.

        The next try begins with the error, so that it is waited and accounted for as others are.
        """
        self._note_failure(error)
        self._leave_nothing_in_flight()
        self._broken = error
        block, progress = coming.block, coming.block.progress
        block.has_broken_off = True
        seen = skimmed(progress, block.records)
        if seen.next_offset is None or seen.next_offset <= progress.position:
            block.ends(block.start)
            return
        own = self._block_of(progress, coming.data, block.records[: seen.pos], seen.next_offset)
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

    def _send(self, deadline: Deadline) -> SentFetch:
        """Ask for the first open range that has a leader, with all near ones of the same place."""
        near = self._open[:_PARTITIONS_PER_REQUEST]
        leaders = self._directory.leaders((item.topic_partition for item in near), deadline)
        place, chosen = next(iter(self._by_place(near, leaders).items()))
        return self._send_to(place, chosen, deadline)

    def _leave_nothing_in_flight(self) -> None:
        self._coming = None
        super()._leave_nothing_in_flight()

    # What has not shown up yet

    def _nothing_came(self, progress: RangeProgress, bounds: Bounds) -> None:
        self._loss.wait_or_give_up(progress, bounds)
        self._directory.doubt(progress.topic_partition)

    def _wait_s(self) -> float:
        return _MAX_WAIT_S if self._is_waiting() else 0.0

    def _is_waiting(self) -> bool:
        """Whether the records that come next have not shown up yet."""
        return any(item.stalled_since is not None for item in self._open)


def _is_light(records: memoryview) -> bool:
    """Whether these are records that nobody compressed, and not tiny, by the first batch."""
    with suppress(CorruptRecords):  # who decodes it tells
        first = read_header(records, 0, len(records))
        if first is not None and first.codec == NONE:
            return first.stop - first.pos >= first.record_count * _LIGHT_RECORD_BYTES
    return False
