"""Exactly-once writing where others write beside it: jobs, drivers and late attempts of one prefix.

Spark's tasks and drivers are played here, so that each step comes exactly when it hurts most.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import shlex
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark import TaskContext
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_kafkaproto import Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.client import (
    OffsetRange,
    ReadSettings,
    ReadTask,
    batch_commit,
    decisions,
    read_batches,
)
from pyspark_kafkaproto.client import transactions as transactions_of_producers
from pyspark_kafkaproto.client.decision_topic import make_topic
from pyspark_kafkaproto.client.decisions import Deciding, DecisionLog
from pyspark_kafkaproto.cluster import NewTopic, Router
from pyspark_kafkaproto.cluster import transactions as transactions_of_brokers
from pyspark_kafkaproto.cluster.coordinators import TRANSACTION_KEY
from pyspark_kafkaproto.cluster.topics import create_topics
from pyspark_kafkaproto.cluster.transactions import (
    ONGOING,
    begin_writer,
    describe_transactions,
    list_transactions,
)
from pyspark_kafkaproto.error_codes import INVALID_TRANSACTION_TIMEOUT
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdRequest
from pyspark_kafkaproto.net import ClientConfig, connections_for
from pyspark_kafkaproto.spark.exactly_once import BATCH_JOBS, exactly_once_writer, log_of
from pyspark_kafkaproto.spark.exactly_once_stream import exactly_once_stream_writer
from pyspark_kafkaproto.spark.write_options import parse_write_options
from tests.settled import wait_until_settled

pytestmark = pytest.mark.broker

ROWS = 5
PRODUCER_FENCED = 90
QUERY = "f04f4bcc-2a0c-4f5a-b6a1-7a3d8f0e9c55"
_ELECTION_S, _WAIT_S = 5.0, 30.0
_SCHEMA = StructType([StructField("value", StringType())])


@pytest.fixture
def topic(new_topic):
    return new_topic(1)


@pytest.fixture
def unmade(broker, topic):
    """The options of an exactly-once write to a topic of its own, whose decisions have none yet."""
    yield parse_write_options(
        {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "topic": topic,
            "transactionalidprefix": topic,
            "decisiontopic": f"{topic}-decisions",
        },
        _SCHEMA,
    )
    TaskContext._taskContext = None


@pytest.fixture
def options(unmade):
    """Of an exactly-once write to a topic of its own.

    The topic of decisions is made as the first driver would, which asks for a second before that.
    """
    log = log_of(unmade)
    make_topic(log.router, log.topic)
    return unmade


@pytest.fixture
def attempt():
    """Runs a task's attempt; Spark numbers all attempts of an application, one after the other."""
    count = 0

    def run(writer, name, partition, *, number=0, batch=None):
        nonlocal count
        count += 1
        context = TaskContext()
        context._partitionId, context._attemptNumber = partition, number
        context._taskAttemptId = count
        context._localProperties = {
            "sql.streaming.queryId": QUERY,
            "streaming.sql.batchId": str(batch),
        }
        TaskContext._setTaskContext(context)
        return writer.write(iter([pa.record_batch({"value": [name] * ROWS})]))

    return run


def seen(options):
    """How often a read_committed reader sees each value."""
    servers = ",".join(str(place) for place in options.producer.client.bootstrap_servers)
    wait_until_settled(servers, {TopicPartition(options.topic, 0)})
    config = ClientConfig.parse({"bootstrap.servers": servers, "isolation.level": "read_committed"})
    task = ReadTask((OffsetRange(options.topic, 0, 0, None),))
    found = Counter()
    for batch in read_batches(task, config, ReadSettings(), schema_for(["value"])):
        found.update(value.decode() for value in batch.column(0).to_pylist())
    connections_for(config).close()
    return found


def test_a_job_that_was_fenced_leaves_the_next_one_alone(options, attempt):
    first = exactly_once_writer(options)
    written = [attempt(first, "first", partition) for partition in range(2)]
    second = exactly_once_writer(options)
    by_second = [attempt(second, "second", partition) for partition in range(2)]
    with pytest.raises(KafkaProtoError, match="nothing of it is"):
        first.commit(written)
    first.abort(written)
    second.commit(by_second)
    assert seen(options) == Counter(second=2 * ROWS)


