"""What a writing task does in Spark's worker, which lives from task to task."""

from __future__ import annotations

import pickle
import socket
import sys
from collections import deque
from dataclasses import replace
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_kafkaproto.client import Written
from pyspark_kafkaproto.client.writing import identity
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError, ConnectionFailed
from pyspark_kafkaproto.net import Endpoint, pool
from pyspark_kafkaproto.spark import exactly_once_stream, write, write_task
from pyspark_kafkaproto.spark.exactly_once import log_of
from pyspark_kafkaproto.spark.write import batch_writer, stream_writer
from pyspark_kafkaproto.spark.write_options import parse_write_options
from tests.fake_broker import DEFAULT, FakeCluster, close
from tests.fake_produce import values
from tests.unit.client.willing import be_willing

# Spark's module whose processes commit micro-batches.
_RUNNER = "pyspark.sql.worker.python_streaming_sink_runner"
_WAITS = [
    f"kafka.{name}.backoff.{most}ms" for name in ("retry", "reconnect") for most in ("", "max.")
]


@pytest.fixture
def brokers(monkeypatch):
    pools = {}
    monkeypatch.setattr(pool, "_pools", pools)
    monkeypatch.setattr(identity, "_kept", deque(maxlen=16))
    # It would spare the garbage of all tests after these.
    monkeypatch.setattr(write_task, "spare_the_collector", lambda: None)
    with FakeCluster({"orders": 2}) as fake:
        yield fake
        for kept in pools.values():
            kept.close()


def test_tasks_of_a_worker_write_one_after_the_other_under_one_producer_id(brokers):
    options = parse_write_options(
        {"kafka.bootstrap.servers": brokers.address(), "topic": "orders"},
        StructType([StructField("value", StringType())]),
    )
    for n in range(3):
        rows = pa.RecordBatch.from_pydict({"value": [f"{n}"]})
        report = write_task.write_rows(options, [rows])
        (written,) = report.written.values()
        assert (written.records, written.restarts) == (1, 0)
    assert [call.api for call in brokers.calls].count("InitProducerId") == 1
    logs = [brokers.logs["orders", partition] for partition in (0, 1)]
    assert sorted(value for log in logs for value in values(log)) == [b"0", b"1", b"2"]
    assert len({one for log in logs for one in log.producers}) == 1


def test_a_transaction_is_begun_with_the_first_row_and_left_open(brokers):
    be_willing(brokers)
    options = parse_write_options(
        {"kafka.bootstrap.servers": brokers.address(), "topic": "orders"},
        StructType([StructField("value", StringType())]),
    )
    empty, *rows = (
        pa.RecordBatch.from_pydict({"value": pa.array(each, pa.string())})
        for each in ([], ["a"], ["b"])
    )
    none = write_task.write_rows(options, [empty], "t")
    assert (none.rows, none.writer, brokers.asked("InitProducerId")) == (0, None, [])
    some = write_task.write_rows(options, [empty, *rows, empty], "t")
    assert (some.rows, some.writer.transactional_id) == (2, "t")
    assert not brokers.asked("EndTxn")


def test_nothing_is_overwritten():
    with pytest.raises(ConfigError, match=r"mode.*'overwrite'.*use append"):
        batch_writer(StructType(), {}, overwrite=True)


