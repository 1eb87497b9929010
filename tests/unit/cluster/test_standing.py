"""Ends asked for again and again: the shorter way answers as the usual one, and gives way to it."""

import pytest

from pyspark_kafkaproto.cluster import TopicPartition, asking, standing
from pyspark_kafkaproto.errors import BrokerError, DeadlineExceeded, RemoteProtocolError
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from tests.fake_broker import DEFAULT, close
from tests.fake_log import NOT_LEADER, UNKNOWN_TOPIC_OR_PARTITION

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = [FIRST, SECOND]
P = ListOffsetsResponse.Topic.Partition


@pytest.fixture
def usual(monkeypatch):
    """How often the usual way was gone."""
    ways = []

    def counted(*arguments, **named):
        ways.append(arguments)
        return list_bounds(*arguments, **named)

    list_bounds = standing.list_bounds
    monkeypatch.setattr(standing, "list_bounds", counted)
    return ways


@pytest.fixture
def ask(brokers, kafka):
    """Asks for both ends, which are 5 and 7, three times: the shorter way is under way then."""
    brokers.logs[FIRST].stop, brokers.logs[SECOND].stop = 5, 7
    for _ in range(3):
        assert kafka.get_latest_leader_offsets(BOTH) == {FIRST: 5, SECOND: 7}
    return lambda: kafka.get_latest_leader_offsets(BOTH)


def answer(*partitions):
    topic = ListOffsetsResponse.Topic(name="orders", partitions=partitions)
    return ListOffsetsResponse(topics=(topic,))


def refused(code):
    """An answer with the first end and an error for the second."""
    return answer(P(partition_index=0, offset=5), P(partition_index=1, error_code=code))


def test_each_look_asks_the_leaders(brokers, usual, ask):
    first, *others = brokers.asked("ListOffsets")
    assert [request == first for request in others] == [True, True]
    assert len(usual) == 1


def test_it_tells_what_has_come_since(brokers, usual, ask):
    brokers.logs[SECOND].stop = 8
    assert ask() == {FIRST: 5, SECOND: 8}
    brokers.logs[FIRST].stop = 3  # going back is for others to judge
    assert ask() == ask() == {FIRST: 3, SECOND: 8}
    assert len(usual) == 1


def test_each_leader_is_asked_for_its_own(brokers, kafka, usual):
    brokers.topics["orders"].move(1, node_id=2)
    brokers.logs[FIRST].stop, brokers.logs[SECOND].stop = 5, 7
    for _ in range(2):
        kafka.get_latest_leader_offsets(BOTH)
    brokers.logs[SECOND].stop = 9
    assert kafka.get_latest_leader_offsets(BOTH) == {FIRST: 5, SECOND: 9}
    assert len(brokers.asked("ListOffsets", node=1)) == 3
    assert len(brokers.asked("ListOffsets", node=2)) == 3
    assert len(usual) == 1


def test_a_leader_that_moved_is_found(brokers, clock, usual, ask):
    brokers.topics["orders"].move(1, node_id=2)
    brokers.on("ListOffsets", refused(NOT_LEADER), refused(NOT_LEADER), DEFAULT, node=1)
    brokers.logs[SECOND].stop = 8
    assert ask() == {FIRST: 5, SECOND: 8}
    assert len(usual) == 2
    brokers.logs[SECOND].stop = 9
    assert [ask() for _ in range(3)] == [{FIRST: 5, SECOND: 9}] * 3
    assert len(usual) == 2


@pytest.mark.parametrize(
    "said",
    [
        close(),
        refused(NOT_LEADER),
        answer(P(partition_index=0, offset=5), P(partition_index=1, offset=-1)),
    ],
    ids=["hangs up", "error", "no offset"],
)
def test_what_is_not_as_before_goes_the_usual_way(brokers, clock, usual, ask, said):
    brokers.on("ListOffsets", said, DEFAULT)
    assert ask() == {FIRST: 5, SECOND: 7}
    assert len(usual) == 2


