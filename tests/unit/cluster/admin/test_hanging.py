"""Hanging transactions: what leaders and coordinators say of them, joined; and their end."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import ActiveProducer, HangingTransaction
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.describe_producers import DescribeProducersResponse
from pyspark_kafkaproto.messages.describe_transactions import DescribeTransactionsResponse
from pyspark_kafkaproto.messages.list_transactions import ListTransactionsResponse
from pyspark_kafkaproto.messages.write_txn_markers import WriteTxnMarkersResponse
from tests.fake_broker import close

PRODUCERS, LIST, DESCRIBE = "DescribeProducers", "ListTransactions", "DescribeTransactions"
MARKERS = "WriteTxnMarkers"
COORDINATORS = "__transaction_state"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
OLD_MS = 70
_NOT_FOUND, _NOT_LEADER = 105, 6

Active = DescribeProducersResponse.Topic.Partition.ActiveProducer
State = DescribeTransactionsResponse.TransactionState
Marked = WriteTxnMarkersResponse.Marker


def opened(producer_id, start=12, at_ms=OLD_MS, coordinator_epoch=-1):
    return Active(
        producer_id=producer_id,
        producer_epoch=2,
        last_sequence=9,
        last_timestamp=at_ms,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=start,
    )


def told(*producers, number=0, code=0, topic="orders"):
    partition = DescribeProducersResponse.Topic.Partition(
        partition_index=number, error_code=code, active_producers=producers
    )
    topic = DescribeProducersResponse.Topic(name=topic, partitions=(partition,))
    return DescribeProducersResponse(topics=(topic,))


def all_told(by_partition):
    """Answers as a leader would, about whatever is asked."""

    def answer(call):
        return DescribeProducersResponse(
            topics=tuple(
                DescribeProducersResponse.Topic(
                    name=topic.name,
                    partitions=tuple(
                        DescribeProducersResponse.Topic.Partition(
                            partition_index=number,
                            active_producers=by_partition.get((topic.name, number), ()),
                        )
                        for number in topic.partition_indexes
                    ),
                )
                for topic in call.request.topics
            )
        )

    return answer


def listed(**names):
    states = (
        ListTransactionsResponse.TransactionState(
            transactional_id=name, producer_id=producer_id, transaction_state="Ongoing"
        )
        for name, producer_id in names.items()
    )
    return ListTransactionsResponse(transaction_states=tuple(states))


def described(name, *numbers, state="Ongoing", code=0):
    topics = (State.Topic(topic="orders", partitions=numbers),) if numbers else ()
    item = State(
        transactional_id=name,
        error_code=code,
        transaction_state=state,
        producer_id=7,
        producer_epoch=2,
        transaction_start_time_ms=5,
        topics=topics,
    )
    return DescribeTransactionsResponse(transaction_states=(item,))


def marked(producer_id=7, number=0, code=0):
    partition = Marked.Topic.Partition(partition_index=number, error_code=code)
    topics = (Marked.Topic(name="orders", partitions=(partition,)),)
    return WriteTxnMarkersResponse(markers=(Marked(producer_id=producer_id, topics=topics),))


def known(brokers, *numbers, **more):
    """A coordinator knows producer 7 as `p`, to write markers to these partitions of `orders`."""
    brokers.on(LIST, listed(p=7))
    brokers.on(DESCRIBE, described("p", *numbers, **more))


SEEN = ActiveProducer(7, 2, 9, OLD_MS, None, 12)


@pytest.mark.parametrize(
    ("answer", "hanging"),
    [
        (None, HangingTransaction(FIRST, SEEN, None, None)),
        (described("p", code=_NOT_FOUND), HangingTransaction(FIRST, SEEN, None, None)),
        (described("p", 1), HangingTransaction(FIRST, SEEN, "p", "Ongoing")),
        (
            described("p", state="CompleteCommit"),
            HangingTransaction(FIRST, SEEN, "p", "CompleteCommit"),
        ),
        (described("p", 0), None),
        (described("p", 0, state="PrepareAbort"), None),
    ],
    ids=["nobody knows it", "forgotten since", "elsewhere", "ended", "ongoing", "ending"],
)
def test_hanging_is_what_no_coordinator_has_for_that_partition(brokers, kafka, answer, hanging):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, listed() if answer is None else listed(p=7))
    brokers.on(DESCRIBE, answer)
    assert kafka.find_hanging_transactions([("orders", 0)]) == ([hanging] if hanging else [])
    assert brokers.asked(LIST)[0].producer_id_filters == (7,)


def test_all_topics_are_looked_into_and_young_ones_asked_nobody_about(brokers, kafka):
    young = opened(8, at_ms=int(time.time() * 1000) - 60_000)
    brokers.on(
        PRODUCERS,
        all_told({FIRST: (opened(7), young), SECOND: (opened(9, start=-1),)}),
    )
    brokers.on(LIST, listed())
    found = kafka.find_hanging_transactions()
    assert [(item.partition, item.producer.producer_id) for item in found] == [(FIRST, 7)]
    asked = {
        (topic.name, number)
        for topic in brokers.asked(PRODUCERS)[0].topics
        for number in topic.partition_indexes
    }
    assert asked == {FIRST, SECOND, ("empty", 0)}
    assert {item.producer_id_filters for item in brokers.asked(LIST)} == {(7,)}
    found = kafka.find_hanging_transactions(topics={"orders"}, longer_than_s=30)
    assert [item.producer.producer_id for item in found] == [7, 8]


def test_nothing_open_asks_no_coordinator(brokers, kafka):
    brokers.on(PRODUCERS, told(opened(7, start=-1)))
    assert kafka.find_hanging_transactions([FIRST]) == []
    assert brokers.asked(LIST) == []
    assert kafka.find_hanging_transactions([]) == []


@pytest.mark.parametrize("later", [told(), told(opened(7, start=40))], ids=["ended", "the next"])
def test_what_ends_between_the_questions_does_not_hang(brokers, kafka, later):
    brokers.on(PRODUCERS, told(opened(7)), later)
    known(brokers)
    assert kafka.find_hanging_transactions([FIRST]) == []
    assert len(brokers.asked(PRODUCERS)) == 2


def test_partition_that_may_not_be_read_is_named_and_the_others_are_told(brokers, kafka):
    refused = told(opened(7)).topics + told(code=29, topic="empty").topics
    brokers.on(PRODUCERS, DescribeProducersResponse(topics=refused), told(opened(7)))
    brokers.on(LIST, listed())
    with pytest.raises(BrokerError, match=r"empty-0.*needs the right READ on the topic") as caught:
        kafka.find_hanging_transactions([FIRST, ("empty", 0)])
    assert caught.value.usable == [HangingTransaction(FIRST, SEEN, None, None)]


@pytest.fixture
def without_coordinator(brokers):
    """One of the partitions of the coordinators' topic is led by nobody: who knows 7 is away."""
    brokers.add_topic(COORDINATORS, 2)
    brokers.topics[COORDINATORS].move(1, node_id=-1)
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, listed())
    brokers.on(MARKERS, marked())


