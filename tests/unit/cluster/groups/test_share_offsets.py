"""Where share groups start: fetched, moved in every way, forgotten, and only without members."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import (
    Moved,
    ShareOffset,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    TopicPartition,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from pyspark_kafkaproto.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from pyspark_kafkaproto.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
)
from tests.fake_broker import close
from tests.unit.cluster.committing import committing
from tests.unit.cluster.fake_groups import classic, describing, share
from tests.unit.cluster.sharing import FakeShareCoordinator, altered

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def coordinator(brokers):
    """orders-0 holds 10 to 50, orders-1 0 to 5; the group starts at 20, nowhere in orders-1."""
    brokers.logs[FIRST].start, brokers.logs[FIRST].stop = 10, 50
    brokers.logs[SECOND].stop = 5
    return FakeShareCoordinator(brokers, g={FIRST: (20, 7), SECOND: (-1, -1)})


def test_starts_of_many_groups_without_those_that_have_not_begun(coordinator, kafka):
    coordinator.starts["h"] = {SECOND: (3, 2)}
    found = {"g": {FIRST: ShareOffset(20, 0, 7)}, "h": {SECOND: ShareOffset(3, 0, 2)}, "nope": {}}
    assert kafka.get_share_group_offsets({"g", "h", "nope"}) == found
    assert kafka.get_share_group_offsets({"g", "h"}, {SECOND}) == {"g": {}, "h": found["h"]}


def test_all_partitions_are_asked_for_as_brokers_never_answer_about_some(
    brokers, coordinator, kafka
):
    kafka.get_share_group_offsets({"g"}, {("orders", 99)})
    (request,) = brokers.asked("DescribeShareGroupOffsets")
    assert [item.topics for item in request.groups] == [None]


def test_old_brokers_tell_no_lag(brokers, coordinator, kafka):
    brokers.versions["DescribeShareGroupOffsets"] = (0, 0)
    assert kafka.get_share_group_offsets({"g"})["g"] == {FIRST: ShareOffset(20, 0, None)}


def test_a_partition_without_a_leader_is_waited_for(brokers, coordinator, kafka, clock):
    def elect(call):
        said = coordinator.describe(call)
        coordinator.leaderless.clear()
        return said

    coordinator.leaderless.add(FIRST)
    brokers.on("DescribeShareGroupOffsets", elect)
    assert kafka.get_share_group_offsets({"g"})["g"].keys() == {FIRST}
    assert len(brokers.asked("DescribeShareGroupOffsets")) == 2


def test_a_coordinator_that_moves_is_followed(brokers, coordinator, kafka, clock):
    part = DescribeShareGroupOffsetsResponse.Group
    moved = DescribeShareGroupOffsetsResponse(groups=(part(group_id="g", error_code=16),))
    brokers.on("DescribeShareGroupOffsets", close(), moved, coordinator.describe)
    assert kafka.get_share_group_offsets({"g"})["g"].keys() == {FIRST}
    assert len(brokers.asked("FindCoordinator")) > 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (35, r"UNSUPPORTED_VERSION.*switched off .*kafkaproto features upgrade share\.version=1"),
        (30, r"GROUP_AUTHORIZATION_FAILED.*DESCRIBE on the group"),
    ],
)
def test_what_keeps_all_groups_from_being_told(brokers, coordinator, kafka, code, told):
    part = DescribeShareGroupOffsetsResponse.Group
    refused = DescribeShareGroupOffsetsResponse(groups=(part(group_id="g", error_code=code),))
    brokers.on("DescribeShareGroupOffsets", refused)
    with pytest.raises(BrokerError, match=rf"group 'g'.*{told}"):
        kafka.get_share_group_offsets({"g"})


def test_a_partition_that_is_refused_is_named(brokers, coordinator, kafka):
    part = DescribeShareGroupOffsetsResponse.Group
    place = part.Topic.Partition(partition_index=1, error_code=124, error_message="fenced")
    topic = part.Topic(topic_name="orders", partitions=(place,))
    refused = DescribeShareGroupOffsetsResponse(groups=(part(group_id="g", topics=(topic,)),))
    brokers.on("DescribeShareGroupOffsets", refused)
    with pytest.raises(BrokerError, match=r"group 'g', partition orders-1.*FENCED.*fenced"):
        kafka.get_share_group_offsets({"g"})


def test_brokers_without_share_groups_are_named(brokers, coordinator, kafka):
    del brokers.versions["DescribeShareGroupOffsets"]
    with pytest.raises(UnsupportedVersion, match="does not offer DescribeShareGroupOffsets"):
        kafka.get_share_group_offsets({"g"})


@pytest.mark.parametrize("call", ["get", "reset", "delete"])
def test_groups_are_named_one_by_one(kafka, call):
    with pytest.raises(ConfigError, match="expected"):
        {
            "get": lambda: kafka.get_share_group_offsets("g"),
            "reset": lambda: kafka.reset_share_group_offsets("", ToLatest()),
            "delete": lambda: kafka.delete_share_group_offsets("g", "orders"),
        }[call]()


# Moved


@pytest.mark.parametrize(
    ("to", "after"),
    [
        (ToEarliest(), {FIRST: Moved(20, 10), SECOND: Moved(None, 0)}),
        (ToLatest(), {FIRST: Moved(20, 50), SECOND: Moved(None, 5)}),
        (ShiftBy(7), {FIRST: Moved(20, 27)}),
        (ShiftBy(-100), {FIRST: Moved(20, 10)}),
        (ToOffsets({SECOND: 99}), {SECOND: Moved(None, 5)}),
        (ToOffsets({("orders", 0): 33}), {FIRST: Moved(20, 33)}),
    ],
)
def test_every_way_stays_within_what_is_there(coordinator, kafka, to, after):
    assert kafka.reset_share_group_offsets("g", to, dry_run=True) == after
    assert coordinator.starts["g"] == {FIRST: (20, 7), SECOND: (-1, -1)}
    assert kafka.reset_share_group_offsets("g", to) == after
    assert {item: coordinator.starts["g"][item][0] for item in after} == {
        item: moved.after for item, moved in after.items()
    }


def test_partitions_can_be_named_and_new_groups_made(coordinator, kafka):
    assert kafka.reset_share_group_offsets("new", ToLatest(), {FIRST}) == {FIRST: Moved(None, 50)}
    assert coordinator.starts["new"] == {FIRST: (50, 0)}
    with pytest.raises(ConfigError, match="'nope' has no offsets: name topics"):
        kafka.reset_share_group_offsets("nope", ToLatest())
    with pytest.raises(ConfigError, match=r"nothing for orders-1: no offset to add to"):
        kafka.reset_share_group_offsets("g", ShiftBy(1), {FIRST, SECOND})


def test_group_with_members_is_refused_and_they_are_named(brokers, coordinator, kafka):
    describing(brokers, share("g", (0,), (0,)))
    with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*2: c0 at /h, c1 at /h.*stop them"):
        kafka.reset_share_group_offsets("g", ToEarliest())
    assert brokers.asked("AlterShareGroupOffsets") == []


def test_groups_of_the_other_kind_are_refused_with_the_calls_to_use(brokers, coordinator, kafka):
    describing(brokers, share("s"), classic("c"))
    with pytest.raises(ConfigError, match=r"'c': it is a classic group.*_consumer_offsets"):
        kafka.reset_share_group_offsets("c", ToEarliest(), {FIRST})
    with pytest.raises(ConfigError, match=r"'c': it is a classic group.*_consumer_offsets"):
        kafka.delete_share_group_offsets("c", {"orders"})
    with pytest.raises(ConfigError, match=r"'s': it is a share group.*_share_group_offsets"):
        kafka.reset_consumer_offsets("s", ToEarliest(), {FIRST})


def test_members_that_come_meanwhile_are_the_brokers_to_refuse(brokers, coordinator, kafka):
    brokers.on("AlterShareGroupOffsets", AlterShareGroupOffsetsResponse(error_code=68))
    with pytest.raises(BrokerError, match=r"group 'g'.*NON_EMPTY_GROUP.*stop them") as caught:
        kafka.reset_share_group_offsets("g", ToEarliest())
    assert caught.value.usable == {}


def test_a_broker_that_offers_to_move_and_does_not_is_named(brokers, coordinator, kafka):
    """Kafka 4.1's answer is empty, and without an error."""
    brokers.on("AlterShareGroupOffsets", AlterShareGroupOffsetsResponse())
    with pytest.raises(BrokerError, match=r"group 'g'.*Kafka 4\.1.*not carry it out") as caught:
        kafka.reset_share_group_offsets("g", ToEarliest())
    assert caught.value.usable == {}


