"""Members of the protocol of KIP-848 when things go wrong between their two threads and the broker.

Whatever is lost or late: nobody reads or commits what others may have by then, nobody is left in
the group as a ghost, and who was given up comes back.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

from pyspark_kafkaproto.client import consumer as reader
from pyspark_kafkaproto.client.group.incremental import coordinator
from pyspark_kafkaproto.client.group.membership import Membership
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from tests.fake_broker import STALL, close, metadata, topic_id_of
from tests.fake_log import FakeLog
from tests.unit.client.group.fake_heartbeats import FakeMember, beat_refused
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until
from tests.unit.cluster.committing import FakeCoordinator, committing, fetch_refused, unstable
from tests.waiting import until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})

NOT_COORDINATOR = 16
COORDINATOR_LOAD_IN_PROGRESS, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND = 14, 25, 69
FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH = 110, 113
NOBODY = -1


def take_away(filled, heartbeats, partition):
    """Have another member want what is in `partition`, that nobody plays; its id."""
    with filled.at_once():
        (ours,) = heartbeats.members.values()
        heartbeats.members["~"] = FakeMember(topics=("orders",))
        heartbeats.epoch += 1
        pair = (topic_id_of("orders"), partition)
        ours.target -= {pair}
        heartbeats.members["~"].target = frozenset({pair})
    return ours


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refused", "word"),
    [
        (UNKNOWN_MEMBER_ID, "had given us up before we left"),
        (GROUP_ID_NOT_FOUND, "had given us up before we left"),
        (None, "notices only when the session ends"),
    ],
)
def test_who_is_overdue_and_was_given_up_meanwhile_comes_back(
    filled, heartbeats, incremental_of, noted, caplog, refused, word
):
    """As after a sleep of the machine: the group does not know who leaves, or does not hear it."""
    caplog.set_level("DEBUG", "pyspark_kafkaproto.client.group.keeper")
    consumer = incremental_of(
        max_poll_interval_ms=300, listeners=noted.listeners(), request_timeout_ms=500
    )
    poll_rows(consumer, 40)

    def deaf(call):
        if call.request.member_epoch == 0:
            return heartbeats.beat(call)
        if call.request.member_epoch > 0 or refused is None:
            return close()
        return beat_refused(refused)

    with filled.at_once():
        filled.on("ConsumerGroupHeartbeat", deaf)
        heartbeats.fence(consumer.member_id)
    until(lambda: word in caplog.text, what="its leaving")
    poll_until(consumer, noted.has("lost"), "the loss")
    with filled.at_once():
        filled.on("ConsumerGroupHeartbeat", heartbeats.beat)
    poll_until(consumer, noted.has("assigned", 2), "its coming back")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]


@pytest.mark.slow
def test_who_is_fenced_and_still_known_comes_back(filled, heartbeats, incremental_of, noted):
    """Brokers before 4.1 refuse to let in whom they know in a later epoch (KAFKA-19233)."""
    consumer = incremental_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    known = consumer.member_id

    def old(call):
        if call.request.member_epoch == 0 and call.request.member_id in heartbeats.members:
            return beat_refused(FENCED_MEMBER_EPOCH)
        return heartbeats.beat(call)

    with filled.at_once():
        filled.on("ConsumerGroupHeartbeat", beat_refused(FENCED_MEMBER_EPOCH), old)
    poll_until(consumer, noted.has("assigned", 2), "a second assignment")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
    assert list(heartbeats.members) == [known]


@pytest.mark.slow
def test_a_static_member_that_does_not_hear_that_it_was_let_in_is_no_double_of_its_own(
    filled, heartbeats, incremental_of
):
    def unheard(call):
        heartbeats.beat(call)
        return close()

    filled.on("ConsumerGroupHeartbeat", unheard, heartbeats.beat)
    consumer = incremental_of(group_instance_id="till-1")
    assert len(poll_rows(consumer, 40)) == 40
    assert list(heartbeats.members) == [consumer.member_id]


@pytest.mark.slow
def test_a_commit_of_what_was_given_up_is_not_tried_again(filled, heartbeats, incremental_of):
    """It would overtake those of whoever reads it by then."""
    told, interrupts = [], [KeyboardInterrupt]

    def interrupt(own):
        if interrupts:
            raise interrupts.pop()

    consumer = incremental_of(
        enable_auto_commit="false",
        listeners={
            "on_revoke": interrupt,
            "on_commit": lambda offsets, error: told.append((offsets, error)),
        },
    )
    poll_rows(consumer, 40)
    filled.on("OffsetCommit", committing(COORDINATOR_LOAD_IN_PROGRESS))
    consumer.commit({FIRST: 3, SECOND: 4}, wait=False)
    until(lambda: filled.asked("OffsetCommit"), what="a first try")
    ours = take_away(filled, heartbeats, 1)
    with pytest.raises(KeyboardInterrupt):
        poll_until(consumer, lambda: False)
    until(lambda: ours.epoch == heartbeats.epoch, what="our word")
    with filled.at_once():
        heartbeats.committed["orders", 1] = (15, "")
        filled.on("OffsetCommit", heartbeats.commit)
    poll_until(consumer, lambda: told, "word of the commit")
    assert heartbeats.committed == {("orders", 0): (3, ""), ("orders", 1): (15, "")}
    ((offsets, error),) = told
    assert offsets == {FIRST: 3, SECOND: 4}
    assert "others read" in str(error)


@pytest.mark.slow
def test_what_was_committed_before_a_partition_came_back_is_not_begun_at(
    filled, heartbeats, incremental_of, monkeypatch
):
    """It was taken away, read by others, and given again, all while we looked offsets up."""
    ask = reader.starting_positions

    def slowly(*args, **options):
        monkeypatch.setattr(reader, "starting_positions", ask)
        found = ask(*args, **options)
        ours = take_away(filled, heartbeats, 1)
        until(lambda: ours.epoch == heartbeats.epoch, what="our word")
        with filled.at_once():
            heartbeats.committed["orders", 1] = (15, "")
            heartbeats.fence("~")
        until(lambda: len(ours.assigned) == 2 and ours.epoch == heartbeats.epoch, what="all of it")
        until(lambda: consumer._membership.view.assignment == BOTH, what="word of it")
        return found

    monkeypatch.setattr(reader, "starting_positions", slowly)
    consumer = incremental_of(enable_auto_commit="false")
    rows = poll_rows(consumer, 25)
    assert sorted(rows) == [(0, n) for n in range(20)] + [(1, n) for n in range(15, 20)]


@pytest.mark.slow
def test_a_consumer_may_be_closed_by_its_listener(filled, heartbeats, incremental_of):
    consumer = incremental_of(listeners={"on_revoke": lambda own: consumer.close()})
    poll_rows(consumer, 40)
    fetched = len(filled.asked("OffsetFetch"))
    take_away(filled, heartbeats, 1)
    with suppress(LocalProtocolError):
        poll_until(consumer, lambda: False)
    assert not consumer.assignment
    assert not consumer.positions
    assert len(filled.asked("OffsetFetch")) == fetched, "who is closed asks for nothing"
    assert list(heartbeats.members) == ["~"]


@pytest.mark.slow
def test_a_poll_that_waits_for_nothing_more_does_not_spin(
    filled, heartbeats, incremental_of, monkeypatch
):
    """A transaction held the offsets of what was taken away since."""
    filled.on("OffsetFetch", unstable)
    consumer = incremental_of()
    poll_until(consumer, lambda: len(filled.asked("OffsetFetch")) > 1, "questions")
    with filled.at_once():
        (ours,) = heartbeats.members.values()
        heartbeats.members["~"] = FakeMember(topics=("orders",))
        heartbeats.epoch += 1
        heartbeats.members["~"].target, ours.target = ours.target, frozenset()
    poll_until(consumer, lambda: ours.epoch == heartbeats.epoch, "our word")
    until(lambda: not consumer._held.are_resting, what="the time to ask again")
    rounds = []
    polled = Membership.polled
    monkeypatch.setattr(Membership, "polled", lambda self: (rounds.append(1), polled(self)))
    consumer.poll(0.5)
    assert len(rounds) < 20


@pytest.mark.slow
def test_who_is_closed_while_it_joins_leaves_once_it_is_let_in(filled, heartbeats, incremental_of):
    asked, let_in = threading.Event(), threading.Event()

    def slowly(call):
        asked.set()
        let_in.wait(PATIENCE_S)
        return heartbeats.beat(call)

    filled.on("ConsumerGroupHeartbeat", slowly, heartbeats.beat)
    consumer = incremental_of()
    assert asked.wait(PATIENCE_S)
    consumer.close()
    let_in.set()
    until(lambda: heartbeats.heard, what="the answer")
    until(lambda: [epoch for _, epoch, _ in heartbeats.heard] == [0, -1], what="its leaving")
    assert not heartbeats.members


@pytest.mark.slow
@pytest.mark.parametrize("lost", [1, 2])
def test_who_is_closed_while_it_joins_leaves_if_it_may_have_been_let_in(
    filled, heartbeats, incremental_of, lost
):
    """Whether its joining was heard it cannot know, and the first word of leaving may be lost."""
    asked, is_closed = threading.Event(), threading.Event()

    def unheard(call):
        heartbeats.beat(call)
        asked.set()
        is_closed.wait(PATIENCE_S)
        return close()

    deaf = [close()] * (lost - 1)
    filled.on("ConsumerGroupHeartbeat", unheard, *deaf, heartbeats.beat)
    consumer = incremental_of()
    assert asked.wait(PATIENCE_S)
    consumer.close()
    assert heartbeats.members
    is_closed.set()
    until(lambda: not heartbeats.members, what="its leaving")


@pytest.mark.slow
def test_who_is_closed_while_its_topics_are_looked_up_leaves(filled, heartbeats, incremental_of):
    """It has been let in by then: others would read nothing until its session ends."""
    asked = threading.Event()

    def keep(call):
        asked.set()
        filled.hold(lambda: not heartbeats.members, PATIENCE_S / 2)
        return metadata(filled, call)

    filled.on("Metadata", keep)
    consumer = incremental_of()
    assert asked.wait(PATIENCE_S)
    assert heartbeats.members
    consumer.close()
    assert not heartbeats.members


@pytest.mark.slow
def test_a_leaving_that_nobody_knows_is_not_complained_of(
    filled, heartbeats, incremental_of, caplog
):
    consumer = incremental_of()
    poll_rows(consumer, 40)

    def forgetful(call):
        is_end = call.request.member_epoch < 0
        return beat_refused(UNKNOWN_MEMBER_ID) if is_end else heartbeats.beat(call)

    filled.on("ConsumerGroupHeartbeat", forgetful)
    consumer.close()
    assert not [item for item in caplog.records if item.levelname == "WARNING"]


@pytest.mark.slow
def test_a_partition_that_comes_without_a_leader_holds_up_none_that_are_read(
    filled, heartbeats, incremental_of
):
    consumer = incremental_of()
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.topics["orders"].leaders.append(NOBODY)
        filled.topics["orders"].epochs.append(0)
        filled.logs["orders", 2] = FakeLog()
        filled.logs["orders", 2].append(b"later")
        heartbeats.share_out()
    until(lambda: len(consumer._membership.assignment) == 3, what="word of it")
    filled.logs["orders", 0].append(b"more")
    began = time.monotonic()
    assert poll_rows(consumer, 1) == [(0, 20)]
    assert time.monotonic() - began < 2
    assert len(consumer.assignment) == 3
    with filled.at_once():
        filled.topics["orders"].move(2, 1)
    assert poll_rows(consumer, 1) == [(2, 0)]


@pytest.mark.slow
def test_heartbeats_go_on_while_nobody_tells_what_a_topic_is_called(
    filled, heartbeats, incremental_of, monkeypatch
):
    monkeypatch.setattr(coordinator, "_NAMES_S", 0.05, raising=False)

    def hanging(call):
        asked = call.request.topics or ()
        return STALL if any(item.name is None for item in asked) else metadata(filled, call)

    filled.on("Metadata", hanging)
    incremental_of(SubscriptionPattern("orders"))
    began = time.monotonic()
    until(lambda: len(heartbeats.heard) > 5, what="heartbeats")
    assert time.monotonic() - began < 2


@pytest.mark.slow
def test_what_a_member_reads_is_logged_when_that_changes(
    filled, heartbeats, incremental_of, caplog
):
    caplog.set_level("INFO")
    consumer = incremental_of()
    poll_rows(consumer, 40)
    assert "reads orders-0, orders-1" in caplog.text
    caplog.clear()
    ours = take_away(filled, heartbeats, 1)
    poll_until(consumer, lambda: ours.epoch == heartbeats.epoch, "our word")
    said = [item.message for item in caplog.records if "reads orders-0" in item.message]
    assert len(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_alone", [True, False])
def test_all_of_a_topic_that_was_made_again_is_read(filled, heartbeats, incremental_of, is_alone):
    """It is given up in between, and what it was known by must not be forgotten over that."""
    topics = ("orders",) if is_alone else ("orders", "others")
    if not is_alone:
        filled.add_topic("others")
        filled.logs["others", 0].fill(1)
    consumer = incremental_of(topics)
    poll_rows(consumer, 40 if is_alone else 50)
    with filled.at_once():
        filled.topics["orders"].topic_id = b"n" * 16
        for partition in range(2):
            filled.logs["orders", partition] = FakeLog()
            filled.logs["orders", partition].fill(3)
        heartbeats.share_out()
    assert sorted(poll_rows(consumer, 60)) == [(part, n) for part in range(2) for n in range(30)]


@pytest.mark.slow
def test_another_broker_is_asked_for_the_names_that_one_does_not_know(
    filled, heartbeats, incremental_of
):
    """One that is cut off from the controller may not hear of a topic for long."""
    behind = []

    def metadata_of(call):
        answer = metadata(filled, call)
        if all(item.name is not None for item in call.request.topics or ()):
            return answer
        behind.append(call.node_id)
        if call.node_id != behind[0]:
            return answer
        nobody = MetadataResponse.Topic(name=None, topic_id=topic_id_of("orders"), error_code=100)
        return MetadataResponse(brokers=answer.brokers, topics=(nobody,), controller_id=1)

    filled.on("Metadata", metadata_of)
    assert len(poll_rows(incremental_of(SubscriptionPattern("orders")), 40)) == 40


@pytest.mark.slow
def test_who_is_interrupted_while_it_begins_with_a_partition_holds_it_no_longer_than_it_may(
    filled, heartbeats, incremental_of, monkeypatch
):
    consumer = incremental_of()
    poll_rows(consumer, 40)
    ours = take_away(filled, heartbeats, 1)
    poll_until(consumer, lambda: consumer.assignment == {FIRST}, "the rest")
    real, interrupted = reader.Reading, []

    def interrupt(own, *args):
        if len(own) == 2 and not interrupted:
            interrupted.append(own)
            raise KeyboardInterrupt
        return real(own, *args)

    monkeypatch.setattr(reader, "Reading", interrupt)
    with filled.at_once():
        heartbeats.fence("~")
    with pytest.raises(KeyboardInterrupt):
        poll_until(consumer, lambda: False)
    until(lambda: ours.epoch == heartbeats.epoch, what="our word of it")
    take_away(filled, heartbeats, 1)
    until(lambda: consumer._membership.assignment == {FIRST}, what="its going")
    poll_until(consumer, lambda: ours.epoch == heartbeats.epoch, "our word")
    assert consumer.assignment == {FIRST}


@pytest.mark.slow
def test_a_coordinator_that_hangs_is_left_after_a_few_heartbeats_time(
    filled, heartbeats, incremental_of, noted, monkeypatch
):
    """The session may be shorter than the classic protocol's, and its successor counts it anew."""
    monkeypatch.setattr(coordinator, "LEAST_PATIENCE_S", 0.1)
    consumer = incremental_of(listeners=noted.listeners(), enable_auto_commit="false")
    poll_rows(consumer, 40)
    with filled.at_once():
        filled.coordinators["g"] = 2
        filled.on("ConsumerGroupHeartbeat", STALL, node=1)
        filled.on("OffsetCommit", STALL, node=1)
        heard = len(heartbeats.heard)
    began = time.monotonic()
    consumer.commit(wait=False)
    until(lambda: len(heartbeats.heard) > heard, what="heartbeats at node 2")
    poll_until(consumer, lambda: heartbeats.committed, "the commit")
    assert time.monotonic() - began < 3
    assert noted == [("assigned", BOTH)]


