"""A coordinator that does not let a member in: who can do something about it?"""

from __future__ import annotations

from contextlib import suppress

import pytest

from pyspark_kafkaproto.client.group import conversation
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import AuthenticationFailed, BrokerError
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from tests.fake_broker import DEFAULT, find_coordinator
from tests.fake_login import AS_KEYWORDS, logged_in, want_login
from tests.fake_sessions import with_values
from tests.unit.client.group.fake_heartbeats import beat_refused
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})

DENIED_TOPIC, DENIED_GROUP, FULL, UNRELEASED = 29, 30, 81, 111
OTHERS_SHARE_OTHERWISE, OF_ANOTHER_TYPE, SWITCHED_OFF = 23, 69, 35
FENCED, UNKNOWN = 110, 25
TROUBLE, NOT_COORDINATOR = -1, 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ("consumer", DENIED_TOPIC),
        ("consumer", DENIED_GROUP),
        ("consumer", FULL),
        ("consumer", UNRELEASED),
        ("consumer", OF_ANOTHER_TYPE),
        ("consumer", SWITCHED_OFF),
        ("consumer", FENCED),
        ("consumer", UNKNOWN),
        ("classic", DENIED_GROUP),
        ("classic", FULL),
        ("classic", OTHERS_SHARE_OTHERWISE),
    ],
)
def test_a_refusal_that_others_can_undo_is_no_end(filled, coordinator, member_of, protocol, code):
    """A right that is given, a member that leaves: whoever polls on after the error is let in."""
    if protocol == "consumer":
        filled.on("ConsumerGroupHeartbeat", beat_refused(code))
    else:
        filled.on("JoinGroup", JoinGroupResponse(error_code=code))
    consumer = member_of()
    for _ in range(2):
        with pytest.raises(BrokerError) as met:
            consumer.poll(PATIENCE_S)
        assert met.value.code == code
    if protocol == "consumer":
        filled.on("ConsumerGroupHeartbeat", coordinator.beat)
    else:
        filled.on("JoinGroup", coordinator.join)
    with suppress(BrokerError):  # of a try between the two
        consumer.poll(0)
    assert len(poll_rows(consumer, 40)) == 40


def refused(why):
    return SaslAuthenticateResponse(error_code=58, error_message=why, auth_bytes=b"")


def test_a_login_that_is_refused_is_no_end(filled, member_of):
    """A certificate that is renewed, a password that is given: a later poll may go."""
    want_login(filled)
    filled.on("SaslAuthenticate", refused("no such user"))
    consumer = member_of(**AS_KEYWORDS)
    with pytest.raises(AuthenticationFailed, match="no such user"):
        consumer.poll(PATIENCE_S)
    filled.on("SaslAuthenticate", refused("wrong password"))
    with suppress(AuthenticationFailed):  # of a try between the two
        consumer.poll(PATIENCE_S)
    with pytest.raises(AuthenticationFailed, match="wrong password"):
        consumer.poll(PATIENCE_S)
    filled.on("SaslAuthenticate", logged_in())
    with suppress(AuthenticationFailed):
        consumer.poll(0)
    assert len(poll_rows(consumer, 40)) == 40


def test_a_refusal_of_what_is_asked_is_the_end(filled, coordinator, member_of, protocol):
    if protocol == "consumer":
        filled.on("ConsumerGroupHeartbeat", beat_refused(112))
        asked = "ConsumerGroupHeartbeat"
    else:
        filled.on("JoinGroup", JoinGroupResponse(error_code=26))
        asked = "JoinGroup"
    consumer = member_of()
    for _ in range(3):
        with pytest.raises(BrokerError):
            consumer.poll(PATIENCE_S)
    assert len(filled.asked(asked)) == 1


