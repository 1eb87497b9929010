"""A network that swallows everything, in which a member is closed: within its time, and told of."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net.transport import Transport
from tests.fault.network import Network
from tests.unit.client.group.polling import poll_rows

pytestmark = pytest.mark.slow

FIRST = TopicPartition("orders", 0)
TIMEOUT_S = 1.5
GRACE_S = 1.0  # of a machine that others use
SHORT = {"default_api_timeout_ms": round(TIMEOUT_S * 1000)}  # all else waits for half a minute


@pytest.fixture
def network(monkeypatch) -> Iterator[Network]:
    made = Network(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def closing(network):
    """Closes a member while nothing passes; how long that took."""

    def close(consumer, **how):
        began = time.monotonic()
        with network.cut():
            consumer.close(**how)
            return time.monotonic() - began

    return close


@pytest.mark.parametrize("commits", [True, False])
def test_a_member_that_nobody_hears_closes_in_its_time(network, closing, member_of, commits):
    consumer = member_of(**SHORT)
    poll_rows(consumer, 40)
    assert closing(consumer, commit=commits) < TIMEOUT_S + GRACE_S


def test_the_commits_of_who_closes_and_is_not_heard_have_failed(network, closing, member_of):
    told = []
    consumer = member_of({"on_commit": lambda *said: told.append(said)}, **SHORT)
    poll_rows(consumer, 40)
    with network.cut():
        consumer.commit({FIRST: 7}, wait=False)
        assert closing(consumer) < TIMEOUT_S + GRACE_S
    ((offsets, error),) = told
    assert offsets == {FIRST: 7}
    assert isinstance(error, DeadlineExceeded)


def test_who_has_closed_connects_to_nobody_any_more(network, member_of, brokers, monkeypatch):
    consumer = member_of(**SHORT)
    poll_rows(consumer, 40)
    opened = []
    connect = Transport.connect
    monkeypatch.setattr(Transport, "connect", lambda *how: opened.append(how) or connect(*how))
    with network.cut():
        consumer.commit({FIRST: 7}, wait=False)
        consumer.close()
        opened.clear()
        for node in list(brokers.places()):
            brokers.stop(node)
    keepers = [item for item in threading.enumerate() if item.name == "kafkaproto-group-g"]
    for keeper in keepers:
        keeper.join(10)
        assert not keeper.is_alive()
    assert opened == []
