"""Exactly-once writes of batch queries: a transaction in each task, one decision on the driver.

Tasks write, flush and leave their transactions open; what they report is who can end them. The
driver decides for all of them at once (`client.batch_commit`). A task's transactional id is made of
prefix, name, job, its partition and the attempt's number in the application: no attempt takes over
what another has finished, and a stream uses ids again after many batches. See docs/exactly-once.md.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pyspark_kafkaproto.client.batch_commit import abort_batch, commit_batch, recover
from pyspark_kafkaproto.client.decisions import BATCH_JOBS, DecisionLog
from pyspark_kafkaproto.cluster.capturing import packets_with_errors
from pyspark_kafkaproto.cluster.transactions import Writer, abort_transactions
from pyspark_kafkaproto.errors import KafkaProtoError, LocalProtocolError
from pyspark_kafkaproto.spark.shipping import shipped
from pyspark_kafkaproto.spark.workers import configure_logging
from pyspark_kafkaproto.spark.write_options import WriteOptions
from pyspark_kafkaproto.spark.write_task import TaskReport, summary, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_JOB_DIGITS: Final = 8
# So many attempts later an id is used again: none is late by as many, and brokers keep all ids.
_ATTEMPTS: Final = 1000


class ExactlyOnceWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query, all or none."""

    def __init__(self, options: WriteOptions, job: str) -> None:
        self._options = options
        self._job = job

    def __reduce__(self) -> tuple[Any, ...]:
        return shipped(ExactlyOnceWriter, self._options, self._job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        """Write one task's rows into a transaction, which stays open."""
        log = log_of(self._options)
        wanted = id_of_task(log, BATCH_JOBS, self._ids)
        report = write_rows(self._options, iterator, wanted, spare_id)
        return kept_unless_over(log, BATCH_JOBS, report, lambda last: last == self._job, self._job)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks have written: decide, and end their transactions."""
        configure_logging()
        log = log_of(self._options)
        with packets_with_errors():
            commit_batch(log, BATCH_JOBS, self._job, writers_of(messages), job=self._ids)
        _log.info("committed %s", summary(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """A task or the commit failed: abort what was not decided."""
        configure_logging()
        # Spark commits when all tasks have reported.
        is_undecided = None in messages
        log = log_of(self._options)
        abort_rest(log, BATCH_JOBS, self._job, messages, self._ids, is_undecided=is_undecided)

    @property
    def _ids(self) -> str:
        """What this job is called in transactional ids: it keeps its hands off others' so."""
        return self._job[:_JOB_DIGITS]


def exactly_once_writer(options: WriteOptions) -> ExactlyOnceWriter:
    """A writer of a batch query; completes first what a job before it has left.

    Raises:
        BrokerError: the decision topic can neither be used nor made.
        LocalProtocolError: what was decided cannot be completed any more.
    """
    log = log_of(options)
    with packets_with_errors():
        log.ensure_topic()
        completed = recover(log, BATCH_JOBS)
    if completed is not None:
        _log.warning("completed %s, which a job before has left", completed)
    return ExactlyOnceWriter(options, uuid.uuid4().hex)


def log_of(options: WriteOptions) -> DecisionLog:
    """Where the commits of a write are decided."""
    chosen = options.transactions
    if chosen is None:
        raise LocalProtocolError("a write without transactionalIdPrefix decides nothing")
    client = options.producer.client
    return DecisionLog(client, chosen.decision_topic, chosen.prefix, options.brokers)


def task_context() -> TaskContext:
    """The task that this is.

    Raises:
        LocalProtocolError: it is none.
    """
    context = TaskContext.get()
    if context is None:
        raise LocalProtocolError("a transaction is written by a task of Spark, and this is none")
    return context


def id_of_task(log: DecisionLog, name: str, job: str = "") -> str:
    """The transactional id of this task's attempt.

    Spark counts the attempts of a task anew in each batch and each attempt of a stage, and one that
    lost may write its first rows long after. So it is the attempt's number in the application.
    """
    context = task_context()
    attempt = context.taskAttemptId() % _ATTEMPTS
    return f"{log.ids_of(name, job)}{context.partitionId()}-{attempt}"


def spare_id(transactional_id: str) -> str:
    """Another one for the same attempt: a request about this one may come late, and end all of it.

    No other attempt has it, as those are counted modulo less than is added.
    """
    start, _, attempt = transactional_id.rpartition("-")
    return f"{start}-{int(attempt) + _ATTEMPTS}"


def writers_of(messages: Sequence[WriterCommitMessage | None]) -> list[Writer]:
    """Who has left a transaction open; tasks without rows have none."""
    reports = [message for message in messages if isinstance(message, TaskReport)]
    return [report.writer for report in reports if report.writer is not None]


def kept_unless_over(
    log: DecisionLog,
    name: str,
    report: TaskReport,
    is_over: Callable[[str], bool],
    job: str = "",
) -> TaskReport:
    """What an attempt has written; its transaction is aborted if its batch has ended without it.

    Spark kills the attempts that come second, but their Python goes on with the rows that it has
    got. What begins behind the sweep of the commit nobody else would end before its time is over.

    Args:
        log: where its batch is decided.
        name: whose batch it is.
        report: of the attempt, whose transaction is open: what is decided from here on sweeps it.
        is_over: whether the batch is, by the last one that `name` has decided.
        job: its batch, where that is a job's: no others are said to be given up.
    """
    if report.writer is None:
        return report
    try:
        last = log.read().get(name)
        is_late = last is not None and report.writer not in last.writers and is_over(last.batch)
        if not (is_late or log.is_given_up(job)):
            return report
        abort_transactions(log.router, [report.writer])
    except KafkaProtoError as error:
        _log.warning("whether %s came too late is not known: %s", report.writer, error)
        return report
    why = last if is_late else "its job was given up"
    _log.info("%s came too late, and was aborted: %s", report.writer, why)
    return replace(report, writer=None)


def abort_rest(
    log: DecisionLog,
    name: str,
    batch: str,
    messages: Sequence[WriterCommitMessage | None],
    job: str = "",
    *,
    is_undecided: bool = False,
) -> None:
    """Abort a batch that failed, unless it was decided in spite of that."""
    writers = writers_of(messages)
    with packets_with_errors():
        if abort_batch(log, name, batch, writers, job=job, is_undecided=is_undecided):
            _log.warning("batch %s failed, and was aborted: %s", batch, summary(messages))
        else:
            _log.warning("batch %s is decided, whatever failed: it is committed", batch)
