"""Whatever there is: a proposed assignment is even, keeps racks apart, and moves what it has to."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cluster import Broker, Partition, Topic, TopicPartition, Topology
from pyspark_kafkaproto.cluster.admin.placement import propose_assignment
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.net import Endpoint


def topology(racks, topics):
    """A cluster: the rack of each broker, the replicas of each partition by topic."""
    return Topology(
        "fake",
        1,
        {at: Broker(at, Endpoint("h", 9092), rack) for at, rack in racks.items()},
        {
            name: Topic(
                name,
                0,
                None,
                False,
                {
                    number: Partition(0, own[0], 0, tuple(own), tuple(own), ())
                    for number, own in enumerate(partitions)
                },
            )
            for name, partitions in topics.items()
        },
    )


def whole(there, proposed):
    """The replicas of all partitions, if it is done as proposed."""
    present = {item: there.partition(item).replicas for item in there.partitions_of(there.topics)}
    assert all(present[item] != replicas for item, replicas in proposed.items())
    return present, present | proposed


def loads(replicas, brokers):
    return [sum(at in own for own in replicas) for at in brokers]


def leads(replicas, brokers):
    return [sum(own[0] == at for own in replicas) for at in brokers]


def spread(counts):
    return max(counts) - min(counts)


@st.composite
def clusters(draw, racks=False, uniform=False, most_brokers=7, most_partitions=12):
    """(topology, brokers to use): replicas may be at brokers that are not to be used, or gone."""
    ids = draw(st.sets(st.integers(0, 20), min_size=1, max_size=most_brokers))
    names = st.sampled_from("abc") if racks else st.none()
    where = {at: draw(names) for at in sorted(ids)}
    used = sorted(draw(st.sets(st.sampled_from(sorted(ids)), min_size=1)))
    places = sorted(ids | {30})  # one that is gone
    factor = draw(st.integers(1, len(used)))
    topics = {}
    for name in draw(st.sets(st.sampled_from(["t", "u"]), min_size=1)):
        topics[name] = [
            tuple(
                draw(
                    st.lists(
                        st.sampled_from(places),
                        min_size=factor if uniform else 1,
                        max_size=factor if uniform else len(used),
                        unique=True,
                    )
                )
            )
            for _ in range(draw(st.integers(1, most_partitions)))
        ]
    return topology(where, topics), used


@given(clusters(racks=True))
def test_each_keeps_its_number_of_replicas_at_brokers_to_use_each_once(cluster):
    there, used = cluster
    present, after = whole(there, propose_assignment(there, there.topics, used))
    for item, replicas in after.items():
        assert len(replicas) == len(present[item])
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) <= set(used)


@given(clusters())
def test_without_racks_replicas_are_spread_within_one(cluster):
    there, used = cluster
    _, after = whole(there, propose_assignment(there, there.topics, used))
    assert spread(loads(after.values(), used)) <= 1


@given(clusters(uniform=True))
def test_leaders_are_spread_within_one_where_all_have_as_many_replicas(cluster):
    there, used = cluster
    _, after = whole(there, propose_assignment(there, there.topics, used))
    assert spread(leads(after.values(), used)) <= 1


@given(clusters(racks=True))
def test_racks_differ_where_they_can(cluster):
    there, used = cluster
    racks = {at: there.brokers[at].rack for at in used}
    sizes = Counter(racks.values())
    _, after = whole(there, propose_assignment(there, there.topics, used))
    for replicas in after.values():
        counts = Counter(racks[at] for at in replicas)
        assert len(counts) == min(len(replicas), len(sizes))
        # And those that share one are as even as the racks' sizes let them be.
        for rack, count in counts.items():
            for other, size in sizes.items():
                assert count <= counts[other] + 1 or counts[other] == size, (rack, other)


@given(clusters(racks=True))
def test_what_was_proposed_is_left_alone(cluster):
    there, used = cluster
    _, after = whole(there, propose_assignment(there, there.topics, used))
    topics = {
        name: [after[TopicPartition(name, at)] for at in sorted(topic.partitions)]
        for name, topic in there.topics.items()
    }
    racks = {at: broker.rack for at, broker in there.brokers.items()}
    assert propose_assignment(topology(racks, topics), topics, used) == {}


@given(clusters())
def test_what_was_even_is_left_alone(cluster):
    there, used = cluster
    present, _ = whole(there, {})
    is_even = (
        spread(loads(present.values(), used)) <= 1
        and spread(leads(present.values(), used)) <= 1
        and all(set(own) <= set(used) for own in present.values())
    )
    if is_even:
        assert propose_assignment(there, there.topics, used) == {}


@given(clusters(most_brokers=4, most_partitions=2))
def test_nothing_moves_that_needs_not(cluster):
    """No other assignment that is as even has fewer replicas elsewhere."""
    there, used = cluster
    present, after = whole(there, propose_assignment(there, there.topics, used))
    order = sorted(present)

    def moved(assignment):
        return sum(len(set(own) - set(present[item])) for item, own in assignment)

    choices = [combinations(used, len(present[item])) for item in order]
    least = min(
        moved(zip(order, each, strict=True))
        for each in product(*choices)
        if spread(loads(each, used)) <= 1
    )
    assert moved(after.items()) == least


def test_a_broker_that_is_new_gets_its_share_and_no_more_moves():
    there = topology(dict.fromkeys((1, 2, 3, 4)), {"t": [(1, 2), (2, 3), (3, 1)] * 4})
    present, after = whole(there, propose_assignment(there, {"t"}))
    assert loads(after.values(), (1, 2, 3, 4)) == [6, 6, 6, 6]
    assert sum(len(set(own) - set(present[item])) for item, own in after.items()) == 6
    assert leads(after.values(), (1, 2, 3, 4)) == [3, 3, 3, 3]


def test_broker_that_is_to_go_hands_its_replicas_to_all_others():
    there = topology(dict.fromkeys(range(5)), {"t": [(at, (at + 1) % 5) for at in range(5)] * 4})
    _, after = whole(there, propose_assignment(there, {"t"}, {0, 1, 2, 3}))
    assert loads(after.values(), range(5)) == [10, 10, 10, 10, 0]
    assert leads(after.values(), range(5)) == [5, 5, 5, 5, 0]


def test_order_of_what_stays_is_kept():
    there = topology(dict.fromkeys((1, 2, 3)), {"t": [(2, 9, 1)]})
    assert propose_assignment(there, {"t"}) == {("t", 0): (2, 3, 1)}


def test_new_replicas_of_a_broker_are_shared_with_all_others():
    there = topology(dict.fromkeys(range(1, 6)), {"t": [(7, 8)] * 20})
    _, after = whole(there, propose_assignment(there, {"t"}))
    pairs = Counter(frozenset(own) for own in after.values())
    assert len(pairs) == 10
    assert set(pairs.values()) == {2}


def test_racks_are_left_aside_where_one_broker_does_not_tell():
    there = topology({1: "a", 2: "a", 3: None}, {"t": [(1, 2)]})
    assert propose_assignment(there, {"t"}) == {}
    there = topology({1: "a", 2: "a", 3: "b"}, {"t": [(1, 2)]})
    assert propose_assignment(there, {"t"}) == {("t", 0): (1, 3)}


def test_refusals_name_what_there_is():
    there = topology({1: None, 2: None}, {"t": [(1, 2)]})
    with pytest.raises(ConfigError, match="t-0 has 2 replicas"):
        propose_assignment(there, {"t"}, {1})
    with pytest.raises(BrokerError, match=r"broker 9.*the brokers 1, 2"):
        propose_assignment(there, {"t"}, {1, 9})
    with pytest.raises(BrokerError, match="no such topic"):
        propose_assignment(there, {"u"})