def test_an_abort_between_the_ends_of_anothers_decision_takes_nothing_away(
    options, attempt, monkeypatch
):
    first = exactly_once_writer(options)
    written = [attempt(first, "first", partition) for partition in range(2)]
    second = exactly_once_writer(options)
    by_second = [attempt(second, "second", partition) for partition in range(2)]
    end_transactions, places = batch_commit.end_transactions, []

    def end_with_another_between(router, writers, *, commit):
        if commit and not places:
            places.append("between")
            end_transactions(router, sorted(writers)[:1], commit=True)
            first.abort(written)
        return end_transactions(router, writers, commit=commit)

    monkeypatch.setattr(batch_commit, "end_transactions", end_with_another_between)
    second.commit(by_second)
    assert places
    assert seen(options) == Counter(second=2 * ROWS)


def test_what_a_dead_job_has_left_is_found_by_the_next(options, attempt):
    dead = exactly_once_writer(options)
    attempt(dead, "dead", 0)
    log = log_of(options)
    (left,) = list_transactions(log.router, log.prefix, {ONGOING})
    assert batch_commit.open_transactions(log) == {"batch": [left]}
    exactly_once_writer(options)
    assert batch_commit.open_transactions(log) == {}


def test_a_job_that_failed_or_came_through_leaves_no_attempt_open(options, attempt):
    log = log_of(options)
    for end in ("commit", "abort"):
        job = exactly_once_writer(options)
        attempt(job, "killed", 0)
        written = [attempt(job, "kept", 0, number=1)]
        getattr(job, end)(written)
        assert batch_commit.open_transactions(log) == {}
    assert seen(options) == Counter(kept=ROWS)


def test_an_attempt_that_begins_once_its_job_has_ended_leaves_nothing_open(options, attempt):
    job = exactly_once_writer(options)
    job.commit([attempt(job, "kept", 0)])
    assert attempt(job, "late", 0, number=1).writer is None
    assert batch_commit.open_transactions(log_of(options)) == {}
    assert seen(options) == Counter(kept=ROWS)


@pytest.mark.parametrize("has_read", [True, False], ids=["the driver's process", "another one"])
def test_an_attempt_that_begins_once_its_job_was_given_up_leaves_nothing_open(
    options, attempt, monkeypatch, has_read
):
    job, other = exactly_once_writer(options), exactly_once_writer(options)
    job.abort([attempt(job, "failed", 0), None])
    if not has_read:
        monkeypatch.setattr(decisions, "_seen", {})
    assert attempt(job, "late", 0, number=1).writer is None
    assert batch_commit.open_transactions(log_of(options)) == {}
    other.commit([attempt(other, "kept", 0)])
    assert seen(options) == Counter(kept=ROWS)


def test_an_attempt_that_begins_once_its_micro_batch_has_ended_leaves_nothing_open(
    options, attempt
):
    writer = exactly_once_stream_writer(options)
    exactly_once_stream_writer(options).commit([attempt(writer, "kept", 0, batch=1)], 1)
    assert attempt(writer, "late", 0, number=1, batch=1).writer is None
    assert batch_commit.open_transactions(log_of(options)) == {}
    assert seen(options) == Counter(kept=ROWS)


def test_a_streams_abort_keeps_what_another_driver_has_decided(options, attempt, monkeypatch):
    def writer():
        return exactly_once_stream_writer(options)

    stale = [attempt(writer(), "stale", 0, batch=1)]
    kept = [attempt(writer(), "kept", partition, batch=2) for partition in range(2)]
    with monkeypatch.context() as patch:  # it dies once it has decided
        patch.setattr(batch_commit, "complete", lambda *_: None)
        patch.setattr(batch_commit, "sweep", lambda *_, **__: [])
        writer().commit(kept, 2)
    writer().abort(stale, 1)
    writer().commit(kept, 2)
    assert seen(options) == Counter(kept=2 * ROWS)


def test_an_attempt_that_begins_late_takes_nothing_over(options, attempt):
    def writer():
        return exactly_once_stream_writer(options)

    first = writer()
    written = [attempt(first, "first", 0, number=1, batch=1)]  # speculative, and the one that won
    writer().commit(written, 1)
    written = [attempt(writer(), "second", 0, batch=2)]
    # Only now the other one of batch 1 has its first rows: its number is that of batch 2's.
    attempt(first, "late", 0, batch=1)
    # A stage that is tried again counts its attempts from 0 too.
    attempt(writer(), "again", 0, batch=2)
    writer().commit(written, 2)
    assert seen(options) == Counter(first=ROWS, second=ROWS)


