import threading

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import LoadTest, loadtest
from pyspark_kafkaproto.client.loadtest import LEAST_BYTES, Messages
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from tests.fake_broker import STALL
from tests.fake_log import FakeLog
from tests.fake_produce import produce, refusing

RUN = b"this-run"


@pytest.fixture
def messages():
    return Messages(100, RUN)


def batch(values, partition=0):
    columns = {
        "value": pa.array(values, pa.binary()),
        "partition": pa.array([partition] * len(values), pa.int32()),
    }
    return pa.RecordBatch.from_pydict(columns)


def counts(messages):
    names = ("valid", "invalid", "duplicates", "misordered", "foreign")
    return {name: value for name in names if (value := getattr(messages, name))}


def test_whole_messages_are_valid(messages):
    made = messages.make(3) + messages.make(2)
    assert {len(value) for value in made} == {100}
    messages.check(batch(made[::2]))
    messages.check(batch(made[1::2], partition=1))
    assert counts(messages) == {"valid": 5}
    assert messages.valid_bytes == 500
    assert messages.latencies.count == 5


@pytest.mark.parametrize("at", [4, 8, 16, 24, 31, 32, 99])
def test_any_changed_byte_is_found(messages, at):
    value = bytearray(messages.make(1)[0])
    value[at] ^= 1
    messages.check(batch([bytes(value)]))
    assert counts(messages) == {"invalid": 1}


def test_a_cut_message_is_invalid_and_what_others_wrote_is_foreign(messages):
    (value,) = messages.make(1)
    others = [None, b"", b"text", value[: LEAST_BYTES - 1], *Messages(100, b"that-run").make(1)]
    messages.check(batch([value[:-1], *others]))
    assert counts(messages) == {"invalid": 1, "foreign": 5}


def test_doubled_and_misordered_messages_are_counted(messages):
    made = messages.make(4)
    messages.check(batch([made[0], made[2], made[1], made[2]]))
    messages.check(batch([made[3]], partition=1))
    assert counts(messages) == {"valid": 4, "duplicates": 1, "misordered": 1}


@pytest.mark.parametrize(
    "wrong", [{"size_bytes": LEAST_BYTES - 1}, {"seconds": 0}, {"rate": 0}], ids=str
)
def test_what_cannot_be_is_refused_before_anything_is_asked(wrong):
    with pytest.raises(ConfigError, match="expected"):
        LoadTest({"bootstrap.servers": "127.0.0.1:1"}, "orders", **wrong)


@pytest.mark.slow
def test_a_cluster_that_works_is_sound(brokers):
    brokers.logs["orders", 0].fill(3)  # what was there before is not read
    test = LoadTest({"bootstrap.servers": brokers.bootstrap_servers}, "orders", seconds=0.1)
    load = test.finish()
    assert load.is_sound, load
    assert load.sent == load.acknowledged == load.valid
    assert load.foreign == load.lost == 0
    assert 0 < load.latency_ms["p50"] <= load.latency_ms["p100"]


@pytest.mark.slow
def test_a_rate_is_kept_and_a_stop_ends_it(brokers):
    servers = {"bootstrap.servers": brokers.bootstrap_servers}
    test = LoadTest(servers, "orders", seconds=60, rate=200, size_bytes=LEAST_BYTES)
    while test.load().valid < 20:
        assert not test.wait(0.01)
    test.stop()
    load = test.finish()
    assert load.is_sound, load
    assert load.sent <= 200 * load.seconds + 1


@pytest.mark.slow
def test_partitions_that_are_added_are_read_too(brokers, monkeypatch):
    monkeypatch.setattr(loadtest, "_QUIET_S", 0.1)
    servers = {"bootstrap.servers": brokers.bootstrap_servers, "metadata.max.age.ms": "0"}
    test = LoadTest(servers, "orders", seconds=60, rate=1000)
    while test.load().valid < 20:
        assert not test.wait(0.01)
    brokers.logs["orders", 2] = FakeLog()
    brokers.topics["orders"].epochs.append(0)
    brokers.topics["orders"].leaders.append(1)
    while not brokers.logs["orders", 2].stop:
        assert not test.wait(0.01)
    test.stop()
    load = test.finish()
    assert load.is_sound, load
    assert load.valid == load.acknowledged


@pytest.mark.slow
def test_messages_that_were_acknowledged_and_are_not_there_are_lost(brokers, monkeypatch):
    monkeypatch.setattr(loadtest, "_QUIET_S", 0.1)

    def forget(call):
        before = {key: (log.stop, len(log.batches)) for key, log in brokers.logs.items()}
        answer = produce(brokers, call)
        for key, (stop, batches) in before.items():
            brokers.logs[key].stop = stop
            del brokers.logs[key].batches[batches:]
        return answer

    brokers.on("Produce", forget)
    servers = {"bootstrap.servers": brokers.bootstrap_servers}
    load = LoadTest(servers, "orders", seconds=0.1, rate=100).finish()
    assert load.acknowledged == load.sent > 0
    assert load.lost == load.acknowledged - load.valid > 0
    assert not load.is_sound


@pytest.mark.slow
def test_what_ends_the_producer_ends_the_test(brokers):
    brokers.on("Produce", refusing(29))
    test = LoadTest({"bootstrap.servers": brokers.bootstrap_servers}, "orders", seconds=60)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        test.finish()
    with pytest.raises(BrokerError, match="no such topic"):
        LoadTest({"bootstrap.servers": brokers.bootstrap_servers}, "nothing")


@pytest.mark.slow
def test_what_ends_the_consumer_ends_the_producer(brokers, monkeypatch):
    """It was left behind, and warned of as one that nobody had closed."""

    def fail(test):
        while not test.load().sent:
            assert not test.wait(0.01)
        raise BrokerError(29, "Fetch", "partition orders-0")

    monkeypatch.setattr(LoadTest, "_read_news", fail)
    brokers.on("Produce", STALL)  # a flush would wait for it
    test = LoadTest({"bootstrap.servers": brokers.bootstrap_servers}, "orders", seconds=60)
    (writing,) = (each for each in threading.enumerate() if each.name.endswith("load_produce"))
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        test.finish()
    writing.join(timeout=10)
    assert not writing.is_alive()
