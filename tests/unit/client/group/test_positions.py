"""Positions that are not there: offsets that are gone, logs cut off, topics made again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafkaproto import arrow
from pyspark_kafkaproto.client.group import reading
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    CorruptRecords,
)
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import DEFAULT, FakeTopic, metadata, topic_id_of
from tests.fake_log import NOT_LEADER, Answered, FakeLog
from tests.fake_past import behind, lead_in_the_past
from tests.unit.client.answers import answered, refused
from tests.unit.client.group.fake_group import beats
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of
from tests.unit.cluster.committing import (
    committing,
    held_up,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
REBALANCE_IN_PROGRESS = 27


@pytest.mark.slow
def test_an_offset_that_is_gone_is_reset(filled, group, consumer_of):
    filled.logs["orders", 0].start = 12
    group.committed |= {("orders", 0): (3, ""), ("orders", 1): (20, "")}
    assert poll_rows(consumer_of(), 8) == [(0, offset) for offset in range(12, 20)]


@pytest.mark.slow
def test_an_offset_beyond_the_end_is_reset(filled, group, consumer_of):
    group.committed |= {("orders", 0): (25, ""), ("orders", 1): (20, "")}
    assert poll_rows(consumer_of(), 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
@pytest.mark.parametrize(("reset", "expected"), [("earliest", 8), ("latest", 0)])
def test_offsets_that_are_gone_in_many_partitions_are_asked_for_together(
    brokers, group, consumer_of, reset, expected
):
    """With a round trip or two for each a poll of thousands takes longer than a member has."""
    many = [TopicPartition("many", number) for number in range(250)]
    for item in many:
        brokers.logs[item].fill(2).start = 12
    group.committed |= dict.fromkeys(many, (3, ""))
    consumer = consumer_of(["many"], auto_offset_reset=reset)
    at_the_end = dict.fromkeys(many, 20)
    rows = poll_until(consumer, lambda: consumer.positions == at_the_end, "the end")
    assert len(rows) == expected * len(many)
    assert len(brokers.asked("ListOffsets")) <= 2


@pytest.mark.slow
def test_many_partitions_of_a_topic_made_again_are_asked_about_together(
    brokers, group, consumer_of
):
    many = [TopicPartition("many", number) for number in range(250)]
    group.committed |= dict.fromkeys(many, (10, ""))
    for item in many:
        brokers.logs[item].fill(1)
    consumer = consumer_of(["many"])
    poll_until(consumer, lambda: brokers.asked("Fetch"), "a fetch")
    with brokers.at_once():
        for item in many:
            brokers.logs[item] = FakeLog().fill(3)
        before = brokers.topics["many"]
        brokers.topics["many"] = FakeTopic(topic_id_of("again"), before.leaders, before.epochs)
    poll_rows(consumer, 30 * len(many))
    assert consumer.positions == dict.fromkeys(many, 30)
    assert len(brokers.asked("ListOffsets")) <= 2


@pytest.mark.slow
def test_an_old_leader_that_has_been_away_resets_nothing(filled, group, consumer_of, caplog):
    """It names itself and its old end for a moment: the position lies beyond that."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    lead_in_the_past(filled, "orders", end=10)
    out_of_range = (Answered(partition_index=part, error_code=1) for part in range(2))
    filled.on("Fetch", answered(*out_of_range), node=1)
    consumer = consumer_of()
    assert poll_rows(consumer, 5) == [(0, offset) for offset in range(15, 20)]
    assert not any("reading goes on at" in text for text in caplog.messages)


