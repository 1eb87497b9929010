"""Whom of several brokers is waited for, and how long."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client.group import under_way
from pyspark_kafkaproto.client.group.under_way import UnderWay
from pyspark_kafkaproto.client.reading.memory import AnswerMemory
from pyspark_kafkaproto.net import deadline
from tests.clock import stop_clock

MAX_WAIT_S, TIMEOUT_S = 0.5, 30.0


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, under_way, deadline)


@pytest.fixture
def waited(monkeypatch):
    """How long each wait was to be; `ready` is who has answered then.

    Something comes from each of `begun`: `memory` has where that is.
    """
    found = SimpleNamespace(for_s=[], ready=set(), begun=(), memory={})

    def wait(connections, timeout_s, buffer_for):
        found.for_s.append(timeout_s)
        for one in connections:
            if one.name in found.begun:
                found.memory[one.name] = buffer_for(one)(100).obj
        return [one for one in connections if one.name in found.ready]

    monkeypatch.setattr(under_way, "wait_for_answers", wait)
    return found


class FakeConnection(SimpleNamespace):
    __hash__ = object.__hash__
    is_closed = False

    def close(self):
        self.is_closed = True


@pytest.fixture
def asked(clock):
    """Two brokers, the second of them 10 s after the first."""
    asked = UnderWay(MAX_WAIT_S, TIMEOUT_S)
    for name in ("first", "second"):
        connection = FakeConnection(name=name, heard_at=0.0)
        asked.add(SimpleNamespace(connection=connection, asked={name: name}), (name, ""))
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


def test_what_is_asked_and_of_whom(asked):
    assert asked
    assert asked.partitions == {"first", "second"}
    assert asked.places == {("first", ""), ("second", "")}


def take(asked, read):
    """The oldest is read; the pages that its answer is in, or comes into."""
    memory = asked.take(asked.oldest, read)
    return memory, memory.take(10).obj


def test_answers_that_come_together_come_into_memory_of_their_own(asked, waited):
    """Until the first one is read nothing of the other may come over it, nor over rows before."""
    waited.begun = ("first", "second")
    asked.first_come(1.0)
    read = AnswerMemory()
    before = read.take(10).obj
    assert len({id(pages) for pages in (*waited.memory.values(), before)}) == 3
    memory, pages = take(asked, read)
    assert pages is waited.memory["first"]
    _, pages = take(asked, memory)
    assert pages is waited.memory["second"]
    assert not asked


def test_memory_that_is_done_with_is_taken_again(asked, waited):
    read = AnswerMemory()
    before = read.take(100).obj
    waited.begun = ("first",)
    asked.first_come(1.0)
    take(asked, read)
    waited.begun = ("second",)
    asked.first_come(1.0)
    assert waited.memory["second"] is before


def test_an_answer_of_which_nothing_has_come_comes_into_the_memory_at_hand(asked):
    read = AnswerMemory()
    assert take(asked, read)[0] is read


def test_what_is_let_go_of_is_not_waited_for_and_its_memory_is_taken_again(asked, waited):
    """Its connections are closed: whoever had them next would get these answers."""
    waited.begun = ("first",)
    asked.first_come(1.0)
    first, begun = asked.oldest.sent, waited.memory["first"]
    connections = [one.sent.connection for one in asked._pending]
    asked.close()
    assert [one.is_closed for one in connections] == [True, True]
    assert (bool(asked), asked.partitions, asked.places) == (False, set(), set())

    asked.add(first, ("first", ""))
    read = AnswerMemory()
    assert take(asked, read)[0] is read, "nothing has come of this one"
    asked.add(first, ("first", ""))
    asked.first_come(1.0)
    assert waited.memory["first"] is begun
