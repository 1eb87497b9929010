"""Lag: one row per partition that a group has committed for, reads, or is asked about."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition, lag_text
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    DeadlineExceeded,
    KafkaProtoError,
    UnsupportedVersion,
)
from tests.fake_broker import DEFAULT, close, late
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import (
    assigned,
    classic,
    describing,
    listed,
    share,
    streams,
    subtopology,
)
from tests.unit.cluster.sharing import FakeShareCoordinator

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
GONE = TopicPartition("gone", 0)


@pytest.fixture
def coordinator(brokers):
    brokers.logs[FIRST].stop, brokers.logs[SECOND].stop = 50, 5
    return FakeCoordinator(brokers, g={FIRST: (20, "")}, h={FIRST: (50, ""), SECOND: (0, "")})


def short(rows):
    return [(row.group, row.partition, row.offset, row.log_size, row.lag) for row in rows]


def test_rows_of_named_groups(coordinator, kafka):
    rows = [("g", 0, 20, 50, 30), ("h", 0, 50, 50, 0), ("h", 1, 0, 5, 5)]
    assert short(kafka.lag({"g", "h"})) == rows


def test_every_partition_of_a_named_topic(coordinator, kafka):
    assert short(kafka.lag({"g"}, {"orders"})) == [("g", 0, 20, 50, 30), ("g", 1, None, 5, None)]
    assert short(kafka.lag({"new"}, {"empty"})) == [("new", 0, None, 0, None)]


def test_all_groups_are_found_and_owners_looked_up_where_there_are_members(
    brokers, coordinator, kafka
):
    describing(brokers, classic("h", assigned(1)))
    brokers.on("ListGroups", listed(("g", "Classic", "Empty"), ("h", "Classic", "Stable")), node=1)
    brokers.on("ListGroups", listed(), node=2)
    rows = kafka.lag()
    assert short(rows) == [("g", 0, 20, 50, 30), ("h", 0, 50, 50, 0), ("h", 1, 0, 5, 5)]
    assert [(row.owner, row.client_id, row.host) for row in rows] == [
        (None, None, None),
        (None, None, None),
        ("m0", "c0", "/h"),
    ]
    assert [request.groups for request in brokers.asked("DescribeGroups")] == [("h",)]
    assert not any(request.require_stable for request in brokers.asked("OffsetFetch"))


@pytest.mark.parametrize("named", [{"s"}, None])
def test_a_share_group_starts_somewhere_and_the_brokers_count_its_lag(brokers, kafka, named):
    """Records behind the start may be done: what is left is not the difference."""
    brokers.logs[FIRST].stop = 50
    FakeShareCoordinator(brokers, s={FIRST: (20, 7), SECOND: (-1, -1)})
    describing(brokers, share("s", (0, 1), (0, 1)))
    brokers.on("ListGroups", listed(("s", "Share", "Stable")))
    rows = kafka.lag(named)
    assert short(rows) == [("s", 0, 20, 50, 7), ("s", 1, None, 0, None)]
    assert {row.owner for row in rows} == {None}
    assert short(kafka.lag(named, {"empty"})) == [("s", 0, None, 0, None)]


def test_partitions_without_a_leader_do_not_hold_up_the_lag_of_a_share_group(brokers, kafka):
    brokers.logs[SECOND].stop = 5
    coordinator = FakeShareCoordinator(brokers, s={FIRST: (20, 7), SECOND: (1, 4)})
    coordinator.leaderless.add(FIRST)
    brokers.topics["orders"].leaders[0] = -1
    assert short(kafka.lag({"s"})) == [("s", 0, None, None, None), ("s", 1, 1, 5, 4)]


def test_share_groups_whose_offsets_old_brokers_do_not_tell_are_no_hindrance(brokers, kafka):
    FakeCoordinator(brokers, g={FIRST: (0, "")})
    brokers.on("ListGroups", listed(("s", "Share", "Stable"), ("g", "Classic", "Empty")))
    del brokers.versions["DescribeShareGroupOffsets"]
    assert short(kafka.lag()) == [("g", 0, 0, 0, 0)]


def test_a_streams_group_commits_and_its_tasks_own(brokers, coordinator, kafka):
    members = [{"active": {"0": (0,)}}, {"active": {"0": (1,)}, "standby": {"0": (0,)}}]
    describing(brokers, streams("h", subtopology("0", "orders"), members=members))
    brokers.on("ListGroups", listed(("h", "Streams", "Stable")))
    for named in ({"h"}, None):
        rows = kafka.lag(named)
        assert short(rows) == [("h", 0, 50, 50, 0), ("h", 1, 0, 5, 5)]
        assert [row.owner for row in rows] == ["m0", "m1"]


def test_a_group_without_a_name_is_one_of_all(brokers, coordinator, kafka):
    """Brokers take commits without a group's name, which clients send that were given none."""
    coordinator.offsets[""] = {FIRST: (7, "")}
    brokers.on("ListGroups", listed(("", "Classic", "Empty"), ("g", "Classic", "Empty")))
    rows = kafka.lag()
    assert short(rows) == [("", 0, 7, 50, 43), ("g", 0, 20, 50, 30)]
    assert lag_text(rows).splitlines()[1].split() == ["-", "orders", "0", "7", "50", "43"]
    with pytest.raises(ConfigError, match="expected the name of a group"):
        kafka.lag({""})