def test_an_error_has_what_was_moved_all_the_same(brokers, coordinator, kafka):
    brokers.on("AlterShareGroupOffsets", lambda call: altered(call, lambda _, number: 29 * number))
    with pytest.raises(BrokerError, match=r"partition orders-1.*READ on the topic") as caught:
        kafka.reset_share_group_offsets("g", ToLatest())
    assert caught.value.usable == {FIRST: Moved(20, 50)}


def test_an_error_before_anything_is_moved_has_nothing(brokers, coordinator, kafka, clock):
    with pytest.raises(BrokerError) as caught:
        kafka.reset_share_group_offsets("g", ToOffsets({("orders", 9): 1}))
    assert not caught.value.usable


# Forgotten


def test_topics_are_forgotten_and_nothing_to_forget_is_no_error(brokers, coordinator, kafka):
    wanted = {"orders", "empty"}
    assert kafka.delete_share_group_offsets("g", wanted, dry_run=True) == {"orders"}
    assert coordinator.starts["g"].keys() == {FIRST, SECOND}
    assert kafka.delete_share_group_offsets("g", wanted) == {"orders"}
    assert coordinator.starts["g"] == {}
    (request,) = brokers.asked("DeleteShareGroupOffsets")
    assert [topic.topic_name for topic in request.topics] == ["orders"]
    assert kafka.delete_share_group_offsets("g", {"orders"}) == set()


