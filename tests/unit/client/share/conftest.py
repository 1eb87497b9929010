from __future__ import annotations

from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.client.share.consumer import ShareConsumer
from tests.unit.client.share.fake_shares import FakeShares


@pytest.fixture
def shares(brokers):
    """The share group `g`, with its coordinator at node 1."""
    return FakeShares(brokers)


@pytest.fixture
def filled(brokers):
    """20 records in each partition of `orders`."""
    for partition in range(2):
        brokers.logs["orders", partition].fill(2)
    return brokers


@pytest.fixture
def member_of(brokers, shares):
    """Opens a member of `g` that reads `orders`; properties as keywords with `_`."""
    with ExitStack() as held:

        def open_member(topics=("orders",), columns=None, **properties):
            given = {name.replace("_", "."): value for name, value in properties.items()}
            defaults = {
                "bootstrap.servers": brokers.bootstrap_servers,
                "group.id": "g",
                "retry.backoff.ms": 5,
                "reconnect.backoff.ms": 1,
                "fetch.max.wait.ms": 20,
                "default.api.timeout.ms": 5_000,
            }
            more = {} if columns is None else {"columns": columns}
            return held.enter_context(ShareConsumer(defaults | given, set(topics), **more))

        yield open_member


@pytest.fixture
def explicit_of(member_of):
    """The same for who acknowledges by name."""

    def open_member(**properties):
        return member_of(share_acknowledgement_mode="explicit", **properties)

    return open_member
