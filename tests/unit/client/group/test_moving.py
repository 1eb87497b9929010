"""What users do to positions: seek, pause, resume."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.client.group.reading import Reading
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from tests.unit.client.group.fake_heartbeats import FakeMember
from tests.unit.client.group.polling import poll_rows, poll_until, rows_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
REBALANCE_IN_PROGRESS = 27
NOBODY = -1


@pytest.fixture
def member(filled, group, consumer_of):
    """A member that has read all that there is."""
    consumer = consumer_of()
    poll_rows(consumer, 40)
    return consumer


@pytest.mark.slow
def test_rows_come_from_where_it_is_sought(member, group):
    member.seek(FIRST, 15)
    assert member.positions == {FIRST: 15, SECOND: 20}
    assert poll_rows(member, 5) == [(0, offset) for offset in range(15, 20)]
    member.seek(("orders", 1), CommittedOffset(18))
    member.close()
    assert group.committed == {("orders", 0): (20, ""), ("orders", 1): (18, "")}


@pytest.mark.slow
def test_rows_that_were_fetched_before_are_not_handed_out(filled, group, consumer_of):
    consumer = consumer_of()
    rows = []
    while not rows:
        rows = rows_of(consumer.poll(0.05))
    partition, _ = rows[0]
    consumer.seek(("orders", partition), 19)
    consumer.seek(("orders", 1 - partition), 19)
    assert sorted(poll_rows(consumer, 2)) == [(0, 19), (1, 19)]


@pytest.mark.slow
def test_offsets_that_are_kept_elsewhere_are_sought_as_partitions_come(filled, group, consumer_of):
    def begin(partitions):
        for partition in partitions:
            consumer.seek(partition, 12)

    consumer = consumer_of(listeners={"on_assign": begin})
    assert sorted(poll_rows(consumer, 16)) == [(p, n) for p in range(2) for n in range(12, 20)]


@pytest.mark.slow
def test_an_offset_that_is_not_there_is_reset(member, filled):
    filled.logs["orders", 0].start = 10
    member.seek(FIRST, 3)
    assert poll_rows(member, 10) == [(0, offset) for offset in range(10, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("offset", [2**63 - 1, 2**63 - 2])
def test_the_largest_offset_that_can_be_sought_is_reset(member, offset):
    """Java's Long.MAX_VALUE, by which some mean the end."""
    member.seek(FIRST, offset)
    assert poll_rows(member, 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
def test_what_is_paused_gives_no_rows_and_goes_on_where_it_was(member, filled):
    member.pause([FIRST, ("orders", 0)])
    assert member.paused == {FIRST}
    for partition in range(2):
        filled.logs["orders", partition].append(b"later", b"and later")
    assert poll_rows(member, 2) == [(1, 20), (1, 21)]
    assert member.poll(0.1) is None
    assert member.positions[FIRST] == 20
    member.resume({FIRST})
    assert poll_rows(member, 2) == [(0, 20), (0, 21)]
    assert not member.paused


@pytest.mark.slow
def test_who_has_paused_all_waits_and_stays_in_the_group(member, filled, group):
    member.pause(BOTH)
    member.poll(0.05)  # what was asked before has come in
    filled.logs["orders", 0].append(b"later")
    asked = len(filled.asked("Fetch"))
    began = time.monotonic()
    assert member.poll(0.2) is None
    assert time.monotonic() - began >= 0.2
    assert len(filled.asked("Fetch")) == asked
    assert group.generation == 1
    member.seek(FIRST, 19)
    assert member.poll(0.05) is None
    member.resume(BOTH)
    assert poll_rows(member, 2) == [(0, 19), (0, 20)]


@pytest.mark.slow
def test_what_comes_back_after_a_rebalance_is_read(member, filled, group):
    member.pause(BOTH)
    answers = [HeartbeatResponse(error_code=REBALANCE_IN_PROGRESS), HeartbeatResponse()]
    filled.on("Heartbeat", *answers)
    poll_until(member, lambda: group.generation == 2 and member.assignment, "a generation")
    assert not member.paused


@pytest.mark.slow
def test_what_stays_stays_paused_while_others_go(filled, heartbeats, incremental_of):
    ours = incremental_of()
    poll_rows(ours, 40)
    ours.pause(BOTH)
    with filled.at_once():
        heartbeats.members["~"] = FakeMember(topics=("orders",))
        heartbeats.share_out()
    poll_until(ours, lambda: len(ours.assignment) == 1, "one to go")
    assert ours.paused == ours.assignment
    with filled.at_once():
        heartbeats.fence("~")
    poll_until(ours, lambda: ours.assignment == BOTH, "its coming back")
    assert len(ours.paused) == 1


def test_an_interrupt_as_one_comes_or_goes_resumes_nothing(
    filled, heartbeats, incremental_of, monkeypatch
):
    ours = incremental_of()
    poll_rows(ours, 40)
    ours.pause(BOTH)
    pause = Reading.pause

    def interrupted(*_):
        monkeypatch.setattr(Reading, "pause", pause)
        raise KeyboardInterrupt

    monkeypatch.setattr(Reading, "pause", interrupted)
    with filled.at_once():
        heartbeats.members["~"] = FakeMember(topics=("orders",))
        heartbeats.share_out()
    with pytest.raises(KeyboardInterrupt):
        poll_until(ours, lambda: False, "the interrupt")
    poll_until(ours, lambda: len(ours.assignment) == 1, "one to go")
    assert ours.paused == ours.assignment


@pytest.mark.slow
def test_who_is_left_with_what_nobody_leads_waits_for_it(filled, heartbeats, incremental_of):
    """The other one is given up before anything of this one could be read."""
    heartbeats.committed["orders", 0] = (0, "")
    filled.topics["orders"].leaders[1] = NOBODY
    ours = incremental_of(SubscriptionPattern("orders"))
    poll_rows(ours, 20)
    with filled.at_once():
        known = ours.member_id
        heartbeats.members["" if known > "~" else "~"] = FakeMember()
        heartbeats.members[known].target = frozenset({(filled.topics["orders"].topic_id, 1)})
        heartbeats.epoch += 1
    poll_until(ours, lambda: ours.assignment == {SECOND}, "the first to go")
    assert ours.poll(0.05) is None
    filled.topics["orders"].leaders[1] = 1
    assert poll_rows(ours, 20) == [(1, offset) for offset in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda one: one.seek(("orders", 7), 1), r"'orders-7'.*it has orders-0, orders-1"),
        (lambda one: one.seek(FIRST, -1), "whole number from 0 on"),
        (lambda one: one.seek("orders", 1), "partition"),
        (lambda one: one.pause([("others", 0), FIRST]), r"'others-0'.*it has orders-0, orders-1$"),
        (lambda one: one.pause("orders"), "'orders': expected a set of them"),
        (lambda one: one.pause(3), "3: expected a set of them"),
        (lambda one: one.commit({FIRST}), "'offsets' is.*in a dict"),
        (lambda one: one.commit(5), "'offsets' is 5"),
        (lambda one: one.resume([("orders", "0")]), "partition"),
    ],
)
def test_what_cannot_be_moved_is_named(member, act, text):
    with pytest.raises(ConfigError, match=text):
        act(member)


def test_nothing_is_sought_before_there_is_anything(consumer_of, group):
    with pytest.raises(ConfigError, match=r"it has none.*poll first"):
        consumer_of().seek(FIRST, 1)


def test_of_nothing_all_is_paused_and_read_on(consumer_of, group):
    """Before the first generation, and while the group shares out."""
    consumer = consumer_of()
    consumer.pause(consumer.assignment)
    consumer.resume(consumer.paused)
    assert not consumer.paused
