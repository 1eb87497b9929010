"""The throttle of moves: which settings of whom, and how they come back."""

from __future__ import annotations

import copy
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cluster import ConfigResource, Router, TopicPartition, routing
from pyspark_kafkaproto.cluster.admin import Reassignment, throttle_settings, throttles
from pyspark_kafkaproto.cluster.configs import ConfigEntry
from pyspark_kafkaproto.cluster.topology import Broker, Topology
from pyspark_kafkaproto.error_codes import TOPIC_AUTHORIZATION_FAILED
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from pyspark_kafkaproto.net import Endpoint
from tests.fake_broker import close
from tests.unit.cluster.admin.fake_settings import (
    ALTER,
    DESCRIBE,
    IN,
    OUT,
    change,
    rates,
    refuse_gone_topics,
    refuse_topic,
)
from tests.unit.cluster.admin.test_reassignments import LIST, under_way

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
RATE_OF_FOLDERS = "replica.alter.log.dirs.io.max.bytes.per.second"


def test_brokers_have_rates_and_topics_name_the_replicas(brokers, kafka, settings):
    """As Kafka's own tool has it: all that are there give, those that are new take."""
    throttle = kafka.throttle_reassignment({FIRST: (3, 1), ("orders", 1): (2, 1)}, 5000)
    assert settings == {
        ("broker", "1"): rates("5000"),
        ("broker", "2"): rates("5000"),  # 3 is away
        ("topic", "orders"): {f"{OUT}.replicas": "0:1,0:2", f"{IN}.replicas": "0:3"},
    }
    kafka.end_throttle(throttle)
    assert settings == {("broker", "1"): {}, ("broker", "2"): {}, ("topic", "orders"): {}}


def test_what_was_set_before_comes_back(kafka, settings):
    settings["broker", "1"] = rates("70") | {"other": "1"}
    settings["topic", "orders"] = {f"{OUT}.replicas": "*"}
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert settings["broker", "1"] == rates("5000") | {"other": "1"}
    kafka.end_throttle(throttle)
    assert settings["broker", "1"] == rates("70") | {"other": "1"}
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*"}


def test_others_that_move_stay_bounded(kafka, settings):
    """Of the same topic: there is one list for all of them."""
    throttle_first = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    first = dict(settings["topic", "orders"])
    throttle_second = kafka.throttle_reassignment({SECOND: (3,)}, 6000)
    assert settings["topic", "orders"] == {
        f"{OUT}.replicas": "0:1,0:2,1:1,1:2",
        f"{IN}.replicas": "0:3,1:3",
    }
    kafka.end_throttle(throttle_second)
    assert settings["topic", "orders"] == first
    assert settings["broker", "1"] == rates("5000")
    kafka.end_throttle(throttle_first)
    assert settings["topic", "orders"] == settings["broker", "1"] == {}


def test_topic_of_which_all_replicas_are_bounded_stays_so(kafka, settings):
    settings["topic", "orders"] = {f"{OUT}.replicas": "*"}
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*", f"{IN}.replicas": "0:3"}
    kafka.end_throttle(throttle)
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "*"}
    settings["topic", "orders"] = {f"{OUT}.replicas": "*", f"{IN}.replicas": "*"}
    assert kafka.throttle_reassignment({FIRST: (3,)}, 1).replicas == {}


def test_throttle_of_what_is_left_of_a_run_goes_when_it_is_begun_again(brokers, kafka, settings):
    brokers.on(LIST, under_way(0, 1))
    kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    kafka.throttle_reassignment({SECOND: (3,)}, 4000)
    settings["topic", "orders"][f"{OUT}.replicas"] = "0:1,0:2,1:1,1:2"
    first = kafka.throttle_reassignment({FIRST: (2, 3)}, 5000)
    second = kafka.throttle_reassignment({SECOND: (2, 3)}, 5000)
    brokers.on(LIST, under_way())
    for throttle in (first, second):
        kafka.end_throttle(throttle)
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_throttle_of_all_of_a_run_goes_when_it_is_begun_again(kafka, settings):
    kafka.throttle_reassignment({FIRST: (3,), SECOND: (3,)}, 5000)
    kafka.end_throttle(kafka.throttle_reassignment({FIRST: (3,), SECOND: (3,)}, 5000))
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_throttle_of_a_run_that_was_interrupted_goes_in_the_end(kafka, settings):
    kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    kafka.end_throttle(kafka.throttle_reassignment({FIRST: (3,)}, 5000))
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


