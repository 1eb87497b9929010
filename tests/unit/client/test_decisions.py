"""The decision log: what is read of it."""

import json
import time
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.client import decisions
from pyspark_kafkaproto.client.decisions import Decision, DecisionLog
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.errors import (
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.net import ClientConfig, pool
from tests.fake_broker import DEFAULT, FakeCluster, FakeTopic, metadata, topic_id_of
from tests.fake_log import FakeLog, list_offsets
from tests.fake_past import lead_in_the_past
from tests.fake_produce import refusing
from tests.unit.client.willing import be_willing

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


def decide(brokers, batch, state, prefix=PREFIX):
    """Write a decision of the query `name` as its driver would."""
    value = json.dumps({"batch": batch, "state": state, "transactions": []})
    key = json.dumps([prefix, "name"])
    brokers.logs[TOPIC, 0].append(value.encode(), key=key.encode())


def last(log):
    return str(log.read()["name"])


@pytest.mark.parametrize("key", [b"", b"not JSON", b"\xff", b"[1]", b"12", b"[" * 100_000])
def test_a_record_of_somebody_else_stops_nobody(brokers, log, caplog, key):
    decide(brokers, "1", "done")
    brokers.logs[TOPIC, 0].append(b"anything", key=key)
    assert last(log) == "batch 1 (done, 0 transactions)"
    assert "is no decision" in caplog.text
    decide(brokers, "2", "done")
    assert last(log) == "batch 2 (done, 0 transactions)"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"no JSON",
        b"[]",
        b"7",
        b'{"batch": "1", "state": "done"}',
        b'{"batch": "1", "transactions": []}',
        b'{"state": "done", "transactions": []}',
        b'{"batch": "1", "state": "decided", "transactions": 5}',
        b'{"batch": "1", "state": "decided", "transactions": [["0-0", 7]]}',
        b'{"batch": "1", "state": "decided", "transactions": [["0-0", "x", 7]]}',
        b'{"batch": "1", "state": "done", "transactions": [], "rows": "many"}',
    ],
)
def test_what_is_no_decision_and_stands_where_one_is_to_be_is_an_error(brokers, log, value):
    """Something may be decided: nobody goes on as if nothing were."""
    brokers.logs[TOPIC, 0].append(value, key=json.dumps([PREFIX, "name"]).encode())
    with pytest.raises(RemoteProtocolError, match=rf"{TOPIC}.*record of 'name' is no decision"):
        log.read()


def test_what_is_decided_under_another_prefix_is_none_of_ours(brokers, log):
    for prefix in (PREFIX, f"{PREFIX}-eu", ""):
        decide(brokers, f"of {prefix}", "done", prefix)
    assert log.read() == {"name": Decision(f"of {PREFIX}", True, ())}
    other = DecisionLog(log.config, TOPIC, f"{PREFIX}-eu")
    assert other.read() == {"name": Decision(f"of {PREFIX}-eu", True, ())}


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


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"batch": "1", "state": "decided", "transactions": [["0-0", Infinity, 1]]}',
    ],
    ids=["deep", "infinite"],
)
def test_a_value_that_python_gives_up_on_is_said_to_be_no_decision(brokers, log, value):
    brokers.logs[TOPIC, 0].append(value, key=json.dumps([PREFIX, "name"]).encode())
    with pytest.raises(RemoteProtocolError, match=rf"{TOPIC}.*record of 'name' is no decision"):
        log.read()


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
    monkeypatch.setattr(decisions, "_TIMEOUT_S", 2.0)
    brokers.on("Produce", refusing(_NOT_ENOUGH_REPLICAS))
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match="NOT_ENOUGH_REPLICAS"):
        log.give_up("some job")
    assert time.monotonic() - began < 10


def told_before(brokers, end):
    """An answer of a leader that has not heard yet how far its log has come."""

    def answer(call):
        log = brokers.logs[TOPIC, 0]
        now, log.stop = log.stop, end
        try:
            return list_offsets(brokers, call)
        finally:
            log.stop = now

    return answer


@pytest.fixture
def one_behind(brokers, log, clock):
    """Two decisions were made; whoever reads next is told of the first alone, once."""
    be_willing(brokers)
    decide(brokers, "1", "done")
    assert last(log) == "batch 1 (done, 0 transactions)"
    decide(brokers, "2", "decided")
    brokers.on("ListOffsets", *[told_before(brokers, 1)] * 2, DEFAULT)
    return log


def test_what_is_decided_is_read_by_whoever_comes_next(brokers, log, clock):
    be_willing(brokers)
    writers = (Writer(f"{PREFIX}-name-7-0", 1001, 3), Writer(f"{PREFIX}-name-7-1", 1002, 0))
    decision = Decision("7", False, writers)
    with log.deciding("name") as deciding:
        assert deciding.last is None
        deciding.write(decision)
        assert deciding.last == decision
        assert deciding.ids_to_commit == {writer.transactional_id for writer in writers}
    assert DecisionLog(log.config, TOPIC, PREFIX).read() == {"name": decision}
    with log.deciding("name") as again:
        assert again.last == decision
        again.write(Decision("7", True, writers))
        assert again.ids_to_commit == set()
    assert log.read() == {"name": Decision("7", True, ())}


def test_who_is_about_to_decide_is_waited_for(brokers, log, monkeypatch):
    decide(brokers, "1", "done")
    decide(brokers, "2", "decided")
    kept = brokers.logs[TOPIC, 0]
    kept.stable = 1
    looks = []

    def sleep(seconds):
        looks.append(len(brokers.asked("Fetch")))
        if len(looks) == 3:
            kept.stable = None

    monkeypatch.setattr(decisions.time, "sleep", sleep)
    assert last(log) == "batch 2 (decided, 0 transactions)"
    assert looks == [0, 0, 0], "nothing is read before"


def test_whoever_is_not_sure_may_read_what_was(one_behind):
    assert last(one_behind) == "batch 1 (done, 0 transactions)"
    assert last(one_behind) == "batch 2 (decided, 0 transactions)"


def test_whoever_has_to_be_sure_believes_no_end_of_the_past(one_behind):
    assert str(one_behind.read(surely=True)["name"]) == "batch 2 (decided, 0 transactions)"


def test_who_decides_is_sure_of_the_last_decision_once_that_was_asked_for(brokers, one_behind):
    brokers.on("ListOffsets", *[told_before(brokers, 1)] * 4, DEFAULT)
    with one_behind.deciding("name") as deciding:
        assert str(deciding.last) == "batch 1 (done, 0 transactions)"
        deciding.make_sure()
        assert str(deciding.last) == "batch 2 (decided, 0 transactions)"


def test_nothing_is_decided_behind_a_decision_that_was_not_read(brokers, one_behind):
    refused = pytest.raises(LocalProtocolError, match=r"'name' has decided batch 2 .*offset 1")
    with refused, one_behind.deciding("name") as deciding:
        deciding.write(Decision("3", False, ()))
    assert [request.committed for request in brokers.asked("EndTxn")] == [False]


def test_what_another_has_decided_keeps_nobody_from_deciding(brokers, one_behind):
    with one_behind.deciding("another") as deciding:
        deciding.write(Decision("9", True, ()))
    assert brokers.asked("EndTxn")[0].committed
    assert str(one_behind.read()["another"]) == "batch 9 (done, 0 transactions)"
