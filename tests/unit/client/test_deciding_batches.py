"""Batches of many transactions: decided first, then ended, whoever died in between."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from pyspark_kafkaproto.client import decisions
from pyspark_kafkaproto.client.batch_commit import abort_batch, commit_batch, recover
from pyspark_kafkaproto.client.decisions import Decision, DecisionLog
from pyspark_kafkaproto.cluster.transactions import TIMEOUTS_MS, Writer
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError
from pyspark_kafkaproto.messages.describe_transactions import DescribeTransactionsResponse
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import DEFAULT, FakeCluster, close
from tests.fake_log import list_offsets
from tests.fake_produce import produce
from tests.unit.client.willing import be_willing, next_epoch

TOPIC, PREFIX, NAME = "decisions", "orders", "name"
FIRST, SECOND = (Writer(f"{PREFIX}-{NAME}-{number}-0", 2000 + number, 5) for number in range(2))
BOTH = (FIRST, SECOND)
SOMEBODY = Writer(f"{PREFIX}-driver-{NAME}", 2002, 5)  # who has the driver's id now
_INVALID_PRODUCER_EPOCH, _INVALID_TIMEOUT, _ID_NOT_ALLOWED = 47, 50, 53
DECIDED, DONE = Decision("7", False, BOTH), Decision("7", True, ())


class Coordinator:
    """Of all transactions: those of `BOTH` are open, but what is in `states` says otherwise.

    ended: the transactional id of each that was ended, and whether it was committed; of those of
        the driver, who decides, nothing is noted.
    gone: the ids of which no end is taken. now: who writes under an id, where that is another.
    open_for_s, timeout_ms: of each transaction.
    """

    def __init__(self, brokers):
        self.ended = []
        self.states = {}
        self.gone, self.now = set(), {}
        self.open_for_s, self.timeout_ms = 0.0, 900_000
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
        known = {writer.transactional_id: writer for writer in (*BOTH, SOMEBODY)} | self.now
        return DescribeTransactionsResponse(
            transaction_states=tuple(
                state(
                    transactional_id=name,
                    transaction_state=self.states.get(name, "Ongoing"),
                    transaction_timeout_ms=self.timeout_ms,
                    transaction_start_time_ms=int((time.time() - self.open_for_s) * 1000),
                    producer_id=known[name].producer_id,
                    producer_epoch=known[name].epoch,
                )
                for name in call.request.transactional_ids
            )
        )

    def end(self, call):
        name = call.request.transactional_id
        if name in self.gone:
            return EndTxnResponse(error_code=_INVALID_PRODUCER_EPOCH)
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


@pytest.mark.parametrize(
    ("first", "again", "is_told"),
    [(10, 20, True), (10, 0, True), (10, 10, False), (None, 10, False), (10, None, False)],
)
def test_a_decided_batch_that_comes_again_with_other_rows_is_told(
    log, coordinator, caplog, first, again, is_told
):
    """A checkpoint from just before the batch gives its number to what has come since."""
    assert commit_batch(log, NAME, "7", BOTH, rows=first)
    assert last(log) == replace(DONE, rows=first)
    assert not commit_batch(log, NAME, "7", [], rows=again)
    text = f"decided with {first} rows and comes again with {again}, of which none is written"
    assert (text in caplog.text) == is_told
    assert bool(caplog.records) == is_told


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


def test_nothing_is_decided_where_somebody_else_has_taken_a_transaction_over(
    brokers, log, coordinator
):
    other = coordinator.now[SECOND.transactional_id] = SECOND._replace(epoch=SECOND.epoch + 1)
    with pytest.raises(
        LocalProtocolError, match=rf"nothing of it is: .*of {re.escape(str(other))}"
    ):
        commit_batch(log, NAME, "7", BOTH)
    assert coordinator.ended == []
    assert brokers.asked("Produce") == []


@pytest.mark.parametrize(("timeout_s", "most_s"), [(900, 855), (60, 30), (90, 45), (100, 55)])
def test_a_transaction_of_which_too_little_time_is_left_is_not_decided(
    log, coordinator, timeout_s, most_s
):
    coordinator.timeout_ms = timeout_s * 1000
    coordinator.open_for_s = most_s + 1
    text = rf"open for {most_s + 1} of its {timeout_s} s by this machine's clock"
    with pytest.raises(LocalProtocolError, match=text):
        commit_batch(log, NAME, "7", BOTH)
    assert coordinator.ended == []
    coordinator.open_for_s = most_s - 5
    assert commit_batch(log, NAME, "7", BOTH)


@pytest.mark.usefixtures("died_after")
@pytest.mark.parametrize("later", [0, 1])
def test_what_somebody_has_committed_meanwhile_is_complete(log, coordinator, later):
    """In version 2 of transactions its end has raised the epoch."""
    name = SECOND.transactional_id
    coordinator.gone.add(name)
    coordinator.states[name] = "CompleteCommit"
    coordinator.now[name] = SECOND._replace(epoch=SECOND.epoch + later)
    assert recover(log, NAME) == DECIDED
    assert set(coordinator.ended) == {(FIRST.transactional_id, True)}
    assert last(log) == DONE


@pytest.mark.usefixtures("died_after")
@pytest.mark.parametrize(
    ("state", "later"), [("CompleteAbort", 0), ("CompleteAbort", 1), ("CompleteCommit", 2)]
)
def test_what_is_gone_is_said_and_accepted_when_that_is_asked_for(log, coordinator, state, later):
    name = SECOND.transactional_id
    coordinator.gone.add(name)
    coordinator.states[name] = state
    coordinator.now[name] = SECOND._replace(epoch=SECOND.epoch + later)
    text = rf"batch 7 .* was decided, but 1 of its transactions are gone.*{name}.*--accept-missing"
    with pytest.raises(LocalProtocolError, match=text):
        recover(log, NAME)
    assert set(coordinator.ended) == {(FIRST.transactional_id, True)}, "the rest is committed"
    assert last(log) == DECIDED
    assert recover(log, NAME, accept_missing=True) == DECIDED
    assert last(log) == DONE


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
@pytest.mark.parametrize("does", ["abort", "recover"])
def test_what_a_broker_that_is_behind_does_not_tell_is_committed_all_the_same(
    brokers, log, coordinator, monkeypatch, does
):
    monkeypatch.setattr(decisions, "_seen", {})  # by another process

    def told_before(call):
        now, kept.stop = kept.stop, 0
        try:
            return list_offsets(brokers, call)
        finally:
            kept.stop = now

    kept = brokers.logs[TOPIC, 0]
    brokers.on("ListOffsets", *[told_before] * 3, DEFAULT)
    if does == "abort":
        assert not abort_batch(log, NAME, "7", BOTH)
    else:
        assert recover(log, NAME) == DECIDED
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


@pytest.mark.usefixtures("died_after")
def test_what_is_decided_is_never_swept(brokers, log, coordinator):
    """It is to be committed, by whoever completes that batch."""
    coordinator.left_over = SECOND.transactional_id
    assert abort_batch(log, NAME, "8", [])
    assert fenced(brokers) == []
    assert coordinator.ended == []


@pytest.mark.parametrize("rest", ["8c6f4bb2-3f1c-4f2e-9b57-0a4f4b1f7f11-0-0", "0", "x-0"])
def test_what_only_begins_like_our_ids_is_never_swept(brokers, log, coordinator, rest):
    """Somebody else's prefix may be ours and a name."""
    coordinator.left_over = f"{PREFIX}-{NAME}-{rest}"
    assert abort_batch(log, NAME, "8", [FIRST])
    assert fenced(brokers) == []


