"""Whom of several brokers is waited for, and how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client.group import under_way
from pyspark_kafkaproto.client.group.under_way import UnderWay
from pyspark_kafkaproto.net import deadline
from tests.clock import stop_clock

MAX_WAIT_S, TIMEOUT_S = 0.5, 30.0


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, under_way, deadline)


@pytest.fixture
def waited(monkeypatch):
    """How long each wait was to be; `ready` is who has answered then."""
    found = SimpleNamespace(for_s=[], ready=set())

    def wait(connections, timeout_s, _):
        found.for_s.append(timeout_s)
        return [one for one in connections if one.name in found.ready]

    monkeypatch.setattr(under_way, "wait_for_answers", wait)
    return found


class FakeConnection(SimpleNamespace):
    __hash__ = object.__hash__


@pytest.fixture
def asked(clock):
    """Two brokers, the second of them 10 s after the first."""
    asked = UnderWay(MAX_WAIT_S, TIMEOUT_S)
    for name in ("first", "second"):
        connection = FakeConnection(name=name, heard_at=0.0)
        asked.add(SimpleNamespace(connection=connection, asked={}), (name, ""))
        clock.now += 10
    return asked


def test_whoever_has_answered_comes_first_and_of_several_who_was_asked_first(asked, waited):
    assert asked.first_come(1.0) is None
    for ready, expected in (({"second"}, "second"), ({"first", "second"}, "first")):
        waited.ready = ready
        assert asked.first_come(1.0).place == (expected, "")


def test_nobody_is_waited_for_longer_than_until_the_oldest_is_due(asked, waited):
    """10 s are over of the 30.5 s of the first one when the second was asked, and 10 s since."""
    for timeout_s in (1.0, 60.0):
        asked.first_come(timeout_s)
    assert waited.for_s == pytest.approx([1.0, 10.5])


def test_who_has_been_heard_since_is_due_later(asked, clock):
    oldest = asked.oldest
    due = asked.due(oldest)
    assert (due.remaining_s, due.timeout_s) == pytest.approx((10.5, MAX_WAIT_S + TIMEOUT_S))
    oldest.sent.connection.heard_at = clock.now - 1
    assert asked.due(oldest).remaining_s == pytest.approx(29.0)
