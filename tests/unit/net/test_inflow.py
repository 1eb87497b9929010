"""The rest of an answer, received without Python: what comes, what does not, and who tells."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pyspark_kafkaproto import records
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.net import transport
from pyspark_kafkaproto.net.connection import fresh_buffer
from pyspark_kafkaproto.records import IMPLEMENTATION, Columns, NewRecord, decode, encode_batch
from pyspark_kafkaproto.wire.frame import encode_response
from tests.unit.net import talking

if IMPLEMENTATION == "pure":
    pytest.skip("what is native needs the kernel", allow_module_level=True)

from pyspark_kafkaproto.net._inflow import Inflow
from tests.forks import fork
from tests.waiting import until

BLOCK = b"".join(
    encode_batch([NewRecord(b"%03d" % (first + i) * 30) for i in range(10)], base_offset=first)
    for first in range(0, 200, 10)
)
PIECE = 1500
FRONT = b"front"  # of the answer, before the block
BEHIND = b"the next answer"
SOON_S = 5.0
TASKS = Path("/proc/self/task")


@contextmanager
def joined():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize(("implementation", "found"), [("native", Inflow), ("pure", None)])
def test_answers_are_received_natively_where_records_are_decoded_so(
    monkeypatch, implementation, found
):
    monkeypatch.setattr(records, "IMPLEMENTATION", implementation)
    assert transport._inflow_class.__wrapped__() is found


class Answer:
    """Memory for an answer of which the front is there."""

    def __init__(self, sock, *, ahead, size=None, patience_s=SOON_S):
        self.memory = bytearray(len(FRONT) + (len(BLOCK) if size is None else size))
        self.memory[: len(FRONT)] = FRONT
        self.sock = sock
        here = len(FRONT)
        self.inflow = Inflow(sock, memoryview(self.memory), here, here, PIECE, patience_s, ahead)
        self.asked = 0

    def more(self):
        """What Python does where the inflow leaves it to it."""
        self.asked += 1
        left = len(self.memory) - self.inflow.arrived
        if self.asked == 1:
            self.left = left
        if self.inflow.is_ahead:
            self.inflow.wait(len(self.memory), SOON_S)
        else:
            self.inflow.check()
            count = self.sock.recv_into(memoryview(self.memory)[-left:]) if left else 0
            self.inflow.note(count)
        return self.inflow.reached

    def decode(self):
        return decode(
            memoryview(self.memory)[len(FRONT) :],
            start=0,
            stop=1000,
            wanted=Columns.ALL,
            arrived=0,
            more=self.more,
            source=self.inflow,
        )


def reset(sock):
    """Close so that the other end meets an error and not an end."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@contextmanager
