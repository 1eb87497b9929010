"""Answers as they come: in pieces, ahead of who receives them, into whose memory."""

from __future__ import annotations

import errno
import socket
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    LocalProtocolError,
    OutOfMemory,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.net.connection import fresh_buffer
from pyspark_kafkaproto.wire.frame import encode_response
from tests.fake_broker import cut, wrong_correlation
from tests.unit.net.talking import (
    ALL_TOPICS,
    PIECE,
    joined,
    named,
    opened,
    records_of,
    soon,
    take_in_until,
)


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


def test_answer_whose_next_piece_does_not_come_closes_the_connection(cluster):
    cluster.on("Fetch", cut(records_of(1000), 300))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        arrival = connection.begin(soon(), fresh_buffer, PIECE)
        connection.more(arrival, PIECE, soon())
        with pytest.raises(ConnectionFailed, match="the broker closed"):
            connection.more(arrival, PIECE, soon())
        assert not connection.is_open


def test_somebody_elses_answer_is_refused_at_its_first_piece(cluster):
    cluster.on("Fetch", wrong_correlation(records_of(1000)))
    with opened(cluster) as connection:
        connection.send(FetchRequest(), soon())
        with pytest.raises(RemoteProtocolError, match="correlation id 2, expected 1"):
            connection.begin(soon(), fresh_buffer, PIECE)
        assert not connection.is_open


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


def test_who_observes_is_told_once_it_is_seen_that_all_of_an_answer_is_there(cluster):
    """Not when somebody comes for it: that may be long after."""
    seen = []
    with opened(cluster, lambda direction, *_: seen.append(direction)) as connection:
        del seen[:]
        connection.send(ALL_TOPICS, soon())
        take_in_until(connection, connection.take_in)
        assert seen == ["sent", "received"]
        connection.receive(soon())
        assert seen == ["sent", "received"]


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


@pytest.mark.parametrize("is_taken", [True, False])
def test_first_answer_that_breaks_off_is_no_want_of_a_login(cluster, is_taken):
    cluster.on("Metadata", cut(named("x"), 9))
    with opened(cluster) as connection:
        connection.send(ALL_TOPICS, soon())
        if is_taken:
            take_in_until(connection, connection.take_in)
        with pytest.raises(ConnectionFailed) as caught:
            connection.receive(soon())
    assert caught.value.reason == "the broker closed the connection"


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
