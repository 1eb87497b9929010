"""Transactions of the whole cluster: lists with filters, what each is at, fencing."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import DescribedTransaction, ListedTransaction, Writer
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.describe_transactions import DescribeTransactionsResponse
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse

LIST, DESCRIBE, INIT = "ListTransactions", "DescribeTransactions", "InitProducerId"
_CONCURRENT, _NOT_FOUND, _NO_RIGHT, _NO_PATTERN, _NOT_AVAILABLE = 51, 105, 53, 128, 15
_TOO_LONG = 50
State = DescribeTransactionsResponse.TransactionState


def listed(*names):
    states = (
        ListTransactionsResponse.TransactionState(
            transactional_id=name, producer_id=7, transaction_state="Ongoing"
        )
        for name in names
    )
    return ListTransactionsResponse(transaction_states=tuple(states))


def described(codes=(), **more):
    """Answers about whatever is asked, with an error for those in `codes`."""

    def answer(call):
        given = {"producer_id": 7, "producer_epoch": 2, "transaction_state": "Ongoing"} | more
        return DescribeTransactionsResponse(
            transaction_states=tuple(
                State(transactional_id=name, error_code=dict(codes).get(name, 0), **given)
                for name in call.request.transactional_ids
            )
        )

    return answer


def test_each_broker_lists_those_that_it_coordinates(brokers, kafka):
    brokers.on(LIST, listed("q"), node=1)
    brokers.on(LIST, listed("p"), node=2)
    assert kafka.list_transactions() == [
        ListedTransaction("p", 7, "Ongoing", 2),
        ListedTransaction("q", 7, "Ongoing", 1),
    ]
    (asked,) = brokers.asked(LIST, node=1)
    assert (asked.state_filters, asked.producer_id_filters) == ((), ())
    assert (asked.duration_filter, asked.transactional_id_pattern) == (-1, None)


def test_filters_go_to_the_brokers(brokers, kafka):
    brokers.on(LIST, listed())
    kafka.list_transactions({"completecommit"}, {7}, 1.5, "p-.*")
    (asked,) = brokers.asked(LIST, node=1)
    assert (asked.state_filters, asked.producer_id_filters) == (("CompleteCommit",), (7,))
    assert (asked.duration_filter, asked.transactional_id_pattern) == (1500, "p-.*")


def test_longer_than_is_about_those_that_have_not_ended(brokers, kafka):
    brokers.on(LIST, listed())
    kafka.list_transactions(longer_than_s=60)
    (asked,) = brokers.asked(LIST, node=1)
    assert set(asked.state_filters) == {
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "PrepareEpochFence",
    }


@pytest.mark.parametrize(
    ("most", "filters", "text"),
    [
        (0, {"longer_than_s": 60}, r"ListTransactions 0 to 0.*\n.*longer_than_s.*3\.8"),
        (1, {"pattern": "p-.*"}, r"ListTransactions 0 to 1.*\n.*pattern.*4\.1"),
    ],
)
def test_filter_that_a_broker_is_too_old_for_is_named(brokers, kafka, most, filters, text):
    brokers.versions[LIST] = (0, most)
    brokers.on(LIST, listed())
    with pytest.raises(UnsupportedVersion, match=rf"(?s){text}"):
        kafka.list_transactions(**filters)


def test_filters_that_cannot_be_are_refused(brokers, kafka):
    for wrong, name in (
        ({"states": {"Gone"}}, "state"),
        ({"states": "Ongoing"}, "states"),
        ({"producer_ids": 7}, "producer_ids"),
        ({"producer_ids": {-1}}, "producer_ids"),
        ({"longer_than_s": -1}, "longer_than_s"),
        ({"pattern": ""}, "pattern"),
    ):
        with pytest.raises(ConfigError, match=rf"option '{name}'"):
            kafka.list_transactions(**wrong)
    assert brokers.calls == []
    brokers.on(LIST, ListTransactionsResponse(error_code=_NO_PATTERN))
    with pytest.raises(BrokerError, match=r"the pattern.*INVALID_REGULAR_EXPRESSION.*RE2"):
        kafka.list_transactions(pattern="[")
    brokers.on(LIST, ListTransactionsResponse(unknown_state_filters=("PrepareEpochFence",)))
    with pytest.raises(ConfigError, match=r"PrepareEpochFence.*knows no such state"):
        kafka.list_transactions({"PrepareEpochFence"})


def test_described_are_state_place_and_coordinator(brokers, kafka):
    brokers.coordinators["p"] = 2
    topics = (State.Topic(topic="orders", partitions=(0, 1)),)
    more = {"transaction_timeout_ms": 900, "transaction_start_time_ms": 5, "topics": topics}
    brokers.on(DESCRIBE, described(transaction_start_time_ms=-1, transaction_state="Empty"), node=1)
    brokers.on(DESCRIBE, described(**more), node=2)
    partitions = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 1)})
    assert kafka.describe_transactions({"p", "q"}) == {
        "p": DescribedTransaction(Writer("p", 7, 2), "Ongoing", 900, 5, partitions, 2),
        "q": DescribedTransaction(Writer("q", 7, 2), "Empty", 0, None, frozenset(), 1),
    }


def test_one_that_is_not_there_is_named_and_the_others_are_told(brokers, kafka):
    brokers.on(DESCRIBE, described({"gone": _NOT_FOUND}))
    with pytest.raises(BrokerError, match=r"'gone'.*NOT_FOUND.*transactions list") as caught:
        kafka.describe_transactions({"p", "gone"})
    assert caught.value.usable["p"].coordinator == 1
    assert kafka.describe_transactions(set()) == {}
    with pytest.raises(ConfigError, match="transactional_ids"):
        kafka.describe_transactions("p")


def test_fencing_waits_until_the_abort_is_done(brokers, kafka, clock):
    brokers.coordinators["p"] = 2
    brokers.on(DESCRIBE, described())
    fenced = InitProducerIdResponse(producer_id=7, producer_epoch=3)
    brokers.on(INIT, InitProducerIdResponse(error_code=_CONCURRENT), fenced, node=2)
    brokers.on(INIT, fenced, node=1)
    assert kafka.fence_producers({"p", "q"}) == {"p": Writer("p", 7, 3), "q": Writer("q", 7, 3)}
    assert [item.transactional_id for item in brokers.asked(INIT, node=2)] == ["p", "p"]
    assert {item.producer_id for item in brokers.asked(INIT)} == {-1}


def test_fencing_leaves_replicas_of_the_log_of_transactions_time_to_follow(brokers, kafka):
    def answer(call):
        # Coordinators wait no longer than the transaction's own time-out for them.
        if call.request.transaction_timeout_ms < 5_000:
            return InitProducerIdResponse(error_code=_NOT_AVAILABLE)
        return InitProducerIdResponse(producer_id=7, producer_epoch=3)

    brokers.on(DESCRIBE, described())
    brokers.on(INIT, answer)
    assert kafka.fence_producers({"p"}) == {"p": Writer("p", 7, 3)}
    assert len(brokers.asked(INIT)) == 1


def test_fencing_asks_for_less_where_the_brokers_allow_no_transaction_as_long(brokers, kafka):
    """`transaction.max.timeout.ms` may be less than replicas are to have."""

    def answer(call):
        if call.request.transaction_timeout_ms > 5_000:
            return InitProducerIdResponse(error_code=_TOO_LONG)
        return InitProducerIdResponse(producer_id=7, producer_epoch=3)

    brokers.on(DESCRIBE, described())
    brokers.on(INIT, answer)
    assert kafka.fence_producers({"p"}) == {"p": Writer("p", 7, 3)}


def test_who_may_not_be_fenced_is_named_and_the_others_are_told(brokers, kafka):
    def answer(call):
        if call.request.transactional_id == "p":
            return InitProducerIdResponse(error_code=_NO_RIGHT)
        return InitProducerIdResponse(producer_id=7, producer_epoch=3)

    brokers.on(DESCRIBE, described())
    brokers.on(INIT, answer)
    with pytest.raises(BrokerError, match=r"'p'.*the right WRITE on the trans") as caught:
        kafka.fence_producers({"p", "q"})
    assert caught.value.usable == {"q": Writer("q", 7, 3)}


def test_an_id_that_is_not_there_is_not_made_by_fencing(brokers, kafka):
    brokers.on(DESCRIBE, described({"misspelt": _NOT_FOUND}))
    with pytest.raises(BrokerError, match=r"'misspelt'.*NOT_FOUND") as caught:
        kafka.fence_producers({"p", "misspelt"})
    assert caught.value.usable is None
    assert brokers.asked(INIT) == []
