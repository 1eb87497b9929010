"""Answers and failures that come at the moment that a test wants."""

from __future__ import annotations

import time

from pyspark_kafkaproto.errors import ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.net import Deadline, wait_for_answers
from pyspark_kafkaproto.net.transport import Transport

MOST_CALLS = 250  # uses of a socket that a test of all of them has


def while_others_are_sent(writer, fault):
    """`fault`, once a second request is on its way."""

    def answer(call):
        deadline = Deadline.after(10)
        while sum(len(link.sent) for link in writer._sender._links.values()) < 2:
            deadline.check("waiting for a second request")
            time.sleep(0.001)
        return fault(call) if callable(fault) else fault

    return answer


def wait_until_answered(writer):
    """Return once the answer to what is in flight has come; nobody takes it."""
    (link,) = writer._sender._links.values()
    assert wait_for_answers([link.connection], 10)


class Failing:
    """Transport's methods, of which the k-th call fails."""

    def __init__(self, patch, k, error):
        self.calls, self.k, self.error = 0, k, error
        for name in ("connect", "send", "receive_into", "receive_some"):
            patch.setattr(Transport, name, self.counted(name, getattr(Transport, name)))

    def counted(self, name, method):
        def call(*args):
            self.calls += 1
            if self.calls == self.k:
                raise self.error(name)
            return method(*args)

        return call

    @property
    def is_over(self):
        return self.calls < self.k


def lost(stage):
    return ConnectionFailed("a broker", stage, "the k-th call fails")


def timed_out(stage):
    return DeadlineExceeded(f"a broker: {stage}", 30)
