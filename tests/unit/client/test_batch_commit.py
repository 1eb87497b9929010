"""Deciding for many transactions: what is left over is aborted. With real brokers in `broker`."""

from contextlib import ExitStack, closing
from itertools import chain
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client import batch_commit, decisions
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.cluster.transactions import Writer
from pyspark_kafkaproto.error_codes import NOT_ENOUGH_REPLICAS
from pyspark_kafkaproto.errors import BrokerError, DeadlineExceeded
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse
from pyspark_kafkaproto.net import ClientConfig, connections_for, deadline, retry
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster

PREFIX, JOB = "orders", "0123abcd"
_CONCURRENT_TRANSACTIONS = 51


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, retry, deadline, decisions, batch_commit)


class Coordinator:
    """Transactions that are open, by their ids; those in `slow` take a while to be aborted.

    busy: how often ids are not to be aborted yet, something else being under way.
    """

    def __init__(self, brokers, ids, slow=(), busy=0):
        self.open, self.slow, self.busy = set(ids), set(slow), dict.fromkeys(ids, busy)
        brokers.versions |= {"ListTransactions": (0, 1)}
        brokers.coordinators.update(dict.fromkeys(ids, 1))
        brokers.on("ListTransactions", self.list)
        brokers.on("InitProducerId", self.fence)

    def list(self, call):
        state = ListTransactionsResponse.TransactionState
        return ListTransactionsResponse(
            transaction_states=tuple(
                state(transactional_id=name, producer_id=7, transaction_state="Ongoing")
                for name in sorted(self.open)
            )
        )

    def fence(self, call):
        name = call.request.transactional_id
        if self.busy[name]:
            self.busy[name] -= 1
            return InitProducerIdResponse(error_code=_CONCURRENT_TRANSACTIONS)
        was_open = name in self.open
        self.open.discard(name)
        if was_open or name in self.slow:
            return InitProducerIdResponse(error_code=_CONCURRENT_TRANSACTIONS)
        return InitProducerIdResponse(producer_id=7, producer_epoch=2)


@pytest.fixture
def sweeping(clock):
    """Makes transactions of one job that are left over, and sweeps; gives what then is open."""
    with ExitStack() as held:

        def sweep(count, **options):
            brokers = held.enter_context(FakeCluster())
            config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
            held.callback(connections_for(config).close)
            ids = [f"{PREFIX}-batch-{JOB}-{number}-0" for number in range(count)]
            coordinator = Coordinator(brokers, ids, **options)
            sweep.asked = lambda: len(brokers.asked("InitProducerId"))
            batch_commit.sweep(DecisionLog(config, "decisions", PREFIX), "batch", JOB)
            return coordinator.open

        yield sweep


def test_what_is_left_over_is_aborted(sweeping):
    assert sweeping(3) == set()


def test_an_abort_that_takes_long_holds_up_no_other(sweeping, clock):
    """Its markers wait for a partition that takes none at the moment; it is aborted by then."""
    began = clock.now
    first = f"{PREFIX}-batch-{JOB}-0-0"
    assert sweeping(3, slow={first}) == set()
    assert clock.now - began < 1
    assert sweeping.asked() == 3


def test_one_that_is_busy_is_aborted_after_that(sweeping):
    assert sweeping(3, busy=2) == set()


def test_what_is_to_be_committed_is_neither_aborted_nor_waited_for(clock):
    """It stays open until whoever completes its batch commits it."""
    decided, left_over = (f"{PREFIX}-query-{number}-0" for number in range(2))
    with FakeCluster() as brokers:
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        coordinator = Coordinator(brokers, [decided, left_over])
        log = DecisionLog(config, "decisions", PREFIX)
        deciding = SimpleNamespace(make_sure=lambda: None, ids_to_commit={decided})
        with closing(connections_for(config)):
            batch_commit.sweep(log, "query", deciding=deciding)
        assert coordinator.open == {decided}
        assert clock.slept == []


@pytest.mark.usefixtures("clock")
def test_what_is_open_is_told_by_name_and_nothing_of_a_longer_prefix():
    query = "8c6f4bb2-3f1c-4f2e-9b57-0a4f4b1f7f11"
    theirs = {
        query: [f"{PREFIX}-{query}-0-7", f"{PREFIX}-{query}-12-34"],
        "batch": [f"{PREFIX}-batch-{JOB}-0-0", f"{PREFIX}-batch-3-1"],
    }
    others = [
        f"{PREFIX}-driver-{query}",
        f"{PREFIX}-{query}-0",
        f"{PREFIX}-eu-{query}-0-7",
        f"{PREFIX}-batch-batch-3-1",
        f"{PREFIX}{query}-0-7",
    ]
    with FakeCluster() as brokers, ExitStack() as held:
        config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
        held.callback(connections_for(config).close)
        Coordinator(brokers, [*others, *chain.from_iterable(theirs.values())])
        found = batch_commit.open_transactions(DecisionLog(config, "decisions", PREFIX))
    assert {
        name: sorted(item.transactional_id for item in items) for name, items in found.items()
    } == theirs


@pytest.mark.slow
def test_one_that_stays_busy_is_an_error(sweeping):
    with pytest.raises(DeadlineExceeded, match=rf"{PREFIX}-batch-{JOB}-0-0.*60 s"):
        sweeping(2, busy=10_000)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_job_that_is_given_up_is_so_though_its_late_attempts_cannot_be_told(
    monkeypatch, caplog, is_told
):
    """What they begin later times out; what they have begun before is aborted either way."""
    done = []

    def give_up(batch):
        done.append(("told", batch))
        if not is_told:
            raise BrokerError(NOT_ENOUGH_REPLICAS, "Produce", "decisions-0")

    log = SimpleNamespace(router="router", give_up=give_up, command=lambda *_: "")
    abort, sweep = "abort_transactions", "_sweep_rest"
    monkeypatch.setattr(batch_commit, abort, lambda _, writers: done.append(("aborted", writers)))
    monkeypatch.setattr(batch_commit, sweep, lambda *given: done.append(("swept", given[2])))
    writers = [Writer(f"{PREFIX}-batch-{JOB}-0-0", 7, 0)]
    given_up = batch_commit.abort_batch(log, "batch", JOB, writers, job=JOB, is_undecided=True)
    assert given_up
    expected = [("aborted", writers), ("swept", JOB), ("told", JOB), ("swept", JOB)]
    assert done == (expected if is_told else expected[:-1])
    assert ("late attempts" in caplog.text) == (not is_told)
