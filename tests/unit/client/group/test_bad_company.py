"""Brokers that hang, are behind, or were left behind by the others; and processes that fork."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import pytest

from pyspark_kafkaproto.client.group.classic import keeper
from pyspark_kafkaproto.client.group.classic.coordinator import Coordinator
from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from tests.fake_broker import DEFAULT, STALL, close, raw
from tests.fake_log import Answered, FakeLog
from tests.fake_past import behind
from tests.forks import in_child
from tests.stopwatch import Stopwatch
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until
from tests.unit.cluster.committing import committing

PARTITIONS = range(2)


@pytest.fixture
def filled(brokers):
    for number in PARTITIONS:
        brokers.logs["orders", number].fill(2)
    return brokers


def answer(call, make):
    """A Fetch answered by `make`, for each partition that it asks for."""
    (topic,) = call.request.topics
    found = tuple(map(make, topic.partitions))
    if not any(item.records for item in found):
        time.sleep(0.02)
    own = FetchResponse.Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=found)
    return FetchResponse(responses=(own,))


def names_follower(call):
    """What a leader says to who names a rack: node 2 has it, too."""
    if not call.request.rack_id:
        return DEFAULT
    return answer(
        call,
        lambda asked: Answered(
            partition_index=asked.partition, high_watermark=20, preferred_read_replica=2
        ),
    )


def follows(logs):
    """Node 2's answers, from `logs`."""

    def fetch(call):
        return answer(
            call,
            lambda asked: logs[asked.partition].fetch(
                asked.partition, asked.fetch_offset, 1 << 20, is_first=True
            ),
        )

    return fetch


@pytest.mark.slow
def test_a_coordinator_that_hangs_is_not_asked_who_takes_its_place(filled, group, consumer_of):
    """The new one takes the member for dead when it hears nothing for session.timeout.ms."""
    for number in PARTITIONS:
        filled.topics["orders"].move(number, 2)
    consumer = consumer_of(session_timeout_ms=1000, heartbeat_interval_ms=100)
    assert len(poll_rows(consumer, 40)) == 40
    for api in ("ApiVersions", "Fetch", "FindCoordinator", "Heartbeat", "Metadata", "OffsetCommit"):
        filled.on(api, STALL, node=1)
    filled.coordinators["g"] = 2
    filled.on("Heartbeat", HeartbeatResponse(), node=2)
    began = time.monotonic()
    poll_until(consumer, lambda: filled.asked("Heartbeat", node=2))
    assert time.monotonic() - began < 1.0 + 2.0  # not the 10 s for which a connection is waited for


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.55, 0.75])
def test_a_broker_that_hangs_beside_a_slow_coordinator_ends_no_session(
    filled, group, consumer_of, share
):
    """A commit waits for replicas (offsets.commit.timeout.ms), that of the broker that hangs, too.

    Half of a session of patience for that, and half for a look for the coordinator, are a whole
    one without a heartbeat. The session is long enough for a machine that stops for half a second.
    """
    session_s = 2.5
    beats = []

    def beat(_call):
        beats.append(time.monotonic())
        return HeartbeatResponse()

    def commit(call):
        time.sleep(share * session_s)
        return committing(0)(call)

    consumer = consumer_of(
        session_timeout_ms=round(session_s * 1000),
        heartbeat_interval_ms=100,
        enable_auto_commit="false",
    )
    assert len(poll_rows(consumer, 40)) == 40
    for api in ("ApiVersions", "FindCoordinator", "Metadata"):
        filled.on(api, STALL, node=2)
    filled.on("Heartbeat", beat, node=1)
    filled.on("OffsetCommit", commit, node=1)
    with Stopwatch() as watch:
        poll_until(consumer, lambda: beats)
        consumer.commit(wait=False)
        poll_until(consumer, lambda: beats[-1] - beats[0] > 2 * session_s)
    silence_s = max(
        later - earlier - watch.stalled_s(earlier, later) for earlier, later in pairwise(beats)
    )
    assert silence_s < session_s


@pytest.mark.slow
@pytest.mark.usefixtures("opinions_at_once")
def test_a_broker_that_has_not_heard_of_a_topic_is_not_believed(filled, group, consumer_of):
    filled.on("Metadata", behind(filled, "orders", None), DEFAULT)
    assert len(poll_rows(consumer_of(), 40)) == 40


