"""Answers to a Produce that come at a moment that a test wants."""

from __future__ import annotations

import time

from pyspark_kafkaproto.net import Deadline


def while_others_are_sent(writer, fault):
    """`fault`, once a second request is on its way."""

    def answer(call):
        deadline = Deadline.after(10)
        while sum(len(link.sent) for link in writer._sender._links.values()) < 2:
            deadline.check("waiting for a second request")
            time.sleep(0.001)
        return fault(call) if callable(fault) else fault

    return answer
