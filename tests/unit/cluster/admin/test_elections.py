"""Elections: whom to ask, what needed none, and who cannot lead."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    DeadlineExceeded,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.elect_leaders import ElectLeadersResponse
from tests.fake_broker import close, late, metadata

API = "ElectLeaders"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
_NOT_NEEDED, _PREFERRED_AWAY, _NOBODY = 84, 80, 83


def elected(*codes, code=0, topic="orders"):
    """The answer about the partitions of a topic, in their order."""
    part = ElectLeadersResponse.Topic
    results = tuple(
        part.PartitionResult(partition_id=number, error_code=each)
        for number, each in enumerate(codes)
    )
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=(part(topic=topic, partition_result=results),),
    )


def test_controller_elects_and_what_needs_no_election_is_no_error(brokers, kafka):
    brokers.controller = 2
    brokers.on(API, elected(0, _NOT_NEEDED))
    assert kafka.elect_leaders([("orders", 0), SECOND]) == {FIRST: True, SECOND: False}
    (request,) = brokers.asked(API, node=2)
    assert request.election_type == 0
    assert [(item.topic, item.partitions) for item in request.topic_partitions] == [
        ("orders", (0, 1))
    ]


def test_all_are_all_that_there_are(brokers, kafka):
    def both(call):
        assert [item.topic for item in call.request.topic_partitions] == ["empty", "orders"]
        parts = (elected(0, topic="empty"), elected(_NOT_NEEDED, 0))
        return ElectLeadersResponse(
            replica_election_results=tuple(
                item for part in parts for item in part.replica_election_results
            )
        )

    brokers.add_topic("hidden")
    brokers.topics["hidden"].error_code = 29
    brokers.on(API, both)
    assert kafka.elect_leaders() == {("empty", 0): True, FIRST: False, SECOND: True}


def test_none_are_none(brokers, kafka):
    assert kafka.elect_leaders([]) == {}
    assert brokers.calls == []


@pytest.mark.parametrize(
    ("code", "why"),
    [(_PREFERRED_AWAY, "preferred leader.*is away or not in sync"), (_NOBODY, "none of its")],
)
def test_who_cannot_lead_is_told_at_once(brokers, kafka, clock, code, why):
    brokers.on(API, elected(code, 0))
    with pytest.raises(BrokerError, match=f"orders-0.*{why}") as caught:
        kafka.elect_leaders([FIRST, SECOND])
    assert caught.value.usable == {SECOND: True}
    assert clock.slept == []


def test_unclean_is_asked_of_those_who_know_it(brokers, kafka):
    brokers.on(API, elected(0))
    assert kafka.elect_leaders([FIRST], unclean=True) == {FIRST: True}
    assert brokers.asked(API)[0].election_type == 1


def test_old_brokers_elect_preferred_ones_alone(brokers, kafka):
    brokers.versions[API] = (0, 0)
    brokers.on(API, elected(0))
    assert kafka.elect_leaders([FIRST]) == {FIRST: True}
    with pytest.raises(UnsupportedVersion, match="speaks ElectLeaders 0 to 0"):
        kafka.elect_leaders([FIRST], unclean=True)


def test_answer_that_is_lost_is_asked_for_again(brokers, kafka, clock):
    brokers.on(API, close(), elected(_NOT_NEEDED))
    assert kafka.elect_leaders([FIRST]) == {FIRST: False}


def test_election_whose_answer_is_lost_was_one(brokers, kafka, clock):
    brokers.topics["orders"].leaders[:] = [2, 1]  # the first of the replicas is 1
    brokers.on(API, close(), elected(_NOT_NEEDED, _NOT_NEEDED))
    assert kafka.elect_leaders([FIRST, SECOND]) == {FIRST: True, SECOND: False}


def test_leader_that_came_whose_answer_is_lost_was_elected(brokers, kafka, clock):
    brokers.topics["orders"].leaders[:] = [-1, 2]
    brokers.on(API, close(), elected(_NOT_NEEDED, _NOT_NEEDED))
    assert kafka.elect_leaders([FIRST, SECOND], unclean=True) == {FIRST: True, SECOND: False}


def test_election_that_no_answer_told_of_is_in_doubt_where_it_was_needed(brokers, kafka, clock):
    brokers.topics["orders"].leaders[:] = [2, 1]  # the first of the replicas is 1
    brokers.on(API, close())
    with pytest.raises(DeadlineExceeded, match=r"may have been done all the same.*: orders-0$"):
        kafka.elect_leaders([FIRST, SECOND])


def test_election_that_was_refused_is_not_in_doubt(brokers, kafka, clock):
    brokers.topics["orders"].leaders[:] = [2, 1]
    brokers.on(API, elected(_PREFERRED_AWAY, 0))
    with pytest.raises(BrokerError) as caught:
        kafka.elect_leaders([FIRST, SECOND])
    assert "may have been done" not in str(caught.value)


def test_election_that_others_had_first_was_not_needed(brokers, kafka):
    brokers.topics["orders"].leaders[0] = 2
    brokers.on(API, elected(_NOT_NEEDED))
    assert kafka.elect_leaders([FIRST]) == {FIRST: False}


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(API, elected(code=31))
    with pytest.raises(BrokerError, match="needs the right ALTER on the cluster"):
        kafka.elect_leaders([FIRST])


def test_right_that_is_missing_is_named_to_who_may_see_no_topic(brokers, kafka):
    for topic in brokers.topics.values():
        topic.error_code = 29
    brokers.on(API, elected(code=31))
    with pytest.raises(BrokerError, match="needs the right ALTER on the cluster"):
        kafka.elect_leaders()
    (request,) = brokers.asked(API)
    assert request.topic_partitions == ()


def test_all_of_no_topic_are_none(brokers, kafka):
    brokers.topics.clear()
    brokers.on(API, ElectLeadersResponse())
    assert kafka.elect_leaders() == {}


def test_partition_that_is_not_there_is_not_tried_for_a_minute(brokers, kafka, clock):
    brokers.on(API, elected(3))
    with pytest.raises(BrokerError, match=r"orders-0.*no such partition"):
        kafka.elect_leaders([FIRST])
    assert clock.now - 1000 <= 1


@pytest.mark.slow
def test_looking_up_what_there_is_takes_of_the_time_of_the_call(brokers, kafka_at):
    brokers.on("Metadata", late(brokers, lambda call: metadata(brokers, call)))
    brokers.on(API, late(brokers, elected(0, 0)))
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "600"})
    with pytest.raises(DeadlineExceeded):
        kafka.elect_leaders()
