"""The decision log: what is read of it."""

import json
import time
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.client import decisions
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.errors import DeadlineExceeded, LocalProtocolError
from pyspark_kafkaproto.net import ClientConfig, pool
from tests.fake_broker import DEFAULT, FakeCluster, FakeTopic, metadata, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_past import lead_in_the_past
from tests.fake_produce import refusing

TOPIC, PREFIX = "decisions", "orders"
_NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def new_log(monkeypatch):
    """Makes a fake cluster with `topics`, and the log that is to be there."""
    pools = {}
    monkeypatch.setattr(pool, "_pools", pools)
    monkeypatch.setattr(decisions, "_seen", {})
    with ExitStack() as clusters:

        def make(topics, nodes=1):
            fake = clusters.enter_context(FakeCluster(topics, nodes))
            config = ClientConfig.parse({"bootstrap.servers": fake.bootstrap_servers})
            return fake, DecisionLog(config, TOPIC, PREFIX)

        yield make
        for kept in pools.values():
            kept.close()


@pytest.fixture
def cluster(new_log):
    return new_log({TOPIC: 1})


@pytest.fixture
def brokers(cluster):
    return cluster[0]


@pytest.fixture
def log(cluster):
    return cluster[1]


def decide(brokers, batch, state):
    """Write a decision of the query `name` as its driver would."""
    value = json.dumps({"batch": batch, "state": state, "transactions": []})
    key = json.dumps([PREFIX, "name"])
    brokers.logs[TOPIC, 0].append(value.encode(), key=key.encode())


def last(log):
    return str(log.read()["name"])


def test_what_comes_after_a_truncation_is_read_by_whoever_had_read_further(brokers, log, clock):
    for batch in ("1", "2", "3"):
        decide(brokers, batch, "done")
    assert last(log) == "batch 3 (done, 0 transactions)"
    brokers.logs[TOPIC, 0].cut_off(1)
    decide(brokers, "4", "decided")
    assert last(log) == "batch 4 (decided, 0 transactions)"


@pytest.mark.slow
def test_decisions_that_somebody_deletes_are_an_error_once(brokers, log, clock):
    """Compaction keeps the last of each name; records that are deleted are nobody's decisions."""
    decide(brokers, "1", "done")
    assert last(log) == "batch 1 (done, 0 transactions)"
    for batch in ("2", "3", "4"):
        decide(brokers, batch, "done")
    kept = brokers.logs[TOPIC, 0]
    kept.batches, kept.start = kept.batches[3:], 3
    with pytest.raises(LocalProtocolError, match=r"from offset 1 to 4 .*nothing is decided"):
        log.read()
    assert last(log) == "batch 4 (done, 0 transactions)"


def test_nothing_is_read_anew_for_a_leader_that_has_been_away(new_log, clock, caplog):
    brokers, log = new_log({TOPIC: 1}, nodes=2)
    decide(brokers, "1", "done")
    decide(brokers, "2", "done")
    assert last(log) == "batch 2 (done, 0 transactions)"
    lead_in_the_past(brokers, TOPIC, end=1)
    assert last(log) == "batch 2 (done, 0 transactions)"
    assert not caplog.records


def make_again_after(brokers, describe_count, *batches):
    """The topic is deleted and made again behind so many descriptions; what is decided in it."""

    def last_description(call):
        found = metadata(brokers, call)
        brokers.topics[TOPIC] = FakeTopic(topic_id_of("made again"), [1], [0])
        brokers.logs[TOPIC, 0] = FakeLog()
        for batch in batches:
            decide(brokers, batch, "done")
        return found

    brokers.on("Metadata", *[DEFAULT] * (describe_count - 1), last_description, DEFAULT)


@pytest.mark.slow
def test_a_topic_made_again_is_told_from_the_one_described_by_as_long_a_log(brokers, log, clock):
    for batch in ("1", "2", "3"):
        decide(brokers, batch, "done")
    assert last(log) == "batch 3 (done, 0 transactions)"
    make_again_after(brokers, 1, "7", "8", "9")
    assert last(DecisionLog(log.config, TOPIC, PREFIX)) == "batch 9 (done, 0 transactions)"


@pytest.mark.slow
def test_decisions_of_a_topic_made_again_are_not_read_on_from_the_one_before(brokers, log, clock):
    for batch in ("1", "2"):
        decide(brokers, batch, "done")
    assert last(log) == "batch 2 (done, 0 transactions)"
    decide(brokers, "3", "done")
    make_again_after(brokers, 2, "7", "8", "9", "10")
    with pytest.raises(LocalProtocolError, match=r"from offset 2 to 3 .*created again"):
        DecisionLog(log.config, TOPIC, PREFIX).read()
    assert last(log) == "batch 10 (done, 0 transactions)"


@pytest.mark.slow
def test_a_job_that_failed_does_not_wait_for_long_to_have_it_noted(brokers, log, monkeypatch):
    monkeypatch.setattr(decisions, "_TIMEOUT_S", 0.3)
    brokers.on("Produce", refusing(_NOT_ENOUGH_REPLICAS))
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="NOT_ENOUGH_REPLICAS"):
        log.give_up("some job")
    assert time.monotonic() - began < 5