@pytest.mark.parametrize("again", [4000, 6000])
def test_rate_of_a_run_that_was_interrupted_is_none_that_stands(kafka, settings, again):
    """Its replicas are named already: it was begun before, and is begun again at another speed."""
    kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    kafka.end_throttle(kafka.throttle_reassignment({FIRST: (3,)}, again))
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_replicas_that_are_on_their_way_give_nothing_yet(brokers, kafka, settings):
    brokers.on(LIST, under_way(0))  # 3 is being added, and metadata has (1, 2)
    brokers.topics["orders"].leaders = [1]
    kafka.throttle_reassignment({FIRST: (2, 1, 3)}, 5000)
    assert settings["topic", "orders"][f"{IN}.replicas"] == "0:3"


def test_nothing_that_moves_is_nothing_to_throttle(brokers, kafka, settings):
    assert not kafka.throttle_reassignment({FIRST: (2, 1)}, 5000)
    assert brokers.asked(ALTER) == []


def test_throttle_that_is_refused_in_part_is_taken_back(brokers, kafka, settings):
    part = IncrementalAlterConfigsResponse.Resource
    refused = part(error_code=40, error_message="no", resource_type=4, resource_name="2")
    brokers.on(ALTER, IncrementalAlterConfigsResponse(responses=(refused,)), node=2)
    with pytest.raises(BrokerError, match=r"broker '2'.*no") as caught:
        kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert caught.value.usable is None
    assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_throttle_that_a_broker_may_have_taken_is_taken_back(brokers, kafka, settings, clock):
    """It does as it is told, and its answers are lost: nobody knows what it has taken."""
    alter = brokers._scripts[ALTER, None][0]

    def unanswered(call):
        alter(call)
        return close()

    brokers.on(ALTER, unanswered, node=2)
    with pytest.raises(KafkaProtoError, match="closed the connection") as caught:
        kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert "what was set, or may have been, could not be taken back: " in str(caught.value)
    assert caught.value.usable is None
    assert settings["broker", "1"] == settings["broker", "2"] == settings["topic", "orders"] == {}


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "5"])
def test_rates_are_whole_numbers(kafka, wrong):
    with pytest.raises(ConfigError, match=r"bytes_per_s.*expected a whole number"):
        kafka.throttle_reassignment({FIRST: (3,)}, wrong)


def test_nobody_takes_the_rates_of_others_that_move(brokers, kafka, settings):
    """Begun one after the other, and ended in either order: the last one takes all away."""
    both = {ConfigResource("broker", "1"), ConfigResource("broker", "2")}
    for ends_first in (0, 1):
        brokers.on(LIST, under_way())
        own = [kafka.throttle_reassignment({FIRST: (3,)}, 5000)]
        brokers.on(LIST, under_way(0))
        own.append(kafka.throttle_reassignment({SECOND: (3,)}, 6000))
        brokers.on(LIST, under_way(1 - ends_first))
        assert kafka.end_throttle(own[ends_first]) == both
        assert settings["broker", "1"] == rates("6000")
        named = "0:3" if ends_first else "1:3"
        assert settings["topic", "orders"][f"{IN}.replicas"] == named
        brokers.on(LIST, under_way())
        assert kafka.end_throttle(own[1 - ends_first]) == set()
        assert settings["broker", "1"] == settings["topic", "orders"] == {}


def test_rates_that_others_are_in_need_of_stay_and_that_is_told(brokers, kafka, settings):
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    brokers.on(LIST, under_way(1))
    both = {ConfigResource("broker", "1"), ConfigResource("broker", "2")}
    assert kafka.end_throttle(throttle) == both
    assert settings["broker", "1"] == rates("5000")
    brokers.on(LIST, under_way())
    settings["topic", "empty"] = {f"{OUT}.replicas": "0:1"}
    assert kafka.end_throttle(throttle) == both
    del settings["topic", "empty"]
    assert kafka.end_throttle(throttle) == set()
    assert settings["broker", "1"] == {}


def test_rates_go_though_what_was_moved_is_deleted_meanwhile(brokers, kafka, settings):
    """Nothing of a topic that is gone can be taken back, nor has to be."""
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    del brokers.topics["orders"]
    del settings["topic", "orders"]
    refuse_gone_topics(brokers)
    assert kafka.end_throttle(throttle) == set()
    assert settings == {("broker", "1"): {}, ("broker", "2"): {}}