def test_an_answer_about_something_else_is_an_error(brokers, ask):
    brokers.on("ListOffsets", answer(P(partition_index=0, offset=5)), DEFAULT)
    with pytest.raises(RemoteProtocolError, match="orders-1: not answered"):
        ask()
    assert ask() == {FIRST: 5, SECOND: 7}


def test_news_beside_an_answer_about_something_else_is_not_lost(brokers, kafka):
    brokers.topics["orders"].move(1, node_id=2)
    brokers.logs[FIRST].stop, brokers.logs[SECOND].stop = 5, 7
    for _ in range(3):
        kafka.get_latest_leader_offsets(BOTH)
    brokers.logs[FIRST].stop = 6
    brokers.on("ListOffsets", answer(P(partition_index=0, offset=5)), DEFAULT, node=2)
    with pytest.raises(RemoteProtocolError, match="orders-1: not answered"):
        kafka.get_latest_leader_offsets(BOTH)
    assert kafka.get_latest_leader_offsets(BOTH) == {FIRST: 6, SECOND: 7}


def test_an_error_that_lasts_is_raised(brokers, clock, ask):
    brokers.on("ListOffsets", refused(UNKNOWN_TOPIC_OR_PARTITION), DEFAULT)
    assert ask() == {FIRST: 5, SECOND: 7}  # that was a moment
    gone = P(partition_index=1, error_code=UNKNOWN_TOPIC_OR_PARTITION)

    def refuse(call):
        asked = {item.partition_index for item in call.request.topics[0].partitions}
        return answer(
            *(
                item
                for item in (P(partition_index=0, offset=5), gone)
                if item.partition_index in asked
            )
        )

    brokers.on("ListOffsets", refuse)
    with pytest.raises(BrokerError) as caught:
        ask()
    assert caught.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_both_ways_together_end_with_the_call(brokers, ask, monkeypatch):
    deadlines = []

    def hangs(_router, requests, deadline, *_):
        deadlines.append(deadline)
        return [DeadlineExceeded("an answer", 1.0)] * len(requests)

    def notes(router, requests, deadline, *others):
        deadlines.append(deadline)
        return send_all(router, requests, deadline, *others)

    send_all = asking.send_all
    monkeypatch.setattr(standing, "send_all", hangs)
    monkeypatch.setattr(asking, "send_all", notes)
    ask()
    assert len(deadlines) == 2
    assert deadlines[0] is deadlines[1]


def test_other_partitions_are_another_question(brokers, kafka, usual, ask):
    assert kafka.get_latest_leader_offsets([SECOND]) == {SECOND: 7}
    assert ask() == {FIRST: 5, SECOND: 7}
    assert len(usual) == 3


def test_plain_tuples_and_twins_will_do(brokers, usual, ask, kafka):
    assert kafka.get_latest_leader_offsets([tuple(item) for item in BOTH]) == ask()
    for _ in range(2):
        assert kafka.get_latest_leader_offsets([FIRST, FIRST]) == {FIRST: 5}


def test_what_is_given_is_the_callers(ask):
    ask().clear()
    assert ask() == {FIRST: 5, SECOND: 7}


def test_what_was_looked_up_meanwhile_counts(brokers, kafka, ask):
    brokers.topics["orders"].move(1, node_id=2)
    kafka.describe({"orders"})
    brokers.logs[SECOND].stop = 8
    assert ask() == {FIRST: 5, SECOND: 8}
    (request,) = brokers.asked("ListOffsets", node=2)
    assert [item.partition_index for item in request.topics[0].partitions] == [1]


def test_a_look_that_found_the_same_changes_nothing(brokers, kafka, usual, ask):
    topology = kafka.describe({"orders"})
    ask()
    ways = len(usual)
    for _ in range(2):
        assert kafka.describe({"orders"}) is kafka.describe({"orders"})
        ask()
    assert kafka.describe({"orders"}) == topology
    assert len(usual) <= ways + 1
