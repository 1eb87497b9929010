"""The throttle of moves: which settings of whom, and how they come back."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import Change, ConfigChange, ConfigResource, TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.unit.cluster.admin.test_reassignments import LIST, under_way

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
ALTER, DESCRIBE = "IncrementalAlterConfigs", "DescribeConfigs"
OUT, IN = "leader.replication.throttled", "follower.replication.throttled"
_TYPES = {2: "topic", 4: "broker"}
_NUMBERS = {"topic": 2, "broker": 4}


@pytest.fixture
def settings(brokers):
    """What is set for whom: (type, name) to settings; changes are made there."""
    there = {}

    def describe(call):
        part = DescribeConfigsResponse.Resource
        return DescribeConfigsResponse(
            results=tuple(
                part(
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                    configs=tuple(
                        part.Config(
                            name=name,
                            value=value,
                            config_source={2: 1, 4: 2}[item.resource_type],
                        )
                        for name, value in there.get(
                            (_TYPES[item.resource_type], item.resource_name), {}
                        ).items()
                    ),
                )
                for item in call.request.resources
            )
        )

    def alter(call):
        part = IncrementalAlterConfigsResponse.Resource
        for item in call.request.resources:
            own = there.setdefault((_TYPES[item.resource_type], item.resource_name), {})
            for config in item.configs:
                if config.config_operation == Change.DELETE.value:
                    own.pop(config.name, None)
                else:
                    own[config.name] = config.value
        return IncrementalAlterConfigsResponse(
            responses=tuple(
                part(resource_type=item.resource_type, resource_name=item.resource_name)
                for item in call.request.resources
            )
        )

    brokers.on(LIST, under_way())
    brokers.on(DESCRIBE, describe)
    brokers.on(ALTER, alter)
    return there


def rates(rate):
    return {f"{OUT}.rate": rate, f"{IN}.rate": rate}


def test_brokers_have_rates_and_topics_name_the_replicas(brokers, kafka, settings):
    """As Kafka's own tool has it: all that are there give, those that are new take."""
    undo = kafka.throttle_reassignment({FIRST: (3, 1), ("orders", 1): (2, 1)}, 5000)
    assert settings == {
        ("broker", "1"): rates("5000"),
        ("broker", "2"): rates("5000"),  # 3 is away
        ("topic", "orders"): {f"{OUT}.replicas": "0:1,0:2", f"{IN}.replicas": "0:3"},
    }
    kafka.alter_configs(undo)
    assert settings == {("broker", "1"): {}, ("broker", "2"): {}, ("topic", "orders"): {}}


def test_what_was_set_before_comes_back(kafka, settings):
    settings["broker", "1"] = rates("70") | {"other": "1"}
    settings["topic", "orders"] = {f"{OUT}.replicas": "*"}
    undo = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert settings["broker", "1"] == rates("5000") | {"other": "1"}
    kafka.alter_configs(undo)
    assert settings["broker", "1"] == rates("70") | {"other": "1"}
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*"}


def test_others_that_move_stay_bounded(kafka, settings):
    """Of the same topic: there is one list for all of them."""
    undo_first = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    first = dict(settings["topic", "orders"])
    undo_second = kafka.throttle_reassignment({SECOND: (3,)}, 6000)
    assert settings["topic", "orders"] == {
        f"{OUT}.replicas": "0:1,0:2,1:1,1:2",
        f"{IN}.replicas": "0:3,1:3",
    }
    kafka.alter_configs(undo_second)
    assert settings["topic", "orders"] == first
    assert settings["broker", "1"] == rates("5000")
    kafka.alter_configs(undo_first)
    assert settings["topic", "orders"] == settings["broker", "1"] == {}


def test_topic_of_which_all_replicas_are_bounded_stays_so(kafka, settings):
    settings["topic", "orders"] = {f"{OUT}.replicas": "*"}
    undo = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*", f"{IN}.replicas": "0:3"}
    kafka.alter_configs(undo)
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*"}
    settings["topic", "orders"] = {f"{OUT}.replicas": "*", f"{IN}.replicas": "*"}
    assert ConfigResource("topic", "orders") not in kafka.throttle_reassignment({FIRST: (3,)}, 1)


def test_throttle_of_what_is_left_of_a_run_goes_with_all_of_it(kafka, settings):
    kafka.throttle_reassignment({FIRST: (3,), SECOND: (3,)}, 5000)
    kafka.alter_configs(kafka.throttle_reassignment({SECOND: (3,)}, 5000))
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_throttle_of_a_run_that_was_interrupted_goes_in_the_end(kafka, settings):
    kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    kafka.alter_configs(kafka.throttle_reassignment({FIRST: (3,)}, 5000))
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_replicas_that_are_on_their_way_give_nothing_yet(brokers, kafka, settings):
    brokers.on(LIST, under_way(0))  # 3 is being added, and metadata has (1, 2)
    brokers.topics["orders"].leaders = [1]
    kafka.throttle_reassignment({FIRST: (2, 1, 3)}, 5000)
    assert settings["topic", "orders"][f"{IN}.replicas"] == "0:3"


def test_nothing_that_moves_is_nothing_to_throttle(brokers, kafka, settings):
    assert kafka.throttle_reassignment({FIRST: (2, 1)}, 5000) == {}
    assert brokers.asked(ALTER) == []


def test_throttle_that_is_refused_in_part_is_taken_back(brokers, kafka, settings):
    part = IncrementalAlterConfigsResponse.Resource
    refused = part(error_code=40, error_message="no", resource_type=4, resource_name="2")
    brokers.on(ALTER, IncrementalAlterConfigsResponse(responses=(refused,)), node=2)
    with pytest.raises(BrokerError, match=r"broker '2'.*no") as caught:
        kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert caught.value.usable is None
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "5"])
def test_rates_are_whole_numbers(kafka, wrong):
    with pytest.raises(ConfigError, match=r"bytes_per_s.*expected a whole number"):
        kafka.throttle_reassignment({FIRST: (3,)}, wrong)


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


def test_undo_is_made_of_changes(kafka, settings):
    undo = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    gone = ConfigChange(f"{OUT}.rate", None, Change.DELETE)
    assert gone in undo[ConfigResource("broker", "1")]
