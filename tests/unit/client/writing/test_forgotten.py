"""What a producer says that goes with rows that nobody will write any more."""

import subprocess
import sys

import pytest

from pyspark_kafkaproto.client import Producer, ProducerRecord
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from tests.forks import in_child
from tests.unit.client.willing import be_willing

ROWS = [ProducerRecord("a", partition=0)]
GONE = "is gone and was not closed"

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # which tells of it, too
    pytest.mark.usefixtures("no_collector"),
]


def drop(brokers, use, **properties):
    """Use a producer, and hold it no longer; no garbage is collected."""
    given = {name.replace("_", "."): value for name, value in properties.items()}
    writer = Producer({"bootstrap.servers": brokers.bootstrap_servers} | given, topic="orders")
    use(writer)
    del writer


def flushed(writer):
    writer.send(ROWS)
    writer.flush()


def test_rows_that_go_with_their_producer_are_told(brokers, caplog):
    drop(brokers, lambda writer: writer.send(ROWS))
    assert f"a producer {GONE}" in caplog.text
    assert not brokers.asked("Produce")


def test_rows_behind_a_flush_are_told(brokers, caplog):
    drop(brokers, lambda writer: (flushed(writer), writer.send(ROWS)))
    assert GONE in caplog.text


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda writer: writer.send([]), id="nothing was sent"),
        pytest.param(flushed, id="all is written"),
        pytest.param(lambda writer: (writer.send(ROWS), writer.close()), id="it was closed"),
        pytest.param(lambda writer: (writer.send(ROWS), writer.abandon()), id="it was given up"),
    ],
)
def test_where_nothing_is_lost_nothing_is_said(brokers, caplog, use):
    drop(brokers, use)
    assert not caplog.text


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction", "flush"])
def test_a_transaction_that_stays_open_is_told(brokers, caplog, end):
    be_willing(brokers, 2)

    def use(writer):
        writer.begin_transaction()
        writer.send(ROWS)
        getattr(writer, end)()

    drop(brokers, use, transactional_id="mine")
    is_open = end == "flush"
    assert (f"the producer 'mine' {GONE}" in caplog.text) == is_open


@pytest.mark.parametrize(("code", "is_open"), [(90, False), (48, False), (14, True)])
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_a_transaction_that_others_have_ended_is_not_told(brokers, end, code, is_open):
    """By a successor, or as its time ran out: it is open no more, other than if nobody answers."""
    be_willing(brokers, 2)
    brokers.on("EndTxn", *[EndTxnResponse(error_code=code)] * 100)
    given = {"transactional.id": "mine", "default.api.timeout.ms": "200"}
    writer = Producer({"bootstrap.servers": brokers.bootstrap_servers} | given, topic="orders")
    writer.begin_transaction()
    flushed(writer)
    with pytest.raises(KafkaProtoError):
        getattr(writer, end)()
    assert writer._unwritten.is_some == is_open
    writer.abandon()


def test_the_end_of_a_process_is_told(brokers):
    """Where no logger is set up, too."""
    lines = (
        "from pyspark_kafkaproto import Producer, ProducerRecord",
        f"config = {{'bootstrap.servers': '{brokers.bootstrap_servers}'}}",
        "writer = Producer(config, topic='orders')",
        "writer.send([ProducerRecord('a', partition=0)])",
    )
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0
    assert GONE in ended.stderr


def test_a_child_process_says_nothing_of_its_parents_rows(brokers, capfd):
    with Producer({"bootstrap.servers": brokers.bootstrap_servers}, topic="orders") as writer:
        writer.send(ROWS)
        assert in_child(writer._unwritten._tell) == 0
    assert GONE not in capfd.readouterr().err