@pytest.mark.usefixtures("without_coordinator")
def test_what_a_coordinator_may_know_that_is_away_is_not_said_to_hang(brokers, kafka, clock):
    with pytest.raises(BrokerError, match=rf"(?s){COORDINATORS}-1.*coordinator.* may know"):
        kafka.find_hanging_transactions([FIRST])
    with pytest.raises(BrokerError, match=rf"(?s){COORDINATORS}-1.*coordinator.* may know"):
        kafka.abort_transaction(FIRST, 12)
    assert brokers.asked(MARKERS) == []
    kafka.abort_transaction(FIRST, 12, even_if_live=True)
    assert len(brokers.asked(MARKERS)) == 1


@pytest.mark.usefixtures("without_coordinator")
def test_a_coordinator_that_is_elected_meanwhile_is_asked(brokers, kafka, clock):
    def elect(call):
        brokers.topics[COORDINATORS].move(1, node_id=2)
        return listed()

    brokers.on(LIST, elect, listed(), listed(p=7))
    brokers.on(DESCRIBE, described("p", 0))
    assert kafka.find_hanging_transactions([FIRST]) == []


@pytest.mark.parametrize(("epoch", "sent"), [(-1, 0), (0, 0), (4, 4)])
def test_abort_is_one_marker_at_the_leader(brokers, kafka, epoch, sent):
    brokers.topics["orders"].move(0, node_id=2)
    brokers.on(PRODUCERS, told(opened(8, start=3), opened(7, coordinator_epoch=epoch)), node=2)
    brokers.on(LIST, listed())
    brokers.on(MARKERS, marked(), node=2)
    assert kafka.abort_transaction(("orders", 0), 12).producer_id == 7
    (marker,) = brokers.asked(MARKERS)[0].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 2, sent)
    assert (marker.transaction_result, marker.transaction_version) == (False, 0)
    (topic,) = marker.topics
    assert (topic.name, topic.partition_indexes) == ("orders", (0,))