def test_an_answer_that_cannot_be_read_is_raised_once(filled, coordinator, member_of, protocol):
    """Its connection is closed, and the next one is another: it was raised for ever."""
    consumer = member_of()
    assert len(poll_rows(consumer, 40)) == 40
    consumer.commit()
    garbage = raw(b"\0\0\0\x09 no answer")
    if protocol == "classic":
        filled.on("Heartbeat", garbage, HeartbeatResponse())
    else:
        filled.on("ConsumerGroupHeartbeat", garbage, coordinator.beat)
    with pytest.raises(RemoteProtocolError, match="Heartbeat: response has correlation id"):
        poll_until(consumer, lambda: False, "the error")
    filled.logs["orders", 0].fill(1)
    assert len(poll_rows(consumer, 10)) == 10


@pytest.mark.slow
def test_a_broker_that_cannot_tell_of_the_cluster_ends_nobody(filled, group, consumer_of):
    """Who leads a group looks at its topics from time to time: the error was raised for ever."""
    consumer = consumer_of(metadata_max_age_ms=100)
    assert len(poll_rows(consumer, 40)) == 40
    asked = len(filled.asked("Metadata"))
    filled.on("Metadata", MetadataResponse(error_code=-1), DEFAULT)
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > asked + 3)
    filled.logs["orders", 0].fill(1)
    assert len(poll_rows(consumer, 10)) == 10


@pytest.mark.slow
def test_a_topic_that_is_made_later_is_read_soon(filled, group, consumer_of, monkeypatch):
    """Not after metadata.max.age.ms, which is five minutes."""
    monkeypatch.setattr(keeper, "_FIRST_LOOK_S", 0.05)
    topic = filled.topics.pop("orders")
    consumer = consumer_of()
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > 5)
    filled.topics["orders"] = topic
    assert len(poll_rows(consumer, 40)) == 40


@pytest.mark.slow
def test_a_broker_that_has_not_heard_of_partitions_is_not_believed(filled, group, consumer_of):
    """They are there, and read; nobody would read them until the next look."""
    consumer = consumer_of(metadata_max_age_ms=100)
    assert len(poll_rows(consumer, 40)) == 40
    fewer = replace(filled.topics["orders"], leaders=[1], epochs=[0])
    joins = len(filled.asked("JoinGroup"))
    asked = len(filled.asked("Metadata"))
    filled.on("Metadata", behind(filled, "orders", fewer), DEFAULT)
    poll_until(consumer, lambda: len(filled.asked("Metadata")) > asked + 3)
    assert len(filled.asked("JoinGroup")) == joins


@pytest.mark.slow
def test_a_leader_that_was_left_behind_is_left(filled, group, consumer_of):
    """It answers as if nothing was written: metadata alone tell of the new one."""
    consumer = consumer_of(metadata_max_age_ms=200)
    assert len(poll_rows(consumer, 40)) == 40

    def says_nothing_new(call):
        return answer(
            call,
            lambda asked: Answered(
                partition_index=asked.partition, high_watermark=20, last_stable_offset=20
            ),
        )

    filled.on("Fetch", says_nothing_new, node=1)
    for number in PARTITIONS:
        filled.topics["orders"].move(number, 2)
        filled.logs["orders", number].fill(1)
    assert len(poll_rows(consumer, 20)) == 20


@pytest.mark.slow
def test_a_leader_that_was_left_behind_and_holds_a_fetch_is_left(filled, group, consumer_of):
    """When leaders are asked about, for another one that has answered."""
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of(metadata_max_age_ms=3_600_000)
    assert len(poll_rows(consumer, 40)) == 40
    asked = len(filled.asked("Metadata"))

    def says_nothing_new(call):
        filled.hold(lambda: len(filled.asked("Metadata")) > asked, PATIENCE_S)
        return answer(
            call,
            lambda asked: Answered(
                partition_index=asked.partition, high_watermark=20, last_stable_offset=20
            ),
        )

    filled.on("Fetch", says_nothing_new, node=2)
    before = len(filled.asked("Fetch", node=2))
    poll_until(consumer, lambda: len(filled.asked("Fetch", node=2)) > before, "one to be held")
    filled.topics["orders"].move(1, 1)
    filled.logs["orders", 1].fill(1)
    consumer._reading._tail._known_until = Deadline.after(0)
    poll_until(consumer, lambda: consumer.positions["orders", 1] == 30, "what was written")


