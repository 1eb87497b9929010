"""Requests as they leave: whole, in parts, and as who observes them is told."""

from __future__ import annotations

import select
import socket
import threading
import time

import pytest

from pyspark_kafkaproto.errors import ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.wire.frame import encode_request
from tests.unit.net.talking import ALL_TOPICS, SOON_S, joined, opened, soon


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


@pytest.mark.parametrize("stall_s", [None, 0.0])
def test_what_the_kernel_takes_has_left_before_anybody_looks_for_an_answer(stall_s):
    with joined() as (connection, peer):
        expected = encode_request(ALL_TOPICS, 9, 0, connection._config.client_id)
        connection.send(ALL_TOPICS, soon(), 9, stall_s=stall_s)
        assert not connection.has_unsent
        peer.settimeout(5)
        assert peer.recv(len(expected), socket.MSG_WAITALL) == expected


@pytest.mark.parametrize(
    "go_on",
    [
        lambda connection: connection.send(ALL_TOPICS, soon(SOON_S), 9),
        lambda connection: connection.receive(soon(SOON_S)),
    ],
)
def test_connection_whose_last_request_does_not_go_is_closed(go_on):
    """Whatever comes next would stand in the midst of that one."""
    partition = ProduceRequest.Topic.Partition(index=0, records=bytes(16 << 20))
    topic = ProduceRequest.Topic(name="orders", partition_data=(partition,))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))
    with joined() as (connection, _):
        connection.send(request, soon(), 8, stall_s=0.0)
        assert connection.has_unsent  # nobody reads
        with pytest.raises(DeadlineExceeded, match="send"):
            go_on(connection)
        assert not connection.is_open
        assert (connection.has_unsent, connection.in_flight) == (False, 0)


def test_the_next_request_stands_behind_the_rest_of_the_last():
    partition = ProduceRequest.Topic.Partition(index=0, records=bytes(16 << 20))
    topic = ProduceRequest.Topic(name="orders", partition_data=(partition,))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))
    with joined() as (connection, peer):
        client_id = connection._config.client_id
        expected = encode_request(request, 8, 0, client_id)
        expected += encode_request(ALL_TOPICS, 9, 1, client_id)
        received = bytearray()

        def read():
            peer.settimeout(5)
            while len(received) < len(expected) and (data := peer.recv(1 << 20)):
                received.extend(data)

        connection.send(request, soon(), 8, stall_s=0.0)
        assert connection.has_unsent  # nobody reads
        reader = threading.Thread(target=read)
        reader.start()
        connection.send(ALL_TOPICS, soon(), 9)
        connection.close()
        reader.join(10)
        assert received == expected


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