@pytest.mark.slow
def test_words_of_old_leaders_do_not_add_up(filled, group, consumer_of, caplog):
    """Each is contradicted by the real leader: the third one is no more than the first."""
    group.committed |= {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    consumer = consumer_of()
    poll_until(consumer, lambda: filled.asked("Fetch"), "a fetch")
    for offset in range(20, 24):
        out_of_range = (Answered(partition_index=part, error_code=1) for part in range(2))
        filled.on("Fetch", answered(*out_of_range), DEFAULT)
        asked = len(filled.asked("Fetch"))
        poll_until(consumer, lambda at=asked: len(filled.asked("Fetch")) > at + 2, "an answer")
        filled.logs["orders", 0].append(b"later")
        assert poll_rows(consumer, 1) == [(0, offset)]
    assert not any("reading goes on at" in text for text in caplog.messages)


def truncate(brokers):
    """A new leader of the first partition has offsets up to 10 only, and writes 20 records."""
    log = brokers.logs["orders", 0]
    log.cut_off(10)
    brokers.topics["orders"].epochs[0] = log.epoch
    log.fill(2)


def make_again(brokers):
    """`orders` is deleted and made again, with 30 records in its first partition."""
    brokers.make_again("orders", 2)
    brokers.logs["orders", 0].fill(3)


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_what_is_written_after_a_truncation_is_read(filled, group, first_read, reset):
    consumer = first_read(auto_offset_reset=reset)
    truncate(filled)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]
    consumer.close()
    assert group.committed["orders", 0] == (30, "")


@pytest.mark.slow
@pytest.mark.parametrize("times_before", [0, 1, 3])
def test_a_truncation_is_noticed_behind_the_word_of_an_old_leader(filled, first_read, times_before):
    """It has no such offset, and another leader has: that one is still to compare the epoch."""
    consumer = first_read()

    def out_of_range(call):
        (topic,) = call.request.topics  # which may be of one partition alone
        asked = (
            Answered(partition_index=part.partition, error_code=1) for part in topic.partitions
        )
        return answered(*asked)(call)

    for _ in range(times_before):  # where a leader has had it since
        asked = len(filled.asked("Fetch"))
        filled.on("Fetch", out_of_range, DEFAULT)
        poll_until(consumer, lambda asked=asked: len(filled.asked("Fetch")) > asked + 3, "answers")
    with filled.at_once():  # else the leader itself may be asked between the two
        truncate(filled)
        filled.on("Fetch", out_of_range, DEFAULT)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_a_truncation_moves_the_position_back_before_anything_is_read(filled, first_read):
    consumer = first_read()
    truncate(filled)
    filled.logs["orders", 0].batches = filled.logs["orders", 0].batches[:1]
    poll_until(consumer, lambda: consumer.positions[FIRST] == 10, "the position")


@pytest.mark.slow
def test_an_interrupt_of_the_poll_that_notices_a_truncation_undoes_nothing_of_that(
    filled, first_read, monkeypatch
):
    consumer = first_read()
    next_batch = reading.Reading.next_batch

    def interrupted(self, deadline):
        if next_batch(self, deadline) is not None:
            raise KeyboardInterrupt

    with filled.at_once():
        truncate(filled)
        monkeypatch.setattr(reading.Reading, "next_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(PATIENCE_S)
    monkeypatch.undo()
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_without_a_policy_a_truncation_is_an_error_at_every_poll(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    truncate(filled)
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"orders-0: .*20 are gone.*offset 10 only.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert FIRST not in consumer.positions


@pytest.mark.slow
@pytest.mark.parametrize(("reset", "offsets"), [("earliest", range(31)), ("latest", [30])])
def test_a_topic_made_again_is_read_from_where_the_policy_says(
    filled, group, first_read, reset, offsets
):
    consumer = first_read(auto_offset_reset=reset)
    make_again(filled)
    rows = poll_until(consumer, lambda: consumer.positions == {FIRST: 30, SECOND: 0}, "the end")
    filled.logs["orders", 0].append(b"later")
    rows += poll_rows(consumer, 1)
    assert rows == [(0, offset) for offset in offsets]
    consumer.close()
    assert group.committed == {("orders", 0): (31, ""), ("orders", 1): (0, "")}


@pytest.mark.slow
def test_an_offset_that_was_committed_in_the_topic_before_is_committed_in_the_new_one(
    filled, group, first_read
):
    """What a group has committed goes with a topic that is deleted."""
    consumer = first_read(auto_commit_interval_ms=0)
    poll_until(consumer, lambda: group.committed["orders", 0] == (20, ""), "a commit")
    consumer.poll(0.1)
    with filled.at_once():
        make_again(filled)
        filled.logs["orders", 0] = FakeLog().fill(2)
        group.committed.clear()
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
    consumer.close()
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.slow
def test_what_is_paused_of_a_topic_made_again_is_read_from_where_the_policy_says(
    filled, group, first_read
):
    """Its other partition shows that: the new topic's id is not for a position in the old one."""
    consumer = first_read(enable_auto_commit="false")
    group.committed.clear()  # as brokers forget what was committed in a topic that is deleted
    consumer.pause({FIRST})
    make_again(filled)
    poll_until(consumer, lambda: consumer.positions.get(SECOND) == 0, "the new topic")
    consumer.commit()
    assert group.committed == {("orders", 1): (0, "")}
    consumer.resume({FIRST})
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 30)], "it is reset once"


