"""Byte streams to brokers: TCP with deadlines; `tls` encrypts what goes over one.

It moves bytes and knows nothing of Kafka. Errors are ConnectionFailed (which broker, which stage,
why) or DeadlineExceeded. SO_RCVBUF is left alone on purpose: setting it switches off the kernel's
own growth of the window and caps it low.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import select
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.errors import (
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.bounded import call_within
from pyspark_kafkaproto.net.deadline import Deadline

if TYPE_CHECKING:
    from pyspark_kafkaproto.net._inflow import Inflow

_ENDPOINT = re.compile(
    r"^(?:[\w.-]+://)?(?:\[(?P<v6>[^]]+)\]|(?P<host>[^:\s\[\]]+)):(?P<port>[0-9]{1,5})$"
)

TLS_STAGE = "TLS handshake"  # between `connect` and `handshake`
CLOSED = "the broker closed the connection"

# struct timeval: two native longs on every platform that has SO_RCVTIMEO in this form.
_TIMEVAL = struct.Struct("@ll")
_TIMED_OUT = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ETIMEDOUT}

# A call may end up to twice this long after its deadline. That way the time-out that was set for an
# earlier call is good enough for most later ones, and each of those saves a system call. It also
# keeps a time-out from being rounded to zero, which would mean for ever.
_GRACE_S = 0.01
_PIECES_MAX = 1024  # that one system call takes (IOV_MAX)
_LONGEST_POLL_S = 3600.0  # `poll` counts milliseconds in 31 bits
_WINDOW_BYTES = 1 << 20


class Endpoint(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, option: str = "bootstrap.servers") -> Endpoint:
        """`host:port`, `[v6]:port`, either with a listener name in front; else ConfigError."""
        match = _ENDPOINT.match(text.strip())
        if match is None or not 0 < int(match["port"]) < 65536:
            why = "expected host:port, for example broker-1:9092"
            raise ConfigError(option, text, why if match is None else f"{why}; ports end at 65535")
        return cls(match["v6"] or match["host"], int(match["port"]))


class Transport:
    """A connected TCP stream.

    The socket blocks and the kernel keeps the time (SO_RCVTIMEO): one system call can then wait for
    a whole frame, where Python's own time-outs cost a poll before every call. But a call that a
    signal interrupts before its first byte is made again by Python, with all of its time: so the
    first byte is waited for by `poll`, if it is not there.
    """

    def __init__(self, sock: socket.socket, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._sock = sock
        self._timeout_s = 0.0  # as it is set
        sock.settimeout(None)

    @classmethod
    def connect(cls, endpoint: Endpoint, deadline: Deadline, first: int = 0) -> Transport:
        """As `open_socket`."""
        return cls(open_socket(endpoint, deadline, first), endpoint)

    def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Write all of `data`."""
        left = memoryview(data)
        while left:
            self._left_s(deadline, "send")  # what is too late is not sent
            try:
                left = left[self._sock.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline, "send")
            except OSError as error:
                raise self._failed("send", error, deadline) from error

    def send_some(self, pieces: Sequence[memoryview], timeout_s: float = 0.0) -> int:
        """Write what goes at once, or else in time; how many bytes.

        Where that is not all of the pieces, their rest is what has to be written next.
        """
        try:
            count = self._send_at_once(pieces)
            if not count and timeout_s > 0 and self._takes_more(timeout_s):
                count = self._send_at_once(pieces)
        except OSError as error:
            raise ConnectionFailed(str(self.endpoint), "send", self._why(error)) from error
        return count

    def _send_at_once(self, pieces: Sequence[memoryview]) -> int:
        try:
            return self._sock.sendmsg(pieces[:_PIECES_MAX], (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _takes_more(self, timeout_s: float) -> bool:
        """Whether the kernel does in time, or tells why it never will."""
        with suppress(DeadlineExceeded):
            self._wait(select.POLLOUT, Deadline.after(timeout_s), "send")
            return True
        return False

    def receive_into(self, view: memoryview, deadline: Deadline) -> None:
        """Fill `view` to its end."""
        filled = 0
        while filled < len(view):
            self._left_s(deadline, "receive")
            filled += self._receive(view[filled:], deadline)

    def receive_ahead(
        self, arrival: Arrival, pos: int, piece_bytes: int, deadline: Deadline, *, thread: bool
    ) -> None:
        """Have the rest of an answer received natively, where that is built.

        Args:
            arrival: the answer; it has an `inflow` then, which the socket is for until it stops.
            pos: where the block in it begins that a decoder asks for more of.
            piece_bytes: how much to receive at a time.
            deadline: of the answer; the decoder may wait as long for all of it together.
            thread: whether a thread of its own receives, while others decode.
        """
        receiver = _inflow_class()
        if receiver is None:
            return
        self._set_timeout(deadline)
        here = arrival.payload, arrival.arrived, pos
        arrival.inflow = receiver(self._sock, *here, piece_bytes, deadline.timeout_s, thread)

    def receive_rest(self, arrival: Arrival, stop: int, deadline: Deadline) -> None:
        """Wait until an answer is there up to `stop`."""
        inflow = arrival.inflow
        try:
            if inflow is not None and inflow.is_ahead:
                if inflow.wait(stop, self._left_s(deadline, "receive")) < stop:
                    raise self._ended()
                return
            if inflow is not None:
                inflow.check()
                self._timeout_s = 0.0  # it may have set another
        except OSError as error:
            raise self._failed("receive", error, deadline) from error
        start = arrival.arrived
        self.receive_into(arrival.payload[start:stop], deadline)
        arrival.note(stop - start)

    def receive_some(self, view: memoryview, deadline: Deadline) -> int:
        """What is there, or else what comes before the deadline; how many bytes, 0 for none."""
        count = self._take(view, deadline)
        if not count and not deadline.has_passed:
            with suppress(DeadlineExceeded):
                return self._await(view, deadline)
        return count

    def _receive(self, view: memoryview, deadline: Deadline) -> int:
        """What is there, or else what comes; how many bytes that was, one at least."""
        return self._take(view, deadline) or self._await(view, deadline)

    def _take(self, view: memoryview, deadline: Deadline) -> int:
        """What is there; how many bytes, 0 for none."""
        try:
            count = self._sock.recv_into(view, 0, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._failed("receive", error, deadline) from error
        return self._counted(count)

    def _await(self, view: memoryview, deadline: Deadline) -> int:
        """Wait for bytes of which none is there; how many came, one at least."""
        self._wait(select.POLLIN, deadline, "receive")
        self._set_timeout(deadline)
        try:
            count = self._sock.recv_into(view, 0, socket.MSG_WAITALL)
        except OSError as error:
            raise self._failed("receive", error, deadline) from error
        return self._counted(count)

    def _counted(self, count: int) -> int:
        if count == 0:
            raise self._ended()
        return count

    def _ended(self) -> ConnectionFailed:
        return ConnectionFailed(str(self.endpoint), "receive", CLOSED)

    def is_readable(self) -> bool:
        """Whether a receive finds something at once: bytes, or the end."""
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def fileno(self) -> int:
        """The socket's number in this process; -1 when it is closed."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the socket; again does no harm."""
        self._sock.close()

    def local_address(self) -> str:
        """Our end, for logs and captures; ConnectionFailed where the peer has hung up by now."""
        try:
            host, port = self._sock.getsockname()[:2]
        except OSError as error:
            reason = str(_as_reset(error).strerror)
            raise ConnectionFailed(str(self.endpoint), "connect", reason) from error
        return str(Endpoint(host, port))

    def _left_s(self, deadline: Deadline, stage: str) -> float:
        remaining_s = deadline.remaining_s
        if remaining_s <= 0:
            raise DeadlineExceeded(f"broker {self.endpoint}: {stage}", deadline.timeout_s)
        return remaining_s

    def _wait(self, event: int, deadline: Deadline, stage: str) -> None:
        """Wait until the next call does something at once, however many signals come."""
        poll = select.poll()
        poll.register(self._sock.fileno(), event)
        while not poll.poll(min(self._left_s(deadline, stage), _LONGEST_POLL_S) * 1000):
            pass

    def _set_timeout(self, deadline: Deadline) -> None:
        """Let the kernel end a receive at the deadline, or as soon after as `_GRACE_S` says."""
        remaining_s = deadline.remaining_s
        if remaining_s <= self._timeout_s <= remaining_s + 2 * _GRACE_S:
            return
        timeout_s = remaining_s + _GRACE_S
        seconds, fraction = divmod(timeout_s, 1)
        timeval = _TIMEVAL.pack(int(seconds), int(fraction * 1e6))
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval)
        self._timeout_s = timeout_s

    def _failed(self, stage: str, error: OSError, deadline: Deadline) -> KafkaProtoError:
        if error.errno in _TIMED_OUT:
            return DeadlineExceeded(f"broker {self.endpoint}: {stage}", deadline.timeout_s)
        return ConnectionFailed(str(self.endpoint), stage, self._why(error))

    def _why(self, error: OSError) -> str:
        return _in_words(error)


def _set_up(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # As Java's client: a peer that is gone without a word is noticed some time.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    except OSError as error:
        raise _as_reset(error) from None
    _widen_window(sock)


def _as_reset(error: OSError) -> OSError:
    """What a socket that the peer has ended refuses is invalid to macOS, whatever it is."""
    if error.errno != errno.EINVAL:
        return error
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))


def _widen_window(sock: socket.socket) -> None:
    """Have Linux take in so much before it is read; it widens that further as it sees fit.

    It begins with 64 kB, and goes by how much is read in a round trip: whoever decodes a piece at a
    time seems slow to it, and has the broker wait. Who wants to be woken for so much only, has to
    have room for it: that room stays.
    """
    if sys.platform != "linux":
        return
    try:
        for least_bytes in (_WINDOW_BYTES, 1):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least_bytes)
    except OSError:  # not all that call themselves so have it: they are slower
        pass


