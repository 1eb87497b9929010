"""Members of the protocol of KIP-848, at a fake coordinator with Kafka's rules."""

from __future__ import annotations

import logging
import time

import pytest

from pyspark_kafkaproto.client import consumer as consumer_module
from pyspark_kafkaproto.client.group.incremental import assigned as assigned_module
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import Deadline
from tests.examples import first
from tests.fake_broker import DEFAULT, close, metadata, topic_id_of
from tests.fake_log import FakeLog
from tests.unit.client.group import fake_heartbeats
from tests.unit.client.group.fake_heartbeats import FakeMember, beat_refused
from tests.unit.client.group.happenings import Happenings
from tests.unit.client.group.noted import Noted
from tests.unit.client.group.polling import (
    PATIENCE_S,
    poll_rows,
    poll_together,
    poll_until,
    rows_of,
    rows_until_idle,
)
from tests.unit.cluster.committing import FakeCoordinator, unstable

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
ORDERS = topic_id_of("orders")

NOT_COORDINATOR, GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_ASSIGNOR = 16, 30, 112
UNSUPPORTED_VERSION = 35


def come(brokers, heartbeats, topic):
    """A topic is made, with ten records, and the coordinator hears of it."""
    brokers.add_topic(topic)
    brokers.logs[topic, 0].fill(1)
    heartbeats.share_out()


@pytest.mark.slow
def test_a_member_joins_reads_commits_and_leaves(filled, heartbeats, incremental_of):
    heartbeats.committed["orders", 1] = (15, "")
    consumer = incremental_of()
    rows = poll_rows(consumer, 25)
    assert sorted(rows) == [(0, n) for n in range(20)] + [(1, n) for n in range(15, 20)]
    assert consumer.assignment == BOTH
    member = consumer.group_member
    assert (member.member_id, member.generation) == (consumer.member_id, 1)
    consumer.close()
    assert heartbeats.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    assert not heartbeats.members
    pairs = frozenset({(ORDERS, 0), (ORDERS, 1)})
    known = member.member_id
    assert heartbeats.heard[:2] == [(known, 0, frozenset()), (known, 1, pairs)]
    assert {owned for _, _, owned in heartbeats.heard[2:]} <= {None}, "said once"
    assert heartbeats.heard[-1] == (known, -1, None)
    assert not filled.asked("JoinGroup")


@pytest.mark.slow
def test_a_member_says_once_where_it_is(filled, heartbeats, incremental_of):
    """For assignors of the brokers that look at racks."""
    poll_rows(incremental_of(client_rack="r-1"), 40)
    assert [item.rack_id for item in filled.asked("ConsumerGroupHeartbeat")][:2] == ["r-1", None]


@pytest.mark.slow
def test_what_goes_to_another_member_is_given_up_and_nothing_else(
    filled, heartbeats, incremental_of, noted
):
    ours = incremental_of(listeners=noted.listeners())
    rows = poll_rows(ours, 40)
    others = Noted()
    other = incremental_of(listeners=others.listeners())
    poll_together([ours, other], rows, lambda: other.assignment, "the other's assignment")
    (kept,), (moved,) = ours.assignment, other.assignment
    assert {kept, moved} == BOTH
    assert noted == [("assigned", BOTH), ("revoked", {moved})]
    assert [item for item in others if item[1]] == [("assigned", {moved})]
    # Only what was committed before is known to the other.
    assert heartbeats.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    for partition in range(2):
        filled.logs["orders", partition].append(b"later")
    poll_together([ours, other], rows, lambda: len(rows) == 42, "new rows")
    assert len(rows) == len(set(rows)) == 42
    other.close()
    poll_until(ours, lambda: ours.assignment == BOTH, "all of it")
    assert noted[2:] == [("assigned", {moved})]


@pytest.mark.slow
def test_rows_that_were_fetched_of_what_stays_are_not_lost(filled, heartbeats, incremental_of):
    """Those of one Fetch come in several batches, and a rebalance between them."""
    ours = incremental_of()
    rows = []
    while not rows:
        rows += rows_of(ours.poll(0.05))
    assert len(rows) < 40
    other = incremental_of()
    poll_together([ours, other], rows, lambda: len(rows) >= 40, "the rest")
    assert sorted(rows) == [(partition, n) for partition in range(2) for n in range(20)]


