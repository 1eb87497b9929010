"""One connection: order, correlation, errors that close it, hooks, throttling."""

from __future__ import annotations

from contextlib import suppress

import pytest

from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.net import connection as connection_module
from pyspark_kafkaproto.net import incoming, outgoing
from pyspark_kafkaproto.wire.frame import decode_request
from tests.fake_broker import DEFAULT, STALL, close, cut, in_version, raw, wrong_correlation
from tests.interrupted import Interrupted
from tests.unit.net.talking import ALL_TOPICS, SOON_S, opened, records_of, soon

# Order


def test_pipelined_requests_are_answered_in_their_order(cluster):
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        connection.send(FindCoordinatorRequest(coordinator_keys=("g",)), soon())
        connection.send(MetadataRequest(topics=()), soon())
        assert connection.in_flight == 3
        assert not connection.is_idle
        assert len(connection.receive(soon()).message.topics) == 1
        assert connection.receive(soon()).message.coordinators[0].key == "g"
        assert len(connection.receive(soon()).message.topics) == 0
        assert connection.is_idle


def test_request_does_not_take_another_ones_answer(cluster):
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        with pytest.raises(LocalProtocolError, match="Metadata is still unanswered"):
            connection.request(ALL_TOPICS, soon())
        assert connection.receive(soon()).message.cluster_id == "fake"


@pytest.mark.parametrize("nth", range(1, 12))
def test_wherever_sending_is_interrupted_nothing_is_waited_for_that_was_not_sent(cluster, nth):
    with opened(cluster) as connection:
        files = {connection_module.__file__, outgoing.__file__}
        with suppress(KeyboardInterrupt), Interrupted(nth, files):
            connection.send(ALL_TOPICS, soon())
        if connection.in_flight:
            assert len(connection.receive(soon()).message.topics) == 1


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 25))
def test_wherever_receiving_is_interrupted_no_answer_is_left_half_taken(cluster, nth):
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        files = {connection_module.__file__, incoming.__file__}
        with suppress(KeyboardInterrupt), Interrupted(nth, files):
            connection.receive(soon())
        if connection.in_flight:
            connection.receive(soon())


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 45))
def test_wherever_a_request_is_interrupted_its_answer_is_not_left_to_come(cluster, nth):
    """A pool gives nobody a connection with an answer to come, nor closes it: each was kept."""
    with opened(cluster) as connection:
        files = {connection_module.__file__, incoming.__file__, outgoing.__file__}
        with suppress(KeyboardInterrupt), Interrupted(nth, files):
            connection.request(ALL_TOPICS, soon())
        assert not (connection.is_open and connection.in_flight)


def test_nothing_to_receive_is_said_not_waited_for(cluster):
    with opened(cluster) as connection, pytest.raises(LocalProtocolError, match="in flight"):
        connection.receive(soon())


def test_receiving_on_a_closed_connection_can_be_retried(cluster):
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        connection.close()
        with pytest.raises(ConnectionFailed, match="closed"):
            connection.receive(soon())


def test_sending_on_a_closed_connection_can_be_retried(cluster):
    with opened(cluster) as connection:
        connection.close()
        with pytest.raises(ConnectionFailed, match="send"):
            connection.send(ALL_TOPICS, soon())


def test_correlation_ids_start_again_after_the_highest(cluster):
    with opened(cluster) as connection:
        connection._next_correlation_id = 0x7FFFFFFF
        for _ in range(2):
            assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
    assert [call.header.correlation_id for call in cluster.calls[1:]] == [0x7FFFFFFF, 0]


def test_reply_is_measured(cluster):
    with opened(cluster) as connection:
        connection.send(MetadataRequest(topics=()), soon())
        reply = connection.receive(soon())
    assert reply.latency_s > 0
    assert 30 < reply.size_bytes < 100


# Errors


FINE = MetadataResponse(cluster_id="fake")