@pytest.mark.parametrize("kind", ["job", "stream"])
def test_a_begin_that_comes_late_aborts_nothing_that_is_decided(
    options, attempt, monkeypatch, kind
):
    """Its connection was lost, it was asked for again, and it arrives between decision and ends."""
    late, real_request, end_transactions = [], Router.request, batch_commit.end_transactions

    def hold_up_first(router, connection, request, *more):
        if isinstance(request, InitProducerIdRequest) and late == []:
            late.append(request)
            raise ConnectionFailed(str(connection.endpoint), "receive", "connection reset")
        return real_request(router, connection, request, *more)

    def end_behind_it(router, writers, *, commit):
        (request,) = late
        key = request.transactional_id
        router.ask_coordinator("come late", key, request, lambda _: None, kind=TRANSACTION_KEY)
        return end_transactions(router, writers, commit=commit)

    is_job = kind == "job"
    writer = exactly_once_writer(options) if is_job else exactly_once_stream_writer(options)
    monkeypatch.setattr(batch_commit, "end_transactions", end_behind_it)
    with monkeypatch.context() as patch:
        patch.setattr(Router, "request", hold_up_first)
        written = [attempt(writer, "kept", 0, batch=1)]
    writer.commit(written, *(() if is_job else (1,)))
    assert seen(options) == Counter(kept=ROWS)
    assert batch_commit.open_transactions(log_of(options)) == {}


def test_whose_work_was_taken_over_is_told_of_late_attempts(options, attempt):
    written = [attempt(exactly_once_writer(options), "taken over", 0)]
    begin_writer(log_of(options).router, written[0].writer.transactional_id)
    job = exactly_once_writer(options)
    with pytest.raises(KafkaProtoError, match="a late attempt of a task has taken it over"):
        job.commit(written)


@pytest.mark.parametrize(
    ("timeout_s", "age_s", "is_soon_enough"),
    [(40, 19, True), (40, 21, False), (60, 70, False), (900, 854, True), (900, 856, False)],
)
def test_a_batch_with_too_little_time_left_is_not_decided(
    options, attempt, monkeypatch, timeout_s, age_s, is_soon_enough
):
    producer = dataclasses.replace(options.producer, transaction_timeout_s=float(timeout_s))
    job = exactly_once_writer(dataclasses.replace(options, producer=producer))
    written = [attempt(job, "old", 0)]
    (writer,) = [report.writer for report in written]
    log = log_of(options)
    found = describe_transactions(log.router, [writer.transactional_id])
    began = found[writer.transactional_id].started_at_ms / 1000
    monkeypatch.setattr(batch_commit, "_now_s", lambda: began + age_s)
    if is_soon_enough:
        job.commit(written)
    else:
        # Brokers look for what has timed out every ten seconds only: it is Ongoing all the time.
        with pytest.raises(KafkaProtoError, match=rf"open for \d+ of its {timeout_s} s"):
            job.commit(written)
        job.abort(written)
    assert seen(options) == Counter({"old": ROWS} if is_soon_enough else {})
    assert batch_commit.open_transactions(log) == {}


