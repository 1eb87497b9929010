"""Share and streams groups as brokers describe them, and what keeps streams groups from working."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import Task, TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from tests.unit.cluster.fake_groups import (
    assigned,
    classic,
    consumer,
    describing,
    share,
    streams,
    subtopology,
)

UNEVEN = (
    "the source topics of subtopology 0 have different numbers of partitions, 'empty' 1, "
    "'orders' 2: those that are joined need the same"
)
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_groups_of_every_type_are_described_together(brokers, kafka):
    describing(
        brokers,
        classic("c", assigned(0)),
        consumer("n", assignments=[((0,), (0,))]),
        share("s", (0, 1), (0,)),
        streams("t", subtopology("0", "orders"), members=[{"active": {"0": (0,)}}]),
    )
    found = kafka.describe_groups({"c", "n", "s", "t"})
    assert {name: (item.type, item.protocol_type) for name, item in found.items()} == {
        "c": ("classic", "consumer"),
        "n": ("consumer", "consumer"),
        "s": ("share", "share"),
        "t": ("streams", "streams"),
    }
    assert {len(request.group_ids) for request in brokers.asked("ShareGroupDescribe")} == {2}
    assert [request.group_ids for request in brokers.asked("StreamsGroupDescribe")] == [("t",)]


def test_members_of_a_share_group_may_read_the_same(brokers, kafka):
    describing(brokers, share("s", (0, 1), (0,)))
    found = kafka.describe_groups({"s"})["s"]
    assert (found.state, found.assignor) == ("Stable", "simple")
    assert (found.epoch, found.assignment_epoch) == (4, 3)
    assert [item.assignment for item in found.members] == [{FIRST, SECOND}, {FIRST}]
    assert {(item.epoch, item.is_classic) for item in found.members} == {(4, False)}
    assert found.owners == {}


def test_members_of_a_streams_group_have_tasks_and_read_their_sources(brokers, kafka):
    brokers.add_topic("counts", 3)
    parts = (
        subtopology("0", "orders", sinks=("counts",)),
        subtopology("1", repartition=(("counts", 3),), changelogs=(("empty", 1),)),
    )
    members = [
        {"active": {"0": (0, 1), "1": (2,)}, "standby": {"1": (0,)}},
        {"active": {"1": (0,)}, "warmup": {"1": (2,)}},
    ]
    describing(brokers, streams("t", *parts, members=members))
    found = kafka.describe_groups({"t"})["t"]
    first, second = found.members
    assert first.tasks.active == {Task("0", 0), Task("0", 1), Task("1", 2)}
    assert (first.tasks.standby, second.tasks.warmup) == ({Task("1", 0)}, {Task("1", 2)})
    assert first.assignment == first.target == {FIRST, SECOND, TopicPartition("counts", 2)}
    assert found.owners[TopicPartition("counts", 0)] is second
    assert [item.read_topics for item in found.topology.subtopologies] == [{"orders"}, {"counts"}]
    assert found.topology.subtopologies[1].changelogs == {"empty": 1}
    assert (found.topology.epoch, found.topology.problems) == (2, ())
    assert str(Task("1", 2)) == "1_2"


def test_a_source_with_fewer_partitions_than_there_are_tasks_is_read_by_the_first(brokers, kafka):
    members = [{"active": {"0": (0, 1)}}]
    describing(brokers, streams("t", subtopology("0", "orders", "empty"), members=members))
    assert kafka.describe_groups({"t"})["t"].owners.keys() == {
        FIRST,
        SECOND,
        TopicPartition("empty", 0),
    }


@pytest.mark.parametrize(
    ("parts", "problems"),
    [
        ([subtopology("0", "odrers")], ["source topic 'odrers' is not there"]),
        (
            [
                subtopology("0", "orders", sinks=("r",), changelogs=(("c", 2),)),
                subtopology("1", repartition=(("r", 4),)),
            ],
            ["changelog topic 'c' is not there", "repartition topic 'r' is not there"],
        ),
        (
            [subtopology("0", "orders", changelogs=(("empty", 2),))],
            ["changelog topic 'empty' has 1 partition, and needs 2"],
        ),
        ([subtopology("0", "empty", "orders")], [UNEVEN]),
        ([subtopology("0", "orders")], []),
    ],
)
def test_what_is_wrong_with_a_topology_is_found_out(brokers, kafka, parts, problems):
    describing(brokers, streams("t", *parts, state="NotReady"))
    assert list(kafka.describe_groups({"t"})["t"].topology.problems) == problems


def test_topics_with_other_numbers_of_partitions_are_no_problem_of_a_group_that_works(
    brokers, kafka
):
    describing(brokers, streams("t", subtopology("0", "empty", "orders")))
    assert kafka.describe_groups({"t"})["t"].topology.problems == ()


@pytest.mark.parametrize(
    ("topology", "told"), [(False, "no member has told it"), (None, "has not initialized")]
)
def test_a_topology_that_the_broker_does_not_tell_is_a_problem(brokers, kafka, topology, told):
    describing(brokers, streams("t", state="NotReady", topology=topology))
    (problem,) = kafka.describe_groups({"t"})["t"].topology.problems
    assert told in problem
    assert brokers.asked("Metadata") == []


def test_a_group_that_never_had_a_topology_has_none(brokers, kafka):
    describing(brokers, streams("t", state="Empty", topology=False))
    assert kafka.describe_groups({"t"})["t"].topology is None


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (
            share("g", code=29, text="not all"),
            r"ShareGroupDescribe.*not all.*DESCRIBE on the topic",
        ),
        (streams("g", code=30), r"StreamsGroupDescribe.*DESCRIBE on the group"),
    ],
)
def test_what_may_not_be_seen_is_an_error(brokers, kafka, group, told):
    describing(brokers, group)
    with pytest.raises(BrokerError, match=told):
        kafka.describe_groups({"g"})


@pytest.mark.parametrize("group", [share("g", code=35), streams("g", code=35)])
def test_where_groups_of_the_type_are_switched_off_there_are_none(brokers, kafka, group):
    describing(brokers, group)
    with pytest.raises(BrokerError, match="no such group"):
        kafka.describe_groups({"g"})