@functools.cache
def _inflow_class() -> type[Inflow] | None:
    """What receives natively; None where the kernel is not there or not wanted either."""
    # Who reads no records does without the room of records.
    from pyspark_kafkaproto.records import IMPLEMENTATION  # noqa: PLC0415

    if IMPLEMENTATION == "pure":
        return None
    try:
        from pyspark_kafkaproto.net._inflow import Inflow  # noqa: PLC0415 - may not have been built
    except ImportError:
        return None
    return Inflow


def open_socket(endpoint: Endpoint, deadline: Deadline, first: int = 0) -> socket.socket:
    """A connected socket: each address that the host's name has in turn.

    Args:
        endpoint: where to.
        deadline: when to give up.
        first: with which address to begin, counted round and round: who met nothing good behind
            one that takes connections asks for the next.

    Raises:
        ConnectionFailed: names the stage.
    """
    reasons = []
    found = _resolve(endpoint, deadline)
    turn = first % len(found)
    found = found[turn:] + found[:turn]
    for tried, (family, kind, proto, _, address) in enumerate(found):
        # A silent address leaves the next ones their share of the time.
        share = deadline.sooner(deadline.remaining_s / (len(found) - tried))
        try:
            return _open(family, kind, proto, address, share)
        except OSError as error:
            reasons.append(f"{address[0]}: {reason_of(error, share)}")
    raise ConnectionFailed(str(endpoint), "connect", "; ".join(reasons))