@pytest.mark.parametrize(
    ("producers", "text"),
    [
        ((), "no transaction is open in orders-0"),
        ((opened(7, start=-1),), "no transaction is open in orders-0"),
        ((opened(8, start=30), opened(7)), "no transaction begins there; .* from 12, 30 on"),
    ],
)
def test_where_none_is_open_those_that_are_named(brokers, kafka, producers, text):
    brokers.on(PRODUCERS, told(*producers))
    with pytest.raises(ConfigError, match=rf"start_offset.*13.*{text}"):
        kafka.abort_transaction(FIRST, 13)
    assert brokers.asked(MARKERS) == []


@pytest.mark.parametrize(
    ("state", "way"), [("Ongoing", "Fence its producer"), ("PrepareCommit", "writes its marker")]
)
def test_one_that_a_coordinator_will_end_is_refused_unless_meant(brokers, kafka, state, way):
    brokers.on(PRODUCERS, told(opened(7)))
    known(brokers, 0, state=state)
    brokers.on(MARKERS, marked())
    with pytest.raises(LocalProtocolError, match=rf"{state}.*'p': it does not hang.*{way}"):
        kafka.abort_transaction(FIRST, 12)
    assert brokers.asked(MARKERS) == []
    kafka.abort_transaction(FIRST, 12, even_if_live=True)
    assert len(brokers.asked(MARKERS)) == 1


@pytest.mark.parametrize("state", ["PrepareCommit", "CompleteCommit"])
def test_one_that_is_committed_is_not_dropped_unless_meant(brokers, kafka, state):
    """Kafka 4.3.0 and 4.4.0 write no marker where nobody leads, and say that all is done."""
    brokers.on(PRODUCERS, told(opened(7)))
    known(brokers, 1, state=state)
    brokers.on(MARKERS, marked())
    with pytest.raises(
        LocalProtocolError, match=rf"orders-0.* 12 .*{state}.*'p'.*'p' commit a"
    ) as caught:
        kafka.abort_transaction(FIRST, 12)
    # Late records of a transaction before it look the same: that commit shows what was aborted.
    assert "aborted before: that commit would show these" in str(caught.value)
    assert brokers.asked(MARKERS) == []
    kafka.abort_transaction(FIRST, 12, even_if_live=True)
    assert len(brokers.asked(MARKERS)) == 1


def test_one_that_the_coordinator_has_elsewhere_is_aborted(brokers, kafka):
    brokers.on(PRODUCERS, told(opened(7)))
    known(brokers, 1)
    brokers.on(MARKERS, marked())
    assert kafka.abort_transaction(FIRST, 12) == SEEN


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (31, r"needs the right ALTER on the cluster \(CLUSTER_ACTION before Kafka 3\.8\)"),
        (47, r"INVALID_PRODUCER_EPOCH.*look once more"),
        (52, r"TRANSACTION_COORDINATOR_FENCED.*look once more"),
    ],
)
def test_refused_marker_says_what_to_do(brokers, kafka, code, text):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, listed())
    brokers.on(MARKERS, marked(code=code))
    with pytest.raises(BrokerError, match=rf"producer 7:2 in orders-0.*{text}"):
        kafka.abort_transaction(FIRST, 12)


def test_marker_follows_a_leader_that_moved_and_a_lost_answer(brokers, kafka, clock):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, listed())
    brokers.on(MARKERS, marked(code=_NOT_LEADER), close(), marked())
    assert kafka.abort_transaction(FIRST, 12) == SEEN
    first, *others = brokers.asked(MARKERS)
    assert others == [first, first]


def test_answer_about_another_producer_is_not_believed(brokers, kafka):
    brokers.on(PRODUCERS, told(opened(7)))
    brokers.on(LIST, listed())
    brokers.on(MARKERS, marked(producer_id=8))
    with pytest.raises(RemoteProtocolError, match="about producer 8"):
        kafka.abort_transaction(FIRST, 12)


def test_what_cannot_be_asked_is_refused_here(brokers, kafka):
    for wrong in (-1, "15m", True, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="longer_than_s"):
            kafka.find_hanging_transactions([FIRST], longer_than_s=wrong)
    with pytest.raises(ConfigError, match="topics"):
        kafka.find_hanging_transactions(topics="orders")
    with pytest.raises(ConfigError, match="partition"):
        kafka.abort_transaction("orders:0", 12)
    for wrong in (-1, None, "12", True, 2**63):
        with pytest.raises(ConfigError, match="start_offset"):
            kafka.abort_transaction(FIRST, wrong)
    assert brokers.calls == []