@pytest.mark.slow
def test_a_coordinator_of_the_past_is_not_believed_about_offsets(
    filled, heartbeats, incremental_of
):
    """It was away, and does not know yet that another one has taken over; the reader asks it."""
    consumer = incremental_of(enable_auto_commit="false")
    poll_rows(consumer, 40)
    ours = take_away(filled, heartbeats, 1)
    poll_until(consumer, lambda: ours.epoch == heartbeats.epoch, "our word")
    with filled.at_once():
        filled.coordinators["g"] = 2
        filled.on("ConsumerGroupHeartbeat", beat_refused(NOT_COORDINATOR), node=1)
        before = ours.epoch
        past = FakeCoordinator(filled, g={("orders", 1): (5, "")})

        def in_the_past(call):
            (asked,) = call.request.groups
            is_known = asked.member_epoch in (-1, before)
            return past.fetch(call) if is_known else fetch_refused(STALE_MEMBER_EPOCH)(call)

        filled.on("OffsetFetch", heartbeats.fetch)
        filled.on("OffsetFetch", in_the_past, node=1)
        filled.on("OffsetCommit", heartbeats.commit)
        heartbeats.committed["orders", 1] = (18, "")
        heartbeats.fence("~")
    assert poll_rows(consumer, 2) == [(1, 18), (1, 19)]
    assert filled.asked("OffsetFetch", 2)


@pytest.mark.slow
@pytest.mark.parametrize("code", [STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID])
def test_offsets_are_asked_for_again_where_the_coordinator_is_in_another_epoch(
    filled, heartbeats, incremental_of, code
):
    filled.on("OffsetFetch", fetch_refused(code), heartbeats.fetch)
    assert len(poll_rows(incremental_of(), 40)) == 40
    (first, second) = filled.asked("OffsetFetch")
    assert [item.groups[0].member_epoch for item in (first, second)] == [1, 1]


@pytest.mark.slow
def test_a_coordinator_that_does_not_know_us_for_long_is_warned_of(
    filled, heartbeats, incremental_of, caplog
):
    filled.on("OffsetFetch", fetch_refused(STALE_MEMBER_EPOCH))
    consumer = incremental_of(default_api_timeout_ms=300)
    poll_until(consumer, lambda: caplog.records, "a warning")
    assert "no rows yet" in caplog.text
    assert "STALE_MEMBER_EPOCH" in caplog.text
    assert "transaction" not in caplog.text
    with filled.at_once():
        filled.on("OffsetFetch", heartbeats.fetch)
    assert len(poll_rows(consumer, 40)) == 40
