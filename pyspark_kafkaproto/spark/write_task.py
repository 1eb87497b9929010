"""What a writing task does, whichever writer sent it: rows into one producer, and a report of them.

With a transactional id the transaction stays open, and the report says whose it is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from pyspark_kafkaproto.client import Written
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.net import connections_for
from pyspark_kafkaproto.spark.workers import configure_logging, spare_the_collector
from pyspark_kafkaproto.spark.write_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """What one task wrote, by partition; how many rows came, and went to the dead letter topic.

    writer: who has left a transaction open with it. query: whose micro-batch it is.
    """

    rows: int
    written: Mapping[TopicPartition, Written]
    dead_letters: int
    writer: Writer | None = None
    query: str | None = None


def write_rows(
    options: WriteOptions,
    batches: Iterable[pa.RecordBatch],
    transactional_id: str | None = None,
    spare_id: Callable[[str], str] | None = None,
) -> TaskReport:
    """Write Arrow batches, all in one producer, and flush.

    With a transactional id the transaction stays open, and the report says whose it is. Of an id
    that no answer came about `spare_id` makes the next.
    """
    from pyspark_kafkaproto.client import Producer  # noqa: PLC0415 - pyarrow, for tasks alone

    configure_logging()
    spare_the_collector()
    began = time.monotonic()
    rows = 0
    with (
        packets_with_errors(),
        Producer(
            replace(options.producer, transactional_id=transactional_id),
            topic=options.topic,
            timestamp_column=options.timestamp_column,
            dead_letter_topic=options.dead_letter_topic,
            connections=connections_for(options.producer.client),
            brokers=options.brokers,
            compression_threads=0,  # Spark runs as many tasks as it has processors for
            spare_id=spare_id,
        ) as producer,
    ):
        for batch in batches:
            if not rows and batch.num_rows and transactional_id is not None:
                producer.begin_transaction()
            rows += batch.num_rows
            if batch.num_rows:
                producer.send(_fields(batch, options.columns))
        written = producer.flush()
        writer = producer.leave_transaction() if rows and transactional_id is not None else None
        report = TaskReport(rows, written, producer.dead_letters, writer)
    _log.info("wrote %s in %.3f s", summary([report]), time.monotonic() - began)
    return report


def _fields(batch: pa.RecordBatch, columns: Mapping[str, int]) -> pa.RecordBatch:
    """The columns that are fields of a record, under their names."""
    arrays = [batch.column(place) for place in columns.values()]
    return type(batch).from_arrays(arrays, names=list(columns))


def summary(messages: Sequence[WriterCommitMessage | None]) -> str:
    """What tasks wrote, in one line."""
    reports = [message for message in messages if isinstance(message, TaskReport)]
    written = [item for report in reports for item in report.written.values()]
    partitions = {item for report in reports for item in report.written}
    return (
        f"{sum(report.rows for report in reports)} rows as "
        f"{sum(item.batches for item in written)} batches, "
        f"{sum(item.bytes for item in written)} bytes, to {len(partitions)} partitions; "
        f"{sum(item.retries for item in written)} retries, "
        f"{sum(report.dead_letters for report in reports)} dead letters"
    )


def left_behind(messages: Sequence[WriterCommitMessage | None]) -> str:
    """What a write that failed leaves in its topics, in one line.

    A task that failed, or was killed, reports nothing, however much it has written.
    """
    said = f"{summary(messages)} stay in their topics"
    unfinished = sum(not isinstance(message, TaskReport) for message in messages)
    if not unfinished:
        return said
    tasks = "1 unfinished task has" if unfinished == 1 else f"{unfinished} unfinished tasks have"
    return f"{said}, and so does what {tasks} written"
