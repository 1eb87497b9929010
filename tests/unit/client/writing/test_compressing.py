"""Batches compressed in other threads: the same batches, in the same order, and no more held."""

import subprocess
import sys
import threading

import pytest

from pyspark_kafkaproto.client import ProducerRecord
from pyspark_kafkaproto.client.writing import compressing
from pyspark_kafkaproto.records import compression
from tests.fake_produce import values

LARGE = b"x" * (40 << 10)
THREADS = compressing.compressing_threads
CODECS = ["gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize(("spare", "heavy", "light"), [(0, 0, 0), (1, 1, 0), (2, 2, 1), (7, 4, 4)])
def test_threads_are_for_processors_to_spare(monkeypatch, spare, heavy, light):
    monkeypatch.setattr(compressing, "spare_threads", lambda: spare)
    assert [THREADS(codec) for codec in ("gzip", "zstd")] == [heavy, heavy]
    assert [THREADS(codec) for codec in ("snappy", "lz4")] == [light, light]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(compressing, "compressing_threads", lambda _: 2)


@pytest.fixture
def gate(monkeypatch):
    """Holds every compression up until it is set; tells in which threads they were."""
    opened = threading.Event()
    opened.threads = []
    compress = compression.compress

    def wait(codec, data, level=None):
        opened.threads.append(threading.current_thread())
        assert opened.wait(10)
        return compress(codec, data, level)

    monkeypatch.setattr(compression, "compress", wait)
    return opened


class FakeBuilder:
    """A batch of a size, compressed at once."""

    def __init__(self, size_bytes):
        self.size_bytes = size_bytes

    def compress(self):
        pass


def test_a_small_batch_goes_behind_the_large_ones_that_are_being_compressed():
    """By itself it would overtake them."""
    large, small = FakeBuilder(compressing._WORTH_A_THREAD_BYTES), FakeBuilder(1)
    under_way = compressing.Compressing(1, 1 << 30)
    try:
        assert under_way.takes(large)
        assert not under_way.takes(small)
        under_way.add(compressing.Full(None, large, []))
        assert under_way.takes(small)
        under_way.add(compressing.Full(None, small, []))
        assert [full.builder for full in under_way.take(wait=True)] == [large, small]
        assert not under_way.takes(small)
        under_way.add(compressing.Full(None, large, []))
    finally:
        under_way.close()
    assert under_way.is_empty
    assert under_way.held_bytes == 0
    assert list(under_way.take(wait=True)) == []


def numbered(count, start=0, size=LARGE):
    return [
        ProducerRecord(b"%d " % number + size, partition=0)
        for number in range(start, start + count)
    ]


def names(brokers):
    """The first word of each value that was written."""
    return [int(value.split()[0]) for value in values(brokers.logs["orders", 0])]


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_records_come_in_their_order_whatever_their_size(brokers, producer, codec):
    writer = producer(batch_size=50_000, compression_type=codec, linger_ms=600_000)
    for start in range(0, 60, 3):
        writer.send(numbered(2, start) + numbered(1, start + 2, b""))
        writer._appending.open_batches.finish_all()
    writer.flush()
    assert names(brokers) == list(range(60))


def test_the_caller_goes_on_while_batches_are_compressed(brokers, producer, gate):
    writer = producer(batch_size=50_000, compression_type="lz4")
    writer.send(numbered(4))
    assert not brokers.asked("Produce")
    gate.set()
    writer.flush()
    assert names(brokers) == [0, 1, 2, 3]
    assert threading.current_thread() not in gate.threads


@pytest.mark.slow
def test_no_more_are_held_than_threads_can_work_on(brokers, producer, gate, monkeypatch):
    """The caller waits for the first of them when it has come with one too many."""
    writer = producer(batch_size=50_000, compression_type="lz4")
    most = []
    take = compressing.Compressing.take

    def counted(pipeline, *, wait):
        most.append(len(pipeline._under_way))
        return take(pipeline, wait=wait)

    monkeypatch.setattr(compressing.Compressing, "take", counted)
    threading.Timer(0.1, gate.set).start()
    writer.send(numbered(40))
    writer.flush()
    assert names(brokers) == list(range(40))
    assert max(most) == 5


@pytest.mark.slow
def test_they_hold_no_more_than_buffer_memory_allows(brokers, producer, monkeypatch):
    writer = producer(batch_size=50_000, compression_type="lz4", buffer_memory=100_000)
    held = []
    add = compressing.Compressing.add

    def noted(pipeline, full):
        add(pipeline, full)
        held.append(pipeline.held_bytes)

    monkeypatch.setattr(compressing.Compressing, "add", noted)
    writer.send(numbered(40))
    writer.flush()
    assert names(brokers) == list(range(40))
    assert max(held) <= 100_000


def test_a_small_batch_alone_is_compressed_by_the_caller(brokers, producer, gate):
    gate.set()
    writer = producer(compression_type="lz4")
    writer.send(numbered(1, size=b""))
    writer.flush()
    assert names(brokers) == [0]
    assert gate.threads == [threading.current_thread()]


def test_what_has_waited_for_linger_is_sent_when_send_returns(brokers, producer):
    writer = producer(compression_type="lz4", linger_ms=0)
    writer.send(numbered(1))
    brokers.wait_for_call("Produce")


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 1])
def test_the_caller_compresses_what_no_thread_can(brokers, producer, gate, monkeypatch, most):
    """One that has begun a batch goes on with it, and takes no other."""
    start, begun = threading.Thread.start, []

    def start_some(thread):
        if thread.name.startswith("kafkaproto-compress"):
            if len(begun) == most:
                raise RuntimeError("can't start new thread")
            begun.append(thread)
        start(thread)

    writer = producer(batch_size=50_000, compression_type="lz4", buffer_memory=1 << 20)
    monkeypatch.setattr(threading.Thread, "start", start_some)
    threading.Timer(0.1, gate.set).start()
    writer.send(numbered(9))
    writer.flush()
    assert names(brokers) == list(range(9))
    assert len(gate.threads) == 9, "each was compressed once"
    assert {item for item in gate.threads if item in begun} == set(begun)


