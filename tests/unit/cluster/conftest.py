from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, asking, diagnosis
from pyspark_kafkaproto.net import connection, deadline, incoming, retry
from tests.clock import stop_clock
from tests.fake_broker import FakeCluster


@pytest.fixture
def clock(monkeypatch):
    """Time in `net` and for the doctor, standing still but for sleeps."""
    return stop_clock(monkeypatch, asking, retry, deadline, connection, incoming, diagnosis)


@pytest.fixture
def brokers():
    """Two fake nodes; the first leads both partitions of `orders`."""
    with FakeCluster({"orders": 2, "empty": 1}, nodes=2) as fake:
        yield fake


@pytest.fixture
def kafka_at():
    """Opens a window on other addresses, or with other properties."""
    with ExitStack() as held:

        def open_window(servers, **properties):
            config = {"bootstrap.servers": servers} | properties
            return held.enter_context(KafkaCluster(config))

        yield open_window


@pytest.fixture
def kafka(brokers, kafka_at):
    """The window on the fake nodes."""
    return kafka_at(brokers.bootstrap_servers)


@pytest.fixture
def unknown_hosts(monkeypatch):
    """Host names that do not resolve, as long as they are in this set."""
    names, resolve = set(), socket.getaddrinfo

    def look_up(host, *args, **options):
        if host in names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve("127.0.0.1" if host == "broker-1" else host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names