ERRORS = [
    pytest.param(wrong_correlation(FINE), RemoteProtocolError, "correlation id 2, expected 1"),
    pytest.param(close(), ConnectionFailed, "receive failed: the broker closed"),
    pytest.param(cut(FINE, 2), ConnectionFailed, "receive failed: the broker closed"),
    pytest.param(cut(FINE, 4), ConnectionFailed, "receive failed: the broker closed"),
    pytest.param(cut(FINE, 20), ConnectionFailed, "receive failed: the broker closed"),
    pytest.param(STALL, DeadlineExceeded, "receive the answer to Metadata: not done"),
    pytest.param(raw(b"\x00\x00"), DeadlineExceeded, "receive the answer to Metadata: not done"),
    pytest.param(
        raw(bytes([0, 0, 0, 50]) + bytes(10)),
        DeadlineExceeded,
        "receive the answer to Metadata: not done",
    ),
    pytest.param(raw(bytes([0, 0, 0, 3])), RemoteProtocolError, "frame of 3 bytes: allowed are 4"),
    pytest.param(raw(b"\xff\xff\xff\xff"), RemoteProtocolError, "frame of -1 bytes"),
    pytest.param(raw(b"\x80\0\0\0"), RemoteProtocolError, "frame of -2147483648 bytes"),
    pytest.param(
        raw(b"\x00\x01\x00\x01"), RemoteProtocolError, "to 65536 .kafka.receive.message.max.bytes"
    ),
    pytest.param(raw(b"HTTP/1.1 400"), RemoteProtocolError, "read 'HTTP': is this a Kafka list"),
    pytest.param(
        raw(b"\x15\x03\x03\x00\x02"), RemoteProtocolError, "a TLS alert.*security.protocol to SSL"
    ),
    pytest.param(
        raw(bytes([0, 0, 0, 4, 0, 0, 0, 1])),
        RemoteProtocolError,
        ", Metadata response v13, header: ",
    ),
    pytest.param(in_version(FINE, 1), RemoteProtocolError, "Metadata response v13"),
]


@pytest.mark.parametrize(("fault", "error", "text"), ERRORS)
def test_bad_answer_is_its_error_and_closes(cluster, fault, error, text):
    cluster.on("Metadata", fault)
    with opened(cluster, receive_message_max_bytes=65536) as connection:
        with pytest.raises(error, match=text) as caught:
            connection.request(ALL_TOPICS, soon(SOON_S if error is DeadlineExceeded else 5))
        assert f"broker {cluster.address()}" in str(caught.value)
        assert not connection.is_open
        assert not connection.is_idle
        assert connection.in_flight == 0


def test_request_that_cannot_be_written_costs_no_connection(cluster):
    with opened(cluster) as connection:
        with pytest.raises(LocalProtocolError, match="allow_auto_topic_creation"):
            connection.send(MetadataRequest(allow_auto_topic_creation=False), soon(), version=0)
        assert connection.is_idle


def test_answers_may_be_large_once_versions_are_agreed_on(cluster):
    cluster.on("Fetch", records_of(2 << 20))
    with opened(cluster) as connection:
        answer = connection.request(FetchRequest(), soon())
        assert len(answer.responses[0].partitions[0].records) == 2 << 20


def test_what_an_answer_may_have_holds_for_the_first_one_too(cluster):
    cluster.on("ApiVersions", raw((8192).to_bytes(4)))
    said = r"allowed are 4 to 1000 \(kafka\.receive\.message\.max\.bytes\)"
    with (
        pytest.raises(RemoteProtocolError, match=said),
        opened(cluster, receive_message_max_bytes="1000"),
    ):
        pass


def test_a_version_below_what_is_needed_is_not_spoken(cluster):
    cluster.versions["Metadata"] = (0, 8)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest, least=8) == 8
        with pytest.raises(UnsupportedVersion, match="speaks Metadata 0 to 8, this package 9 to"):
            connection.version_for(MetadataRequest, least=9)


