"""The recording proxy in front of scripted brokers: clients stay on it, and all is recorded."""

import io
import socket
import threading
from contextlib import closing, suppress
from errno import EMFILE
from struct import pack
from threading import Event, Thread
from unittest.mock import Mock

import pytest

from pyspark_kafkaproto import tap as tap_module
from pyspark_kafkaproto.capture import open_capture
from pyspark_kafkaproto.capture.link import FIN, tcp_segment
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError, ConnectionFailed, KafkaProtoError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint, relay
from pyspark_kafkaproto.net.relay import FrameStream
from pyspark_kafkaproto.tap import Tap, _Talk
from pyspark_kafkaproto.wire.frame import encode_response
from tests.fake_broker import FakeCluster
from tests.interrupted import Interrupted
from tests.unit.capture.wire import read
from tests.waiting import until


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_every_connection_goes_through_the_tap_and_into_the_file(host):
    file = io.BytesIO()
    with FakeCluster({"orders": 2}, nodes=2) as fake:
        fake.topics["orders"].move(1, 2)
        target = Endpoint.parse(fake.bootstrap_servers.split(",")[0])
        with (
            Tap(0, target, file.write, host) as tap,
            KafkaCluster({"bootstrap.servers": str(tap.endpoint)}) as cluster,
        ):
            assert tap.endpoint.host == host
            partitions = cluster.get_partitions(["orders"])
            assert set(cluster.get_latest_leader_offsets(partitions).values()) == {0}
        ports = {int(server.rpartition(":")[2]) for server in fake.bootstrap_servers.split(",")}
    messages, _ = read(file.getvalue())
    brokers = {int(message.peers.broker.rpartition(":")[2]) for message in messages}
    assert brokers == ports
    apis = {message.api for message in messages if message.kind == "response"}
    assert {"ApiVersions", "Metadata", "ListOffsets"} <= apis
    assert [message.problem for message in messages if message.body() is None] == []


def ends(data):
    """How many packets of a capture end their side of a connection."""
    packets = open_capture(io.BytesIO(data))
    return sum(bool(tcp_segment(each.link_type, each.data).flags & FIN) for each in packets)


def test_when_it_is_closed_all_is_written():
    """A slow disk: whoever reads the file next must not meet a writer."""
    file, held, released = io.BytesIO(), Event(), Event()

    def write(data):
        if tap and tap[0]._is_closed:
            held.set()
            released.wait()
        file.write(data)

    tap = []
    with FakeCluster({"orders": 1}) as fake:
        tap.append(Tap(0, Endpoint.parse(fake.bootstrap_servers), write))
        with KafkaCluster({"bootstrap.servers": str(tap[0].endpoint)}) as cluster:
            cluster.get_partitions(["orders"])
            closing_it = Thread(target=tap[0].close)
            closing_it.start()
            assert held.wait(10)
            assert closing_it.is_alive()
            released.set()
            closing_it.join(10)
    _, notes = read(file.getvalue())
    assert (closing_it.is_alive(), notes) == (False, [])
    assert ends(file.getvalue()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 40))
def test_wherever_closing_is_interrupted_it_can_be_closed_again(nth):
    """A Condition is taken by a function of Python: behind that an interrupt left it taken."""
    file, files = io.BytesIO(), {tap_module.__file__, threading.__file__}
    with FakeCluster({"orders": 1}) as fake:
        tap = Tap(0, Endpoint.parse(fake.bootstrap_servers), file.write)
        with KafkaCluster({"bootstrap.servers": str(tap.endpoint)}) as cluster:
            cluster.get_partitions(["orders"])
            with suppress(KeyboardInterrupt), Interrupted(nth, files, behind_c=True):
                tap.close()
            again = Thread(target=tap.close, daemon=True)
            again.start()
            again.join(5)
    assert not again.is_alive()
    assert ends(file.getvalue()) == 2


def test_a_client_that_comes_while_it_is_closed_is_turned_away():
    with FakeCluster({"orders": 1}) as fake:
        file, broker = io.BytesIO(), Endpoint.parse(fake.bootstrap_servers)
        tap = Tap(0, broker, file.write)
        tap.close()
        size = len(file.getvalue())
        client = Mock(FrameStream)
        tap._serve(client, broker)
        client.close.assert_called_once_with()
        assert len(file.getvalue()) == size