@pytest.mark.parametrize("hidden", ["orders", "empty"])
def test_topic_whose_settings_may_not_be_read_is_named_and_keeps_no_throttle(
    brokers, kafka, settings, hidden
):
    """The moved one, or anybody's: all the same nothing is left that bounds anything."""
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    refuse_topic(brokers, DESCRIBE, hidden)
    with pytest.raises(BrokerError, match=f"topic '{hidden}'.*not you") as caught:
        kafka.end_throttle(throttle)
    assert caught.value.code == TOPIC_AUTHORIZATION_FAILED
    assert caught.value.usable == set()
    assert settings["broker", "1"] == settings["broker", "2"] == {}
    # Whether others are named is not known of the hidden one: an empty list stays set.
    left = {f"{OUT}.replicas": "", f"{IN}.replicas": ""} if hidden == "orders" else {}
    assert settings["topic", "orders"] == left


def test_throttle_ends_everywhere_it_can_and_all_refusals_are_named(
    brokers, kafka, settings, monkeypatch
):
    monkeypatch.setattr(routing, "_BETWEEN_OPINIONS_S", 0.001)
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    refuse_topic(brokers, ALTER, "orders")
    refuse_topic(brokers, DESCRIBE, "empty")
    with pytest.raises(BrokerError, match=r"(?s)topic 'orders'.*topic 'empty'"):
        kafka.end_throttle(throttle)
    assert settings["broker", "1"] == settings["broker", "2"] == {}
    assert settings["topic", "orders"][f"{IN}.replicas"] == "0:3"


def test_brokers_that_keep_a_rate_are_told_where_something_is_refused(brokers, kafka, settings):
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    brokers.on(LIST, under_way(1))
    refuse_topic(brokers, DESCRIBE, "orders")
    with pytest.raises(BrokerError, match="topic 'orders'") as caught:
        kafka.end_throttle(throttle)
    both = {ConfigResource("broker", "1"), ConfigResource("broker", "2")}
    assert caught.value.usable == both
    assert settings["broker", "1"] == settings["broker", "2"] == rates("5000")


def test_broker_that_is_away_keeps_its_rate_and_no_others_do(brokers, kafka, settings, clock):
    """Each broker takes changes of its own rate alone: the error names the one that is away."""
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    brokers.stop(2)
    with pytest.raises(KafkaProtoError, match="2"):
        kafka.end_throttle(throttle)
    assert settings["topic", "orders"] == settings["broker", "1"] == {}
    assert settings["broker", "2"] == rates("5000")


@pytest.mark.parametrize("is_heard_of", [True, False])
def test_broker_that_has_not_heard_of_a_change_keeps_no_throttle(
    brokers, kafka, settings, monkeypatch, is_heard_of
):
    """It tells what was before: of this move, or of this throttle nothing at all."""
    describe = brokers._scripts[DESCRIBE, None][0]
    old = {} if not is_heard_of else None
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    old = copy.deepcopy(settings) if old is None else old

    def stale(call):
        now = dict(settings)
        settings.clear()
        settings.update(old)
        said = describe(call)
        settings.clear()
        settings.update(now)
        return said

    monkeypatch.setattr(routing, "_BETWEEN_OPINIONS_S", 0.001)
    brokers.on(DESCRIBE, stale, stale, describe)
    assert kafka.end_throttle(throttle) == set()
    assert settings["broker", "1"] == settings["broker", "2"] == {}
    assert settings["topic", "orders"] == {}


def test_replicas_that_stand_bounded_stay_so(kafka, settings):
    settings["topic", "orders"] = {f"{OUT}.replicas": "0:1,7:7"}
    throttle = kafka.throttle_reassignment({FIRST: (3,)}, 5000)
    assert settings["topic", "orders"][f"{OUT}.replicas"] == "0:1,7:7,0:2"
    kafka.end_throttle(throttle)
    assert settings["topic", "orders"] == {f"{OUT}.replicas": "0:1,7:7"}


