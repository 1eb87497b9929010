"""A group's offsets moved: every way, within what is there, and only while nobody reads."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import (
    BackBy,
    Moved,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    TopicPartition,
    ToTime,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitResponse
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import (
    assigned,
    classic,
    consumer,
    describing,
    streams,
    subtopology,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def coordinator(brokers):
    """orders-0 holds 10 to 50, orders-1 0 to 5; the group has committed 20 for orders-0."""
    brokers.logs[FIRST].start, brokers.logs[FIRST].stop = 10, 50
    brokers.logs[SECOND].stop = 5
    return FakeCoordinator(brokers, g={FIRST: (20, "")})


@pytest.mark.parametrize(
    ("to", "after"),
    [
        (ToEarliest(), 10),
        (ToLatest(), 50),
        (ShiftBy(7), 27),
        (ShiftBy(-7), 13),
        (ShiftBy(-100), 10),
        (ShiftBy(100), 50),
        (ToOffsets({FIRST: 33}), 33),
        (ToOffsets({FIRST: 3}), 10),
        (ToOffsets({FIRST: 99}), 50),
    ],
)
def test_every_way_stays_within_what_is_there(coordinator, kafka, to, after):
    assert kafka.reset_consumer_offsets("g", to) == {FIRST: Moved(20, after)}
    assert coordinator.offsets["g"] == {FIRST: (after, "")}


@pytest.mark.parametrize("to", ["earliest", ToEarliest, None])
def test_what_is_no_way_to_move_offsets_is_refused(coordinator, kafka, to):
    for call in (kafka.reset_consumer_offsets, kafka.reset_share_group_offsets):
        with pytest.raises(ConfigError, match=r"'to' is .*expected ToEarliest\(\)"):
            call("g", to, {FIRST})


def test_the_earliest_of_a_log_that_has_lost_nothing_is_its_first_record(
    brokers, coordinator, kafka
):
    brokers.logs[FIRST].start = 0
    assert kafka.reset_consumer_offsets("g", ToEarliest()) == {FIRST: Moved(20, 0)}


@pytest.mark.parametrize("to", [ToEarliest(), ToLatest(), ShiftBy(3)])
def test_what_a_streams_application_wrote_for_itself_stays_as_it_is(brokers, kafka, to):
    """Its sources were read for that: behind it records are lost, before it counted twice."""
    inner = TopicPartition("g-counts-repartition", 0)
    brokers.add_topic(inner.topic)
    brokers.logs[FIRST].stop = brokers.logs[inner].stop = 50
    group = FakeCoordinator(brokers, g={FIRST: (20, ""), inner: (20, "")})
    parts = (
        subtopology("0", "orders", sinks=(inner.topic,)),
        subtopology("1", repartition=((inner.topic, 1),)),
    )
    describing(brokers, streams("g", *parts, state="Empty"))
    assert kafka.reset_consumer_offsets("g", to).keys() == {FIRST}
    assert group.offsets["g"][inner] == (20, "")
    # Who names it means it.
    assert kafka.reset_consumer_offsets("g", ToOffsets({inner: 7})) == {inner: Moved(20, 7)}
    assert kafka.reset_consumer_offsets("g", ToLatest(), {inner}) == {inner: Moved(7, 50)}


@pytest.mark.parametrize(
    ("to", "said"),
    [
        (
            ToOffsets({FIRST: 99}),
            ["orders-0 has no offset 99, its records end at 50: it goes there"],
        ),
        (ShiftBy(-100), ["orders-0 has no offset -80, its records begin at 10: it goes there"]),
        (ToOffsets({FIRST: 50}), []),
        (ToOffsets({FIRST: 10}), []),
        (ToEarliest(), []),
        (ToLatest(), []),
    ],
)
def test_an_offset_that_is_not_there_is_told_of(coordinator, kafka, caplog, to, said):
    kafka.reset_consumer_offsets("g", to, dry_run=True)
    assert caplog.messages == said


@pytest.mark.parametrize(
    ("to", "timestamp"), [(ToTime(5000), 5000), (BackBy(60), 940_000), (BackBy(2000), 0)]
)
def test_times_are_looked_up_at_the_leaders(
    brokers, coordinator, kafka, monkeypatch, to, timestamp
):
    monkeypatch.setattr("time.time", lambda: 1000.0)
    kafka.reset_consumer_offsets("g", to, {FIRST, SECOND})
    request = brokers.asked("ListOffsets")[0]
    assert {item.timestamp for topic in request.topics for item in topic.partitions} == {timestamp}


def test_partitions_can_be_named_and_new_groups_made(coordinator, kafka):
    moved = kafka.reset_consumer_offsets("new", ToLatest(), {FIRST, SECOND})
    assert moved == {FIRST: Moved(None, 50), SECOND: Moved(None, 5)}
    assert coordinator.offsets["new"] == {FIRST: (50, ""), SECOND: (5, "")}


def test_dry_run_commits_nothing(coordinator, kafka):
    assert kafka.reset_consumer_offsets("g", ToLatest(), dry_run=True) == {FIRST: Moved(20, 50)}
    assert coordinator.offsets["g"] == {FIRST: (20, "")}


@pytest.mark.parametrize(
    "group", [classic("g", assigned(0)), consumer("g", assignments=[((0,), (0,))])]
)
def test_group_with_members_is_refused_and_they_are_named(brokers, coordinator, kafka, group):
    describing(brokers, group)
    with pytest.raises(
        BrokerError, match=r"NON_EMPTY_GROUP.*1: c0 at /h.*stop them.*killed.*until"
    ):
        kafka.reset_consumer_offsets("g", ToEarliest())
    assert coordinator.offsets["g"] == {FIRST: (20, "")}


def test_nothing_to_move_and_nothing_to_shift_are_errors(coordinator, kafka):
    with pytest.raises(ConfigError, match="name topics to reset"):
        kafka.reset_consumer_offsets("new", ToEarliest())
    with pytest.raises(ConfigError, match="nothing for orders-1"):
        kafka.reset_consumer_offsets("g", ShiftBy(1), {FIRST, SECOND})
    with pytest.raises(ConfigError, match="milliseconds since 1970"):
        kafka.reset_consumer_offsets("g", ToTime(-1))


def test_an_error_has_what_was_moved_all_the_same(brokers, coordinator, kafka):
    part = OffsetCommitResponse.Topic
    both = tuple(part.Partition(partition_index=at, error_code=29 * at) for at in (0, 1))
    refused = OffsetCommitResponse(topics=(part(name="orders", partitions=both),))
    brokers.on("OffsetCommit", refused)
    with pytest.raises(BrokerError) as caught:
        kafka.reset_consumer_offsets("g", ToLatest(), {FIRST, SECOND})
    assert caught.value.usable == {FIRST: Moved(20, 50)}


def test_an_error_before_anything_is_moved_has_nothing(coordinator, kafka, clock):
    with pytest.raises(BrokerError) as caught:
        kafka.reset_consumer_offsets("g", ToOffsets({FIRST: 1, TopicPartition("orders", 9): 1}))
    assert not caught.value.usable
