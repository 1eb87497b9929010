from __future__ import annotations

from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.client.consumer import Consumer
from tests.unit.client.group.fake_group import FakeGroup


@pytest.fixture
def group(brokers):
    """The coordinator of group `g`, at node 1."""
    return FakeGroup(brokers)


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
                "heartbeat.interval.ms": 10,
                "auto.commit.interval.ms": 3_600_000,
                "retry.backoff.ms": 5,
                "fetch.max.wait.ms": 20,
                "default.api.timeout.ms": 5_000,
            }
            consumer = Consumer(defaults | given, set(topics), **(listeners or {}))
            return held.enter_context(consumer)

        yield open_consumer