@pytest.mark.slow
def test_what_is_polled_as_some_is_given_up_was_read(filled, heartbeats, incremental_of, noted):
    drained = []

    def drain(own):
        noted.append(("revoked", own))
        if len(noted) < 10:  # or each of its polls told it once more
            drained.extend(rows_until_idle(ours))

    ours = incremental_of(listeners={"on_revoke": drain}, max_poll_records=5)
    rows = rows_of(ours.poll(PATIENCE_S))
    other = incremental_of()

    def is_read():
        return other.assignment and len(rows + drained) >= 40

    poll_together([ours, other], rows, is_read, "all of it")
    assert len(noted) == 1
    assert drained
    assert sorted(rows + drained) == [(partition, n) for partition in range(2) for n in range(20)]
    assert not rows_until_idle(other), "it was committed"


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3])
def test_who_hears_no_answer_says_everything_again(
    filled, heartbeats, incremental_of, noted, times
):
    """Among them the one that told of a new epoch, and of what is to be read in it."""
    consumer = incremental_of(listeners=noted.listeners())
    poll_rows(consumer, 40)

    def unheard(call):
        heartbeats.beat(call)
        return close()

    with filled.at_once():
        heartbeats.share_out()
        filled.on("ConsumerGroupHeartbeat", *[unheard] * times, heartbeats.beat)
    poll_until(consumer, lambda: consumer.group_member.generation == 2, "the epoch")
    assert noted == [("assigned", BOTH)], "it is the same member, and reads on"
    pairs = frozenset({(ORDERS, 0), (ORDERS, 1)})
    assert (consumer.member_id, 1, pairs) in heartbeats.heard[-5 - times :]


@pytest.mark.slow
def test_a_coordinator_that_moves_is_followed(filled, heartbeats, incremental_of, noted):
    consumer = incremental_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.coordinators["g"] = 2
        filled.on("ConsumerGroupHeartbeat", beat_refused(NOT_COORDINATOR), node=1)
        heard = len(heartbeats.heard)
    poll_until(consumer, lambda: len(heartbeats.heard) > heard + 1, "heartbeats at node 2")
    consumer.commit({FIRST: 7})
    assert filled.asked("OffsetCommit", 2)
    assert noted == [("assigned", BOTH)]


@pytest.mark.slow
def test_who_is_given_up_loses_all_and_joins_again(filled, heartbeats, incremental_of, noted):
    consumer = incremental_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    before = consumer.group_member
    with filled.at_once():
        heartbeats.fence(before.member_id)
    rows = poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
    assert len(rows + poll_rows(consumer, 40 - len(rows))) == 40  # they are read again
    assert consumer.member_id == before.member_id, "no ghost of it is left in the group"
    assert consumer.group_member.generation > before.generation


def test_a_commit_of_who_was_given_up_is_refused(filled, heartbeats, incremental_of, noted):
    consumer = incremental_of(listeners=noted.listeners(), enable_auto_commit="false")
    poll_rows(consumer, 40)
    with filled.at_once():
        heartbeats.fence(consumer.member_id)
    deadline = Deadline.after(PATIENCE_S)
    while consumer.member_id:  # the thread that beats has heard of it, and nobody polls
        deadline.check("the loss of the membership")
        time.sleep(0.01)
    with pytest.raises(BrokerError, match="others read them now"):
        consumer.commit()
    assert not heartbeats.committed


@pytest.mark.slow
def test_a_commit_of_an_epoch_that_has_ended_goes_in_the_next(filled, heartbeats, incremental_of):
    """The coordinator began it without our knowing: the answer with it was lost."""
    consumer = incremental_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    (member,) = heartbeats.members.values()
    refused = 0

    def late(call):
        nonlocal refused
        if not refused:
            refused += 1
            heartbeats.share_out()
            member.epoch_before, member.epoch = member.epoch, heartbeats.epoch
        return heartbeats.commit(call)

    filled.on("OffsetCommit", late)
    consumer.commit()
    assert heartbeats.committed == {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    assert consumer.group_member.generation == 2
    assert [item.generation_id_or_member_epoch for item in filled.asked("OffsetCommit")] == [1, 2]


@pytest.mark.slow
def test_a_static_member_finds_its_partitions_again(filled, heartbeats, incremental_of, noted):
    consumer = incremental_of(group_instance_id="till-1", listeners=noted.listeners())
    poll_rows(consumer, 40)
    consumer.close()
    assert heartbeats.heard[-1][1] == -2
    epoch = heartbeats.epoch
    again = incremental_of(group_instance_id="till-1")
    poll_until(again, lambda: again.assignment == BOTH, "its partitions")
    assert heartbeats.epoch == epoch, "nobody else is disturbed"
    with pytest.raises(BrokerError, match=r"UNRELEASED_INSTANCE_ID.*group\.instance\.id is alive"):
        incremental_of(group_instance_id="till-1").poll(PATIENCE_S)


@pytest.mark.slow
def test_a_pattern_reads_what_matches_and_what_comes(filled, heartbeats, incremental_of):
    consumer = incremental_of(SubscriptionPattern("ord.*"))
    assert len(poll_rows(consumer, 40)) == 40
    with filled.at_once():
        come(filled, heartbeats, "ordinal")
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10)]
    assert consumer.assignment == {FIRST, SECOND, TopicPartition("ordinal", 0)}


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once", "known_at_once")
def test_topics_that_come_and_go_leave_little_behind(
    filled, heartbeats, incremental_of, monkeypatch
):
    """A member by a pattern may live for months, and read another topic each minute."""
    monkeypatch.setattr(consumer_module, "_MOST_LEFT", 1)
    monkeypatch.setattr(assigned_module, "_MOST_NAMES", 1)
    ours = incremental_of(SubscriptionPattern("ord.*"))
    poll_rows(ours, 40)
    ids = [filled.topics["orders"].topic_id]
    for number in range(4):
        with filled.at_once():
            come(filled, heartbeats, name := f"order-{number}")
        poll_rows(ours, 10)
        ours.commit()
        ids.append(filled.topics[name].topic_id)
        ours._reading.seen.refused_ids.add(ids[-1])  # as a leader does that has deleted it
        with filled.at_once():
            filled.topics.pop(name)
            heartbeats.share_out()
        poll_until(ours, lambda: ours.assignment == BOTH, "its end")
    seen, commits, assigned = ours._reading.seen, ours._commits, ours._keeper._assigned
    left = {TopicPartition(f"order-{number}", 0) for number in (2, 3)}
    assert ours._left_at.keys() == left | BOTH
    assert seen.topic_ids.keys() == {"orders", "order-2", "order-3"}
    assert seen.refused_ids == {*ids[-2:]}
    assert seen.epochs.keys() <= left | BOTH
    assert commits._known_ids.keys() == {"orders"}
    assert len(assigned._names) <= 1 + len(BOTH)
    assert assigned._ids.keys() == BOTH


