"""Who is to read what, where members want different topics."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS
from pyspark_kafkaproto.client.group.classic.subscriber import Subscriber

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
