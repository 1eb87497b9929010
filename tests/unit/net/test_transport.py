"""The byte stream: which stage failed, and that nothing outlasts its deadline."""

import errno
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from pyspark_kafkaproto.errors import ConfigError, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.net import transport as transport_module
from pyspark_kafkaproto.net.transport import Endpoint, Transport

SOON_S = 0.05


@pytest.fixture
def joined(peer):
    """A transport, and the socket at its other end."""
    transport = Transport.connect(peer.endpoint, Deadline.after(5))
    yield transport, peer.accept()
    transport.close()


@contextmanager
def ticking():
    """A program that is interrupted all the time, as under a profiler; for 3 s at most.

    Not by a timer: that of this process is pytest's, for tests that hang.
    """
    done = threading.Event()
    main = threading.main_thread().ident

    def tick():
        end = Deadline.after(3)
        while not (done.wait(0.005) or end.has_passed):
            signal.pthread_kill(main, signal.SIGUSR1)

    thread = threading.Thread(target=tick)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("broker-1:9092", "broker-1", 9092),
        (" 10.0.0.1:1 ", "10.0.0.1", 1),
        ("[::1]:65535", "::1", 65535),
        ("PLAINTEXT://broker:9092", "broker", 9092),
        ("SASL_SSL://[fe80::1]:9093", "fe80::1", 9093),
        ("CLIENT-2.a://broker_x:9092", "broker_x", 9092),
    ],
)
def test_endpoint_is_read(text, host, port):
    endpoint = Endpoint.parse(text)
    assert (endpoint.host, endpoint.port) == (host, port)
    assert Endpoint.parse(str(endpoint)) == endpoint


@pytest.mark.parametrize(
    "text",
    [
        *("", "broker", "broker:", ":9092", "broker:0", "broker:65536", "broker:-1"),
        *("a b:1", "::1:9092", "[::1]", "broker:9092/x"),
        pytest.param("broker:\u0663", id="a digit of another script"),
        pytest.param("broker:" + "9" * 5000, id="more digits than int() takes"),
    ],
)
def test_endpoint_that_is_none_names_option_value_and_form(text):
    with pytest.raises(ConfigError) as caught:
        Endpoint.parse(text, "kafka.bootstrap.servers")
    assert caught.value.option == "kafka.bootstrap.servers"
    assert caught.value.value == text
    assert "host:port" in str(caught.value)
    assert ("65535" in str(caught.value)) == (text in {"broker:0", "broker:65536"})


def test_bytes_go_both_ways(joined):
    transport, other = joined
    transport.send(b"ping", Deadline.after(5))
    assert other.recv(10) == b"ping"
    other.sendall(b"po")
    other.sendall(b"ng+more")
    view = memoryview(bytearray(4))
    transport.receive_into(view, Deadline.after(5))
    assert bytes(view) == b"pong"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a window is as wide as it comes")
def test_much_has_room_before_it_is_read_and_little_is_read_at_once(joined):
    transport, other = joined
    other.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
    other.settimeout(5)
    other.sendall(bytes(900_000))
    view = memoryview(bytearray(900_001))
    transport.receive_into(view[:900_000], Deadline.after(5))
    other.sendall(b"1")
    transport.receive_into(view[900_000:], Deadline.after(5))
    assert view[900_000] == ord("1")


def test_what_comes_before_the_deadline_is_received_and_counted(joined):
    transport, other = joined
    view = memoryview(bytearray(6))
    assert transport.receive_some(view, Deadline.after(0)) == 0
    assert transport.receive_some(view, Deadline.after(SOON_S)) == 0
    other.sendall(b"pong")
    assert transport.receive_some(view, Deadline.after(SOON_S)) == 4
    assert transport.receive_some(view, Deadline.after(0)) == 0
    other.sendall(b"pong")
    deadline = Deadline.after(5)
    while not transport.is_readable():
        deadline.check("waiting for what the peer sent")
    assert transport.receive_some(view, Deadline.after(0)) == 4, "it is there"
    other.sendall(b"ping")
    began = time.monotonic()
    assert transport.receive_some(view[4:], Deadline.after(60)) == 2
    assert bytes(view) == b"pongpi"
    assert time.monotonic() - began < 5, "it is full"


def test_host_without_address_fails_to_resolve(monkeypatch):
    def fail(*_args, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConnectionFailed, match=r"nowhere:9092: resolve failed.*'nowhere'") as error:
        Transport.connect(Endpoint("nowhere", 9092), Deadline.after(1))
    assert error.value.stage == "resolve"


def test_a_resolver_put_in_the_systems_place_is_asked_by_name(monkeypatch, peer):
    real = socket.getaddrinfo
    known = {"broker-1.internal": "127.0.0.1"}

    def look_up(host, *args, **options):
        return real(known.get(host, host), *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    Transport.connect(Endpoint("broker-1.internal", peer.endpoint.port), Deadline.after(5)).close()


def test_a_name_service_that_hangs_ends_at_the_deadline(monkeypatch):
    hung = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: hung.wait(30))
    began = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"'nowhere': no answer within 0\.05 s") as caught:
        Transport.connect(Endpoint("nowhere", 9092), Deadline.after(SOON_S))
    assert caught.value.stage == "resolve"
    assert time.monotonic() - began < 15
    hung.set()


