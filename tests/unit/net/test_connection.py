"""One connection: versions, order, correlation, limits, throttling; closed after any error."""

import errno
import select
import socket
import threading
import time
from contextlib import closing, contextmanager
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    LocalProtocolError,
    OutOfMemory,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest
from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from pyspark_kafkaproto.net.connection import fresh_buffer
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.wire.frame import decode_request, encode_request, encode_response
from tests.fake_broker import (
    DEFAULT,
    STALL,
    FakeCluster,
    close,
    cut,
    in_version,
    raw,
    wrong_correlation,
)

ALL_TOPICS = MetadataRequest(topics=None)
SOON_S = 0.05


@pytest.fixture
def cluster():
    with FakeCluster({"orders": 2}) as cluster:
        yield cluster


def _config(cluster, **properties):
    names = {name.replace("_", "."): value for name, value in properties.items()}
    return ClientConfig.parse({"bootstrap.servers": cluster.address()} | names, "kafka.")


@contextmanager
def opened(cluster, on_frame=None, **properties):
    connection = Connection.open(
        Endpoint.parse(cluster.address()), _config(cluster, **properties), soon(), on_frame
    )
    with closing(connection):
        yield connection


def soon(timeout_s=5.0):
    return Deadline.after(timeout_s)


# Versions


def test_asks_for_versions_once_and_speaks_the_highest_of_both(cluster):
    cluster.versions["Metadata"] = (0, 8)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == 8
        assert connection.version_for(MetadataRequest, most=5) == 5
        assert connection.request(ALL_TOPICS, soon()).topics[0].name == "orders"
    assert [(call.api, call.header.api_version) for call in cluster.calls] == [
        ("ApiVersions", 4),
        ("Metadata", 8),
    ]


def test_our_highest_version_where_the_broker_has_more(cluster):
    cluster.versions["Metadata"] = (0, 99)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == MetadataRequest.VERSIONS.max


def test_names_itself_to_the_broker(cluster):
    with opened(cluster, client_id="me"):
        pass
    call = cluster.calls[0]
    assert call.header.client_id == "me"
    assert call.request.client_software_name == "pyspark-kafkaproto"
    assert call.request.client_software_version


def test_older_broker_answers_error_35_in_v0_and_is_asked_in_its_own_version(cluster):
    cluster.versions["ApiVersions"] = (0, 3)
    with opened(cluster) as connection:
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
    assert [call.header.api_version for call in cluster.calls if call.api == "ApiVersions"] == [3]


def test_error_35_without_a_range_is_followed_by_v0(cluster):
    refusal = in_version(ApiVersionsResponse(error_code=35), 0)
    cluster.on("ApiVersions", refusal, DEFAULT)
    with opened(cluster) as connection:
        assert connection.version_for(MetadataRequest) == 13
    assert [call.header.api_version for call in cluster.calls] == [4, 0]


@pytest.mark.parametrize("code", [35, 56])
def test_versions_refused_for_good_is_a_broker_error(cluster, code):
    cluster.on("ApiVersions", in_version(ApiVersionsResponse(error_code=code), 0))
    if code != 35:
        cluster.on("ApiVersions", ApiVersionsResponse(error_code=code))
    with pytest.raises(BrokerError, match=f"ApiVersions: broker 127.*{code}") as caught:
        Connection.open(Endpoint.parse(cluster.address()), _config(cluster), soon())
    assert caught.value.code == code


def test_no_common_version_names_both_ranges(cluster):
    cluster.versions["Metadata"] = (90, 99)
    with opened(cluster) as connection, pytest.raises(UnsupportedVersion) as caught:
        connection.request(ALL_TOPICS, soon())
    ours = MetadataRequest.VERSIONS
    assert str(caught.value) == (
        f"broker {cluster.address()} speaks Metadata 90 to 99, this package {ours.min} to "
        f"{ours.max}"
    )


def test_most_below_the_brokers_least_is_unsupported(cluster):
    with (
        opened(cluster) as connection,
        pytest.raises(UnsupportedVersion, match="Fetch 4 to 17, this package 0 to 3"),
    ):
        connection.version_for(FetchRequest, most=3)


def test_api_that_is_not_offered_is_unsupported_and_costs_no_connection(cluster):
    with opened(cluster) as connection:
        with pytest.raises(UnsupportedVersion, match="does not offer Heartbeat"):
            connection.request(HeartbeatRequest(), soon())
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"


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
    pytest.param(STALL, DeadlineExceeded, "receive: not done"),
    pytest.param(raw(b"\x00\x00"), DeadlineExceeded, "receive: not done"),
    pytest.param(raw(bytes([0, 0, 0, 50]) + bytes(10)), DeadlineExceeded, "receive: not done"),
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
    pytest.param(raw(bytes([0, 0, 0, 4, 0, 0, 0, 1])), RemoteProtocolError, "Metadata response"),
    pytest.param(in_version(FINE, 1), RemoteProtocolError, "Metadata response v13"),
]


