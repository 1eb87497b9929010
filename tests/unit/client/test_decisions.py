"""The decision log: what is read of it, and how its topic is made."""

import json

import pytest

from pyspark_kafkaproto.client import decisions
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.net import ClientConfig, pool
from tests.fake_broker import FakeCluster

TOPIC, PREFIX = "decisions", "orders"


@pytest.fixture
def brokers(monkeypatch):
    pools = {}
    monkeypatch.setattr(pool, "_pools", pools)
    monkeypatch.setattr(decisions, "_seen", {})
    with FakeCluster({TOPIC: 1}, nodes=3) as fake:
        yield fake
        for kept in pools.values():
            kept.close()


@pytest.fixture
def log(brokers):
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    return DecisionLog(config, TOPIC, PREFIX)


def decide(brokers, batch, state):
    """Write a decision of the query `name` as its driver would."""
    value = json.dumps({"batch": batch, "state": state, "transactions": []})
    key = json.dumps([PREFIX, "name"])
    brokers.logs[TOPIC, 0].append(value.encode(), key=key.encode())


def last(log):
    return str(log.read()["name"])


def test_what_comes_after_a_truncation_is_read_by_whoever_had_read_further(brokers, log):
    for batch in ("1", "2", "3"):
        decide(brokers, batch, "done")
    assert last(log) == "batch 3 (done, 0 transactions)"
    brokers.logs[TOPIC, 0].cut_off(1)
    decide(brokers, "4", "decided")
    assert last(log) == "batch 4 (decided, 0 transactions)"