@pytest.mark.slow
def test_topics_are_read_once_somebody_knows_their_names(filled, heartbeats, incremental_of):
    def unknown(call):
        answer = metadata(filled, call)
        if all(item.name is not None for item in call.request.topics or ()):
            return answer
        nobody = MetadataResponse.Topic(name=None, topic_id=ORDERS, error_code=100)
        return MetadataResponse(brokers=answer.brokers, topics=(nobody,), controller_id=1)

    filled.on("Metadata", unknown)
    consumer = incremental_of(SubscriptionPattern("orders"))
    by_id = lambda: [  # noqa: E731 - read twice
        item for item in filled.asked("Metadata") if item.topics and item.topics[0].name is None
    ]
    poll_until(consumer, lambda: len(by_id()) == 3, "questions")
    assert not consumer.assignment
    filled.on("Metadata", DEFAULT)
    assert len(poll_rows(consumer, 40)) == 40


@pytest.mark.slow
def test_a_subscribed_topic_that_is_not_there_is_said_and_read_once_it_is(
    filled, heartbeats, incremental_of, caplog
):
    consumer = incremental_of(("orders", "ordres"))
    poll_rows(consumer, 40)
    assert "topic 'ordres' is not there (yet), or not for us" in caplog.text
    with filled.at_once():
        come(filled, heartbeats, "ordres")
    assert poll_rows(consumer, 10) == [(0, offset) for offset in range(10)]


@pytest.mark.slow
def test_a_topic_made_again_is_said_to_be_read_by_its_new_id(filled, heartbeats, incremental_of):
    """By the one before the coordinator would wait until it has been given up, and fence us."""
    consumer = incremental_of()
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.topics["orders"].topic_id = b"n" * 16
        for partition in range(2):
            filled.logs["orders", partition] = FakeLog()
            filled.logs["orders", partition].append(b"new")
        heartbeats.share_out()
    (member,) = heartbeats.members.values()
    new = {(b"n" * 16, 0), (b"n" * 16, 1)}
    rows = poll_until(
        consumer, lambda: member.assigned == new and not member.revoking, "the new id"
    )
    rows += poll_rows(consumer, 2 - len(rows))
    assert sorted(rows) == [(0, 0), (1, 0)]


@pytest.mark.usefixtures("opinions_at_once", "known_at_once")
def test_a_topic_made_again_with_less_is_no_error_until_a_heartbeat_says_so(
    filled, heartbeats, incremental_of, monkeypatch, caplog
):
    monkeypatch.setattr(fake_heartbeats, "BEAT_MS", 500)
    caplog.set_level(logging.INFO)
    consumer = incremental_of()
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.make_again("orders")
        filled.logs["orders", 0].append(b"new")
    poll_until(consumer, lambda: "no rows for a moment" in caplog.text, "what is gone")
    with filled.at_once():
        heartbeats.share_out()
    assert poll_rows(consumer, 1) == [(0, 0)]
    assert consumer.assignment == {TopicPartition("orders", 0)}