@pytest.mark.parametrize(("fault", "error", "text"), ERRORS)
def test_bad_answer_is_its_error_and_closes(cluster, fault, error, text):
    cluster.on("Metadata", fault)
    with opened(cluster, receive_message_max_bytes=65536) as connection:
        with pytest.raises(error, match=text):
            connection.request(ALL_TOPICS, soon(SOON_S if error is DeadlineExceeded else 5))
        assert not connection.is_open
        assert not connection.is_idle
        assert connection.in_flight == 0


def test_request_that_cannot_be_written_costs_no_connection(cluster):
    with opened(cluster) as connection:
        with pytest.raises(LocalProtocolError, match="allow_auto_topic_creation"):
            connection.send(MetadataRequest(allow_auto_topic_creation=False), soon(), version=0)
        assert connection.is_idle


HANDSHAKE_ERRORS = [
    pytest.param(close(), ConnectionFailed, "handshake failed: .*TLS listener does this"),
    pytest.param(STALL, DeadlineExceeded, "is this a Kafka listener.*not done within 0.05 s"),
    pytest.param(raw(b"HTTP/1.1 400 Bad Request"), RemoteProtocolError, "is this a Kafka listener"),
    pytest.param(raw(b"\x15\x03\x03\x00\x02\x02\x50"), RemoteProtocolError, "TLS alert"),
    # Within what an answer may be, far more than the answer to a handshake is: not waited for.
    pytest.param(raw(b"\x0f\0\0\0"), RemoteProtocolError, "frame of 251658240 bytes"),
    pytest.param(raw(b"SSH-2.0-OpenSSH"), RemoteProtocolError, "is this a Kafka listener"),
]


@pytest.mark.parametrize(("fault", "error", "text"), HANDSHAKE_ERRORS)
@pytest.mark.parametrize("cap", [1000, 2**31 - 1])
def test_peer_that_is_no_plaintext_broker_is_found_out(cluster, fault, error, text, cap):
    cluster.on("ApiVersions", fault)
    config = _config(cluster, receive_message_max_bytes=cap)
    with pytest.raises(error, match=text):
        Connection.open(
            Endpoint.parse(cluster.address()),
            config,
            soon(SOON_S if error is DeadlineExceeded else 5),
        )


def test_handshake_ends_with_the_time_for_setup(cluster):
    cluster.on("ApiVersions", STALL)
    config = ClientConfig.parse(
        {"bootstrap.servers": cluster.address(), "socket.connection.setup.timeout.ms": 50}
    )
    told = r"handshake \(connected, and nothing answers.*not done within 0\.05 s"
    with pytest.raises(DeadlineExceeded, match=told):
        Connection.open(Endpoint.parse(cluster.address()), config, soon(60))


# Memory and frames


def test_frame_lands_in_the_callers_memory_and_records_are_views_of_it(cluster):
    answer = FetchResponse(
        responses=(
            FetchResponse.Topic(
                partitions=(FetchResponse.Topic.Partition(records=b"record batches"),)
            ),
        )
    )
    cluster.on("Fetch", answer)
    memory = bytearray(1000)
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        reply = connection.receive(soon(), lambda size_bytes: memoryview(memory)[:size_bytes])
    records = reply.message.responses[0].partitions[0].records
    assert records == b"record batches"
    memory[memory.index(b"record")] = ord("R")
    assert records == b"Record batches"


PIECE = 100


def records_of(size_bytes):
    partition = FetchResponse.Topic.Partition(records=bytes(size_bytes))
    return FetchResponse(responses=(FetchResponse.Topic(partitions=(partition,)),))


def test_large_answer_is_received_in_pieces(cluster):
    cluster.on("Fetch", records_of(1000))
    frames = []

    def on_frame(way, pieces, _):
        frames.append((way, len(b"".join(pieces))))

    with opened(cluster, on_frame) as connection:
        connection.send(FetchRequest(), soon())
        del frames[:]
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        assert (arrival.arrived, arrival.is_whole, arrival.front.size) == (PIECE, False, 1000)
        connection.more(arrival, PIECE, soon())
        assert arrival.arrived == 2 * PIECE
        assert frames == []
        while not arrival.is_whole:
            connection.more(arrival, PIECE, soon())
        assert frames == [("received", len(arrival.payload))]
        assert not connection.is_idle
        reply = connection.finish(arrival, soon())
        assert len(reply.message.responses[0].partitions[0].records) == 1000
        assert connection.is_idle