def test_a_deletion_whose_answer_was_lost_is_done(brokers, coordinator, kafka, clock):
    def lose(call):
        coordinator.delete(call)
        return close()

    brokers.on("DeleteShareGroupOffsets", lose, coordinator.delete)
    kafka.delete_share_group_offsets("g", {"orders"})
    assert coordinator.starts["g"] == {}


def test_groups_and_topics_that_there_are_not_are_errors(coordinator, kafka, clock):
    with pytest.raises(BrokerError, match="group 'nope': GROUP_ID_NOT_FOUND"):
        kafka.delete_share_group_offsets("nope", {"orders"})
    with pytest.raises(BrokerError, match=r"topic 'odrers'.*no such topic"):
        kafka.delete_share_group_offsets("g", {"orders", "odrers"})
    assert coordinator.starts["g"].keys() == {FIRST, SECOND}


def test_a_refused_deletion_has_the_topics_that_are_done(brokers, coordinator, kafka):
    part = DeleteShareGroupOffsetsResponse.Topic
    coordinator.starts["g"]["empty", 0] = (0, 0)
    both = (part(topic_name="empty"), part(topic_name="orders", error_code=29))
    brokers.on("DeleteShareGroupOffsets", DeleteShareGroupOffsetsResponse(responses=both))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*READ on the topic") as caught:
        kafka.delete_share_group_offsets("g", {"orders", "empty"})
    assert caught.value.usable == {"empty"}
    brokers.on("DeleteShareGroupOffsets", DeleteShareGroupOffsetsResponse(error_code=68))
    with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them") as caught:
        kafka.delete_share_group_offsets("g", {"orders"})
    assert caught.value.usable == set()


# What is for other groups


def test_commits_for_a_share_group_are_refused_with_what_to_use(brokers, coordinator, kafka):
    brokers.on("OffsetCommit", committing(69))
    with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*reset_share_group_offsets"):
        kafka.set_consumer_offsets("g", {FIRST: 3})
