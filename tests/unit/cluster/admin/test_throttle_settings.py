"""The five settings of throttles: asked for by name, and taken away whoever set them."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import ConfigResource, TopicPartition
from pyspark_kafkaproto.error_codes import TOPIC_AUTHORIZATION_FAILED
from pyspark_kafkaproto.errors import BrokerError
from tests.unit.cluster.admin.fake_settings import ALTER, DESCRIBE, IN, OUT, rates, refuse_topic

FIRST = TopicPartition("orders", 0)
RATES = (f"{IN}.rate", f"{OUT}.rate")


def test_throttles_are_asked_for_by_name(brokers, kafka, settings):
    kafka.end_throttle(kafka.throttle_reassignment({FIRST: (3,)}, 5000))
    kafka.remove_throttles()
    asked = [item for request in brokers.asked(DESCRIBE) for item in request.resources]
    assert {len(item.configuration_keys) for item in asked} == {5}


def test_throttles_are_removed_whoever_set_them(kafka, settings):
    settings["broker", "2"] = rates("70") | {"other": "1"}
    settings["topic", "empty"] = {f"{IN}.replicas": "*"}
    settings["topic", "orders"] = {f"{IN}.replicas": "*"}
    assert kafka.remove_throttles({"orders"}) == {
        ConfigResource("broker", "2"): (f"{IN}.rate", f"{OUT}.rate"),
        ConfigResource("topic", "orders"): (f"{IN}.replicas",),
    }
    assert settings["broker", "2"] == {"other": "1"}
    assert kafka.remove_throttles() == {ConfigResource("topic", "empty"): (f"{IN}.replicas",)}
    assert kafka.remove_throttles() == {}


@pytest.mark.parametrize("api", [DESCRIBE, ALTER])
def test_topic_that_refuses_keeps_nobody_elses_throttle(brokers, kafka, settings, api):
    """All others are freed, and told of as `usable`."""
    settings["broker", "2"] = rates("70")
    settings["topic", "empty"] = {f"{IN}.replicas": "*"}
    settings["topic", "orders"] = {f"{IN}.replicas": "*"}
    refuse_topic(brokers, api, "orders")
    with pytest.raises(BrokerError, match=r"topic 'orders'.*not you") as caught:
        kafka.remove_throttles()
    assert caught.value.code == TOPIC_AUTHORIZATION_FAILED
    assert caught.value.usable == {
        ConfigResource("broker", "2"): RATES,
        ConfigResource("topic", "empty"): (f"{IN}.replicas",),
    }
    assert settings["broker", "2"] == settings["topic", "empty"] == {}
    assert settings["topic", "orders"] == {f"{IN}.replicas": "*"}


def test_all_that_refuse_are_named(brokers, kafka, settings):
    settings["broker", "1"] = rates("70")
    settings["topic", "orders"] = {f"{IN}.replicas": "*"}
    refuse_topic(brokers, DESCRIBE, "empty")
    refuse_topic(brokers, ALTER, "orders")
    with pytest.raises(BrokerError, match=r"(?s)topic 'empty'.*topic 'orders'") as caught:
        kafka.remove_throttles()
    assert caught.value.usable == {ConfigResource("broker", "1"): RATES}


@pytest.mark.slow
def test_broker_that_is_away_is_told_of(brokers, kafka, settings):
    """It keeps its rates, which would bound whatever is moved once it is back."""
    settings["broker", "1"] = rates("70")
    brokers.topics["orders"].replicas = (1, 9)
    with pytest.raises(BrokerError, match="broker 9: REPLICA_NOT_AVAILABLE") as caught:
        kafka.remove_throttles()
    assert caught.value.usable == {ConfigResource("broker", "1"): RATES}
