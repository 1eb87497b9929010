"""Waiting for several connections at once: whoever has answers outstanding at many brokers."""

from __future__ import annotations

import select
from collections.abc import Callable, Collection

from pyspark_kafkaproto.net.connection import Connection, fresh_buffer
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.incoming import MakeBuffer

# Between two pieces of an answer that flows less time passes. One system call for many of them
# costs less than one for each, where it keeps nobody else waiting.
_FLOW_S = 0.01


def wait_for_answers(
    connections: Collection[Connection],
    timeout_s: float,
    buffer_for: Callable[[Connection], MakeBuffer] = lambda _: fresh_buffer,
) -> list[Connection]:
    """The connections on which an answer is there, or which have ended: `receive` does not wait.

    Returns as soon as there is one, or empty-handed after `timeout_s` (0: looks and does not wait).
    An answer of which only a part has come holds nobody up, nor does a request of which only a part
    has gone: they are taken in and sent on meanwhile.

    Args:
        connections: on each of them an answer is outstanding.
        timeout_s: how long to wait.
        buffer_for: makes memory for the answer of a connection that is passed.
    """
    end = Deadline.after(timeout_s)
    is_alone = len(connections) == 1
    looked_at = connections
    while True:
        flow_s = min(_FLOW_S, end.remaining_s) if is_alone else 0.0
        ready = [one for one in looked_at if one.take_in(buffer_for(one), flow_s)]
        if ready or not connections or end.has_passed:
            return ready
        looked_at = _heard_of(connections, end.remaining_s)


def _heard_of(connections: Collection[Connection], timeout_s: float) -> list[Connection]:
    """Those on which more comes, or goes, in time; of them all that had come was taken."""
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in connections}
    for number, connection in by_number.items():
        poll.register(number, select.POLLIN | (select.POLLOUT if connection.has_unsent else 0))
    return [by_number[number] for number, _ in poll.poll(max(1.0, timeout_s * 1000))]