def _resolve(
    endpoint: Endpoint, deadline: Deadline
) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    look_up = functools.partial(
        socket.getaddrinfo, endpoint.host, endpoint.port, type=socket.SOCK_STREAM
    )
    try:
        # An address asks no name server; for a name the system may take half a minute.
        is_address = ":" in endpoint.host or endpoint.host.replace(".", "").isdecimal()
        found = look_up() if is_address else call_within(look_up, deadline)
    except TimeoutError as error:
        why = f"host name {endpoint.host!r}: {error} from this machine's name service"
        raise ConnectionFailed(str(endpoint), "resolve", why) from None
    except (OSError, UnicodeError) as error:
        raise ConnectionFailed(
            str(endpoint), "resolve", f"host name {endpoint.host!r} does not resolve ({error})"
        ) from error
    return found  # type: ignore[return-value]  # typeshed allows families that TCP never gives


def _open(
    family: int, kind: int, proto: int, address: tuple[str, int], deadline: Deadline
) -> socket.socket:
    sock = socket.socket(family, kind, proto)
    try:
        sock.settimeout(max(0.001, deadline.remaining_s))
        sock.connect(address)
        _set_up(sock)
    except BaseException:
        sock.close()
        raise
    return sock


def reason_of(error: OSError, deadline: Deadline) -> str:
    """Why a socket failed that had until `deadline`, in words."""
    if isinstance(error, TimeoutError):
        return f"no answer within {deadline.timeout_s:.3g} s"
    return _in_words(error)


def _in_words(error: OSError) -> str:
    """Without its number, which means something to systems alone."""
    return error.strerror or str(error)


if sys.platform == "win32":  # pragma: no cover - said once, at import, instead of a riddle later
    raise ImportError("pyspark_kafkaproto needs a POSIX system: Linux or macOS")
