from __future__ import annotations

from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.client.consumer import Consumer
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from tests.unit.client.group.fake_group import FakeGroup
from tests.unit.client.group.fake_heartbeats import FakeHeartbeats
from tests.unit.client.group.noted import Noted
from tests.unit.client.group.polling import poll_rows


@pytest.fixture
def group(brokers):
    """The coordinator of group `g`, at node 1."""
    return FakeGroup(brokers)


@pytest.fixture
def heartbeats(brokers):
    """The coordinator of group `g` in the protocol of KIP-848, at node 1."""
    return FakeHeartbeats(brokers)


@pytest.fixture
def incremental_of(consumer_of):
    """The same as `consumer_of`, by that protocol."""

    def open_consumer(topics=("orders",), listeners=None, **properties):
        return consumer_of(topics, listeners, group_protocol="consumer", **properties)

    return open_consumer


@pytest.fixture
def consumer_of(brokers):
    """Opens a member of `g` that reads `orders`; properties as keywords with `_`."""
    with ExitStack() as held:

        def open_consumer(topics=("orders",), listeners=None, **properties):
            given = {name.replace("_", "."): value for name, value in properties.items()}
            defaults = {
                "bootstrap.servers": brokers.bootstrap_servers,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 3_600_000,
                "retry.backoff.ms": 5,
                "fetch.max.wait.ms": 20,
                "default.api.timeout.ms": 5_000,
            }
            if given.get("group.protocol") != "consumer":
                defaults["heartbeat.interval.ms"] = 10
            wanted = topics if isinstance(topics, SubscriptionPattern) else set(topics)
            consumer = Consumer(defaults | given, wanted, **(listeners or {}))
            return held.enter_context(consumer)

        yield open_consumer


@pytest.fixture(params=["classic", "consumer"])
def protocol(request):
    """Each group protocol."""
    return request.param


@pytest.fixture
def coordinator(request, protocol):
    """The coordinator of group `g` in that protocol."""
    return request.getfixturevalue("group" if protocol == "classic" else "heartbeats")


@pytest.fixture
def member_of(filled, coordinator, protocol, consumer_of):
    """`consumer_of` in each protocol."""

    def open_member(listeners=None, **properties):
        return consumer_of(listeners=listeners, group_protocol=protocol, **properties)

    return open_member


@pytest.fixture
def noted():
    return Noted()


@pytest.fixture
def filled(brokers):
    """20 records in each partition of `orders`."""
    for partition in range(2):
        brokers.logs["orders", partition].fill(2)
    return brokers


@pytest.fixture
def first_read(filled, group, consumer_of):
    """Opens a member that has read all 20 records of the first partition."""
    group.committed |= {("orders", 0): (0, ""), ("orders", 1): (20, "")}

    def open_consumer(**properties):
        consumer = consumer_of(**properties)
        assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]
        return consumer

    return open_consumer