def test_what_times_out_while_its_decision_is_written_can_be_repeated(
    options, attempt, monkeypatch
):
    job = exactly_once_writer(options)
    written = [attempt(job, "first", partition) for partition in range(2)]
    send = Producer.send

    def send_late(self, data):  # the decision topic's leader was away for so long
        begin_writer(log_of(options).router, written[0].writer.transactional_id)
        send(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(Producer, "send", send_late)
        with pytest.raises(KafkaProtoError, match="nothing of it is"):
            job.commit(written)
    job.abort(written)
    again = exactly_once_writer(options)
    again.commit([attempt(again, "again", 0)])
    assert seen(options) == Counter(again=ROWS)


@pytest.mark.parametrize("step", ["end_transactions", "write"])
def test_whoever_fails_behind_the_decision_is_told_that_it_holds(
    options, attempt, monkeypatch, step
):
    job = exactly_once_writer(options)
    written = [attempt(job, "decided", 0)]
    place = batch_commit if step == "end_transactions" else Deciding
    real = getattr(place, step)

    def fail(first, second, *more, **named):
        if step == "write" and not second.is_done:
            return real(first, second, *more, **named)
        raise DeadlineExceeded(step, 60.0)

    with monkeypatch.context() as patch:
        patch.setattr(place, step, fail)
        with pytest.raises(DeadlineExceeded, match=rf"(?s){step}.*recover {options.topic}.*again"):
            job.commit(written)
    job.abort(written)
    exactly_once_writer(options)
    assert seen(options) == Counter(decided=ROWS)


@pytest.mark.parametrize("is_first_of_2", [False, True], ids=["upgraded", "downgraded"])
def test_what_was_committed_before_transaction_version_changed_is_not_missing(
    options, attempt, monkeypatch, is_first_of_2
):
    """The driver died between its ends; an end of one version is no repeated one of the other."""
    has_version_2, end_transactions = transactions_of_brokers.has_version_2, end_in_part()
    job = exactly_once_writer(options)
    written = [attempt(job, "decided", partition) for partition in range(2)]

    def is_version_2_if(wanted):
        def has(router, ids):
            return has_version_2(router, ids) and wanted

        return has

    with monkeypatch.context() as patch:
        patch.setattr(transactions_of_brokers, "has_version_2", is_version_2_if(is_first_of_2))
        patch.setattr(batch_commit, "end_transactions", end_transactions)
        with pytest.raises(DeadlineExceeded, match="decided all the same"):
            job.commit(written)
    monkeypatch.setattr(
        transactions_of_brokers, "has_version_2", is_version_2_if(not is_first_of_2)
    )
    assert batch_commit.recover(log_of(options), BATCH_JOBS) is not None
    assert seen(options) == Counter(decided=2 * ROWS)


def end_in_part():
    """Commits the first transaction only."""
    end_transactions = batch_commit.end_transactions

    def end(router, writers, *, commit):
        end_transactions(router, sorted(writers)[:1], commit=commit)
        raise DeadlineExceeded("commit transactions", 60.0)

    return end


def test_brokers_that_allow_short_transactions_alone_have_short_decisions(
    options, attempt, monkeypatch
):
    """Those with a transaction.max.timeout.ms of 10 s, which tasks make do with as well."""
    begin_writer, asked = transactions_of_producers.begin_writer, []

    def begin(router, transactional_id, timeout_ms=None, after=None):
        asked.append(timeout_ms)
        if timeout_ms is not None and timeout_ms > 10_000:
            raise BrokerError(INVALID_TRANSACTION_TIMEOUT, "InitProducerId", transactional_id)
        return begin_writer(router, transactional_id, timeout_ms, after)

    monkeypatch.setattr(transactions_of_producers, "begin_writer", begin)
    job = exactly_once_writer(options)
    job.commit([attempt(job, "kept", 0)])
    assert seen(options) == Counter(kept=ROWS)
    assert 10_000 in asked


def test_whoever_reads_decisions_waits_for_other_drivers(options, new_name):
    log = log_of(options)
    log.ensure_topic()
    # Another process in life, with connections of its own: no two threads may share them.
    own = dataclasses.replace(log.config, client_id="another driver")
    others = DecisionLog(own, log.topic, log.prefix)
    with log.deciding("one") as busy, ThreadPoolExecutor(1) as pool:
        producer = busy._producer
        producer.send([ProducerRecord("{}", key=json.dumps([new_name(), "one"]))])
        producer.flush()  # and now its coordinator is away, for longer than an election takes
        reading = pool.submit(others.deciding, "two")
        with pytest.raises(TimeoutError):
            reading.result(_ELECTION_S)
        producer.commit_transaction()
        with reading.result(_WAIT_S) as other:
            assert other.last is None
    connections_for(own).close()


def test_a_driver_that_is_behind_never_writes_again_what_another_has_decided(options, attempt):
    def run(name, batch):
        writer = exactly_once_stream_writer(options)
        writer.commit([attempt(writer, name, 0, batch=batch)], batch)

    behind = exactly_once_stream_writer(options)  # no task of it has begun yet
    run("first", 1)
    run("second", 2)
    late = [attempt(behind, "first", 0, batch=1)]
    with pytest.raises(KafkaProtoError, match="at batch 1, and has decided batch 2 already"):
        behind.commit(late, 1)
    behind.abort(late, 1)
    run("third", 3)
    assert seen(options) == Counter(first=ROWS, second=ROWS, third=ROWS)
    assert batch_commit.open_transactions(log_of(options)) == {}


def test_a_driver_that_was_told_an_old_end_of_the_decisions_decides_nothing_again(
    options, attempt, monkeypatch
):
    """By a leader that has been away, to a new process: nothing that it knows tells otherwise."""
    first = exactly_once_stream_writer(options)
    end = log_of(options)._bound(decisions.LATEST_TIMESTAMP)
    first.commit([attempt(first, "first", 0, batch=1)], 1)
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "_seen", {})
        patch.setattr(DecisionLog, "_stable_end", lambda *_: end)
        again = exactly_once_stream_writer(options)
        written = [attempt(again, "again", 0, batch=1)]
        with pytest.raises(KafkaProtoError, match=r"decided batch 1 .*Nothing is decided now"):
            again.commit(written, 1)
    later = exactly_once_stream_writer(options)
    later.abort(written, 1)
    later.commit(written, 1)
    assert seen(options) == Counter(first=ROWS)
    assert batch_commit.open_transactions(log_of(options)) == {}


