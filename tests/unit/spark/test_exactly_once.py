"""What tasks and the drivers of exactly-once writes ask of those who decide."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_kafkaproto.client.decisions import Decision, DecisionLog
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.errors import ConnectionFailed, LocalProtocolError
from pyspark_kafkaproto.spark import exactly_once, exactly_once_stream
from pyspark_kafkaproto.spark.exactly_once import ExactlyOnceWriter, id_of_task, log_of, writers_of
from pyspark_kafkaproto.spark.exactly_once_stream import ExactlyOnceStreamWriter
from pyspark_kafkaproto.spark.write_options import parse_write_options
from pyspark_kafkaproto.spark.write_task import TaskReport

OPTIONS = parse_write_options(
    {"kafka.bootstrap.servers": "b-1:9092", "topic": "t", "transactionalidprefix": "orders"},
    StructType([StructField("value", StringType())]),
)
JOB, QUERY = "0123abcd" * 4, "7f1c"
LEFT_OPEN = Writer("orders-x", 7, 3)
REPORT = TaskReport(3, {}, 0, LEFT_OPEN)
EMPTY = TaskReport(0, {}, 0)
LOST = ConnectionFailed("b-1:9092", "connect", "refused")


@pytest.fixture
def task(monkeypatch):
    """The task that this is: of batch 10."""
    told = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": "10"}
    context = SimpleNamespace(
        taskAttemptId=lambda: 12_345, partitionId=lambda: 7, getLocalProperty=told.get
    )
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    return context


@pytest.fixture
def deciders(monkeypatch):
    """What the log says, and what was asked for.

    asked: (what, name, batch, writers, job, whether it is surely undecided); rows: of what is to be
        committed; ids: of what tasks wrote; aborted: writers, by themselves.
    """
    found = SimpleNamespace(
        last={}, given_up=set(), error=None, asked=[], rows=[], ids=[], aborted=[]
    )

    def read(_):
        if found.error:
            raise found.error
        return found.last

    def ask(what):
        def asked(_, name, batch, writers, *, job="", is_undecided=False, rows=None):
            found.asked.append((what, name, batch, writers, job, is_undecided))
            found.rows.append(rows)
            return True

        return asked

    def write(_, rows, transactional_id, spare_id):
        assert spare_id is exactly_once.spare_id
        found.ids.append(transactional_id)
        return replace(REPORT, rows=len(list(rows)))

    monkeypatch.setattr(DecisionLog, "read", read)
    monkeypatch.setattr(DecisionLog, "is_given_up", lambda _, batch: batch in found.given_up)
    for module in (exactly_once, exactly_once_stream):
        monkeypatch.setattr(module, "commit_batch", ask("commit"))
        monkeypatch.setattr(module, "write_rows", write)
        monkeypatch.setattr(
            module, "abort_transactions", lambda _, writers: found.aborted.extend(writers)
        )
    monkeypatch.setattr(exactly_once, "abort_batch", ask("abort"))
    return found


def job_writer():
    return pickle.loads(pickle.dumps(ExactlyOnceWriter(OPTIONS, JOB)))


def stream_writer(decided=None, query=None):
    """As it comes to a task, after a batch that was decided."""
    last = {} if decided is None else {QUERY: decided}
    return pickle.loads(pickle.dumps(ExactlyOnceStreamWriter(OPTIONS, last, query)))


def test_an_id_names_the_attempt_by_its_number_in_the_application(task):
    log = log_of(OPTIONS)
    assert id_of_task(log, QUERY, "job") == log.ids_of(QUERY, "job") + "7-345"


def test_an_id_that_was_not_answered_about_has_a_spare_one_that_no_attempt_has():
    assert exactly_once.spare_id("p-q-7-345") == "p-q-7-1345"
    assert exactly_once.spare_id("p-q-7-1345") == "p-q-7-2345"


def test_what_is_no_task_writes_into_no_transaction(monkeypatch):
    monkeypatch.setattr(TaskContext, "get", lambda: None)
    with pytest.raises(LocalProtocolError, match="this is none"):
        id_of_task(log_of(OPTIONS), QUERY)


def test_without_a_prefix_nothing_is_decided():
    with pytest.raises(LocalProtocolError, match="without transactionalIdPrefix"):
        log_of(replace(OPTIONS, transactions=None))


def test_tasks_without_rows_have_left_nothing_open():
    assert writers_of([None, EMPTY, REPORT]) == [LEFT_OPEN]


@pytest.mark.parametrize(
    ("last", "given_up", "is_kept"),
    [
        ({}, (), True),
        ({"batch": Decision("another job", True, ())}, (), True),
        ({"batch": Decision(JOB, False, (LEFT_OPEN,))}, (), True),
        ({"batch": Decision(JOB, True, ())}, (), False),
        ({QUERY: Decision(JOB, True, ())}, (), True),
        ({}, (JOB,), False),
    ],
)
def test_what_a_task_of_a_job_that_is_over_has_written_is_aborted(
    task, deciders, last, given_up, is_kept
):
    """But what is decided is whoever decided's to end."""
    deciders.last, deciders.given_up = last, set(given_up)
    report = job_writer().write(iter("abc"))
    assert report == (REPORT if is_kept else replace(REPORT, writer=None))
    assert deciders.aborted == ([] if is_kept else [LEFT_OPEN])
    assert deciders.ids == [log_of(OPTIONS).ids_of("batch", JOB[:8]) + "7-345"]


