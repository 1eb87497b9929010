"""Blocks into Arrow record batches: the whole way of a read task, as one generator.

The consumer's pull is the back-pressure: nothing is read ahead but the one block that waits in the
socket.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark_kafkaproto.arrow import to_record_batch, wanted_columns
from pyspark_kafkaproto.client.fetch import Block, Fetcher
from pyspark_kafkaproto.client.ranges import ReadSettings, ReadTask
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import AbortedTransactions, Columns, Decoded, decode

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


def read_batches(
    task: ReadTask, config: ClientConfig, settings: ReadSettings, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The records of `task` as record batches of exactly `schema`.

    Each partition's rows come in offset order. Every batch is built from memory of its own.

    Raises:
        CorruptRecords: names topic, partition and base offset.
        DataLoss: see `ReadSettings.fail_on_data_loss`.
    """
    fetcher = Fetcher(task, config, settings)
    wanted = wanted_columns(schema)
    for block in fetcher.blocks():
        topic, partition = block.progress.topic_partition
        for decoded in _decode_block(block, config, settings, wanted):
            if decoded.rows:
                yield to_record_batch(decoded, topic, partition, schema)
    for progress in fetcher.progress:
        _log.info("read %s: %s", progress.range, progress.report)


def _decode_block(
    block: Block, config: ClientConfig, settings: ReadSettings, wanted: Columns
) -> Iterator[Decoded]:
    report = block.progress.report
    pos, start = 0, block.start
    aborted: AbortedTransactions | Sequence[tuple[int, int]] = block.aborted
    while pos < len(block.records) and start < block.stop:
        began = time.perf_counter()
        try:
            decoded = decode(
                block.records,
                pos=pos,
                start=start,
                stop=block.stop,
                wanted=wanted,
                aborted=aborted,
                check_crcs=config.check_crcs,
                batch_limit_bytes=settings.batch_limit_bytes,
            )
        except CorruptRecords as error:
            raise error.of(*block.progress.topic_partition) from error
        report.decode_s += time.perf_counter() - began
        report.rows += decoded.rows
        report.passed_over += decoded.passed_over
        stands_still = decoded.pos == pos
        pos, start, aborted = decoded.pos, decoded.next_offset, decoded.aborted
        yield decoded
        if stands_still:
            break
    _check_all_read(block, start)


def _check_all_read(block: Block, read_to: int) -> None:
    """The next block begins where the headers said: nothing may lie between, unread."""
    expected = min(block.end, block.stop)
    if read_to < expected:
        raise CorruptRecords(
            f"its block was read to offset {read_to}, but its batch headers end at {expected}",
            base_offset=block.start,
        ).of(*block.progress.topic_partition)
