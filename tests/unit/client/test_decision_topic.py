"""The topic of decisions: how it is made, and whoever may not see what it is."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client import decision_topic
from pyspark_kafkaproto.client.decision_topic import ensure_topic
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import FakeCluster

TOPIC = "decisions"
_NOT_ALLOWED = 29


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(decision_topic, "_keeping", set())


def ensure(brokers):
    config = ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    router = Router(config)
    try:
        ensure_topic(router, TOPIC)
    finally:
        router.close()


def allow(brokers, api, answer):
    """Have an API that the fake does not know by itself."""
    brokers.versions[api] = (4, 4)
    brokers.on(api, answer)


def test_whoever_may_not_see_the_topics_configuration_trusts_it():
    refused = DescribeConfigsResponse.Resource(
        error_code=_NOT_ALLOWED, resource_type=2, resource_name=TOPIC
    )
    with FakeCluster({TOPIC: 1}) as brokers:
        allow(brokers, "DescribeConfigs", DescribeConfigsResponse(results=(refused,)))
        for _ in range(2):
            ensure(brokers)
        assert len(brokers.asked("DescribeConfigs")) == 1


@pytest.mark.parametrize(("nodes", "replicas", "least"), [(2, 2, None), (4, 3, "2")])
def test_no_single_broker_has_a_decision_where_there_are_three(clock, nodes, replicas, least):
    made = CreateTopicsResponse.Topic(name=TOPIC)
    with FakeCluster({}, nodes) as brokers:
        allow(brokers, "CreateTopics", CreateTopicsResponse(topics=(made,)))
        ensure(brokers)
        (request,) = brokers.asked("CreateTopics")
    (topic,) = request.topics
    configs = {item.name: item.value for item in topic.configs}
    assert (topic.replication_factor, configs.get("min.insync.replicas")) == (replicas, least)
    assert configs["cleanup.policy"] == "compact"