def test_an_error_of_the_brokers_own_says_what_to_do(filled, heartbeats, incremental_of):
    """So do those of 4.3 and 4.4 answer where classic members wait for their first generation."""
    filled.on("ConsumerGroupHeartbeat", beat_refused(-1))
    consumer = incremental_of()
    for _ in range(2):  # as in Java that is the end
        with pytest.raises(BrokerError, match=r"group 'g'.*UNKNOWN_SERVER_ERROR.*log.*anew"):
            consumer.poll(PATIENCE_S)
    assert len(filled.asked("ConsumerGroupHeartbeat")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("api", ["Heartbeat", "JoinGroup", "SyncGroup"])
def test_an_error_without_a_name_that_passes_is_nobodys_end(
    filled, group, consumer_of, api, strategy
):
    """A member of the classic protocol goes on, as Java's: it raised the error for ever."""
    answers = {
        "Heartbeat": (HeartbeatResponse(error_code=TROUBLE), HeartbeatResponse()),
        "JoinGroup": (JoinGroupResponse(error_code=TROUBLE), group.join),
        "SyncGroup": (SyncGroupResponse(error_code=TROUBLE), group.sync),
    }
    filled.on(api, *answers[api])
    consumer = consumer_of(partition_assignment_strategy=strategy)
    poll_until(consumer, lambda: len(filled.asked("Heartbeat")) > 2, "heartbeats")
    filled.logs["orders", 0].fill(1)
    poll_until(consumer, lambda: consumer.positions.get(FIRST) == 30, "what came later")
    assert consumer.assignment == BOTH


def no_coordinator(brokers, code):
    """What a broker answers that cannot tell who coordinates a group."""

    def answer(call):
        said = find_coordinator(brokers, call)
        places = (with_values(item, error_code=code) for item in said.coordinators)
        return with_values(said, coordinators=tuple(places))

    return answer


def test_nor_is_one_of_whoever_is_asked_for_the_coordinator(
    filled, coordinator, member_of, protocol
):
    consumer = member_of()
    poll_rows(consumer, 40)
    filled.on("FindCoordinator", no_coordinator(filled, TROUBLE), DEFAULT)
    if protocol == "classic":
        filled.on("Heartbeat", HeartbeatResponse(error_code=NOT_COORDINATOR), HeartbeatResponse())
    else:
        filled.on("ConsumerGroupHeartbeat", beat_refused(NOT_COORDINATOR), coordinator.beat)
    asked = len(filled.asked("FindCoordinator"))
    poll_until(consumer, lambda: len(filled.asked("FindCoordinator")) > asked + 1)
    filled.logs["orders", 0].fill(1)
    assert len(poll_rows(consumer, 10)) == 10


@pytest.mark.slow
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_an_error_without_a_name_that_lasts_is_told_soon_until_it_is_over(
    filled, group, consumer_of, api, monkeypatch
):
    monkeypatch.setattr(conversation, "_TROUBLE_S", 0.1)
    answers = {
        "JoinGroup": (JoinGroupResponse(error_code=TROUBLE), group.join),
        "SyncGroup": (SyncGroupResponse(error_code=TROUBLE), group.sync),
    }
    refused, well = answers[api]
    filled.on(api, refused)
    consumer = consumer_of()
    for _ in range(2):
        with pytest.raises(BrokerError, match=f"{api}: .*UNKNOWN_SERVER_ERROR"):
            consumer.poll(PATIENCE_S)
    filled.on(api, well)
    with suppress(BrokerError):  # of a try between the two
        consumer.poll(0)
    assert len(poll_rows(consumer, 40)) == 40


def test_a_name_that_a_group_of_another_type_has_says_which_types(
    filled, heartbeats, incremental_of
):
    """Brokers answer the same where it is a share group, which no protocol of ours lets us in."""
    filled.on("ConsumerGroupHeartbeat", beat_refused(OF_ANOTHER_TYPE))
    with pytest.raises(BrokerError, match=r"share group.*another; or .*classic.*migration\.policy"):
        incremental_of().poll(PATIENCE_S)


@pytest.mark.slow
def test_a_member_whose_right_is_taken_away_comes_back_when_it_is_given_again(
    filled, heartbeats, incremental_of, noted
):
    consumer = incremental_of(listeners=noted.listeners())
    poll_rows(consumer, 40)
    consumer.commit()
    filled.on("ConsumerGroupHeartbeat", beat_refused(DENIED_TOPIC))
    for _ in range(2):
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            poll_until(consumer, lambda: False, "the error")
    filled.on("ConsumerGroupHeartbeat", heartbeats.beat)
    with suppress(BrokerError):
        consumer.poll(0)
    poll_until(consumer, noted.has("assigned", 2), "its coming back")
    assert noted == [("assigned", BOTH), ("lost", BOTH), ("assigned", BOTH)]