def test_request_that_an_old_broker_cannot_be_sent_names_the_versions_that_it_speaks(cluster):
    """In the newest of them what is asked cannot be said; a newer broker could be asked."""
    cluster.versions["Metadata"] = (0, 3)
    with opened(cluster) as connection:
        said = "speaks Metadata 0 to 3, which cannot carry .*allow_auto_topic_creation"
        with pytest.raises(UnsupportedVersion, match=said):
            connection.send(MetadataRequest(allow_auto_topic_creation=False), soon())
        assert connection.is_idle


@pytest.mark.parametrize("name", [b"orders", 3, "\ud800"])
def test_what_is_no_text_is_not_blamed_on_an_old_broker(cluster, name):
    """No other broker could be asked either."""
    cluster.versions["Metadata"] = (0, 12)
    topic = MetadataRequest.Topic(name=name)
    with opened(cluster) as connection:
        with pytest.raises(LocalProtocolError, match=r"^Metadata request v12: topics\[0\]\.name: "):
            connection.send(MetadataRequest(topics=(topic,)), soon())
        assert connection.is_idle


# Who observes


def test_hook_sees_every_frame_without_its_size(cluster):
    frames = []

    def note(direction, frame, _time_ns):
        frames.append((direction, b"".join(frame)))

    with opened(cluster, note) as connection:
        connection.request(ALL_TOPICS, soon())
    assert [direction for direction, _ in frames] == ["sent", "received"] * 2
    header, request = decode_request(ApiVersionsRequest, frames[0][1])
    assert (header, request) == (cluster.calls[0].header, cluster.calls[0].request)
    assert decode_request(MetadataRequest, frames[2][1])[1] == ALL_TOPICS
    assert frames[3][1][:4] == bytes([0, 0, 0, 1])


@pytest.mark.parametrize("failing", ["sent", "received"])
def test_hook_that_fails_closes_the_connection(cluster, failing):
    def fail(direction, frame, _time_ns):
        if direction == failing and b"\0\3" in bytes(frame[0][:2]):
            raise RuntimeError("the hook is broken")
        if direction == failing == "received" and bytes(frame[0][:4]) == bytes([0, 0, 0, 1]):
            raise RuntimeError("the hook is broken")

    with opened(cluster, fail) as connection:
        with pytest.raises(RuntimeError, match="hook is broken"):
            connection.request(ALL_TOPICS, soon())
        assert not connection.is_open


# Throttling, KIP-219


def test_throttled_connection_stays_silent_for_that_long(cluster, clock):
    cluster.on("Metadata", MetadataResponse(throttle_time_ms=1500), DEFAULT)
    with opened(cluster) as connection:
        connection.request(ALL_TOPICS, soon())
        assert clock.slept == []
        clock.now += 0.5
        connection.request(ALL_TOPICS, soon())
        assert clock.slept == [1.0]
        connection.request(ALL_TOPICS, soon())
        assert clock.slept == [1.0]


def test_shorter_throttle_does_not_end_a_longer_one(cluster, clock):
    throttles = [MetadataResponse(throttle_time_ms=ms) for ms in (1500, 10)]
    cluster.on("Metadata", *throttles, DEFAULT)
    with opened(cluster) as connection:
        for _ in throttles:
            connection.send(ALL_TOPICS, soon())
        for _ in throttles:
            connection.receive(soon())
        connection.request(ALL_TOPICS, soon())
    assert clock.slept == [1.5]


def test_throttle_beyond_the_deadline_fails_at_once_and_keeps_the_connection(cluster, clock):
    cluster.on("Metadata", MetadataResponse(throttle_time_ms=60_000), DEFAULT)
    with opened(cluster) as connection:
        connection.request(ALL_TOPICS, soon())
        # The same words each time, or an error of many tries would tell each of them.
        for _ in range(2):
            with pytest.raises(DeadlineExceeded, match=r"throttles this client for 60 s, over a"):
                connection.request(ALL_TOPICS, soon(5))
            clock.now += 1
        assert clock.slept == []
        assert connection.is_idle
        clock.now += 60
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
