"""A network that swallows everything, in which a member is closed: within its time, and told of."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from pyspark_kafkaproto.client.group import keeper as keeper_module
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.net.transport import Transport
from tests.fault.network import Network
from tests.unit.client.group.polling import poll_rows
from tests.waiting import until

pytestmark = pytest.mark.slow

FIRST = TopicPartition("orders", 0)
TIMEOUT_S = 1.5
GRACE_S = 10.0  # of a machine that others use
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
    opened = _connections(monkeypatch)
    with network.cut():
        consumer.commit({FIRST: 7}, wait=False)
        consumer.close()
        opened.clear()
        for node in list(brokers.places()):
            brokers.stop(node)
    _see_keepers_end()
    assert opened == []


def test_who_has_met_no_broker_looks_for_none_once_it_is_closed(
    consumer_of, protocol, monkeypatch, caplog
):
    opened = _connections(monkeypatch)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        consumer = consumer_of(bootstrap_servers=address, group_protocol=protocol)
        until(lambda: opened)
        consumer.close()
        opened.clear()
        _see_keepers_end()
    assert opened == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_who_reaches_no_broker_says_whom_it_waits_for_once(
    consumer_of, protocol, monkeypatch, caplog
):
    """Polls give nothing until somebody answers, and an error only when that has lasted."""
    monkeypatch.setattr(keeper_module, "_WORTH_A_WORD_S", 0.0)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        consumer = consumer_of(bootstrap_servers=address, group_protocol=protocol)

        def is_said():
            assert consumer.poll(0.01) is None
            return any("refused" in text or "no answer yet" in text for text in caplog.messages)

        until(is_said)
        for _ in range(3):
            consumer.poll(0.01)
        consumer.close()
    said = [text for text in caplog.messages if text.startswith("group 'g': ")]
    assert len(said) == 1
    assert said[0].startswith(f"group 'g': {address}: ")


def _connections(monkeypatch) -> list[tuple]:
    """Those that are opened from now on."""
    opened: list[tuple] = []
    connect = Transport.connect
    monkeypatch.setattr(Transport, "connect", lambda *how: opened.append(how) or connect(*how))
    return opened


def _see_keepers_end() -> None:
    for keeper in [item for item in threading.enumerate() if item.name == "kafkaproto-group-g"]:
        keeper.join(15)
        assert not keeper.is_alive()
