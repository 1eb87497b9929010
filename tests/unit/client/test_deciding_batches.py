"""Batches of many transactions: decided first, then ended, whoever died in between."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto.client import decisions
from pyspark_kafkaproto.client.batch_commit import abort_batch, commit_batch, recover
from pyspark_kafkaproto.client.decisions import Decision, DecisionLog
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError
from pyspark_kafkaproto.messages.describe_transactions import DescribeTransactionsResponse
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import FakeCluster, close
from tests.fake_produce import produce
from tests.unit.client.willing import be_willing, next_epoch

TOPIC, PREFIX, NAME = "decisions", "orders", "name"
FIRST, SECOND = (Writer(f"{PREFIX}-{NAME}-{number}-0", 2000 + number, 5) for number in range(2))
BOTH = (FIRST, SECOND)
SOMEBODY = Writer(f"{PREFIX}-driver-{NAME}", 2002, 5)  # who has the driver's id now
DECIDED, DONE = Decision("7", False, BOTH), Decision("7", True, ())


class Coordinator:
    """Of all transactions: those of `BOTH` are open, but what is in `states` says otherwise.

    ended: the transactional id of each that was ended, and whether it was committed; of those of
        the driver, who decides, nothing is noted.
    """

    def __init__(self, brokers):
        self.ended = []
        self.states = {}
        self.left_over = ""  # an id with an open transaction, which is swept
        be_willing(brokers)
        brokers.versions |= {"ListTransactions": (0, 1), "DescribeTransactions": (0, 0)}
        brokers.on("ListTransactions", self.list)
        brokers.on("DescribeTransactions", self.describe)
        brokers.on("EndTxn", self.end)

    def list(self, call):
        del call
        state = ListTransactionsResponse.TransactionState
        name, self.left_over = self.left_over, ""  # swept by then
        open_ones = (state(transactional_id=name, transaction_state="Ongoing"),) if name else ()
        return ListTransactionsResponse(transaction_states=open_ones)

    def describe(self, call):
        state = DescribeTransactionsResponse.TransactionState
        known = {writer.transactional_id: writer for writer in (*BOTH, SOMEBODY)}
        return DescribeTransactionsResponse(
            transaction_states=tuple(
                state(
                    transactional_id=name,
                    transaction_state=self.states.get(name, "Ongoing"),
                    transaction_timeout_ms=900_000,
                    transaction_start_time_ms=int(time.time() * 1000),
                    producer_id=known[name].producer_id,
                    producer_epoch=known[name].epoch,
                )
                for name in call.request.transactional_ids
            )
        )

    def end(self, call):
        name = call.request.transactional_id
        if not name.startswith(f"{PREFIX}-driver-"):
            self.ended.append((name, call.request.committed))
        return next_epoch(call)


@pytest.fixture
def brokers(monkeypatch):
    monkeypatch.setattr(decisions, "_seen", {})
    with FakeCluster({TOPIC: 1}) as fake:
        yield fake


@pytest.fixture
def coordinator(brokers):
    return Coordinator(brokers)


@pytest.fixture
def log(brokers, coordinator):
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    return DecisionLog(config, TOPIC, PREFIX)


@pytest.fixture
def died_after(log):
    """A driver that has decided, and has ended no transaction of it."""
    with log.deciding(NAME) as deciding:
        deciding.write(DECIDED)


def each(is_commit):
    return [(writer.transactional_id, is_commit) for writer in BOTH]


def last(log):
    return log.read().get(NAME)


def test_a_batch_is_committed_once(log, coordinator):
    assert commit_batch(log, NAME, "7", BOTH)
    assert sorted(coordinator.ended) == each(is_commit=True)
    assert last(log) == DONE
    assert not commit_batch(log, NAME, "7", BOTH)
    assert len(coordinator.ended) == 2


def test_who_cannot_go_on_behind_a_decision_completes_it_and_says_that_it_holds(
    brokers, log, coordinator
):
    """In version 1 an end that was asked for twice costs an epoch, which another driver has."""

    def end(call):
        coordinator.end(call)
        return EndTxnResponse()

    be_willing(brokers, 1)
    brokers.on("EndTxn", close(), end)
    with pytest.raises(BrokerError, match=r"taken over.*\n.*batch 7 .* is decided all the same"):
        commit_batch(log, NAME, "7", BOTH)
    assert sorted(coordinator.ended) == each(is_commit=True)
    assert last(log) == DECIDED


@pytest.mark.usefixtures("died_after")
def test_what_a_driver_has_decided_is_what_the_next_one_commits(log, coordinator):
    """Not what was written in the batch since, which was aborted by whoever wrote it."""
    assert not commit_batch(log, NAME, "7", [Writer(f"{PREFIX}-{NAME}-9-0", 2009, 0)])
    assert sorted(coordinator.ended) == each(is_commit=True)
    assert last(log) == DONE


@pytest.mark.usefixtures("died_after")
def test_no_batch_is_decided_while_another_is_not_complete(log, coordinator):
    with pytest.raises(LocalProtocolError, match="is not complete, and batch 8 comes"):
        commit_batch(log, NAME, "8", BOTH)
    assert coordinator.ended == []
    assert last(log) == DECIDED


def test_no_batch_is_decided_behind_a_later_one(log, coordinator):
    commit_batch(log, NAME, "7", BOTH)
    with pytest.raises(LocalProtocolError, match="is at batch 6, and has decided batch 7"):
        commit_batch(log, NAME, "6", BOTH)
    assert len(coordinator.ended) == 2


def test_nothing_is_decided_where_a_transaction_is_gone(brokers, log, coordinator):
    coordinator.states[SECOND.transactional_id] = "CompleteAbort"
    with pytest.raises(LocalProtocolError, match=r"nothing of it is: .*-1-0.* CompleteAbort"):
        commit_batch(log, NAME, "7", BOTH)
    assert coordinator.ended == []
    assert brokers.asked("Produce") == []


def test_what_was_not_decided_is_aborted(log, coordinator):
    assert abort_batch(log, NAME, "7", BOTH)
    assert sorted(coordinator.ended) == each(is_commit=False)
    assert last(log) is None


@pytest.mark.usefixtures("died_after")
def test_what_was_decided_is_committed_by_who_comes_to_abort_it(log, coordinator):
    assert not abort_batch(log, NAME, "7", BOTH)
    assert sorted(coordinator.ended) == each(is_commit=True)
    assert last(log) == DONE


@pytest.mark.usefixtures("died_after")
def test_another_batch_is_aborted_whatever_was_decided_before(log, coordinator):
    assert abort_batch(log, NAME, "8", [FIRST])
    assert coordinator.ended == [(FIRST.transactional_id, False)]
    assert last(log) == DECIDED


@pytest.mark.usefixtures("died_after")
def test_recovering_completes_what_was_decided(log, coordinator):
    assert recover(log, NAME) == DECIDED
    assert sorted(coordinator.ended) == each(is_commit=True)
    assert last(log) == DONE
    assert recover(log, NAME) is None
    assert len(coordinator.ended) == 2


def fenced(brokers):
    """The transactional ids that were fenced; without those that decide."""
    ids = [request.transactional_id for request in brokers.asked("InitProducerId")]
    return [name for name in ids if name and not name.startswith(f"{PREFIX}-driver-")]


@pytest.mark.parametrize("batch", ["6", "8"])
def test_what_is_left_over_is_swept_unless_another_driver_has_come_after(
    brokers, log, coordinator, batch
):
    commit_batch(log, NAME, "7", BOTH)
    coordinator.left_over = left_over = f"{PREFIX}-{NAME}-5-0"
    assert abort_batch(log, NAME, batch, [FIRST])
    assert fenced(brokers) == ([] if batch == "6" else [left_over])


def test_a_transaction_that_ends_while_its_batch_is_decided_keeps_all_from_being_committed(
    brokers, log, coordinator
):
    def end_second(call):
        coordinator.states[SECOND.transactional_id] = "CompleteAbort"
        return produce(brokers, call)

    brokers.on("Produce", end_second)
    with pytest.raises(LocalProtocolError, match=r"nothing of it is: .*-1-0.* CompleteAbort"):
        commit_batch(log, NAME, "7", BOTH)
    assert coordinator.ended == []
    assert [request.committed for request in brokers.asked("EndTxn")] == [False]


JOB, JOBS = "0123abcd", "batch"


def test_a_job_that_is_aborted_is_given_up_for_those_that_come_late(log, coordinator):
    assert abort_batch(log, JOBS, JOB, BOTH, job=JOB)
    assert sorted(coordinator.ended) == each(is_commit=False)
    assert log.read() == {}
    assert log.is_given_up(JOB)


def test_a_job_that_was_decided_is_not_given_up(log, coordinator):
    with log.deciding(JOBS) as deciding:
        deciding.write(Decision(JOB, False, BOTH))
    assert not abort_batch(log, JOBS, JOB, BOTH, job=JOB)
    assert log.read() == {JOBS: Decision(JOB, True, ())}
    assert not log.is_given_up(JOB)