def connected():
    """As `joined`, by TCP, which knows resets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("step", [1, 100, PIECE, 100_000])
def test_all_rows_come_and_nothing_of_the_next_answer_is_taken(ahead, step):
    with joined() as (ours, theirs):
        sent = BLOCK + BEHIND
        parts = [sent[at : at + step] for at in range(0, len(sent), step)]
        peer = threading.Thread(target=lambda: [theirs.sendall(part) for part in parts])
        peer.start()
        answer = Answer(ours, ahead=ahead)
        decoded = answer.decode()
        peer.join()
        answer.inflow.stop()
        assert decoded.rows == 200
        assert answer.memory == FRONT + BLOCK
        assert ours.recv(100) == BEHIND


def test_python_is_asked_for_less_than_two_pieces_alone():
    with joined() as (ours, theirs):
        theirs.sendall(BLOCK)
        answer = Answer(ours, ahead=False)
        assert answer.decode().rows == 200
        assert answer.asked == 2  # and once more, whether anything follows
        assert PIECE <= answer.left < 2 * PIECE


def test_python_learns_at_once_that_the_thread_has_all():
    """It asks for the next answer then, before it decodes what is left."""
    with joined() as (ours, theirs):
        theirs.sendall(BLOCK)
        answer = Answer(ours, ahead=True)
        until(lambda: answer.inflow.arrived == len(answer.memory))
        assert answer.decode().rows == 200
        assert answer.asked == 2


def test_what_stands_behind_the_block_is_no_part_of_it():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True, size=len(BLOCK) + 4 * PIECE)
        theirs.sendall(BLOCK + bytes(2 * PIECE))
        until(lambda: answer.inflow.reached == len(BLOCK) + 2 * PIECE)
        block = memoryview(answer.memory)[len(FRONT) : len(FRONT) + len(BLOCK)]
        options = {"start": 0, "stop": 1000, "wanted": Columns.ALL}
        options |= {"arrived": 0, "more": lambda: len(BLOCK), "source": answer.inflow}
        assert decode(block, **options).rows == 200


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [False, True])
def test_time_that_the_decoder_waits_is_counted(ahead):
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=ahead)
        sent_at = []

        def send():
            sent_at.append(time.monotonic())
            theirs.sendall(BLOCK)

        peer = threading.Timer(0.2, send)
        peer.start()
        began = time.monotonic()
        answer.decode()
        peer.join()
        assert ahead or sent_at[0] - began - 0.05 < answer.inflow.waited_s < SOON_S
        assert not ahead or answer.inflow.waited_s > 0.01  # the rest of it Python has waited


@pytest.mark.slow
def test_drops_that_come_in_time_wear_the_patience_out_all_the_same():
    """Each piece would be there before its own time-out."""
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=False, patience_s=0.1)
        is_over = threading.Event()

        def drip():
            for at in range(0, len(BLOCK), PIECE):
                theirs.sendall(BLOCK[at : at + PIECE])
                is_over.wait(0.03)

        peer = threading.Thread(target=drip)
        peer.start()
        answer.more = is_over.set  # which says nothing of use, and ends the reading
        with pytest.raises(TypeError):
            answer.decode()
        assert is_over.is_set()
        assert answer.inflow.waited_s >= 0.1
        assert answer.inflow.arrived < len(answer.memory)
        peer.join()


@pytest.mark.slow
def test_wait_for_a_late_piece_leaves_less_time_for_the_next():
    with joined() as (ours, theirs):
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 3, 0))
        answer = Answer(ours, ahead=False, patience_s=3.0)
        peer = threading.Timer(1.6, theirs.sendall, [BLOCK[:PIECE]])
        peer.start()
        answer.more = lambda: None  # which ends the reading
        began = time.monotonic()
        with pytest.raises(TypeError):
            answer.decode()
        peer.join()
        assert 2.95 <= time.monotonic() - began < 4.5  # and not 4.6
        assert answer.inflow.arrived == len(FRONT) + PIECE


def test_what_python_waits_counts_with_the_rest():
    with joined() as (ours, theirs):
        theirs.sendall(BLOCK)
        answer = Answer(ours, ahead=False, patience_s=1.0)
        answer.inflow.note_waited(1.0)
        assert answer.decode().rows == 200
        assert answer.inflow.waited_s == 1.0
        assert answer.inflow.waited_natively_s == 0.0
        assert answer.inflow.arrived == len(answer.memory)  # all of it received by Python


def test_end_of_the_stream_is_told_by_what_is_missing():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(BLOCK[:1000])
        theirs.close()
        assert answer.inflow.wait(len(answer.memory), SOON_S) == len(FRONT) + 1000


def test_reset_is_an_error_for_whoever_waits_for_the_thread():
    with connected() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(BLOCK[:1000])
        assert answer.inflow.wait(1000, SOON_S) >= 1000
        reset(theirs)
        with pytest.raises(OSError, match="reset") as raised:
            answer.inflow.wait(len(answer.memory), SOON_S)
        assert raised.value.errno == errno.ECONNRESET


def test_reset_that_the_decoder_meets_is_told_to_python():
    with connected() as (ours, theirs):
        answer = Answer(ours, ahead=False)
        reset(theirs)
        with pytest.raises(ConnectionResetError):
            answer.decode()


@pytest.mark.slow
def test_silence_is_an_error_in_time():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(b"x")
        began = time.monotonic()
        with pytest.raises(OSError, match="timed out") as raised:
            answer.inflow.wait(len(answer.memory), 0.2)
        assert raised.value.errno == errno.ETIMEDOUT
        assert 0.2 <= time.monotonic() - began < SOON_S


def test_thread_outlives_the_kernels_time_out_on_the_socket():
    """Which is set for the reader's call, and says nothing about who goes ahead."""
    with joined() as (ours, theirs):
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, 10_000))
        answer = Answer(ours, ahead=True)
        time.sleep(0.05)
        theirs.sendall(BLOCK)
        assert answer.inflow.wait(len(answer.memory), SOON_S) == len(answer.memory)


def test_stop_ends_a_thread_that_waits_and_the_connection_with_it():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(BLOCK[:1000])
        began = time.monotonic()
        answer.inflow.stop()
        answer.inflow.stop()
        assert time.monotonic() - began < SOON_S
        assert theirs.recv(1) == b""
        assert not answer.inflow.is_ahead


