"""The topic of decisions: how it is made, and whoever may not see what it is."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client import decision_topic
from pyspark_kafkaproto.client.decision_topic import ensure_topic
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import FakeCluster

TOPIC = "decisions"
_NOT_ALLOWED, _NOT_ALLOWED_AT_ALL, _ALREADY_THERE, _INVALID_CONFIG = 29, 31, 36, 40
_TOO_FEW_BROKERS = 38


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


def made_with(code, text=None):
    """What a controller answers that does not make the topic."""
    topic = CreateTopicsResponse.Topic(name=TOPIC, error_code=code, error_message=text)
    return CreateTopicsResponse(topics=(topic,))


@pytest.mark.parametrize("code", [_NOT_ALLOWED, _NOT_ALLOWED_AT_ALL])
def test_whoever_may_not_make_the_topic_is_told_what_to_make(clock, code):
    text = "topic 'decisions'.*cleanup.policy=compact.*the right CREATE on it"
    with FakeCluster({}) as brokers:
        allow(brokers, "CreateTopics", made_with(code))
        with pytest.raises(BrokerError, match=text) as caught:
            ensure(brokers)
    assert caught.value.code == code


def test_a_broker_that_has_just_gone_is_to_come_back_first(clock):
    """Its topic would have fewer replicas, for as long as it is there."""
    text = "topic 'decisions'.*cleanup.policy=compact.*try again once [0-9] brokers are there"
    with FakeCluster({}) as brokers:
        allow(brokers, "CreateTopics", made_with(_TOO_FEW_BROKERS))
        with pytest.raises(BrokerError, match=text):
            ensure(brokers)


def test_a_topic_that_somebody_else_has_just_made_is_there(clock):
    with FakeCluster({}) as brokers:
        allow(brokers, "CreateTopics", made_with(_ALREADY_THERE))
        ensure(brokers)


def test_why_a_topic_cannot_be_made_is_said(clock):
    with FakeCluster({}) as brokers:
        allow(brokers, "CreateTopics", made_with(_INVALID_CONFIG, "no such config"))
        with pytest.raises(BrokerError, match=r"INVALID_CONFIG.*no such config"):
            ensure(brokers)


def configured(code=0, **configs):
    """What a broker says of the topic's configuration."""
    entry = DescribeConfigsResponse.Resource.Config
    found = DescribeConfigsResponse.Resource(
        error_code=code,
        resource_type=2,
        resource_name=TOPIC,
        configs=tuple(
            entry(name=name.replace("_", "."), value=value) for name, value in configs.items()
        ),
    )
    return DescribeConfigsResponse(results=(found,))


def test_a_configuration_that_cannot_be_told_is_an_error(clock):
    with FakeCluster({TOPIC: 1}) as brokers:
        allow(brokers, "DescribeConfigs", configured(_INVALID_CONFIG))
        with pytest.raises(BrokerError, match="INVALID_CONFIG"):
            ensure(brokers)


@pytest.mark.parametrize("limit", [{"retention_ms": "1000"}, {"retention_bytes": "0"}])
@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_brokers_delete_decisions_from_is_refused(limit, policy):
    without = dict.fromkeys(("retention_ms", "retention_bytes"), "-1")
    ((name, value),) = limit.items()
    text = rf"'decisions'.*cleanup.policy={policy}, {name.replace('_', '.')}={value}\)"
    with FakeCluster({TOPIC: 1}) as brokers:
        allow(brokers, "DescribeConfigs", configured(cleanup_policy=policy, **without | limit))
        with pytest.raises(ConfigError, match=text):
            ensure(brokers)


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup_policy": "compact", "retention_ms": "1000"},
        {"cleanup_policy": "delete", "retention_ms": "-1", "retention_bytes": "-1"},
        {"cleanup_policy": "delete"},
        {"retention_ms": "1000", "cleanup_policy": None},
    ],
)
def test_a_topic_that_keeps_all_or_the_last_of_each_name_is_taken(configs):
    with FakeCluster({TOPIC: 1}) as brokers:
        allow(brokers, "DescribeConfigs", configured(**configs))
        ensure(brokers)


def test_a_topic_of_several_partitions_is_refused():
    with FakeCluster({TOPIC: 2}) as brokers, pytest.raises(ConfigError, match="2 partitions, not"):
        ensure(brokers)
