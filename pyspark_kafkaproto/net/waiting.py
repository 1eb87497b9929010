"""Waiting for several connections at once: whoever has answers outstanding at many brokers."""

from __future__ import annotations

import select
from collections.abc import Collection

from pyspark_kafkaproto.net.connection import Connection


def wait_for_answers(connections: Collection[Connection], timeout_s: float) -> list[Connection]:
    """The connections on which an answer has begun to come, or which have ended.

    Returns as soon as there is one, or empty-handed after `timeout_s` (0: looks and does not wait).
    """
    ready = [connection for connection in connections if connection.has_answer]
    if ready or timeout_s <= 0 or not connections:
        return ready
    poll = select.poll()
    for connection in connections:
        poll.register(connection.fileno(), select.POLLIN)
    poll.poll(max(1.0, timeout_s * 1000))
    return [connection for connection in connections if connection.has_answer]