@pytest.mark.parametrize("way", ["abort", "recover", "no rows", "an earlier batch again"])
def test_nothing_that_was_decided_is_aborted_on_the_word_of_a_leader_that_has_been_away(
    options, attempt, monkeypatch, way
):
    """Of a driver that died behind its decision, by a new process that is told an old end."""
    log = log_of(options)
    first = exactly_once_stream_writer(options)
    zeroth = [attempt(first, "zeroth", 0, batch=0)]
    first.commit(zeroth, 0)
    log.read()  # waits until that is seen
    end, bound = log.position, DecisionLog._bound
    written = [attempt(first, "first", partition, batch=1) for partition in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(batch_commit, "complete", lambda _: None)
        patch.setattr(batch_commit, "_sweep_rest", lambda *_: None)
        first.commit(written, 1)
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "_seen", {})
        told = [end] * 5  # twice to the writer, twice to the driver, and once to whoever makes sure

        def bound_of_the_past(self, timestamp, **options):
            is_old = timestamp == decisions.LATEST_TIMESTAMP and told
            return told.pop() if is_old else bound(self, timestamp, **options)

        patch.setattr(DecisionLog, "_bound", bound_of_the_past)
        again = exactly_once_stream_writer(options)
        if way == "abort":
            again.abort([attempt(again, "again", 0, batch=1)], 1)
        elif way == "recover":
            assert str(batch_commit.recover(log, QUERY)).startswith("batch 1 ")
        elif way == "no rows":
            again.commit([dataclasses.replace(report, writer=None) for report in written], 1)
        else:
            again.commit(zeroth, 0)
    assert not told
    exactly_once_stream_writer(options).commit(written, 1)
    assert seen(options) == Counter(zeroth=ROWS, first=2 * ROWS)
    assert batch_commit.open_transactions(log) == {}


def test_whoever_is_fenced_while_he_recovers_aborts_nothing_more(options, attempt, monkeypatch):
    first = exactly_once_stream_writer(options)
    written = [attempt(first, "first", partition, batch=1) for partition in range(2)]
    log, listed = log_of(options), batch_commit.list_transactions

    def decided_behind_the_list(*of):
        found = listed(*of)
        with monkeypatch.context() as patch:
            patch.setattr(batch_commit, "complete", lambda _: None)
            patch.setattr(batch_commit, "_sweep_rest", lambda *_: None)
            first.commit(written, 1)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(batch_commit, "list_transactions", decided_behind_the_list)
        with pytest.raises(KafkaProtoError, match="another producer has taken over"):
            batch_commit.recover(log, QUERY)
    exactly_once_stream_writer(options).commit(written, 1)
    assert seen(options) == Counter(first=2 * ROWS)