@pytest.mark.parametrize("size_bytes", [0, 20, PIECE])
def test_answer_of_less_than_two_pieces_is_received_at_once(cluster, size_bytes):
    cluster.on("Fetch", records_of(size_bytes))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        assert arrival.is_whole
        connection.finish(arrival, soon())


def test_nothing_is_sent_or_received_while_an_answer_comes(cluster):
    cluster.on("Fetch", records_of(1000))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        with pytest.raises(LocalProtocolError, match="answer to Fetch is still coming"):
            connection.send(ALL_TOPICS, soon())
        with pytest.raises(LocalProtocolError, match="answer to Fetch is still coming"):
            connection.receive(soon())
        connection.finish(arrival, soon())
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"


def test_answer_that_breaks_off_closes_the_connection(cluster):
    cluster.on("Fetch", cut(records_of(1000), 300))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        with pytest.raises(ConnectionFailed, match="the broker closed"):
            connection.finish(arrival, soon())
        assert not connection.is_open
        with pytest.raises(ConnectionFailed, match="closed before"):
            connection.more(arrival, PIECE, soon())
        with pytest.raises(ConnectionFailed, match="closed before"):
            connection.finish(arrival, soon())


def test_somebody_elses_answer_is_refused_at_its_first_piece(cluster):
    cluster.on("Fetch", wrong_correlation(records_of(1000)))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        with pytest.raises(RemoteProtocolError, match="correlation id 2, expected 1"):
            connection.begin(soon(), fresh_buffer, PIECE)
        assert not connection.is_open


# Answers taken in as they come