def test_copies_between_folders_have_a_rate_of_their_own(brokers, kafka, settings):
    brokers.on("DescribeLogDirs", folders())
    settings["broker", "2"] = {RATE_OF_FOLDERS: "70"}
    throttle = kafka.throttle_folders({1, 2}, 5000)
    assert settings["broker", "1"] == settings["broker", "2"] == {RATE_OF_FOLDERS: "5000"}
    brokers.on("DescribeLogDirs", folders(is_future=True), node=1)
    assert kafka.end_throttle(throttle) == {ConfigResource("broker", "1")}
    assert settings["broker", "2"] == {RATE_OF_FOLDERS: "70"}
    brokers.on("DescribeLogDirs", folders(), node=1)
    assert kafka.end_throttle(throttle) == set()
    assert settings["broker", "1"] == {}
    assert brokers.asked(LIST) == []
    with pytest.raises(ConfigError, match=r"bytes_per_s.*expected a whole number"):
        kafka.throttle_folders({1}, 0)


def test_broker_that_left_keeps_its_rate_of_folders_and_no_others_do(
    brokers, kafka, settings, clock
):
    brokers.on("DescribeLogDirs", folders())
    throttle = kafka.throttle_folders({1, 2}, 5000)
    brokers.nodes.pop(2).close()
    with pytest.raises(BrokerError, match="2"):
        kafka.end_throttle(throttle)
    assert settings["broker", "1"] == {}
    assert settings["broker", "2"] == {RATE_OF_FOLDERS: "5000"}


def folders(*, is_future=False):
    """An answer of a broker with one folder, and a replica there."""
    part = DescribeLogDirsResponse.LogDir
    log = part.Topic.Partition(
        partition_index=0, partition_size=1, offset_lag=0, is_future_key=is_future
    )
    topic = part.Topic(name="orders", partitions=(log,))
    return DescribeLogDirsResponse(results=(part(log_dir="/a", topics=(topic,)),))


# Whoever begins and ends when: what moves is bounded, and in the end nothing is left.

RUNS = 3


@pytest.mark.slow
@given(
    order=st.permutations([run for run in range(RUNS) for _ in range(2)]),
    speeds=st.lists(st.sampled_from([5, 6]), min_size=RUNS, max_size=RUNS),
    standing=st.sampled_from([None, "70"]),
)
def test_what_moves_is_bounded_until_all_have_ended(order, speeds, standing):
    there = {
        ConfigResource("broker", str(node)): rates(standing) if standing else {}
        for node in (1, 2, 3)
    }
    moving, own = {}, {}
    with model_of(there, moving):
        for run in order:
            item = TopicPartition("orders", run)
            if run not in own:
                own[run] = throttles.throttle_reassignment(
                    Router, TOPOLOGY, {item: (3, 1)}, speeds[run]
                )
                moving[item] = Reassignment((3, 1, 2), (3,), (2,))
            else:
                del moving[item]
                throttles.end_throttle(Router, own[run])
            named = there[ConfigResource("topic", "orders")].get(f"{IN}.replicas", "")
            assert set(filter(None, named.split(","))) == {f"{item.partition}:3" for item in moving}
            if moving:
                assert there[ConfigResource("broker", "3")][f"{IN}.rate"] in {"5", "6"}
    there.pop(ConfigResource("topic", "orders"))
    assert all(set(own.values()) <= {standing} for own in there.values())


TOPOLOGY = Topology(
    cluster_id=None,
    controller_id=1,
    brokers={node: Broker(node, Endpoint("b", node), None) for node in (1, 2, 3)},
    topics={},
)


@contextmanager
def model_of(there, moving):
    """A cluster without one: its settings, and what is moved."""

    def alter(_, changes):
        for resource, each in changes.items():
            for item in each:
                change(there.setdefault(resource, {}), item.name, item.value, item.change)

    def describe(_, resources, __):
        source = {"topic": "topic", "broker": "dynamic broker"}
        return {
            resource: {
                name: ConfigEntry(name, value, source[resource.type], False, False)
                for name, value in there.get(resource, {}).items()
            }
            for resource in resources
        }

    with ExitStack() as held:
        for module, name, instead in (
            (throttles, "alter_configs", alter),
            (throttle_settings, "alter_configs", alter),
            (throttle_settings, "describe_configs", describe),
            (throttles, "list_reassignments", lambda _: dict(moving)),
            (throttles, "replicas_before", lambda *_: dict.fromkeys(_[-1], (1, 2))),
            (throttles, "topics_of", lambda _: {item for item in there if item.type == "topic"}),
        ):
            held.enter_context(patch.object(module, name, instead))
        held.enter_context(patch.object(Router, "described", lambda _: None))
        held.enter_context(patch.object(Router, "believed", lambda ask, _: ask()))
        yield
