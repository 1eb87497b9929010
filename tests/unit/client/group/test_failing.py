"""Failures of partitions: how long they are borne with, and that an answer ends them."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group import failing
from pyspark_kafkaproto.client.group.failing import Failing
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConnectionFailed
from pyspark_kafkaproto.net import ClientConfig
from tests.clock import stop_clock

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ClientConfig.parse({"bootstrap.servers": "b-1:9092", "default.api.timeout.ms": "60000"})
LOST = ConnectionFailed("b-1:9092", "receive", "closed")


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, failing)


@pytest.fixture
def fails(clock):
    """Notes that partitions fail, so many seconds after what was last."""
    noted = Failing(CONFIG)

    def note(*partitions, after_s=0.0):
        clock.now += after_s
        noted.note(set(partitions), LOST, clock.now)

    note.noted = noted
    return note


def test_what_fails_for_as_long_as_a_call_may_take_is_an_error(fails):
    fails(FIRST)
    fails(FIRST, after_s=59)
    with pytest.raises(ConnectionFailed):
        fails(FIRST, after_s=1)


def test_an_answer_about_a_partition_ends_its_failure_and_no_others(fails):
    fails(FIRST, SECOND)
    fails.noted.note_answered({FIRST, SECOND}, {SECOND})
    fails(FIRST, after_s=60)
    fails.noted.note_answered({FIRST}, ())
    with pytest.raises(ConnectionFailed):
        fails(SECOND)


def test_what_lasts_is_said_once_until_there_was_an_answer(fails, caplog):
    fails(FIRST)
    assert not caplog.records
    for _ in range(3):
        fails(FIRST, after_s=6)
    assert len(caplog.records) == 1
    fails.noted.note_answered({FIRST}, ())
    fails(FIRST, after_s=6)
    assert len(caplog.records) == 1
    fails(FIRST, after_s=6)
    assert len(caplog.records) == 2


def test_who_was_not_polled_for_long_has_a_try_begun_long_ago_count_as_one_timeout(fails, clock):
    """Whenever the answer came, nobody looked: that the caller was busy is no failure."""
    fails.noted.note({FIRST}, LOST, clock.now - 3600)
    fails(FIRST, after_s=CONFIG.default_api_timeout_s - CONFIG.request_timeout_s - 1)
    with pytest.raises(ConnectionFailed):
        fails(FIRST, after_s=1)