@contextmanager
def joined():
    """A connection that nobody has shaken hands on, and the socket at its other end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = Endpoint(*server.getsockname())
        config = ClientConfig.parse({"bootstrap.servers": str(place)})
        with closing(Connection(Transport.connect(place, soon()), config)) as connection:
            peer, _ = server.accept()
            with peer:
                yield connection, peer


def named(cluster_id):
    return MetadataResponse(cluster_id=cluster_id)


def take_in_until(connection, is_enough):
    deadline = soon()
    while not is_enough():
        deadline.check("waiting for what the peer sent")
        connection.take_in()


@pytest.mark.slow
@given(
    st.lists(st.text("ab", max_size=9), min_size=1, max_size=3),
    st.lists(st.integers(1, 40), max_size=4),
)
def test_an_answer_is_there_when_all_of_it_is_however_it_was_cut(names, cuts):
    with joined() as (connection, peer):
        for _ in names:
            connection.send(ALL_TOPICS, soon(), 9)
        answers = [encode_response(named(name), 9, index) for index, name in enumerate(names)]
        ends = list(accumulate(map(len, answers)))
        stream = b"".join(answers)
        found = []
        for start, stop in pairwise([0, *accumulate(cuts), len(stream)]):
            peer.sendall(stream[start : max(start, stop)])
            while len(found) < sum(end <= max(start, stop) for end in ends):
                take_in_until(connection, connection.take_in)
                found.append(connection.receive(soon(0)).message.cluster_id)
            assert not connection.take_in()
        assert found == names
        assert connection.is_idle


def test_the_rest_of_an_answer_joins_what_was_taken_in():
    memory = memoryview(bytearray(2000))
    frames = []
    with joined() as (connection, peer):
        connection._incoming._on_frame = lambda way, frame, _: frames.append((way, b"".join(frame)))
        connection.send(FetchRequest(), soon(), 4)
        answer = encode_response(records_of(1000), 4, 0)
        peer.sendall(answer[:500])
        take_in_until(connection, lambda: connection.heard_at)
        assert not connection.take_in(lambda size_bytes: memory[:size_bytes])
        peer.sendall(answer[500:])
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        assert arrival.arrived == 500 - 4 + PIECE
        connection.finish(arrival, soon())
        assert frames == [("received", answer[4:])]


def test_an_answer_is_taken_into_the_callers_memory():
    memory = memoryview(bytearray(2000))
    with joined() as (connection, peer):
        connection.send(FetchRequest(), soon(), 4)
        peer.sendall(encode_response(records_of(1000), 4, 0))
        deadline = soon()
        while not connection.take_in(lambda size_bytes: memory[:size_bytes]):
            deadline.check("waiting for what the peer sent")
        records = connection.receive(soon(0)).message.responses[0].partitions[0].records
        memory[memory.tobytes().rindex(bytes(1000)) + 5] = 7
        assert bytes(records).count(7) == 1


def test_what_is_wrong_with_an_answer_is_said_to_whoever_receives_it():
    with joined() as (connection, peer):
        connection.send(ALL_TOPICS, soon(), 9)
        peer.sendall(encode_response(named("x"), 9, 0)[:9])
        assert peer.recv(1000), "what is not read makes the end a reset"
        peer.close()
        take_in_until(connection, connection.take_in)
        assert not connection.is_open
        assert connection.take_in()
        with pytest.raises(ConnectionFailed, match="the broker closed the connection"):
            connection.receive(soon())
        with pytest.raises(ConnectionFailed, match="the connection was closed before"):
            connection.receive(soon())


def test_who_takes_answers_in_is_told_of_a_reset():
    with joined() as (connection, peer):
        connection.send(ALL_TOPICS, soon(), 9)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
        take_in_until(connection, connection.take_in)
        with pytest.raises(ConnectionFailed, match="Connection reset by peer"):
            connection.receive(soon())


def test_nothing_is_taken_in_while_an_answer_that_was_begun_comes(cluster):
    cluster.on("Fetch", records_of(1000))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        with pytest.raises(LocalProtocolError, match="answer to Fetch is still coming"):
            connection.take_in()
        connection.finish(arrival, soon())


@pytest.mark.parametrize("why", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
def test_answer_without_memory_for_it_is_an_error_with_its_size(cluster, why):
    def refuse(_size_bytes):
        raise why

    cluster.on("Fetch", records_of(1000))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        text = rf"broker {cluster.address()}: no memory for an answer of 10\d\d bytes: set kafka.fe"
        with pytest.raises(OutOfMemory, match=text):
            connection.begin(soon(), refuse)
        assert not connection.is_open


@pytest.mark.parametrize("stall_s", [None, 0.0])
def test_large_records_go_from_where_they_stand_and_arrive_in_their_place(stall_s):
    """Not copied into one frame before; the kernel takes a part of it at a time."""
    data = bytes(range(256)) * 8192
    partitions = [
        ProduceRequest.Topic.Partition(index=index, records=data[index : index - size_bytes])
        for index, size_bytes in enumerate([10, 2_000_000, 10, 1_500_000])
    ]
    topic = ProduceRequest.Topic(name="orders", partition_data=tuple(partitions))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))
    seen = []
    with joined() as (connection, peer):
        connection._outgoing._on_frame = lambda _, pieces, __: seen.append(b"".join(pieces))
        expected = encode_request(request, 8, 0, connection._config.client_id)
        received = bytearray()

        def read():
            while len(received) < len(expected):
                received.extend(peer.recv(1 << 20))

        reader = threading.Thread(target=read)
        if stall_s is None:
            reader.start()
        connection.send(request, soon(), 8, stall_s=stall_s)
        if stall_s is not None:
            assert connection.has_unsent  # nobody reads
            reader.start()
        until = soon()
        while connection.has_unsent:
            connection.take_in()
            until.check("all of it to go")
        reader.join(5)
        assert received == expected
    assert seen == [expected[4:]]


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


def test_hook_learns_when_sending_began_and_when_the_answer_was_there(cluster, monkeypatch):
    seen, sending = [], []
    send = Transport.send

    def late(transport, data, deadline):
        """A system call that comes back when the broker has answered already."""
        sending.append(time.time_ns())
        send(transport, data, deadline)
        select.select([transport], [], [], SOON_S * 100)
        sending.append(time.time_ns())

    monkeypatch.setattr(Transport, "send", late)
    with opened(cluster, lambda direction, _, at: seen.append((direction, at))) as connection:
        connection.request(ALL_TOPICS, soon())
    for asked in (0, 1):
        (_, sent_ns), (_, received_ns) = seen[2 * asked : 2 * asked + 2]
        began_ns, over_ns = sending[2 * asked : 2 * asked + 2]
        assert sent_ns <= began_ns <= over_ns <= received_ns


def test_hook_hears_nothing_of_what_was_not_sent(cluster, monkeypatch):
    seen = []
    with opened(cluster, lambda direction, *_: seen.append(direction)) as connection:
        monkeypatch.setattr(Transport, "send", _refuse)
        with pytest.raises(ConnectionFailed):
            connection.send(ALL_TOPICS, soon())
    assert seen == ["sent", "received"]  # ApiVersions


def _refuse(*_):
    raise ConnectionFailed("b:1", "send", "it was closed")


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
        with pytest.raises(DeadlineExceeded, match=r"throttles this client for another 60\.0 s"):
            connection.request(ALL_TOPICS, soon(5))
        assert clock.slept == []
        assert connection.is_idle
        clock.now += 60
        assert connection.request(ALL_TOPICS, soon()).cluster_id == "fake"