def test_a_client_whose_broker_is_not_reached_yet_is_ended_as_the_tap_is_closed(
    monkeypatch, caplog
):
    reached, given_up = Event(), Event()

    def nobody_answers(endpoint, deadline):
        reached.set()
        given_up.wait(10)
        raise ConnectionFailed(str(endpoint), "connect", "no answer")

    monkeypatch.setattr(relay, "open_socket", nobody_answers)
    tap = Tap(0, Endpoint("127.0.0.1", 1), io.BytesIO().write)
    with socket.create_connection(tap.endpoint, timeout=5) as client:
        assert reached.wait(10)
        tap.close()
        assert client.recv(1) == b""
        given_up.set()
    until(lambda: not any("client" in thread.name for thread in threading.enumerate()))
    assert not caplog.records


def test_a_broker_that_hangs_up_at_once_ends_the_connection(monkeypatch, caplog):
    monkeypatch.setattr(relay, "open_socket", lambda *_: socket.socket())  # as it is by then
    with (
        Tap(0, Endpoint("127.0.0.1", 1), io.BytesIO().write) as tap,
        socket.create_connection(tap.endpoint, timeout=5) as client,
    ):
        assert client.recv(1) == b""
    assert "is turned away: broker 127.0.0.1:1: connect failed" in caplog.text


def test_a_broker_that_is_not_there_ends_the_connection():
    with Tap(0, Endpoint("127.0.0.1", 1), io.BytesIO().write) as tap:
        config = ClientConfig.parse({"bootstrap.servers": str(tap.endpoint)})
        with (
            pytest.raises(KafkaProtoError),
            closing(Connection.open(tap.endpoint, config, Deadline.after(5))),
        ):
            pass


def test_a_port_that_is_taken_is_named():
    nobody, write = Endpoint("127.0.0.1", 1), io.BytesIO().write
    with Tap(0, nobody, write) as tap, pytest.raises(ConfigError, match=str(tap.endpoint.port)):
        Tap(tap.endpoint.port, nobody, write)


def test_a_broker_that_gets_no_port_is_told_of_as_it_is(monkeypatch, caplog):
    def full(*_, **__):
        raise OSError(EMFILE, "Too many open files")

    with FakeCluster({"orders": 1}) as fake:
        fake.advertised = {1: ("localhost", fake.places()[1][1])}
        with Tap(0, Endpoint.parse(fake.bootstrap_servers), io.BytesIO().write) as tap:
            monkeypatch.setattr(relay.socket, "create_server", full)
            with KafkaCluster({"bootstrap.servers": str(tap.endpoint)}) as cluster:
                cluster.get_partitions(["orders"])
    told = next(text for text in caplog.messages if "is passed on as it is" in text)
    assert "Too many open files" in told
    assert "--listen" not in told, "the port that the user gave is open"


class Silence:
    """A track of which nobody asks anything."""

    def sent(self, payload):
        pass

    received = sent


def tells_the_broker(talk, number):
    """Whether an answer to Metadata comes through with the broker's own address."""
    talk.request(pack(">hhih", 3, 1, number, -1) + b"\xff\xff\xff\xff")
    broker = MetadataResponse.Broker(node_id=1, host="real-broker", port=9092)
    answer = encode_response(MetadataResponse(brokers=(broker,)), 1, number)
    return b"real-broker" in talk.response(answer[4:])


@pytest.mark.slow
def test_what_is_never_answered_does_not_let_clients_go_round_the_tap():
    talk = _Talk(Silence(), lambda _: Endpoint("127.0.0.1", 1))
    assert not tells_the_broker(talk, 1)
    for number in range(2, 12_002):  # Produce with acks=0
        talk.request(pack(">hhih", 0, 10, number, -1))
    assert not tells_the_broker(talk, 13_000)


def test_an_answer_ends_the_wait_for_all_before_it():
    talk = _Talk(Silence(), lambda _: Endpoint("127.0.0.1", 1))
    for number in range(100):
        talk.request(pack(">hhih", 0, 10, number, -1))
    assert not tells_the_broker(talk, 200)
    # The number comes again, in a request whose answer tells nothing.
    assert talk.response(pack(">i", 7) + b"other") == pack(">i", 7) + b"other"
    assert not talk._telling


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_an_address_that_clients_cannot_be_told_is_refused(host):
    with pytest.raises(ConfigError, match="one address of this machine"):
        Tap(0, Endpoint("127.0.0.1", 1), io.BytesIO().write, host)
