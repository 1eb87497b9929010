"""Waiting for several connections at once: whoever has answers outstanding at many brokers."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection

from pyspark_kafkaproto.net.connection import Connection, MakeBuffer, fresh_buffer
from pyspark_kafkaproto.net.deadline import Deadline


def wait_for_answers(
    connections: Collection[Connection],
    timeout_s: float,
    buffer_for: Callable[[Connection], MakeBuffer] = lambda _: fresh_buffer,
) -> list[Connection]:
    """The connections on which an answer is there, or which have ended: `receive` does not wait.

    Returns as soon as there is one, or empty-handed after `timeout_s` (0: looks and does not wait).
    An answer of which only a part has come holds nobody up: it is taken in as it comes.

    Args:
        connections: on each of them an answer is outstanding.
        timeout_s: how long to wait.
        buffer_for: makes memory for the answer of a connection that is passed.
    """
    end = Deadline.after(timeout_s)
    while True:
        looked_at = time.monotonic()
        ready = [one for one in connections if one.take_in(buffer_for(one))]
        if ready or not connections or end.has_passed:
            return ready
        # What flows is looked at again first: TLS may hold bytes of which the socket says nothing.
        if all(one.heard_at < looked_at for one in connections):
            _wait(connections, end.remaining_s)


def _wait(connections: Collection[Connection], timeout_s: float) -> None:
    poll = select.poll()
    for connection in connections:
        poll.register(connection.fileno(), select.POLLIN)
    poll.poll(max(1.0, timeout_s * 1000))