def test_partition_that_is_read_and_not_committed_for_has_a_row(brokers, coordinator, kafka):
    describing(brokers, classic("g", assigned(0, 1)))
    assert short(kafka.lag({"g"})) == [("g", 0, 20, 50, 30), ("g", 1, None, 5, None)]


def test_topic_that_is_gone_or_has_no_leader_keeps_its_row(brokers, coordinator, kafka):
    coordinator.offsets["g"][GONE] = (3, "")
    brokers.topics["orders"].leaders[0] = -1
    assert short(kafka.lag({"g"})) == [("g", 0, 3, None, None), ("g", 0, 20, None, None)]


def test_a_partition_that_loses_its_leader_as_it_is_asked_is_one_without(
    brokers, coordinator, kafka, clock
):
    """A broker that has just died leads for some seconds yet, as the others have it."""

    def die(call):
        brokers.topics["orders"].leaders[0] = -1
        return close()

    brokers.topics["orders"].move(0, node_id=2)
    brokers.on("ListOffsets", die, node=2)
    begun = clock.now
    assert short(kafka.lag({"h"})) == [("h", 0, 50, None, None), ("h", 1, 0, 5, 5)]
    assert clock.now - begun < 2


def test_a_topic_that_is_deleted_as_it_is_asked_about_keeps_its_row(
    brokers, coordinator, kafka, clock
):
    brokers.add_topic("gone")
    coordinator.offsets["g"][GONE] = (3, "")

    def delete(call):
        brokers.topics.pop("gone", None)
        return close()

    brokers.on("ListOffsets", delete, DEFAULT)
    assert short(kafka.lag({"g"})) == [("g", 0, 3, None, None), ("g", 0, 20, 50, 30)]


def test_a_broker_that_does_not_answer_is_an_error_of_the_lag(brokers, coordinator, kafka, clock):
    """It may lead: what it would tell is not known to be none."""
    brokers.topics["orders"].move(0, node_id=2)
    brokers.topics["orders"].leaders[1] = -1
    brokers.on("ListOffsets", close(), node=2)
    with pytest.raises(KafkaProtoError, match="closed"):
        kafka.lag({"h"})


@pytest.mark.parametrize("named", [{"idle"}, None])
def test_a_group_that_has_committed_nothing_has_no_rows_and_is_no_error(
    brokers, coordinator, kafka, named
):
    describing(brokers, classic("idle"))
    brokers.on("ListGroups", listed(("idle", "Classic", "Empty")))
    assert kafka.lag(named) == []


def test_a_share_group_that_is_named_is_an_error_where_brokers_do_not_tell(brokers, kafka):
    FakeShareCoordinator(brokers, s={FIRST: (20, 7)})
    del brokers.versions["DescribeShareGroupOffsets"]
    with pytest.raises(UnsupportedVersion):
        kafka.lag({"s"})


def test_group_that_there_is_not_is_an_error(coordinator, kafka):
    with pytest.raises(BrokerError, match="group 'nope': GROUP_ID_NOT_FOUND"):
        kafka.lag({"nope"})


def test_as_text_with_owners_where_there_are_any(brokers, coordinator, kafka):
    assert lag_text(kafka.lag({"g"}, {"orders"})).splitlines() == [
        "Group  Topic   Partition  Offset  LogSize  Lag",
        "g      orders  0          20      50       30",
        "g      orders  1          -       5        -",
    ]
    describing(brokers, classic("g", assigned(0)))
    assert lag_text(kafka.lag({"g"})).splitlines()[1].split()[-1] == "m0"


def test_offsets_are_committed_with_text_for_many_groups_and_deleted(coordinator, kafka):
    kafka.set_group_offsets({"a": {FIRST: 1, SECOND: CommittedOffset(2, "by me")}, "b": {FIRST: 3}})
    assert kafka.get_group_offsets({"a", "b"}) == {
        "a": {FIRST: CommittedOffset(1), SECOND: CommittedOffset(2, "by me")},
        "b": {FIRST: CommittedOffset(3)},
    }
    assert kafka.get_group_offsets({"a"}, {SECOND}) == {"a": {SECOND: CommittedOffset(2, "by me")}}
    kafka.delete_consumer_offsets("a", {SECOND})
    assert kafka.get_group_offsets({"a"}) == {"a": {FIRST: CommittedOffset(1)}}


def test_the_leader_epoch_is_committed_with_an_offset_and_told(coordinator, kafka):
    offsets = {"a": {FIRST: CommittedOffset(7, leader_epoch=3)}}
    kafka.set_group_offsets(offsets)
    assert kafka.get_group_offsets({"a"}) == offsets


@pytest.mark.slow
def test_all_that_a_call_asks_for_has_the_time_of_one_call(brokers, coordinator, kafka_at):
    brokers.on("OffsetFetch", late(brokers, coordinator.fetch))
    for api in ("Metadata", "ListOffsets"):
        brokers.on(api, late(brokers, DEFAULT))
    kafka = kafka_at(brokers.bootstrap_servers, **{"default.api.timeout.ms": "600"})
    with pytest.raises(DeadlineExceeded):
        kafka.lag({"g"})
    assert kafka.get_consumer_offsets("g", {FIRST}) == {FIRST: 20}, "the next one has its own"
