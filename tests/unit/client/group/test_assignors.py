"""Who is to read what, where members want different topics."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS
from pyspark_kafkaproto.client.group.classic.sticky import assign_cooperatively, assign_sticky
from pyspark_kafkaproto.client.group.classic.subscriber import Claim, Subscriber
from pyspark_kafkaproto.cluster import TopicPartition

PARTITIONS = {"a": 3, "b": 2, "nobody's": 4}
# By instance ids first: "till" comes before both others.
MEMBERS = [
    Subscriber("m1", {"a", "b"}),
    Subscriber("m2", {"a"}),
    Subscriber("z9", {"a", "b"}, instance_id="till"),
]


def shares(name):
    """What each member is given, as Kafka writes it."""
    assignment = ASSIGNORS[name](MEMBERS, PARTITIONS)
    return {member: sorted(map(str, items)) for member, items in assignment.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_goes_to_one_member_that_wants_its_topic(name):
    given = shares(name)
    assert sorted(item for items in given.values() for item in items) == [
        "a-0", "a-1", "a-2", "b-0", "b-1"
    ]  # fmt: skip
    assert given.keys() == {"m1", "m2", "z9"}
    assert all(item.startswith("a-") for item in given["m2"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("range", {"z9": ["a-0", "b-0"], "m1": ["a-1", "b-1"], "m2": ["a-2"]}),
        ("roundrobin", {"z9": ["a-0", "b-0"], "m1": ["a-1", "b-1"], "m2": ["a-2"]}),
    ],
)
def test_members_come_in_kafkas_order(name, expected):
    assert shares(name) == expected


def test_of_what_does_not_divide_the_first_members_have_one_more():
    members = [Subscriber(name, {"a"}) for name in ("m3", "m1", "m2")]
    given = ASSIGNORS["range"](members, {"a": 8})
    assert [len(given[name]) for name in ("m1", "m2", "m3")] == [3, 3, 2]


def holding(member_id, topics, *held, generation=1):
    """A member that has had `held`, by name and number, in that generation."""
    claim = Claim(frozenset(map(TopicPartition._make, held)), generation)
    return Subscriber(member_id, topics, claim=claim)


def as_text(given):
    return {member: sorted(map(str, items)) for member, items in given.items()}


@pytest.mark.parametrize("gone", [("a", 3), ("b", 0), ("deleted", 0)])
def test_a_claim_of_what_is_not_there_or_not_wanted_any_more_gives_nothing(gone):
    members = [holding("m1", {"a"}, ("a", 2), gone), Subscriber("m2", {"b"})]
    given = assign_sticky(members, {"a": 3, "b": 1})
    assert sorted(map(str, given["m1"])) == ["a-0", "a-1", "a-2"]
    assert sorted(map(str, given["m2"])) == ["b-0"]


def test_a_claim_of_what_is_not_wanted_any_more_gives_nothing_where_all_have_as_many():
    others = holding("m2", {"b"}, ("b", 1), ("b", 2))
    given = assign_sticky([holding("m1", {"a"}, ("b", 0)), others], {"a": 1, "b": 3})
    assert as_text(given) == {"m1": ["a-0"], "m2": ["b-0", "b-1", "b-2"]}


def test_who_has_given_the_last_of_a_topic_gives_of_others():
    held = [(topic, 0) for topic in "abcd"]
    members = [holding("m1", set("abcd"), *held), Subscriber("m2", set("abcd"))]
    given = assign_sticky(members, dict.fromkeys("abcd", 1))
    assert [len(items) for items in given.values()] == [2, 2]
    assert {item for items in given.values() for item in items} == set(
        map(TopicPartition._make, held)
    )


@pytest.mark.parametrize("order", [1, -1])
def test_the_last_ones_go_first_in_whatever_order_they_are_claimed(order):
    """Claims are sets, in which names come in another order in each process."""
    held = [TopicPartition("a", number) for number in range(4)][::order]
    members = [Subscriber("m1", {"a"}, claim=Claim(held, 1)), Subscriber("m2", {"a"})]
    given = assign_sticky(members, {"a": 4})
    assert as_text(given) == {"m1": ["a-0", "a-1"], "m2": ["a-2", "a-3"]}


def test_what_somebody_may_still_be_reading_is_nobodys_for_now():
    members = [holding("m1", {"a"}, ("a", 0), ("a", 1)), Subscriber("m2", {"a"})]
    assert as_text(assign_cooperatively(members, {"a": 2})) == {"m1": ["a-0"], "m2": []}


def test_who_has_heard_of_a_later_generation_keeps_what_both_claim():
    first = holding("m1", {"a"}, ("a", 0), generation=5)
    behind = holding("m2", {"a"}, ("a", 0), generation=4)
    expected = {"m1": ["a-0"], "m2": ["a-1"]}
    assert as_text(assign_cooperatively([first, behind], {"a": 2})) == expected


def test_what_two_claim_of_one_generation_is_neithers_nor_anybodys_before():
    members = [
        holding("m9", {"a"}, ("a", 0), generation=4),
        holding("m3", {"a"}, ("a", 0), generation=5),
        holding("m2", {"a"}, ("a", 0), generation=5),
    ]
    expected = {"m2": ["a-0"], "m3": ["a-1"], "m9": ["a-2"]}
    assert as_text(assign_sticky(members, {"a": 3})) == expected
    expected["m2"] = []
    assert as_text(assign_cooperatively(members, {"a": 3})) == expected