def test_nothing_more_is_swept_once_somebody_else_decides(brokers, log, coordinator):
    """What is open may be decided by now."""
    coordinator.left_over = f"{PREFIX}-{NAME}-5-0"
    refused = EndTxnResponse(error_code=_INVALID_PRODUCER_EPOCH)
    brokers.on("EndTxn", coordinator.end, refused)
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
        recover(log, NAME)
    assert fenced(brokers) == []


def test_behind_a_commit_what_killed_attempts_have_left_open_is_swept(brokers, log, coordinator):
    coordinator.left_over = left_over = f"{PREFIX}-{NAME}-5-0"
    assert commit_batch(log, NAME, "7", BOTH)
    assert fenced(brokers) == [left_over]


def test_where_it_is_not_known_what_was_decided_nothing_is_aborted(brokers, log, coordinator):
    refused = InitProducerIdResponse(error_code=_ID_NOT_ALLOWED)
    brokers.on("InitProducerId", refused)
    text = r"(?s)TRANSACTIONAL_ID.*Whether batch 7 is decided is not known.*recover"
    with pytest.raises(BrokerError, match=text):
        abort_batch(log, NAME, "7", BOTH)
    assert coordinator.ended == []


def test_who_decides_takes_less_time_where_brokers_do_not_allow_as_much(brokers, log, coordinator):
    refused = InitProducerIdResponse(error_code=_INVALID_TIMEOUT)
    brokers.on("InitProducerId", refused, DEFAULT)
    assert commit_batch(log, NAME, "7", BOTH)
    asked, taken = brokers.asked("InitProducerId")
    assert asked.transaction_timeout_ms > taken.transaction_timeout_ms == min(TIMEOUTS_MS)


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


@pytest.mark.parametrize("job", ["", JOB])
def test_behind_a_commit_only_what_is_of_ones_own_is_swept_where_somebody_else_decides(
    brokers, log, coordinator, job
):
    """That one may have decided what a query has open; what a job has is its own."""
    ends = []

    def end(call):
        if call.request.transactional_id.startswith(f"{PREFIX}-driver-"):
            ends.append(call)
        if len(ends) > 2:  # the decision, and that it is done
            return EndTxnResponse(error_code=_INVALID_PRODUCER_EPOCH)
        return coordinator.end(call)

    brokers.on("EndTxn", end)
    name, slot = (JOBS, f"{JOB}-5-0") if job else (NAME, "5-0")
    coordinator.left_over = left_over = f"{PREFIX}-{name}-{slot}"
    assert commit_batch(log, name, job or "7", BOTH, job=job)
    assert fenced(brokers) == ([left_over] if job else [])