def test_a_task_without_rows_has_nothing_to_abort(task, deciders):
    deciders.last, deciders.given_up = {"batch": Decision(JOB, True, ())}, {JOB}
    log = log_of(OPTIONS)
    assert exactly_once.kept_unless_over(log, "batch", EMPTY, JOB.__eq__, JOB) == EMPTY
    assert not deciders.aborted


def test_what_is_not_known_to_be_over_is_kept(task, deciders, caplog):
    deciders.error = LOST
    assert job_writer().write(iter("abc")) == REPORT
    assert "came too late is not known" in caplog.text


def test_a_job_is_decided_with_all_that_its_tasks_left_open(deciders):
    job_writer().commit([REPORT, EMPTY])
    assert deciders.asked == [("commit", "batch", JOB, [LEFT_OPEN], JOB[:8], False)]


@pytest.mark.parametrize("is_undecided", [True, False])
def test_a_job_of_which_a_task_failed_was_decided_by_nobody(deciders, is_undecided):
    job_writer().abort([REPORT, None if is_undecided else EMPTY])
    assert deciders.asked == [("abort", "batch", JOB, [LEFT_OPEN], JOB[:8], is_undecided)]


def test_a_micro_batch_that_is_decided_is_not_written_again(task, deciders):
    rows = iter([pa.record_batch({"value": ["a", "b"]}), pa.record_batch({"value": ["c"]})])
    report = stream_writer("10").write(rows)
    assert report == replace(EMPTY, rows=3, query=QUERY), "the driver compares how many there were"
    assert not list(rows), "what has state in Spark notes it behind its last row"
    assert not deciders.ids


@pytest.mark.parametrize(("last", "is_over"), [("9", False), ("10", True), ("11", True)])
def test_what_a_task_of_a_micro_batch_that_is_over_has_written_is_aborted(
    task, deciders, last, is_over
):
    deciders.last = {QUERY: Decision(last, True, ())}
    report = stream_writer("9").write(iter("abc"))
    assert report == replace(REPORT, query=QUERY, writer=None if is_over else LEFT_OPEN)
    assert deciders.aborted == ([LEFT_OPEN] if is_over else [])
    assert deciders.ids == [log_of(OPTIONS).ids_of(QUERY) + "7-345"]


def test_a_task_that_spark_tells_nothing_is_of_no_micro_batch(task, deciders):
    task.getLocalProperty = lambda _: None
    with pytest.raises(LocalProtocolError, match=r"tell this task sql\.streaming\.queryId"):
        stream_writer().write(iter("abc"))


def test_a_task_of_a_batch_behind_the_last_writes_nothing(task, deciders):
    with pytest.raises(LocalProtocolError):
        stream_writer("11").write(iter("abc"))
    assert not deciders.ids


def test_a_micro_batch_is_decided_with_all_that_its_tasks_left_open(deciders):
    reports = [replace(item, query=QUERY) for item in (EMPTY, REPORT, replace(EMPTY, rows=4))]
    stream_writer("9").commit([*reports, None], 10)
    assert deciders.asked == [("commit", QUERY, "10", [LEFT_OPEN], "", False)]
    assert deciders.rows == [7]


def test_a_micro_batch_without_tasks_decides_nothing(deciders):
    stream_writer("9").commit([], 10)
    assert not deciders.asked


def test_a_driver_that_is_behind_another_fences_nobody(deciders):
    """Neither by committing nor by giving up: what its own tasks left open is all it may end."""
    report = replace(REPORT, query=QUERY)
    with pytest.raises(LocalProtocolError):
        stream_writer("11").commit([report], 10)
    stream_writer("11").abort([report], 10)
    assert not deciders.asked
    assert deciders.aborted == [LEFT_OPEN]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_micro_batch_that_failed_is_aborted(deciders, is_told):
    """Whose it is a task says, or the checkpoint."""
    messages = [None, replace(REPORT, query=QUERY)] if is_told else [None]
    stream_writer("9", None if is_told else QUERY).abort(messages, 10)
    writers = [LEFT_OPEN] if is_told else []
    assert deciders.asked == [("abort", QUERY, "10", writers, "", False)]


def test_a_micro_batch_of_a_query_that_nobody_knows_is_left_alone(deciders, caplog):
    stream_writer().abort([None], 10)
    assert not deciders.asked
    assert "batch 10 was given up before any task had finished" in caplog.text
