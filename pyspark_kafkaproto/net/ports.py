"""Loopback ports for servers that this package starts: finding free ones, seeing one answer.

A port found free can be taken by someone else before its server binds it; whoever uses these
functions tries again with other ports when that happens.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

from pyspark_kafkaproto.net.deadline import Deadline

LOOPBACK = "127.0.0.1"
_PROBE_S = 1.0
_PAUSE_S = 0.05


def free_ports(count: int) -> list[int]:
    """`count` different TCP ports of this machine that nothing listens on at this moment."""
    with ExitStack() as held:
        # All are held until the last is found: the kernel may offer a released one again.
        sockets = [held.enter_context(_bind(0)) for _ in range(count)]
        return [int(sock.getsockname()[1]) for sock in sockets]


def is_free(port: int) -> bool:
    """Whether a server could bind this port now."""
    try:
        _bind(port).close()
    except OSError:
        return False
    return True


def answers(host: str, port: int, timeout_s: float = _PROBE_S) -> bool:
    """Whether a TCP connection to the port is accepted within `timeout_s` seconds."""
    try:
        socket.create_connection((host, port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def wait_until_answers(host: str, port: int, deadline: Deadline) -> None:
    """Return once the port accepts a connection; DeadlineExceeded when it never does."""
    while not answers(host, port, max(_PAUSE_S, min(_PROBE_S, deadline.remaining_s))):
        deadline.check(f"waiting for {host}:{port} to accept connections")
        time.sleep(_PAUSE_S)


def _bind(port: int) -> socket.socket:
    sock = socket.socket()
    try:
        # As Java's servers do: a port whose last connections are still in TIME_WAIT is free.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((LOOPBACK, port))
    except OSError:
        sock.close()
        raise
    return sock
