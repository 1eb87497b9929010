"""Transactions at their coordinators."""

import time
from contextlib import closing

import pytest

from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.cluster.transactions import (
    TIMEOUTS_MS,
    Writer,
    abort_transactions,
    begin_new_writer,
    begin_writer,
    end_transactions,
    list_transactions,
)
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorResponse
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import STALL, FakeCluster, api_versions, close, find_coordinator

_NO_COORDINATOR, _NOT_COORDINATOR, _INVALID_TXN_STATE, _TIMEOUT_TOO_LONG = 15, 16, 48, 50
ONE, TWO = Writer("p-1", 7, 3), Writer("p-2", 8, 0)


@pytest.fixture
def brokers():
    with FakeCluster(nodes=2) as fake:
        for api, most in (("InitProducerId", 5), ("EndTxn", 5), ("ListTransactions", 2)):
            fake.versions[api] = (0, most)
        yield fake


@pytest.fixture
def router(brokers):
    properties = {"bootstrap.servers": brokers.bootstrap_servers, "retry.backoff.ms": "1"}
    made = Router(ClientConfig.parse(properties))
    yield made
    made.close()


def with_version(level):
    """ApiVersions of a cluster whose transactions are of this version."""

    def answer(cluster, call):
        found = api_versions(cluster, call)
        feature = ApiVersionsResponse.FinalizedFeature(
            name="transaction.version", max_version_level=level, min_version_level=0
        )
        return ApiVersionsResponse(
            api_keys=found.api_keys, finalized_features=(feature,), finalized_features_epoch=0
        )

    return answer


def test_longest_time_out_that_the_broker_allows_is_asked_for(brokers, router):
    brokers.on(
        "InitProducerId",
        InitProducerIdResponse(error_code=_TIMEOUT_TOO_LONG),
        InitProducerIdResponse(producer_id=7, producer_epoch=3),
    )
    assert begin_writer(router, "p-1") == ONE
    asked = [item.transaction_timeout_ms for item in brokers.asked("InitProducerId")]
    assert asked == list(TIMEOUTS_MS[:2])


@pytest.mark.slow
def test_a_begin_that_costs_ids_ends_in_its_time(brokers):
    """The second try has what the first one has left."""
    brokers.on("InitProducerId", STALL)
    properties = {"request.timeout.ms": "3000", "default.api.timeout.ms": "4000"}
    servers = {"bootstrap.servers": brokers.bootstrap_servers, "retry.backoff.ms": "1"}
    began = time.monotonic()
    with (
        closing(Router(ClientConfig.parse(servers | properties))) as router,
        pytest.raises(DeadlineExceeded, match=r"begin with transactional id 'p-1'"),
    ):
        begin_new_writer(router, "p-1", 60_000, "{}-0".format)
    assert time.monotonic() - began < 5.7  # and not 6
    assert len(brokers.asked("InitProducerId")) == 2


@pytest.mark.parametrize(("after", "told"), [(None, (-1, -1)), (TWO, (8, 0))])
def test_who_had_the_id_before_is_told_where_it_has_to_be_the_one(brokers, router, after, told):
    """Without one both are -1: a broker takes no other number for nobody's."""
    brokers.on("InitProducerId", InitProducerIdResponse(producer_id=7, producer_epoch=3))
    begin_writer(router, "p-1", after=after)
    (asked,) = brokers.asked("InitProducerId")
    assert (asked.producer_id, asked.producer_epoch) == told


def test_time_out_that_was_given_is_not_changed(brokers, router):
    brokers.on("InitProducerId", InitProducerIdResponse(error_code=_TIMEOUT_TOO_LONG))
    text = r"INVALID_TRANSACTION_TIMEOUT.*timeout\.ms is 1000000, .*transaction\.max\.timeout\.ms"
    with pytest.raises(BrokerError, match=text):
        begin_writer(router, "p-1", timeout_ms=1_000_000)
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.parametrize(("level", "version"), [(1, 4), (2, 5)])
def test_end_is_of_the_version_that_the_cluster_has(brokers, router, level, version):
    brokers.on("ApiVersions", lambda call: with_version(level)(brokers, call))
    brokers.on("EndTxn", EndTxnResponse(producer_id=7, producer_epoch=4))
    ended = end_transactions(router, [ONE], commit=True)
    (call,) = (call for call in brokers.calls if call.api == "EndTxn")
    assert call.header.api_version == version
    assert ended == {ONE: Writer("p-1", 7, 4) if level == 2 else ONE}