@pytest.mark.parametrize(
    "lost",
    [DeadlineExceeded("commit", 15.0), BrokerError(PRODUCER_FENCED, "EndTxn", "the transaction")],
    ids=["no answer", "fenced at the next try"],
)
@pytest.mark.parametrize("is_job", [True, False], ids=["job", "stream"])
def test_a_decision_whose_answer_is_lost_is_completed_by_the_abort(
    options, attempt, monkeypatch, is_job, lost
):
    writer = exactly_once_writer(options) if is_job else exactly_once_stream_writer(options)
    batch = () if is_job else (1,)
    written = [attempt(writer, "decided", partition, batch=1) for partition in range(2)]
    attempt(writer, "speculative", 0, number=1, batch=1)  # never ended: readers wait for it
    commit = Producer.commit_transaction

    def commit_in_vain(self, **options):
        commit(self, **options)
        raise copy.copy(lost)

    with monkeypatch.context() as patch:
        patch.setattr(Producer, "commit_transaction", commit_in_vain)
        told = rf"(?s)may hold all the same: .*transactions list {options.topic}"
        with pytest.raises(type(lost), match=told):
            writer.commit(written, *batch)
    writer.abort(written, *batch)
    assert seen(options) == Counter(decided=2 * ROWS)
    assert batch_commit.open_transactions(log_of(options)) == {}
    assert all(decision.is_done for decision in log_of(options).read().values())


def test_a_job_whose_tasks_failed_is_aborted_without_its_decision_topic(
    options, attempt, monkeypatch
):
    job = exactly_once_writer(options)
    written = attempt(job, "failed", 0)

    def refuse(*_, **__):
        raise DeadlineExceeded("the decision topic is away", 60.0)

    with monkeypatch.context() as patch:
        patch.setattr(DecisionLog, "read", refuse)
        with pytest.raises(DeadlineExceeded, match=r"(?s)is away.*nothing of it is aborted"):
            job.abort([written])
        assert BATCH_JOBS in batch_commit.open_transactions(log_of(options))
        job.abort([written, None])
    assert batch_commit.open_transactions(log_of(options)) == {}


def test_a_driver_that_is_behind_lets_the_other_one_be(options, attempt):
    def writer():
        return exactly_once_stream_writer(options)

    behind = writer()
    for name, batch in (("first", 1), ("second", 2)):
        writer().commit([attempt(writer(), name, 0, batch=batch)], batch)
    late = [attempt(behind, "first", 0, batch=1)]
    running = [attempt(writer(), "third", partition, batch=3) for partition in range(2)]
    with log_of(options).deciding(QUERY) as live:
        with pytest.raises(KafkaProtoError, match="at batch 1, and has decided batch 2 already"):
            writer().commit(late, 1)
        writer().abort(late, 1)
        live.write(live.last)  # was not fenced
    writer().commit(running, 3)
    assert seen(options) == Counter(first=ROWS, second=ROWS, third=2 * ROWS)
    assert batch_commit.open_transactions(log_of(options)) == {}


def test_a_first_driver_makes_the_topic_of_decisions(unmade, attempt):
    job = exactly_once_writer(unmade)
    job.commit([attempt(job, "first", 0)])
    assert seen(unmade) == Counter(first=ROWS)


@pytest.mark.parametrize(
    ("configs", "is_good"),
    [
        ({}, False),  # what Kafka's own tool makes, unless it is told otherwise
        ({"cleanup.policy": "compact,delete"}, False),
        ({"retention.ms": "-1"}, True),
        ({"retention.ms": "-1", "retention.bytes": "1000000"}, False),
        ({"cleanup.policy": "compact"}, True),
    ],
)
def test_a_decision_topic_that_forgets_is_refused(unmade, configs, is_good):
    log = log_of(unmade)
    create_topics(log.router, [NewTopic(log.topic, 1, configs=configs)])
    if is_good:
        log.ensure_topic()
    else:
        with pytest.raises(ConfigError, match=rf"decisionTopic.*{log.topic}.*cleanup.policy"):
            log.ensure_topic()


# --- the command line