def test_a_task_asks_the_brokers_that_the_driver_has_met(brokers):
    """Where the bootstrap server is away for the moment, that is no wrong address."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        options = parse_write_options(
            {"kafka.bootstrap.servers": f"127.0.0.1:{nobody.getsockname()[1]}", "topic": "orders"},
            StructType([StructField("value", StringType())]),
        )
        met = replace(options, brokers=(Endpoint.parse(brokers.address()),))
        report = write_task.write_rows(met, [pa.RecordBatch.from_pydict({"value": ["a"]})])
    assert report.rows == 1


def test_the_driver_tells_its_tasks_whom_it_has_met(brokers):
    options = {"kafka.bootstrap.servers": brokers.address(), "topic": "orders"}
    schema = StructType([StructField("value", StringType())])
    shipped = pickle.loads(pickle.dumps(batch_writer(schema, options, overwrite=False)))
    assert shipped._options.brokers == (Endpoint.parse(brokers.address()),)


@pytest.fixture
def impatient_stream(brokers, monkeypatch):
    """Makes a stream's writer that has little patience with a cluster that nobody has met."""
    monkeypatch.setattr(write, "_met", {})
    given = {
        "kafka.bootstrap.servers": brokers.bootstrap_servers,
        "kafka.socket.connection.setup.timeout.ms": "50",
        **dict.fromkeys(_WAITS, "20"),
        "topic": "orders",
    }
    schema = StructType([StructField("value", StringType())])
    return lambda **options: stream_writer(schema, given | options)


def go_away(brokers):
    """For a while, which is longer than a first contact may take."""
    brokers.hang_up()
    brokers.on("ApiVersions", *[close()] * 6, DEFAULT)


def test_brokers_that_are_away_between_micro_batches_are_waited_for(brokers, impatient_stream):
    """Spark has one process make a writer for each."""
    impatient_stream()
    go_away(brokers)
    assert impatient_stream()._options.brokers


def test_the_clusters_that_were_met_are_not_remembered_for_ever(impatient_stream, monkeypatch):
    monkeypatch.setattr(write, "_MOST_MET", 2)
    for number in (1, 2, 1, 3):
        impatient_stream(**{"kafka.client.id": f"c{number}"})
    assert [client.client_id for client in write._met] == ["c1", "c3"]


def test_brokers_that_nobody_has_met_are_not_waited_for(brokers, impatient_stream):
    go_away(brokers)
    with pytest.raises(ConnectionFailed):
        impatient_stream()


def test_brokers_that_are_away_as_a_micro_batch_is_committed_are_waited_for(
    brokers, impatient_stream, monkeypatch
):
    """With transactions that asks them what was decided. All is written, so they were there."""
    monkeypatch.setitem(sys.modules, _RUNNER, ModuleType(_RUNNER))
    monkeypatch.setattr(exactly_once_stream, "exactly_once_stream_writer", log_of)
    go_away(brokers)
    log = impatient_stream(transactionalidprefix="copies", checkpointlocation="/none")
    assert log.router.described({"orders"}).has("orders")


def test_the_end_of_a_micro_batch_asks_no_broker(monkeypatch):
    """All is written by then: brokers that are away now would have it written once more."""
    monkeypatch.setitem(sys.modules, _RUNNER, ModuleType(_RUNNER))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "topic": "orders"}
    options["kafka.default.api.timeout.ms"] = "500"
    writer = stream_writer(StructType([StructField("value", StringType())]), options)
    writer.commit([None], 7)


@pytest.mark.parametrize(
    ("unfinished", "said"),
    [
        (0, "2 retries, 0 dead letters stay in their topics"),
        (1, "stay in their topics, and so does what 1 unfinished task has written"),
        (3, "stay in their topics, and so does what 3 unfinished tasks have written"),
    ],
)
@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_a_write_that_failed_says_whose_rows_it_has_not_counted(
    brokers, caplog, kind, unfinished, said
):
    """Spark has no report of a task that failed, or was killed: it may have written many rows."""
    given = {"kafka.bootstrap.servers": brokers.address(), "topic": "orders"}
    schema = StructType([StructField("value", StringType())])
    written = {TopicPartition("orders", 0): Written(records=5, batches=1, bytes=80, retries=2)}
    messages = [write_task.TaskReport(5, written, 0), *[None] * unfinished]
    if kind == "batch":
        batch_writer(schema, given, overwrite=False).abort(messages)
    else:
        stream_writer(schema, given).abort(messages, 7)
    assert caplog.messages[-1].endswith(said)
    assert "5 rows as 1 batches" in caplog.messages[-1]