def test_end_of_unknown_outcome_is_repeated_unchanged(brokers, router):
    brokers.on("EndTxn", close(), EndTxnResponse(error_code=_NOT_COORDINATOR), EndTxnResponse())
    assert end_transactions(router, [ONE], commit=True) == {ONE: ONE}
    first, *others = brokers.asked("EndTxn")
    assert others == [first, first]
    assert (first.transactional_id, first.producer_id, first.producer_epoch) == ONE


def test_each_is_ended_at_its_own_coordinator_and_what_was_ended_is_told(brokers, router):
    brokers.coordinators["p-2"] = 2
    brokers.on("EndTxn", EndTxnResponse(), node=1)
    brokers.on("EndTxn", EndTxnResponse(error_code=_INVALID_TXN_STATE), node=2)
    with pytest.raises(BrokerError, match=r"'p-2' \(8:0\).*INVALID_TXN_STATE.*timed out") as caught:
        end_transactions(router, [ONE, TWO], commit=True)
    assert caught.value.usable == {ONE: ONE}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("is_known", [False, True], ids=["no coordinator", "does not answer"])
def test_a_coordinator_that_is_away_keeps_no_other_from_ending(brokers, clock, is_known, order):
    def no_coordinator(call):
        found = find_coordinator(brokers, call).coordinators
        kept = [item for item in found if item.key != TWO.transactional_id]
        if len(kept) < len(found):
            kept.append(type(found[0])(key=TWO.transactional_id, error_code=_NO_COORDINATOR))
        return FindCoordinatorResponse(coordinators=tuple(kept))

    here, away = order
    brokers.coordinators |= {ONE.transactional_id: here, TWO.transactional_id: away}
    brokers.on("EndTxn", EndTxnResponse(), node=here)
    if is_known:
        brokers.on("ApiVersions", close(), node=away)
    else:
        brokers.on("FindCoordinator", no_coordinator)
    properties = {"retry.backoff.ms": "1", "default.api.timeout.ms": "500"}
    properties |= {"request.timeout.ms": "200", "bootstrap.servers": brokers.address(here)}
    router = Router(ClientConfig.parse(properties))
    with closing(router), pytest.raises((BrokerError, ConnectionFailed, DeadlineExceeded)):
        abort_transactions(router, [TWO, ONE])
    ended = {(item.transactional_id, item.committed) for item in brokers.asked("EndTxn")}
    assert ended == {(ONE.transactional_id, False)}


@pytest.mark.parametrize("code", [47, 48, 49, 90])
def test_one_that_is_gone_keeps_no_other_from_being_aborted(brokers, router, code):
    brokers.coordinators["p-2"] = 2
    brokers.on("EndTxn", EndTxnResponse(error_code=code), node=1)
    brokers.on("EndTxn", EndTxnResponse(error_code=_NOT_COORDINATOR), EndTxnResponse(), node=2)
    abort_transactions(router, [ONE, TWO])
    assert [item.transactional_id for item in brokers.asked("EndTxn")].count("p-2") == 2


def test_nothing_to_end_asks_nobody(brokers, router):
    assert end_transactions(router, [], commit=False) == {}
    assert brokers.calls == []


def test_transactions_of_all_brokers_are_listed_by_prefix(brokers, router):
    def listing(*names):
        states = (
            ListTransactionsResponse.TransactionState(
                transactional_id=name, producer_id=1, transaction_state="Ongoing"
            )
            for name in names
        )
        return ListTransactionsResponse(transaction_states=tuple(states))

    brokers.on("ListTransactions", listing("p-2", "q-1"), node=1)
    brokers.on("ListTransactions", listing("p-1"), node=2)
    found = list_transactions(router, "p-", ["Ongoing"])
    assert [item.transactional_id for item in found] == ["p-1", "p-2"]
    assert brokers.asked("ListTransactions")[0].state_filters == ("Ongoing",)