@pytest.mark.slow
def test_a_reader_that_does_not_poll_leaves_and_comes_back(
    filled, heartbeats, incremental_of, noted
):
    consumer = incremental_of(max_poll_interval_ms=200, listeners=noted.listeners())
    poll_rows(consumer, 40)
    deadline = Deadline.after(PATIENCE_S)
    while heartbeats.members:
        deadline.check("its leaving")
        time.sleep(0.01)
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
    assert not filled.asked("OffsetCommit")


@pytest.mark.slow
def test_a_long_poll_holds_no_other_member_up(
    filled, heartbeats, incremental_of, noted, monkeypatch
):
    monkeypatch.setattr("pyspark_kafkaproto.client.consumer._LOOK_S", 0.02)
    ours = incremental_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    other = incremental_of()
    began = time.monotonic()
    assert ours.poll(0.5) is None
    assert noted.has("revoked")()
    while not other.assignment:
        assert time.monotonic() - began < PATIENCE_S
        other.poll(0.05)


@pytest.mark.slow
def test_a_transaction_that_holds_offsets_keeps_nothing_from_being_given_up_or_read(
    filled, heartbeats, incremental_of, noted
):
    """Of partitions that come, while others stay and go."""
    ours = incremental_of(listeners=noted.listeners())
    poll_rows(ours, 40)
    other = incremental_of()
    poll_together([ours, other], [], lambda: other.assignment, "the other's assignment")
    (kept,), (moved,) = ours.assignment, other.assignment
    answer = filled.asked("OffsetFetch")
    filled.on("OffsetFetch", unstable)
    other.close()
    poll_until(ours, lambda: len(filled.asked("OffsetFetch")) > len(answer) + 1, "questions")
    assert ours.assignment == {kept}
    filled.logs["orders", kept.partition].append(b"later")
    assert poll_rows(ours, 1) == [(kept.partition, 20)]
    FakeCoordinator(filled, g=heartbeats.committed)
    filled.on("OffsetCommit", heartbeats.commit)
    filled.logs["orders", moved.partition].append(b"later")
    assert poll_rows(ours, 1) == [(moved.partition, 20)]


def test_what_is_taken_away_before_it_was_begun_is_said_to_be_given_up(
    filled, heartbeats, incremental_of
):
    """Else the coordinator waits for that, and nobody reads it."""
    filled.on("OffsetFetch", unstable)
    ours = incremental_of()
    poll_until(ours, lambda: len(filled.asked("OffsetFetch")) > 1, "questions")
    (known,) = heartbeats.members.values()
    with filled.at_once():
        heartbeats.members["~"] = FakeMember(topics=("orders",))
        heartbeats.share_out()
    poll_until(ours, lambda: known.epoch == heartbeats.epoch, "our word")
    assert len(known.has) == 1
    assert not ours.assignment


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED"),
        (UNSUPPORTED_ASSIGNOR, r"only uniform; group\.remote\.assignor is to be one of"),
        (UNSUPPORTED_VERSION, r"needs Kafka 4\.0.* group\.version to be 1 .* set it to classic"),
    ],
)
def test_a_refusal_for_good_is_raised_with_what_to_do(brokers, incremental_of, code, text):
    brokers.versions["ConsumerGroupHeartbeat"] = (0, 1)
    brokers.on("ConsumerGroupHeartbeat", beat_refused(code, "there is only uniform"))
    with pytest.raises(BrokerError, match=text):
        incremental_of(group_remote_assignor="sticky").poll(PATIENCE_S)


@pytest.mark.parametrize(
    ("versions", "topics"),
    [
        ({}, ("orders",)),
        ({}, SubscriptionPattern("o.*")),
        ({"ConsumerGroupHeartbeat": (0, 0)}, SubscriptionPattern("o.*")),
    ],
)
def test_brokers_that_are_too_old_are_said_to_be(brokers, incremental_of, versions, topics):
    brokers.versions |= versions
    with pytest.raises(KafkaProtoError, match=r"needs brokers of Kafka 4\.0: set it to classic"):
        incremental_of(topics).poll(PATIENCE_S)


@pytest.mark.parametrize(
    ("topics", "protocol", "text"),
    [
        (SubscriptionPattern(""), "consumer", "is all topics"),
        ((), "consumer", "at least one"),
    ],
)
def test_what_cannot_be_subscribed_to_is_named(consumer_of, topics, protocol, text):
    with pytest.raises(ConfigError, match=text):
        consumer_of(topics, group_protocol=protocol)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(12)))
def test_each_row_is_read_once_by_one_of_many_that_come_and_go(
    filled, heartbeats, incremental_of, seed
):
    """Whatever answers are lost: all say how far they came before they give anything up."""
    beats = {"ConsumerGroupHeartbeat": heartbeats.beat}
    Happenings(seed, filled, incremental_of, beats).check_each_row_once(80)
