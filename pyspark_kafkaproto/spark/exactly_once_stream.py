"""Exactly-once writes of a stream's micro-batches: as `exactly_once`, for Spark 4.1 and later.

Spark repeats a micro-batch whose commit it has not noted, and may split it over tasks differently.
So the driver looks up what was decided before it ships a writer, and tasks of a batch that is
decided read all their rows, and write nothing. Which query it is only tasks know: they tell the
driver.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_kafkaproto.client.batch_commit import check_order, commit_batch, is_behind
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.cluster.transactions import abort_transactions
from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.spark.exactly_once import (
    abort_rest,
    id_of_task,
    kept_unless_over,
    log_of,
    spare_id,
    task_context,
    writers_of,
)
from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.workers import configure_logging
from pyspark_kafkaproto.spark.write_options import WriteOptions
from pyspark_kafkaproto.spark.write_task import TaskReport, summary, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"
_LOCAL: Final = re.compile(r"(?:file:(?://[^/]*)?)?(/.*)", re.DOTALL)


class ExactlyOnceStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of one micro-batch, once however often it is repeated.

    Args:
        options: of the write.
        decided: the last batch that each query of the prefix has decided, when this was made.
        query: which one this is, if the driver knows.
    """

    def __init__(
        self, options: WriteOptions, decided: Mapping[str, str], query: str | None = None
    ) -> None:
        self._options = options
        self._decided = decided
        self._query = query

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(ExactlyOnceStreamWriter, self._options, self._decided, self._query)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one task's rows into a transaction, which stays open; nothing if it is decided."""
        query, batch = _local(_QUERY), _local(_BATCH)
        log = log_of(self._options)
        last = self._decided.get(query)
        if last == batch:
            configure_logging()
            _log.info("batch %s is decided: it is not written again", batch)
            # To the end: what has state in Spark notes it behind its last row.
            rows = sum(item.num_rows for item in iterator)
            return TaskReport(rows, {}, 0, None, query)
        check_order(log, query, batch, last)
        report = write_rows(self._options, iterator, id_of_task(log, query), spare_id)
        return kept_unless_over(
            log, query, replace(report, query=query), lambda last: int(batch) <= int(last)
        )

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """All tasks have written: decide, and end their transactions."""
        configure_logging()
        log, query = log_of(self._options), _query_of(messages)
        if query is None:  # no task, no rows
            return
        # Before the other driver is fenced, which this one is behind.
        check_order(log, query, str(batchId), self._decided.get(query))
        with packets_with_errors():
            writers, rows = writers_of(messages), _rows_of(messages)
            is_new = commit_batch(log, query, str(batchId), writers, rows=rows)
        state = "committed" if is_new else "was committed before"
        _log.info("batch %d %s: %s", batchId, state, summary(messages))

    def abort(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        """A task or the commit failed, or the query was stopped: abort what was not decided."""
        configure_logging()
        log = log_of(self._options)
        query = _query_of(messages) or self._query
        if query is None:
            # Another query may write under this prefix: what is open is not swept by that alone.
            _log.warning(
                "batch %d was given up before any task had finished: what it left open keeps "
                "read_committed readers waiting until the query goes on, or %s",
                batchId,
                log.command("recover"),
            )
            return
        if is_behind(str(batchId), self._decided.get(query)):
            # Whoever has come after may be at work: he is neither fenced nor swept.
            with packets_with_errors():
                abort_transactions(log.router, writers_of(messages))
        else:
            abort_rest(log, query, str(batchId), messages)


def exactly_once_stream_writer(options: WriteOptions) -> ExactlyOnceStreamWriter:
    """A writer of one micro-batch, which knows what was decided before.

    Raises:
        BrokerError: the decision topic can neither be used nor made.
    """
    log = log_of(options)
    with packets_with_errors():
        log.ensure_topic()
        decided = {name: decision.batch for name, decision in log.read().items()}
    return ExactlyOnceStreamWriter(options, decided, query_of_checkpoint(options.checkpoint))


def _local(name: str) -> str:
    """What Spark says to the tasks of a micro-batch."""
    value = task_context().getLocalProperty(name)
    if value is None:
        raise LocalProtocolError(f"Spark did not tell this task {name}: it is of no micro-batch")
    return value


def query_of_checkpoint(location: str | None) -> str | None:
    """The query whose checkpoint this is; None where it is no local folder, or has not begun.

    Paths are read as Hadoop reads them: nothing in them is encoded or cut off.
    """
    match = _LOCAL.fullmatch(location or "")
    if match is None:
        return None
    try:
        found = json.loads((Path(match[1]) / "metadata").read_text("utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not begun, or not as Spark writes it
    return str(found)


def _query_of(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    reports = [message for message in messages if isinstance(message, TaskReport)]
    return reports[0].query if reports else None


def _rows_of(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.rows for message in messages if isinstance(message, TaskReport))