AT_EXIT = """
import atexit
from pyspark_kafkaproto.client import Producer, ProducerRecord
from tests.fake_broker import FakeCluster
from tests.fake_produce import values

brokers = FakeCluster({"orders": 1})
properties = {"bootstrap.servers": brokers.bootstrap_servers, "compression.type": "gzip"}
producer = Producer(properties | {"linger.ms": 60_000}, topic="orders", compression_threads=1)

def end():
    producer.close()
    print(len(values(brokers.logs["orders", 0])))

atexit.register(end)
for number in range(BEFORE):
    producer.send([ProducerRecord(bytes(40_000), partition=0)] * 20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 4])
def test_a_producer_closed_as_the_interpreter_ends_writes_all(before):
    """It starts no thread any more: what has none yet, and what is open, is compressed without."""
    program = AT_EXIT.replace("BEFORE", str(before))
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, timeout=60
    )
    assert (shown.stdout.split(), shown.stderr) == ([b"%d" % (20 * before)], b"")


@pytest.mark.parametrize("error", [MemoryError("no more"), KeyboardInterrupt()])
def test_an_error_of_compression_ends_the_producer(brokers, producer, monkeypatch, error):
    def fail(*_):
        raise error

    writer = producer(batch_size=50_000, compression_type="lz4")
    writer.send(numbered(1, size=b""))
    writer.flush()
    monkeypatch.setattr(compression, "compress", fail)

    def write():
        writer.send(numbered(9, 1))
        writer.flush()

    with pytest.raises(type(error)):
        write()
    assert names(brokers) == [0]
    with pytest.raises(Exception, match="this producer has ended"):
        writer.flush()


@pytest.mark.parametrize("threads", [0, 1])
def test_who_wants_no_threads_has_none(brokers, gate, threads):
    from pyspark_kafkaproto.client import Producer

    gate.set()
    properties = {"bootstrap.servers": brokers.bootstrap_servers, "compression.type": "lz4"}
    with Producer(properties, topic="orders", compression_threads=threads) as writer:
        writer.send(numbered(4))
    assert names(brokers) == [0, 1, 2, 3]
    assert (threading.current_thread() in gate.threads) == (threads == 0)


def test_threads_end_with_their_producer(brokers, producer):
    writer = producer(batch_size=50_000, compression_type="lz4")
    writer.send(numbered(9))
    writer.close()
    ours = [item for item in threading.enumerate() if item.name.startswith("kafkaproto-compress")]
    for thread in ours:
        thread.join(10)
        assert not thread.is_alive()
