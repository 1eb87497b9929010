"""What has a configuration: asked for by types, and by brokers that know one type alone."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import ConfigResource
from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.list_config_resources import ListConfigResourcesResponse

API = "ListConfigResources"
THERE = [
    ConfigResource("broker", "1"),
    ConfigResource("client-metrics", "a"),
    ConfigResource("client-metrics", "b"),
    ConfigResource("group", "reports"),
    ConfigResource("topic", "orders"),
]
_NUMBERS = {"topic": 2, "broker": 4, "broker-logger": 8, "client-metrics": 16, "group": 32}


@pytest.fixture
def listing(brokers):
    """The controller, which lists those of THERE that are asked for, in no order."""

    def answer(call):
        numbers = call.request.resource_types if call.header.api_version else (16,)
        part = ListConfigResourcesResponse.ConfigResource
        return ListConfigResourcesResponse(
            config_resources=tuple(
                part(resource_name=item.name, resource_type=_NUMBERS[item.type])
                for item in reversed(THERE)
                if not numbers or _NUMBERS[item.type] in numbers
            )
        )

    brokers.on(API, answer)


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (None, THERE),
        ({"group", "Topic"}, THERE[3:]),
        (["client-metrics"], THERE[1:3]),
        ({"group", "client-metrics"}, THERE[1:4]),
        ({"broker-logger"}, []),
    ],
)
def test_what_is_there_of_each_type(listing, brokers, kafka, types, found):
    brokers.controller = 2
    assert kafka.list_config_resources(types) == found
    assert len(brokers.asked(API, node=2)) == 1


def test_of_no_type_is_not_of_all(listing, brokers, kafka):
    assert kafka.list_config_resources(()) == []
    assert brokers.asked(API) == []


@pytest.mark.parametrize("types", [None, {"group"}, {"group", "client-metrics"}])
def test_brokers_before_4_1_list_client_metrics_alone(listing, brokers, kafka, types):
    brokers.versions[API] = (0, 0)
    assert kafka.list_config_resources({"client-metrics"}) == THERE[1:3]
    said = r"speaks ListConfigResources 0 to 0.*before Kafka 4\.1 list .* client-metrics alone"
    with pytest.raises(UnsupportedVersion, match=said):
        kafka.list_config_resources(types)


def test_brokers_with_zookeeper_list_nothing(brokers, kafka):
    del brokers.versions[API]
    with pytest.raises(UnsupportedVersion, match=r"does not offer.*metadata in ZooKeeper"):
        kafka.list_config_resources({"client-metrics"})


def test_missing_right_is_named(brokers, kafka):
    brokers.on(API, ListConfigResourcesResponse(error_code=31))
    with pytest.raises(BrokerError, match="the right DESCRIBE_CONFIGS on the cluster"):
        kafka.list_config_resources()


def test_type_of_a_later_kafka_is_shown_as_a_number(brokers, kafka):
    part = ListConfigResourcesResponse.ConfigResource
    found = (part(resource_name="x", resource_type=64),)
    brokers.on(API, ListConfigResourcesResponse(config_resources=found))
    assert kafka.list_config_resources() == [ConfigResource("type 64", "x")]


@pytest.mark.parametrize("wrong", ["group", {"groups"}, {32}])
def test_wrong_types_are_refused_here(kafka, wrong):
    with pytest.raises(ConfigError, match=r"'types?'"):
        kafka.list_config_resources(wrong)