def test_stop_behind_the_end_leaves_the_connection_alone():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(BLOCK)
        answer.inflow.wait(len(answer.memory), SOON_S)
        answer.inflow.stop()
        ours.sendall(b"again")
        assert theirs.recv(100) == b"again"
        assert answer.inflow.arrived == len(answer.memory)


def test_closing_a_connection_amid_an_answer_ends_the_thread_that_receives_it():
    """Whoever has the answer still may keep it for long."""
    with talking.joined() as (connection, peer):
        connection.send(FetchRequest(), talking.soon(), 4)
        peer.sendall(encode_response(talking.records_of(1000), 4, 0)[:500])
        answer = connection.begin(talking.soon(), fresh_buffer, talking.PIECE, thread=True)
        assert answer.inflow.is_ahead
        connection.close()
        assert not answer.inflow.is_ahead


@pytest.mark.parametrize("ahead", [False, True])
def test_nothing_is_received_any_more_once_it_was_stopped(ahead):
    """The number of its socket may be another's by then."""
    with joined() as (ours, _theirs), joined() as (other, others_peer):
        answer = Answer(ours, ahead=ahead)
        answer.inflow.stop()
        os.dup2(other.fileno(), ours.fileno())
        others_peer.sendall(BLOCK)
        answer.more = lambda: 0
        assert answer.decode().rows == 0
        assert other.recv(len(BLOCK), socket.MSG_DONTWAIT) == BLOCK


def test_stop_lets_another_thread_go_that_waits():
    """As where the connections of a process are closed while one of its threads reads."""
    with joined() as (ours, _theirs):
        answer = Answer(ours, ahead=True)
        found = []
        reader = threading.Thread(target=lambda: found.append(answer.decode().rows))
        reader.start()
        until(lambda: answer.inflow.waited_s > 0)
        answer.inflow.stop()
        reader.join(SOON_S)
        assert found == [0]


@pytest.mark.slow
def test_what_is_thrown_away_while_it_flows_ends_its_thread():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        theirs.sendall(BLOCK[:1000])
        answer.itself = answer  # garbage in a cycle, as behind a traceback
        del answer
        gc.collect()
        assert theirs.recv(1) == b""


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [False, True])
def test_ctrl_c_ends_a_wait(ahead):
    with joined() as (ours, _theirs):
        answer = Answer(ours, ahead=ahead)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
            with pytest.raises(KeyboardInterrupt):
                answer.decode()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def test_signal_that_means_nothing_does_not_end_a_wait():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=False)
        rung = threading.Event()
        before = signal.signal(signal.SIGALRM, lambda *_: rung.set())
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            peer = threading.Thread(target=lambda: rung.wait(SOON_S) and theirs.sendall(BLOCK))
            peer.start()
            assert answer.decode().rows == 200
            peer.join()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert rung.is_set()


@pytest.mark.skipif(not TASKS.exists(), reason="Linux alone tells what a thread blocks")
def test_signals_are_for_pythons_own_threads():
    """One that this thread took would not wake who waits in Python: Ctrl-C would wait, too."""

    def blocking() -> dict[str, int]:
        found = {}
        for task in TASKS.iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                lines = (task / "status").read_text().splitlines()
                (blocked,) = (line for line in lines if line.startswith("SigBlk:"))
                found[task.name] = int(blocked.split()[1], 16)
        return found

    with joined() as (ours, _theirs):
        before, own = blocking(), signal.pthread_sigmask(signal.SIG_BLOCK, [])
        answer = Answer(ours, ahead=True)
        (blocked,) = (mask for task, mask in blocking().items() if task not in before)
        assert blocked >> signal.SIGINT - 1 & 1
        assert blocked >> signal.SIGTERM - 1 & 1
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == own
        answer.inflow.stop()


@pytest.mark.slow
def test_child_process_throws_it_away_without_the_thread():
    with joined() as (ours, theirs):
        answer = Answer(ours, ahead=True)
        child = fork()
        if not child:
            with suppress(BaseException):
                del answer
                gc.collect()
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        theirs.sendall(BLOCK)
        assert answer.inflow.wait(len(answer.memory), SOON_S) == len(answer.memory)


def test_block_that_begins_behind_what_has_arrived_is_refused():
    with joined() as (ours, _theirs), pytest.raises(ValueError, match="block at 9"):
        Inflow(ours, memoryview(bytearray(20)), 5, 9, PIECE, SOON_S, True)


def test_more_than_there_is_room_for_is_refused():
    with joined() as (ours, _theirs), pytest.raises(ValueError, match="21 bytes of 20"):
        Inflow(ours, memoryview(bytearray(20)), 21, 9, PIECE, SOON_S, True)