def test_an_address_is_no_question_for_the_name_service(monkeypatch, peer):
    monkeypatch.setattr(transport_module, "call_within", None)
    Transport.connect(peer.endpoint, Deadline.after(5)).close()


@pytest.mark.parametrize("host", ["a" * 70, "..", "\udcff"])
def test_host_name_that_is_none_fails_to_resolve(host):
    with pytest.raises(ConnectionFailed) as caught:
        Transport.connect(Endpoint(host, 9092), Deadline.after(1))
    assert caught.value.stage == "resolve"


def test_refused_port_fails_to_connect(unused_ports):
    (port,) = unused_ports(1)
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1: Connection refused") as caught:
        Transport.connect(Endpoint("127.0.0.1", port), Deadline.after(5))
    assert (caught.value.stage, caught.value.broker) == ("connect", f"127.0.0.1:{port}")


class _Ended(socket.socket):
    """As on macOS, where what the peer has ended takes no options and has no address."""

    def refuse(self, *_):
        raise OSError(errno.EINVAL, "Invalid argument")

    setsockopt = getsockname = refuse


def test_who_hangs_up_as_soon_as_it_is_reached_fails_to_connect(monkeypatch, peer):
    monkeypatch.setattr(socket, "socket", _Ended)
    with pytest.raises(ConnectionFailed, match=r"connect failed: .*: Connection reset") as caught:
        Transport.connect(peer.endpoint, Deadline.after(5))
    assert caught.value.stage == "connect"


def test_who_has_hung_up_by_the_time_it_is_asked_for_has_no_address(joined, monkeypatch):
    transport, _ = joined
    with _Ended() as ended:
        monkeypatch.setattr(transport, "_sock", ended)
        with pytest.raises(ConnectionFailed, match="Connection reset"):
            transport.local_address()
        monkeypatch.undo()


