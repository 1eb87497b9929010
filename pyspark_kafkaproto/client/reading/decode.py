"""Blocks into Arrow record batches: the whole way of a read task, as one generator.

The consumer's pull is the back-pressure: nothing is read ahead but the one block that waits in the
socket.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.arrow import (
    damaged_batch,
    keeps_damaged,
    to_record_batches,
    wanted_columns,
)
from pyspark_kafkaproto.client.codec import say_which_codec
from pyspark_kafkaproto.client.process import check_process
from pyspark_kafkaproto.client.reading.beside import Beside, decoding_threads
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.fetch import Fetcher
from pyspark_kafkaproto.client.reading.ranges import Mode, ReadSettings, ReadTask
from pyspark_kafkaproto.errors import BatchTooLarge, CorruptRecords, TimestampOutOfRange
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import (
    AbortedTransactions,
    Columns,
    Damaged,
    Decoded,
    damaged_at,
    decode,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_kafkaproto.net._inflow import Inflow

_log = logging.getLogger(__name__)

# Spark's name of its error for such a record.
_MALFORMED_TIMESTAMP = "KAFKA_MALFORMED_RECORD_TIMESTAMP"


def read_batches(
    task: ReadTask, config: ClientConfig, settings: ReadSettings, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The records of `task` as record batches of exactly `schema`.

    Each partition's rows come in offset order. Every batch is built from memory of its own. Threads
    may each read a task of their own, with the same `config` too. A child process that is forked in
    the midst of it can let go of it alone: two would take each other's answers from the socket.

    Raises:
        CorruptRecords: names topic, partition and base offset.
        DataLoss: see `ReadSettings.fail_on_data_loss`.
        LocalProtocolError: it was begun in another process, which was forked.
    """
    say_which_codec()
    process, option = os.getpid(), settings.columns_option
    fetcher = Fetcher(task, config, settings)
    wanted = wanted_columns(schema)
    with closing(Beside(decoding_threads(settings.uses_threads))) as beside:
        for block in fetcher.blocks():
            topic, partition = block.progress.topic_partition
            for found in BlockReading(block, config, settings, wanted, beside).pieces():
                if isinstance(found, Damaged):
                    if keeps_damaged(schema):
                        yield damaged_batch(found, topic, partition, schema)
                elif found.rows:
                    yield from to_record_batches(found, topic, partition, schema, option)
                check_process("reading", process)
    for progress in fetcher.progress:
        _log.info("read %s: %s", progress.range, progress.report)