@pytest.mark.slow
def test_what_is_sought_while_it_is_paused_is_not_reset_for_a_topic_made_again(filled, first_read):
    consumer = first_read(auto_offset_reset="latest")
    consumer.pause({FIRST})
    make_again(filled)
    poll_until(consumer, lambda: consumer.positions.get(SECOND) == 0, "the new topic")
    consumer.seek(FIRST, 25)
    consumer.resume({FIRST})
    assert poll_rows(consumer, 5) == [(0, offset) for offset in range(25, 30)]
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 30)]


@pytest.mark.slow
@pytest.mark.parametrize("is_made_again", [False, True])
@pytest.mark.parametrize("epoch_before", [0, 7])
def test_a_broker_that_names_a_deleted_topic_moves_no_position(
    filled, first_read, is_made_again, epoch_before
):
    consumer, read_to = first_read(), 20
    if is_made_again:
        make_again(filled)
        read_to = 30
        poll_until(consumer, lambda: consumer.positions[FIRST] == read_to, "the end")
    topic, asked = filled.topics["orders"], len(filled.asked("Metadata"))
    before = replace(topic, topic_id=topic_id_of("orders before"), epochs=[epoch_before] * 2)

    def behind(call):
        filled.topics["orders"] = before
        try:
            return metadata(filled, call)
        finally:
            filled.topics["orders"] = topic

    filled.on("Metadata", behind, behind, DEFAULT)
    filled.on(
        "Fetch",
        answered(*(Answered(partition_index=part, error_code=6) for part in range(2))),
        DEFAULT,
    )
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > asked, "metadata")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, read_to)]
    filled.logs["orders", 0].append(b"later still")
    assert poll_rows(consumer, 1) == [(0, read_to + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_who_begins_by_the_word_of_a_broker_that_is_behind_begins_where_the_group_is(
    filled, group, consumer_of, reset
):
    """It names a deleted topic, which no leader knows: what was committed is of the new one."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    before = replace(filled.topics["orders"], topic_id=topic_id_of("orders before"))
    behind_now = behind(filled, "orders", before)
    filled.on("Metadata", lambda call: DEFAULT if filled.asked("Fetch") else behind_now(call))
    consumer = consumer_of(auto_offset_reset=reset)
    assert poll_rows(consumer, 5) == [(0, offset) for offset in range(15, 20)]


@pytest.mark.slow
def test_an_offset_of_a_topic_that_is_made_again_before_anything_was_read_is_none_of_the_new_one(
    filled, group, consumer_of
):
    """What a group has committed goes with a topic that is deleted."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    filled.on("Fetch", refused(NOT_LEADER))
    consumer = consumer_of()
    poll_until(consumer, lambda: filled.asked("Fetch"), "a Fetch")
    with filled.at_once():
        make_again(filled)
        group.committed.clear()
    filled.on("Fetch", DEFAULT)
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


@pytest.mark.slow
def test_what_is_paused_from_the_start_is_read_from_the_begin_of_a_topic_made_again(
    filled, group, consumer_of
):
    """Nothing was asked of it yet, but its topic was known."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (10, "")}
    pause = {"on_assign": lambda own: consumer.pause([FIRST])}
    consumer = consumer_of(listeners=pause, enable_auto_commit="false")
    assert poll_rows(consumer, 10) == [(1, offset) for offset in range(10, 20)]
    with filled.at_once():
        make_again(filled)
        group.committed.clear()
    poll_until(consumer, lambda: consumer.positions.get(SECOND) == 0, "the new topic")
    assert consumer.positions.get(FIRST) in (None, 0)
    consumer.resume([FIRST])
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_what_is_sought_is_sought_in_the_topic_that_there_is(filled, group, consumer_of, reset):
    """The same of an offset that is kept elsewhere."""
    before = replace(filled.topics["orders"], topic_id=topic_id_of("orders before"))
    behind_now = behind(filled, "orders", before)
    filled.on("Metadata", lambda call: DEFAULT if filled.asked("Fetch") else behind_now(call))

    def begin(partitions):
        for partition in partitions:
            consumer.seek(partition, 15)

    listeners = {"on_assign": begin}
    consumer = consumer_of(listeners=listeners, auto_offset_reset=reset)
    assert sorted(poll_rows(consumer, 10)) == [(p, n) for p in range(2) for n in range(15, 20)]


@pytest.mark.slow
def test_without_a_policy_a_topic_made_again_is_an_error_at_every_poll(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    make_again(filled)
    for _ in range(3):
        with pytest.raises(BrokerError, match=r"orders-[01]: .*made again.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert consumer.positions == {}


@pytest.mark.slow
def test_without_a_policy_each_partition_of_a_topic_made_again_is_to_be_sought(
    filled, group, first_read
):
    consumer = first_read(auto_offset_reset="none")
    make_again(filled)
    filled.logs["orders", 1].fill(3)
    for _ in range(2):
        with pytest.raises(BrokerError, match="made again"):
            poll_until(consumer, lambda: False, "the error")
    consumer.seek(FIRST, 0)
    rows, told = [], []
    for _ in range(30):
        try:
            rows += rows_of(consumer.poll(0.05))
        except BrokerError as error:
            told.append(str(error))
    assert len(told) > 2
    assert all("orders-1: " in text and "made again" in text for text in told)
    assert rows == [(0, offset) for offset in range(30)]
    consumer.commit()
    assert group.committed == {("orders", 0): (30, ""), ("orders", 1): (20, "")}
    consumer.seek(SECOND, 0)
    assert poll_rows(consumer, 30) == [(1, offset) for offset in range(30)]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "left"), [(truncate, {SECOND}), (make_again, set())])
def test_positions_that_are_an_error_are_not_committed(filled, group, first_read, change, left):
    consumer = first_read(auto_offset_reset="none")
    change(filled)
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    group.committed.clear()
    consumer.close()
    assert {TopicPartition(*item) for item in group.committed} == left


@pytest.mark.slow
def test_positions_that_are_an_error_are_not_told(filled, group, first_read):
    """Whoever commits what is told (a producer's transaction does) is not to pass over records."""
    consumer = first_read(auto_offset_reset="none", enable_auto_commit="false")
    truncate(filled)
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    consumer.commit(consumer.positions)
    assert group.committed == {("orders", 0): (0, ""), ("orders", 1): (20, "")}


@pytest.mark.slow
def test_a_position_that_is_there_after_all_is_committed(filled, group, first_read):
    consumer = first_read(auto_offset_reset="none")
    log = filled.logs["orders", 0]
    log.start = 21
    with pytest.raises(BrokerError, match="is none"):
        poll_until(consumer, lambda: False, "the error")
    log.start = 0
    log.append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    consumer.close()
    assert group.committed["orders", 0] == (21, "")


@pytest.mark.slow
def test_a_topic_made_again_is_noticed_after_an_error_of_the_one_before(filled, group, first_read):
    consumer = first_read()
    log = filled.logs["orders", 0].fill(1)
    whole = log.batches[-1]
    log.batches[-1] = whole._replace(data=whole.data[:-1] + bytes([whole.data[-1] ^ 1]))
    with pytest.raises(CorruptRecords, match="orders-0"):
        poll_until(consumer, lambda: False, "the error")
    make_again(filled)
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


def is_rebalancing(brokers):
    """Return once a member knows that its group shares out anew; it has not polled since."""
    beats(brokers, REBALANCE_IN_PROGRESS)
    brokers.wait_for_call("Heartbeat", len(brokers.asked("Heartbeat")) + 3)


@pytest.mark.slow
def test_a_topic_made_again_is_noticed_after_a_rebalance(filled, group, first_read):
    consumer = first_read()
    make_again(filled)
    is_rebalancing(filled)
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]


@pytest.mark.slow
def test_a_truncation_is_noticed_after_a_rebalance(filled, group, first_read):
    consumer = first_read()
    truncate(filled)
    is_rebalancing(filled)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_truncation_is_noticed_by_whoever_goes_on(filled, group, first_read, reset, consumer_of):
    """The leader epoch is committed with the offset (KIP-320)."""
    first_read().close()
    assert group.epochs["orders", 0] == (20, filled.logs["orders", 0].epoch)
    truncate(filled)
    rows = poll_rows(consumer_of(auto_offset_reset=reset), 20)
    assert rows == [(0, offset) for offset in range(10, 30)]


@pytest.mark.slow
def test_a_truncation_is_an_error_to_whoever_goes_on_without_a_policy(
    filled, group, first_read, consumer_of
):
    first_read().close()
    truncate(filled)
    consumer = consumer_of(auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(BrokerError, match=r"orders-0: .*20 are gone.*offset 10 only.*is none"):
            poll_until(consumer, lambda: False, "the error")
    assert FIRST not in consumer.positions
    consumer.close()
    assert group.committed["orders", 0] == (20, "")


@pytest.mark.slow
@pytest.mark.parametrize(("change", "first_offset"), [(truncate, 10), (make_again, 0)])
def test_the_epoch_of_records_that_are_gone_is_not_committed_with_others(
    filled, group, first_read, consumer_of, monkeypatch, change, first_offset
):
    """What is read anew comes by the same offset, in the middle of what a leader answers."""
    consumer = first_read(enable_auto_commit="false")
    monkeypatch.setattr(arrow, "TOPIC_BYTES", 10 * len("orders"))
    monkeypatch.setattr(arrow._topics, "_kept", None)
    change(filled)
    read = range(first_offset, 20)
    assert poll_rows(consumer, len(read)) == [(0, offset) for offset in read]
    consumer.commit()
    assert group.epochs["orders", 0] == (20, -1)
    consumer.close()
    assert poll_rows(consumer_of(), 10) == [(0, offset) for offset in range(20, 30)]


def test_positions_are_told_with_their_leader_epochs_where_these_are_known(filled, first_read):
    consumer = first_read()
    assert consumer.committable == {
        FIRST: CommittedOffset(20, leader_epoch=0),
        SECOND: CommittedOffset(20),
    }


@pytest.mark.slow
def test_an_offset_committed_without_its_epoch_is_believed(filled, first_read, consumer_of):
    consumer = first_read(enable_auto_commit="false")
    consumer.commit({FIRST: 20})
    consumer.close()
    truncate(filled)
    assert poll_rows(consumer_of(), 10) == [(0, offset) for offset in range(20, 30)]


@pytest.mark.slow
def test_an_epoch_that_the_leader_does_not_know_is_forgotten(filled, first_read, consumer_of):
    """As of an offset that was committed before the topic was made again."""
    consumer = first_read(enable_auto_commit="false")
    consumer.commit({FIRST: CommittedOffset(15, leader_epoch=77)})
    consumer.close()
    assert poll_rows(consumer_of(), 5) == [(0, offset) for offset in range(15, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("waits", [True, False])
def test_an_offset_that_is_reached_again_is_committed_with_its_new_epoch(
    filled, group, first_read, waits
):
    consumer = first_read(enable_auto_commit="false")
    consumer.commit(wait=waits)
    truncate(filled)
    filled.logs["orders", 0].cut_off(10)
    filled.logs["orders", 0].fill(1)
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10, 20)]
    consumer.commit()
    assert group.epochs["orders", 0] == (20, filled.logs["orders", 0].epoch)


@pytest.mark.slow
def test_an_offset_that_was_given_is_not_committed_again(filled, group, first_read):
    consumer = first_read()
    consumer.commit({FIRST: CommittedOffset(20, "by me")})
    consumer.close()
    assert group.committed["orders", 0] == (20, "by me")


@pytest.mark.slow
def test_a_later_epoch_that_another_member_has_committed_is_believed(filled, group, first_read):
    """It was told that the log was cut off, and has read what came in the place of that."""
    consumer = first_read(enable_auto_commit="false")
    truncate(filled)
    group.committed["orders", 0], group.epochs["orders", 0] = (20, ""), (20, 1)
    is_rebalancing(filled)
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(20, 30)]


@pytest.mark.slow
def test_an_offset_that_another_member_has_committed_is_believed(filled, group, first_read):
    """It may have seen already that the topic was made again."""
    consumer = first_read()
    make_again(filled)
    filled.logs["orders", 1].fill(1)

    def join(call):
        group.committed["orders", 1] = (5, "")
        return group.join(call)

    filled.on("JoinGroup", join)
    is_rebalancing(filled)
    rows = poll_rows(consumer, 35)
    assert sorted(rows) == [(0, offset) for offset in range(30)] + [(1, at) for at in range(5, 10)]


@pytest.mark.slow
def test_what_is_tried_again_is_not_committed_by_name_to_the_successor_of_its_topic(
    filled, group, first_read
):
    """Brokers before 4.1 take names alone: the first try meets no topic, the second the new one."""
    filled.versions["OffsetCommit"] = (2, 9)
    consumer = first_read(enable_auto_commit="false")
    group.committed.clear()  # as brokers forget what was committed in a topic that is deleted

    def meets_none(call):
        make_again(filled)
        return committing(3)(call)

    filled.on("OffsetCommit", meets_none, group.commit)
    with pytest.raises(BrokerError, match=r"UNKNOWN_TOPIC_ID.*one made since under its name"):
        consumer.commit()
    assert not group.committed


@pytest.mark.slow
def test_what_a_leader_does_not_know_is_not_committed_by_name_to_the_successor_of_its_topic(
    filled, group, first_read
):
    """As by who closes while the topic is not there, or before it is looked up again."""
    filled.versions["OffsetCommit"] = (2, 9)
    consumer = first_read(enable_auto_commit="false")
    group.committed.clear()
    gone = filled.topics.pop("orders")
    poll_until(consumer, lambda: consumer._reading.seen.refused_ids, "the refusal")
    filled.topics["orders"] = gone
    make_again(filled)
    with pytest.raises(BrokerError, match=r"UNKNOWN_TOPIC_ID.*one made since under its name"):
        consumer.commit()
    assert not group.committed


@pytest.mark.slow
def test_who_closes_commits_nothing_by_name_to_the_successor_of_a_topic(filled, group, first_read):
    """Even where nobody has polled since, so that no leader could say that the topic is gone."""
    filled.versions["OffsetCommit"] = (2, 9)
    consumer = first_read(auto_commit_interval_ms=60_000)
    with filled.at_once():
        make_again(filled)
        group.committed.clear()
    consumer.close()
    assert not group.committed


@pytest.mark.slow
def test_offsets_of_a_topic_that_was_deleted_are_not_committed_to_its_successor(
    filled, group, first_read
):
    """A commit that is tried again may come when another topic has the name."""
    consumer = first_read(enable_auto_commit="false")
    let_go = held_up(filled, group.commit)
    consumer.commit({FIRST: 20}, wait=False)
    filled.wait_for_call("OffsetCommit")
    make_again(filled)
    ids = {"orders": filled.topics["orders"].topic_id}
    until_then = Deadline.after(PATIENCE_S)
    new = consumer._membership.commit({FIRST: CommittedOffset(3)}, ids, until_then)
    let_go.set()
    consumer._membership.wait_for(new, until_then)
    (old,) = consumer._commits._unwaited
    assert "UNKNOWN_TOPIC_ID" in str(old.error)
    assert new.error is None
    assert group.committed["orders", 0] == (3, "")