def _unanswering():
    """A port that takes no more connections: its queue of one is full."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    return listener, socket.create_connection(listener.getsockname())


def test_silent_port_fails_to_connect_at_the_deadline():
    listener, first = _unanswering()
    with listener, first:
        endpoint = Endpoint(*listener.getsockname())
        with pytest.raises(ConnectionFailed, match=r"no answer within 0\.05 s") as caught:
            Transport.connect(endpoint, Deadline.after(SOON_S))
    assert caught.value.stage == "connect"


def test_each_address_is_tried_and_a_silent_one_leaves_time_for_the_next(monkeypatch, peer):
    listener, first = _unanswering()
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
        for address in (listener.getsockname(), (peer.endpoint.host, peer.endpoint.port))
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
    with listener, first:
        transport = Transport.connect(Endpoint("two-addresses", 9092), Deadline.after(2 * SOON_S))
    transport.close()


def test_all_addresses_are_named_when_none_works(monkeypatch, unused_ports):
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))
        for host, port in zip(("127.0.0.1", "127.0.0.2"), unused_ports(2), strict=True)
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
    with pytest.raises(
        ConnectionFailed, match=r"127\.0\.0\.1: Connection refused; 127\.0\.0\.2: Connection refus"
    ):
        Transport.connect(Endpoint("two-addresses", 9092), Deadline.after(5))


def test_silence_ends_at_the_deadline(joined):
    transport, other = joined
    other.sendall(b"ab")
    with pytest.raises(DeadlineExceeded, match=r"receive: not done within 0\.05 s"):
        transport.receive_into(memoryview(bytearray(4)), Deadline.after(SOON_S))


@pytest.mark.slow
@pytest.mark.parametrize(("before_s", "now_s"), [(5.0, SOON_S), (SOON_S / 2, 2 * SOON_S)])
def test_each_call_has_its_own_deadline(joined, before_s, now_s):
    transport, other = joined
    other.sendall(b"a")
    transport.receive_into(memoryview(bytearray(1)), Deadline.after(before_s))
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        transport.receive_into(memoryview(bytearray(1)), Deadline.after(now_s))
    assert now_s <= time.monotonic() - began < now_s + 4  # and not 5


def test_deadline_that_has_passed_is_not_for_ever(joined):
    transport, _ = joined
    with pytest.raises(DeadlineExceeded):
        transport.receive_into(memoryview(bytearray(1)), Deadline.after(0))
    with pytest.raises(DeadlineExceeded):
        transport.send(b"x", Deadline.after(0))


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"ab"])
def test_signals_put_off_no_deadline(joined, sent):
    transport, other = joined
    other.sendall(sent)
    began = time.monotonic()
    with ticking():
        with pytest.raises(DeadlineExceeded):
            transport.receive_into(memoryview(bytearray(4)), Deadline.after(0.1))
        assert transport.receive_some(memoryview(bytearray(4)), Deadline.after(0.1)) == 0
        other.sendall(b"ab")
        assert transport.receive_some(memoryview(bytearray(4)), Deadline.after(0.1)) == 2
        with pytest.raises(DeadlineExceeded):
            transport.send(bytes(64 << 20), Deadline.after(0.1))
    assert time.monotonic() - began < 2


@pytest.mark.slow
def test_signals_lose_no_bytes(joined):
    transport, other = joined
    data = bytes(range(256)) * (64 << 10)
    sender = threading.Thread(target=other.sendall, args=(data,))
    sender.start()
    received = memoryview(bytearray(len(data)))
    with ticking():
        transport.receive_into(received, Deadline.after(5))
        sender.join()
        back = bytearray()
        reader = threading.Thread(target=_read_all, args=(other, back, len(data)))
        reader.start()
        transport.send(data, Deadline.after(5))
        reader.join()
    assert received == data
    assert back == data


def _read_all(sock, into, size):
    while len(into) < size:
        into += sock.recv(1 << 16)


@pytest.mark.slow
def test_peer_that_reads_nothing_ends_a_send_at_the_deadline(joined):
    transport, _ = joined
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"send: not done within 2 s"):
        transport.send(bytes(64 << 20), Deadline.after(2.0))
    # A time-out per system call would have taken twice that: the first call sends a part.
    assert time.monotonic() - began < 3.8


@pytest.mark.slow
def test_what_goes_at_once_is_sent_and_the_rest_later(joined):
    transport, other = joined
    data = bytes(range(256)) * (64 << 10)
    left = memoryview(data)
    while count := transport.send_some([left]):
        left = left[count:]
    assert left  # the peer has read nothing
    received = bytearray()
    while len(received) < len(data):
        received += other.recv(1 << 20)
        if left:
            left = left[transport.send_some([left]) :]
    assert received == data


def test_what_does_not_go_at_once_goes_as_soon_as_there_is_room(joined):
    transport, other = joined
    while transport.send_some([memoryview(bytes(1 << 20))]):
        pass
    reader = threading.Thread(target=receive_all, args=(other,))
    reader.start()
    count = transport.send_some([memoryview(b"more")], 5.0)
    transport.close()
    reader.join()
    assert count == 4


def receive_all(sock):
    while sock.recv(1 << 20):
        pass


def test_more_pieces_than_one_call_takes_go_in_their_order(joined):
    transport, other = joined
    pieces = [memoryview(number.to_bytes(2)) for number in range(3000)]
    count = transport.send_some(pieces)
    assert 0 < count < 6000
    received = bytearray()
    while len(received) < count:
        received += other.recv(1 << 20)
    assert received == b"".join(pieces)[:count]


def test_nothing_more_is_sent_at_once_to_a_peer_that_is_gone(joined):
    transport, other = joined
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    other.close()
    with pytest.raises(ConnectionFailed) as caught:
        transport.send_some([memoryview(b"x")])
    assert (caught.value.stage, caught.value.reason) == ("send", "Connection reset by peer")


@pytest.mark.parametrize("sent", [b"", b"ab"])
def test_peer_that_closes_fails_to_receive(joined, sent):
    transport, other = joined
    other.sendall(sent)
    other.close()
    with pytest.raises(ConnectionFailed, match="closed the connection") as caught:
        transport.receive_into(memoryview(bytearray(4)), Deadline.after(5))
    assert caught.value.stage == "receive"
    with pytest.raises(ConnectionFailed, match="closed the connection"):
        transport.receive_some(memoryview(bytearray(4)), Deadline.after(5))


def test_peer_that_resets_fails_to_send_or_receive(joined):
    transport, other = joined
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    other.close()
    with pytest.raises(ConnectionFailed) as caught:
        transport.receive_into(memoryview(bytearray(4)), Deadline.after(5))
    assert caught.value.stage == "receive"
    with pytest.raises(ConnectionFailed) as caught:
        transport.send(b"x", Deadline.after(5))
    assert caught.value.stage == "send"


def test_the_system_asks_after_a_peer_that_says_nothing(joined):
    assert joined[0]._sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_open_silent_peer_has_not_closed(joined):
    transport, _ = joined
    assert not transport.is_readable()


@pytest.mark.parametrize("data", [b"", b"unasked"])
def test_closed_or_talking_peer_is_of_no_use(joined, data):
    transport, other = joined
    other.sendall(data)
    other.close()
    deadline = Deadline.after(5)
    while not transport.is_readable():
        deadline.check("waiting for what the peer did")


def test_local_address_is_what_the_peer_sees(joined):
    transport, other = joined
    assert transport.local_address() == str(Endpoint(*other.getpeername()))


def test_close_twice_does_no_harm(joined):
    transport, _ = joined
    transport.close()
    transport.close()