class BlockReading:
    """One block, read piece by piece: what was decoded, and what was damaged in between.

    Args:
        block: to read.
        config: the client's configuration.
        settings: how to read.
        wanted: the columns.
        beside: threads that decode parts of it; None: there are none.
    """

    def __init__(
        self,
        block: Block,
        config: ClientConfig,
        settings: ReadSettings,
        wanted: Columns,
        beside: Beside | None = None,
    ) -> None:
        self._block = block
        self._config = config
        self._settings = settings
        self._wanted = wanted
        self._pos = 0
        self._start = block.start
        self._aborted: AbortedTransactions | Sequence[tuple[int, int]] = block.aborted
        self._sound: int | None = None  # up to where nothing is damaged, if something is
        self._told: CorruptRecords | None = None  # of the answer, and no damage of a batch
        self._beside = beside

    @property
    def position(self) -> int:
        """The offset after what the pieces so far have."""
        return self._start

    def pieces(self) -> Iterator[Decoded | Damaged]:
        """All of the block that its range wants."""
        try:
            if self._beside is not None:
                self._beside.drop()  # of the block before, where an interrupt kept it from that
            yield from self._pieces()
        finally:
            if self._beside is not None:
                self._beside.drop()

    def _pieces(self) -> Iterator[Decoded | Damaged]:
        block = self._block
        while self._pos < len(block.memory) and self._start < block.stop:
            before = self._pos
            try:
                yield self._decode()
            except CorruptRecords as error:
                if error is self._told:
                    raise
                is_timestamp = isinstance(error, TimestampOutOfRange)
                condition = _MALFORMED_TIMESTAMP if is_timestamp else ""
                damaged = self._pass_over(error.of(*block.progress.topic_partition, condition))
                if damaged is not None:
                    yield damaged
                continue
            if self._pos == before:
                break
            if self._pos == self._sound:
                self._sound = None
        block.finish()
        _check_all_read(block, self._start)

    def _decode(self) -> Decoded:
        block, report = self._block, self._block.progress.report
        began, fetched_s = time.perf_counter(), report.fetch_s
        source = block.source if self._sound is None else None
        waited_s = source.waited_natively_s if source else 0.0
        try:
            decoded = self._next(source)
        finally:
            report.fetch_s += source.waited_natively_s - waited_s if source else 0.0
        # What it waited for the rest of the block is no decoding.
        report.decode_s += time.perf_counter() - began - (report.fetch_s - fetched_s)
        report.rows += decoded.rows
        report.passed_over += decoded.passed_over
        self._pos, self._start = decoded.pos, decoded.next_offset
        self._aborted = decoded.aborted
        return decoded

    def _next(self, source: Inflow | None) -> Decoded:
        """What comes next, by another thread if one has it."""
        block, beside = self._block, self._beside
        # What is aborted is known batch by batch, in their order.
        if beside is not None and self._sound is None and not self._aborted:
            there = block.records
            beside.share(there, self._pos, self._start, self._part)
            decoded = beside.take(self._pos, self._start)
            if decoded is not None:
                return decoded
            if beside.begins is not None:
                return self._part(there[: beside.begins], self._pos, self._start)
        decoded = self._decoded(
            block.memory[: self._sound],
            self._pos,
            self._start,
            aborted=self._aborted,
            arrived=block.arrived if self._sound is None else None,
            more=None if block.is_whole or self._sound is not None else self._more,
            source=source,
        )
        if beside is not None:
            beside.note(decoded.pos - self._pos, decoded)
        return decoded

    def _part(self, data: memoryview, pos: int, start: int) -> Decoded:
        """Of what has come, where nothing is aborted; in any thread."""
        return self._decoded(data, pos, start)

    def _decoded(self, data: memoryview, pos: int, start: int, **coming: Any) -> Decoded:
        return decode(
            data,
            pos=pos,
            start=start,
            stop=self._block.stop,
            wanted=self._wanted,
            check_crcs=self._config.check_crcs,
            batch_limit_bytes=self._settings.batch_limit_bytes,
            **coming,
        )

    def _more(self) -> int:
        try:
            return self._block.more()
        except CorruptRecords as error:
            self._told = error
            raise

    def _pass_over(self, error: CorruptRecords) -> Damaged | None:
        """Read up to the damaged batch first, then pass over it; or fail, as the mode says."""
        if error.pos > self._pos:
            self._sound = error.pos
            return None
        if isinstance(error, BatchTooLarge):
            raise error.because("nothing is wrong with it: raise the limit (maxBatchBytes)")
        if self._settings.mode is Mode.FAILFAST:
            raise error
        damaged = self._damaged(error)
        if damaged is None:
            return None
        lost = min(damaged.stop, self._block.stop) - self._start  # with the hole before it
        report = self._block.progress.report
        report.damaged += 1
        report.passed_over += max(0, lost)
        self._pos += len(damaged.data)
        self._start = max(self._start, damaged.stop)
        _log.warning("%s: the offsets [%d, %d) are left out", error, damaged.start, damaged.stop)
        return damaged

    def _damaged(self, error: CorruptRecords) -> Damaged | None:
        """The damaged batch; None where the rest is asked for again, as the block broke off."""
        block = self._block
        block.finish()  # the batch behind may tell where the damaged one ends
        try:
            return damaged_at(
                block.records,
                error,
                read_to=self._start,
                read_committed=self._config.is_read_committed,
            )
        except CorruptRecords:
            if not block.has_broken_off or block.progress.doubted == self._start:
                raise
        block.progress.doubted = self._start
        block.leave_rest(self._start)
        self._pos = len(block.memory)
        return None


def _check_all_read(block: Block, read_to: int) -> None:
    """The next block begins where the headers said: nothing may lie between, unread or read twice.

    Beyond it only a compressed message with offset 0 and several inside can reach, as producers
    send it. Brokers store the offset of the last one instead.
    """
    expected = min(block.end, block.stop)
    if min(read_to, block.stop) != expected:  # a damaged batch is passed over whole
        raise CorruptRecords(
            f"its block was read to offset {read_to}, but its batch headers end at {expected}",
            base_offset=block.start,
        ).of(*block.progress.topic_partition)
