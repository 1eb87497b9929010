"""Replicas moved between brokers: who is asked, what is under way, and what refusals say."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition, routing
from pyspark_kafkaproto.cluster.admin import Reassignment
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
)
from pyspark_kafkaproto.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from tests.clock import stop_clock
from tests.fake_broker import close, metadata

ALTER, LIST = "AlterPartitionReassignments", "ListPartitionReassignments"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
_NOTHING_UNDER_WAY = 85


def altered(*codes, message=None, code=0):
    """The answer about the partitions of orders, in their order."""
    topic = AlterPartitionReassignmentsResponse.Topic
    partitions = tuple(
        topic.Partition(partition_index=number, error_code=each, error_message=message)
        for number, each in enumerate(codes)
    )
    return AlterPartitionReassignmentsResponse(
        error_code=code, responses=(topic(name="orders", partitions=partitions),)
    )


def under_way(*numbers, code=0):
    """Those of orders that are being moved from 1 to 3."""
    topic = ListPartitionReassignmentsResponse.Topic
    partitions = tuple(
        topic.Partition(
            partition_index=number,
            replicas=(3, 2, 1),
            adding_replicas=(3,),
            removing_replicas=(1,),
        )
        for number in numbers
    )
    topics = (topic(name="orders", partitions=partitions),) if numbers else ()
    return ListPartitionReassignmentsResponse(error_code=code, topics=topics)


def asked_for(request):
    return {
        (topic.name, item.partition_index): item.replicas
        for topic in request.topics
        for item in topic.partitions
    }


def test_controller_is_told_the_replicas_and_none_to_cancel(brokers, kafka):
    brokers.controller = 2
    brokers.on(ALTER, altered(0, 0))
    kafka.reassign_partitions({("orders", 0): (2, 3, 1), SECOND: None})
    (request,) = brokers.asked(ALTER, node=2)
    assert asked_for(request) == {FIRST: (2, 3, 1), SECOND: None}
    assert request.allow_replication_factor_change
    assert request.timeout_ms < kafka.config.request_timeout_s * 1000


def test_controller_that_moved_is_looked_up_again(brokers, kafka, clock):
    def move(call):
        brokers.controller = 2
        return altered(code=41)

    brokers.on(ALTER, move, node=1)
    brokers.on(ALTER, altered(0), node=2)
    kafka.reassign_partitions({FIRST: [2]})
    assert len(brokers.asked(ALTER, node=2)) == 1


def test_what_is_refused_says_why_and_the_others_are_done(brokers, kafka):
    brokers.on(ALTER, altered(0, 39, message="no such broker is registered"))
    with pytest.raises(BrokerError, match=r"orders-1.*no such broker is registered") as caught:
        kafka.reassign_partitions({FIRST: [2], SECOND: [9]})
    assert caught.value.usable.keys() == {FIRST}


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(ALTER, altered(code=31))
    with pytest.raises(BrokerError, match="needs the right ALTER on the cluster"):
        kafka.reassign_partitions({FIRST: [2]})
    brokers.on(LIST, under_way(code=31))
    with pytest.raises(BrokerError, match="needs the right DESCRIBE on the cluster"):
        kafka.list_reassignments()


def test_partition_that_is_not_there_is_not_tried_for_a_minute(brokers, kafka, clock):
    brokers.on(ALTER, altered(3))
    with pytest.raises(BrokerError, match=r"orders-0.*there is no such partition"):
        kafka.reassign_partitions({FIRST: [2]})
    assert clock.now - 1000 <= 1


def test_controllers_that_cannot_keep_the_number_of_replicas_are_told_nothing(brokers, kafka):
    brokers.versions[ALTER] = (0, 0)
    with pytest.raises(UnsupportedVersion, match=ALTER):
        kafka.reassign_partitions({FIRST: [2]}, allow_replication_factor_change=False)
    brokers.versions[ALTER] = (0, 1)


def test_number_of_replicas_can_be_kept(brokers, kafka):
    brokers.on(ALTER, altered(0))
    kafka.reassign_partitions({FIRST: [2]}, allow_replication_factor_change=False)
    (request,) = brokers.asked(ALTER)
    assert not request.allow_replication_factor_change


@pytest.mark.parametrize("wrong", [(), (1, 1), (-1,), "12", 1, (True,), ("1",), (2**31,)])
def test_what_cannot_be_replicas_is_refused_here(brokers, kafka, wrong):
    with pytest.raises(ConfigError, match=r"replicas of orders-0.*expected ids of brokers"):
        kafka.reassign_partitions({FIRST: wrong})
    assert brokers.asked(ALTER) == []


def test_nothing_to_do_asks_nobody(brokers, kafka):
    kafka.reassign_partitions({})
    assert kafka.list_reassignments([]) == {}
    assert kafka.cancel_reassignments([]) == set()
    assert brokers.calls == []


@pytest.mark.slow
def test_many_go_in_several_requests(brokers, kafka):
    def each(call):
        topic = AlterPartitionReassignmentsResponse.Topic
        return AlterPartitionReassignmentsResponse(
            responses=tuple(
                topic(
                    name=item.name,
                    partitions=tuple(
                        topic.Partition(partition_index=one.partition_index)
                        for one in item.partitions
                    ),
                )
                for item in call.request.topics
            )
        )

    brokers.on(ALTER, each)
    kafka.reassign_partitions({TopicPartition("t", n): (1, 2) for n in range(2001)})
    assert [len(item.topics[0].partitions) for item in brokers.asked(ALTER)] == [1000, 1000, 1]


def test_what_is_under_way_is_told_with_what_will_be(brokers, kafka):
    brokers.on(LIST, under_way(1))
    found = kafka.list_reassignments()
    assert found == {SECOND: Reassignment((3, 2, 1), (3,), (1,))}
    assert found[SECOND].target == (3, 2)
    kafka.list_reassignments([("orders", 1), FIRST])
    all_, some = brokers.asked(LIST)
    assert all_.topics is None
    assert [(item.name, item.partition_indexes) for item in some.topics] == [("orders", (0, 1))]


def test_all_that_is_under_way_is_cancelled(brokers, kafka):
    brokers.on(LIST, under_way(0, 1))
    brokers.on(ALTER, altered(0, 0))
    assert kafka.cancel_reassignments() == {FIRST, SECOND}
    (request,) = brokers.asked(ALTER)
    assert asked_for(request) == {FIRST: None, SECOND: None}


def test_one_that_ends_meanwhile_needs_no_cancel(brokers, kafka):
    brokers.on(LIST, under_way(0, 1), under_way())
    brokers.topics["orders"].replicas = (3, 2)
    brokers.on(ALTER, altered(_NOTHING_UNDER_WAY, 0))
    assert kafka.cancel_reassignments() == {SECOND}


@pytest.mark.parametrize("may_be_over", [True, False])
def test_cancel_whose_answer_is_lost_is_told(brokers, kafka, clock, may_be_over):
    brokers.on(LIST, under_way(0, 1), under_way())
    brokers.on(ALTER, close(), altered(_NOTHING_UNDER_WAY, _NOTHING_UNDER_WAY))
    brokers.topics["orders"].replicas = (2, 1)
    chosen = {FIRST, SECOND} if may_be_over else None
    assert kafka.cancel_reassignments(chosen, may_be_over=may_be_over) == {FIRST, SECOND}


def test_cancel_is_told_once_brokers_have_heard_of_it(brokers, kafka, monkeypatch):
    looks = stop_clock(monkeypatch, routing)
    brokers.on(LIST, under_way(0), under_way())
    brokers.on(ALTER, altered(_NOTHING_UNDER_WAY))
    brokers.topics["orders"].replicas = (3, 2, 1)

    def hear(call):
        if looks.slept:
            brokers.topics["orders"].replicas = (2, 1)
        return metadata(brokers, call)

    brokers.on("Metadata", hear)
    assert kafka.cancel_reassignments() == {FIRST}
    assert len(looks.slept) == 1


def test_move_of_a_topic_that_was_deleted_meanwhile_is_not_told_as_cancelled(brokers, kafka):
    brokers.on(LIST, under_way(0), under_way())
    brokers.on(ALTER, altered(_NOTHING_UNDER_WAY))
    del brokers.topics["orders"]
    assert kafka.cancel_reassignments() == set()


def test_one_that_is_named_has_to_be_under_way(brokers, kafka):
    brokers.on(ALTER, altered(_NOTHING_UNDER_WAY, 0))
    with pytest.raises(BrokerError, match=r"orders-0.*nothing is under way") as caught:
        kafka.cancel_reassignments([FIRST, SECOND])
    assert caught.value.usable.keys() == {SECOND}


@pytest.mark.parametrize("is_lost", [True, False])
def test_cancel_of_an_earlier_try_is_told_of(brokers, kafka, clock, is_lost):
    brokers.on(ALTER, *([close()] if is_lost else []), altered(_NOTHING_UNDER_WAY))
    with pytest.raises(BrokerError) as caught:
        kafka.cancel_reassignments([FIRST])
    assert ("an earlier try may have done it" in str(caught.value)) == is_lost


def test_proposal_is_made_of_what_there_is(brokers, kafka):
    brokers.on(LIST, under_way())
    # All have replicas (1, 2) and prefer 1: half of the leaders are to change, of three one.
    assert kafka.propose_reassignment({"orders"}) == {FIRST: (2, 1)}
    assert kafka.propose_reassignment({"orders"}, [2, 1]) == {FIRST: (2, 1)}


def test_partitions_without_their_brokers_are_refused_here(brokers, kafka):
    with pytest.raises(ConfigError, match=r"'partitions'.*expected something for each of them"):
        kafka.reassign_partitions([FIRST])
    assert brokers.calls == []


def test_proposal_is_not_made_of_what_is_on_its_way(brokers, kafka):
    brokers.on(LIST, under_way(1))
    with pytest.raises(ConfigError, match="replicas of orders-1 are being moved"):
        kafka.propose_reassignment({"orders"})


def test_proposal_wants_topics_and_brokers_that_there_are(brokers, kafka, clock):
    with pytest.raises(ConfigError, match="expected a set of names"):
        kafka.propose_reassignment("orders")
    with pytest.raises(BrokerError, match="no such topic"):
        kafka.propose_reassignment({"odrers"})
    with pytest.raises(BrokerError, match=r"broker 7.*the brokers 1, 2"):
        kafka.propose_reassignment({"orders"}, [1, 7])
    with pytest.raises(ConfigError, match="expected ids of brokers"):
        kafka.propose_reassignment({"orders"}, [])