@pytest.mark.usefixtures("opinions_at_once")
def test_of_what_brokers_name_the_most_counts(filled):
    """Whoever is asked last, as where a topic is not there at all, may be behind."""
    given = {"bootstrap.servers": filled.bootstrap_servers, "group.id": "g"}
    coordinator = Coordinator(ConsumerConfig.parse(given), {"orders"})
    fewer = replace(filled.topics["orders"], leaders=[1], epochs=[0])
    filled.on("Metadata", DEFAULT, DEFAULT, behind(filled, "orders", fewer))
    assert coordinator.count_partitions({"orders", "nowhere"}) == {"orders": 2}
    coordinator.close()


@pytest.mark.slow
@pytest.mark.parametrize("told", [None, 1])
def test_a_broker_that_is_behind_takes_no_leader_away(filled, group, consumer_of, told):
    """It is asked after metadata.max.age.ms, while the leader is well; node 1 is asked first."""
    for number in PARTITIONS:
        filled.topics["orders"].move(number, 2)
    fewer = told and replace(filled.topics["orders"], leaders=[2], epochs=[1])
    consumer = consumer_of(metadata_max_age_ms=3_600_000)
    assert len(poll_rows(consumer, 40)) == 40
    filled.on("Metadata", behind(filled, "orders", fewer), node=1)
    consumer._reading._tail._known_until = Deadline.after(0)
    for _ in range(3):
        for number in PARTITIONS:
            filled.logs["orders", number].fill(1)
        assert len(poll_rows(consumer, 20)) == 20


@pytest.mark.slow
def test_no_age_at_all_keeps_no_follower_from_being_read(filled, group, consumer_of):
    filled.on("Fetch", names_follower, node=1)
    filled.on("Fetch", follows([filled.logs["orders", number] for number in PARTITIONS]), node=2)
    assert len(poll_rows(consumer_of(metadata_max_age_ms=0, client_rack="eu-2"), 40)) == 40


@pytest.mark.slow
def test_a_follower_that_is_stuck_is_left(filled, group, consumer_of):
    """After metadata.max.age.ms its leader is asked again, which names another one, or none."""
    filled.on("Fetch", names_follower, node=1)
    filled.on("Fetch", follows([FakeLog().fill(2) for _ in PARTITIONS]), node=2)
    consumer = consumer_of(metadata_max_age_ms=200, client_rack="eu-2")
    assert len(poll_rows(consumer, 40)) == 40
    for number in PARTITIONS:
        filled.logs["orders", number].fill(1)
    filled.on("Fetch", DEFAULT, node=1)
    assert len(poll_rows(consumer, 20)) == 20


@pytest.mark.slow
def test_a_follower_that_failed_once_is_read_from_again(filled, group, consumer_of):
    filled.on("Fetch", names_follower, node=1)
    follower = follows([filled.logs["orders", number] for number in PARTITIONS])
    filled.on("Fetch", follower, node=2)
    consumer = consumer_of(metadata_max_age_ms=200, client_rack="eu-2")
    assert len(poll_rows(consumer, 40)) == 40
    filled.on("Fetch", close(), follower, node=2)
    since = len(filled.asked("Fetch"))
    poll_until(
        consumer,
        lambda: not all(item.rack_id for item in filled.asked("Fetch")[since:]),
        "a leader",
    )
    at_follower = len(filled.asked("Fetch", node=2))
    poll_until(consumer, lambda: len(filled.asked("Fetch", node=2)) > at_follower)


@pytest.mark.slow
def test_a_child_process_leaves_the_member_to_its_parent(filled, group, consumer_of):
    consumer = consumer_of()
    assert len(poll_rows(consumer, 40)) == 40

    def work():
        for act in (consumer.poll, consumer.commit):
            with pytest.raises(LocalProtocolError, match="which was forked"):
                act()
        consumer.close()

    assert in_child(work) == 0
    assert "LeaveGroup" not in group.said()
    filled.logs["orders", 0].fill(1)
    assert len(poll_rows(consumer, 10)) == 10