@pytest.fixture
def transactions(broker, options):
    """Runs `kafkaproto transactions` on what the options' prefix has left."""

    def run(word, *more):
        words = [
            "transactions",
            word,
            options.topic,
            "--decision-topic",
            f"{options.topic}-decisions",
        ]
        done = CliRunner().invoke(
            kafkaproto, [*words, *more, "-b", broker.bootstrap_servers], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if "--json" in more else done.stdout

    return run


def test_the_command_line_shows_what_a_dead_job_left_and_aborts_it(options, attempt, transactions):
    dead = exactly_once_writer(options)
    for partition in range(2):
        attempt(dead, "dead", partition)
    left = {"name": "batch", "batch": None, "state": None, "decided": 0, "open": 2}
    assert transactions("list", "--json") == [left]
    assert "what was not decided is aborted" in transactions("recover", "--yes")
    assert transactions("list") == f"nothing is decided or open under {options.topic}\n"
    assert transactions("recover", "--yes") == f"nothing is open under {options.topic}\n"
    assert transactions("recover", "--yes", "--json") == []
    assert seen(options) == Counter()


def test_the_command_line_recovers_the_others_of_what_cannot_be_completed(
    options, attempt, transactions, monkeypatch
):
    job = exactly_once_writer(options)
    written = [attempt(job, "gone", 0)]
    with monkeypatch.context() as patch:  # it dies once it has decided
        patch.setattr(batch_commit, "complete", lambda *_: None)
        patch.setattr(batch_commit, "sweep", lambda *_, **__: [])
        job.commit(written)
    begin_writer(log_of(options).router, written[0].writer.transactional_id)
    attempt(exactly_once_stream_writer(options), "dead", 0, batch=1)
    with pytest.raises(AssertionError, match="1 of its transactions are gone"):
        transactions("recover", "--yes")
    assert batch_commit.open_transactions(log_of(options)) == {}


def test_the_command_line_takes_no_misspelt_name(options, attempt, transactions):
    attempt(exactly_once_writer(options), "dead", 0)
    with pytest.raises(AssertionError, match=r"list .* --decision-topic .* shows the names"):
        transactions("recover", "--yes", "--name", "betch")
    assert list_transactions(log_of(options).router, f"{options.topic}-driver-betch") == []
    assert transactions("recover", "--yes", "--name", "batch", "--json")


def test_the_command_line_shows_what_was_decided_last(options, attempt, transactions):
    job = exactly_once_writer(options)
    job.commit([attempt(job, "done", 0)])
    (row,) = transactions("list", "--json")
    assert (row["name"], row["state"], row["decided"], row["open"]) == ("batch", "done", 0, 0)
    heading, shown = (line.split() for line in transactions("list").splitlines())
    assert heading == ["name", "batch", "state", "to", "commit", "open"]
    assert shown == ["batch", row["batch"], "done", "0", "0"]


def test_the_command_that_an_error_names_finds_the_decision(options, attempt, broker, monkeypatch):
    """Where others have theirs in the topic that is the default it would abort this one."""
    client = options.producer.client
    DecisionLog(client, "kafkaproto-decisions", "others").ensure_topic()
    job = exactly_once_writer(options)
    written = [attempt(job, "decided", partition) for partition in range(2)]

    def end_in_vain(*_, **__):
        raise DeadlineExceeded("commit transactions", 60.0)

    with monkeypatch.context() as patch:
        patch.setattr(batch_commit, "end_transactions", end_in_vain)
        with pytest.raises(DeadlineExceeded, match="decided all the same") as failed:
            job.commit(written)
    (words,) = re.findall("`kafkaproto ([^`]+)`", str(failed.value))
    command = [*shlex.split(words), "--yes", "--json", "-b", broker.bootstrap_servers]
    done = CliRunner().invoke(kafkaproto, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert (row["name"], row["result"], row["committed"]) == ("batch", "completed", 2)
    assert seen(options) == Counter(decided=2 * ROWS)


@pytest.mark.parametrize("kind", ["job", "stream"])
def test_the_command_line_leaves_a_longer_prefix_alone(
    options, attempt, transactions, monkeypatch, kind
):
    chosen = options.transactions
    longer = dataclasses.replace(chosen, prefix=f"{chosen.prefix}-eu")
    others = dataclasses.replace(options, transactions=longer)
    is_job = kind == "job"
    writer = exactly_once_writer(others) if is_job else exactly_once_stream_writer(others)
    written = [attempt(writer, "theirs", 0, batch=1)], *(() if is_job else (1,))
    with monkeypatch.context() as patch:  # it has decided, and is about to carry it out
        patch.setattr(batch_commit, "complete", lambda *_: None)
        patch.setattr(batch_commit, "sweep", lambda *_, **__: [])
        writer.commit(*written)
    listed, recovered = transactions("list"), transactions("recover", "--yes")
    writer.commit(*written)
    assert seen(options) == Counter(theirs=ROWS)
    assert listed == f"nothing is decided or open under {options.topic}\n"
    assert recovered == f"nothing is open under {options.topic}\n"
