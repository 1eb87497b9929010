"""Brokers that give nothing but a throttle are named now and then, each for itself."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.reading.withheld import Withheld
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.net import ClientConfig, Endpoint, deadline
from tests.clock import stop_clock
from tests.fake_sessions import with_values

ONE, OTHER = Endpoint("b-1", 9092), Endpoint("b-2", 9092)
OVER = FetchResponse(throttle_time_ms=100)
WELL = FetchResponse(
    throttle_time_ms=100,
    responses=(FetchResponse.Topic(partitions=(FetchResponse.Topic.Partition(records=b"some"),)),),
)
ASKED = [TopicPartition("orders", 1), TopicPartition("orders", 0)]


@pytest.fixture
def clock(monkeypatch):
    return stop_clock(monkeypatch, deadline)


def test_it_is_said_once_in_the_time_of_a_call_until_something_comes(clock, caplog):
    withheld = Withheld(ClientConfig.parse({"bootstrap.servers": "b-1:9092"}))
    said = []
    for number in range(300):  # seconds
        withheld.note(ONE, ASKED, WELL if number == 150 else OVER)
        withheld.note(OTHER, ASKED, OVER if number % 50 else WELL)
        clock.now += 1
        said += [number] * len(caplog.messages)
        caplog.clear()
    assert said == [60, 120, 211, 271]


@pytest.mark.parametrize(
    ("part", "is_withheld"),
    [
        (ShareFetchResponse.Topic.Partition(), True),  # what was acknowledged was taken
        (ShareFetchResponse.Topic.Partition(records=b"some"), False),
        (ShareFetchResponse.Topic.Partition(error_code=6), False),
    ],
)
def test_an_answer_to_acknowledgements_alone_is_withheld_too(part, is_withheld):
    withheld = Withheld(ClientConfig.parse({"bootstrap.servers": "b-1:9092"}))
    topics = (ShareFetchResponse.Topic(partitions=(part,)),)
    over = ShareFetchResponse(throttle_time_ms=100, responses=topics)
    assert withheld.note(ONE, ASKED, over) == is_withheld
    assert not withheld.note(ONE, ASKED, with_values(over, throttle_time_ms=0))


def test_who_waits_for_what_and_why_is_named(clock, caplog):
    withheld = Withheld(ClientConfig.parse({"bootstrap.servers": "b-1:9092"}))
    withheld.note(ONE, ASKED, OVER)
    clock.now += 61
    withheld.note(ONE, ASKED, OVER)
    (text,) = caplog.messages
    assert text.startswith("nothing of orders-0, orders-1 has come for 60 s: broker b-1:9092 ")
    assert "kafkaproto quotas list" in text
