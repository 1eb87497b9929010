"""KafkaCluster against a real broker, its answers beside those of Kafka's own tools."""

from __future__ import annotations

import re
import time

import pytest

from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, TopicPartition
from pyspark_kafkaproto.cluster.admin import Acl, AclFilter
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import Deadline
from tests.brokers import config_command
from tests.waiting import until

pytestmark = pytest.mark.broker

PARTITIONS = 3


@pytest.fixture(scope="module")
def topic(broker, new_topic):
    """A topic with 30 keyed records, spread by the key over its partitions."""
    name = new_topic(PARTITIONS)
    broker.produce(name, [f"key-{n}:value-{n}" for n in range(30)], key_separator=":")
    return name


@pytest.fixture(scope="module")
def partitions(topic):
    return {TopicPartition(topic, number) for number in range(PARTITIONS)}


def _tool_offsets(kafka_tool, topic, moment):
    """What Kafka's GetOffsetShell answers."""
    text = kafka_tool("GetOffsetShell", "--topic", topic, "--time", moment)
    return {
        TopicPartition(topic, int(number)): int(offset)
        for number, offset in re.findall(rf"^{re.escape(topic)}:(\d+):(\d+)$", text, re.MULTILINE)
    }


def test_brokers_partitions_and_leaders(kafka, broker, topic, partitions):
    assert kafka.get_partitions({topic}) == partitions
    leaders = kafka.find_leaders(partitions)
    addresses = broker.bootstrap_servers.split(",")
    assert {str(leader.endpoint) for leader in leaders.values()} <= set(addresses)
    assert all(leader.epoch >= 0 for leader in leaders.values())
    described = kafka.describe({topic}).topic(topic)
    assert described.topic_id is not None
    assert len(described.topic_id) == 16


def test_what_has_settings_is_what_kafkas_tools_list(kafka, broker, kafka_tool, topic, new_name):
    metrics = ConfigResource("client-metrics", new_name())
    group = ConfigResource("group", new_name())
    kafka.alter_configs(
        {
            metrics: [ConfigChange("interval.ms", "1000")],
            group: [ConfigChange("consumer.session.timeout.ms", "46000")],
        }
    )
    # A change reaches the broker a moment after the controller has made it.
    until(lambda: {metrics, group} <= set(kafka.list_config_resources()))
    found = kafka.list_config_resources()
    assert ConfigResource("topic", topic) in found
    told = sorted(kafka_tool("ClientMetricsCommand", "--list").split())
    assert [item.name for item in found if item.type == "client-metrics"] == told
    assert [item.name for item in kafka.list_config_resources({"client-metrics"})] == told
    told = broker.run_tool(
        config_command(broker),
        *("--bootstrap-server", broker.bootstrap_servers, "--describe", "--entity-type", "groups"),
    )
    for item in kafka.list_config_resources({"group"}):
        assert f"group {item.name} are:\n  " in told, "with a setting"
    assert f"group {group.name} are:\n  consumer.session.timeout.ms=46000" in told


def test_cluster_without_an_authorizer_says_so(kafka):
    ours = Acl("topic", "t", principal="User:a", operation="read")
    for ask in (
        kafka.describe_acls,
        lambda: kafka.create_acls({ours}),
        lambda: kafka.delete_acls({AclFilter.of(ours)}),
    ):
        with pytest.raises(BrokerError, match=r"SECURITY_DISABLED.*authorizer\.class\.name"):
            ask()


def test_latest_and_earliest_offsets_are_those_of_kafkas_tool(kafka, kafka_tool, topic, partitions):
    latest = kafka.get_latest_leader_offsets(partitions)
    assert latest == _tool_offsets(kafka_tool, topic, "latest")
    assert sum(latest.values()) == 30
    assert set(kafka.get_earliest_leader_offsets(partitions).values()) == {0}


def test_offsets_by_timestamp(kafka, broker, new_topic):
    name = new_topic(1)
    only = TopicPartition(name, 0)
    broker.produce(name, ["early"] * 3)
    between = int(time.time() * 1000) + 1
    while time.time() * 1000 <= between:
        pass
    broker.produce(name, ["late"] * 2)
    assert kafka.get_leader_offsets({only}, 0) == {only: 0}
    assert kafka.get_leader_offsets({only}, between) == {only: 3}
    assert kafka.get_leader_offsets({only}, between + 3_600_000) == {only: None}


def test_commit_is_fetched_again_and_seen_by_kafkas_tool(
    kafka, kafka_tool, new_name, topic, partitions
):
    group = new_name("group")
    assert kafka.get_consumer_offsets(group, partitions) == {}
    first, second, third = sorted(partitions)
    kafka.set_consumer_offsets(group, {first: 3, second: 0})
    assert kafka.get_consumer_offsets(group, partitions) == {first: 3, second: 0}
    kafka.set_consumer_offsets(group, {first: 2, third: 1})
    offsets = {first: 2, second: 0, third: 1}
    assert kafka.get_consumer_offsets(group, partitions) == offsets
    text = kafka_tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group)
    rows = re.findall(rf"^{group}\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    latest = kafka.get_latest_leader_offsets(partitions)
    assert {
        TopicPartition(name, int(number)): (int(offset), int(end), int(lag))
        for name, number, offset, end, lag in rows
    } == {part: (at, latest[part], latest[part] - at) for part, at in offsets.items()}


def test_commit_for_a_missing_topic_or_partition_fails_soon_and_commits_the_rest(
    kafka, new_name, topic
):
    group = new_name("group")
    there = TopicPartition(topic, 0)
    for missing in (TopicPartition(new_name("missing"), 0), TopicPartition(topic, 99)):
        began = time.monotonic()
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION") as caught:
            kafka.set_consumer_offsets(group, {there: 1, missing: 1})
        assert time.monotonic() - began < 10
        assert caught.value.usable == {there}
    assert kafka.get_consumer_offsets(group, {there}) == {there: 1}


def _ask_for(kafka, topic, *, may_create):
    request = MetadataRequest(
        topics=(MetadataRequest.Topic(name=topic),), allow_auto_topic_creation=may_create
    )
    kafka._router.ask_any(request, Deadline.after(30))


def test_misspelt_topic_is_an_error_that_leaves_no_topic_behind(kafka, kafka_tool, new_name):
    misspelt, careless = new_name("misspelt"), new_name("careless")
    _ask_for(kafka, careless, may_create=True)
    only = {TopicPartition(misspelt, 0)}
    asks = [
        lambda: kafka.get_partitions({misspelt}),
        lambda: kafka.find_leaders(only),
        lambda: kafka.get_latest_leader_offsets(only),
    ]
    for ask in asks:
        with pytest.raises(BrokerError, match=f"'{misspelt}'.*no such topic"):
            ask()
    assert kafka.describe({misspelt}).topics[misspelt].error_code == 3
    topics = kafka_tool("TopicCommand", "--list").split()
    assert misspelt not in topics
    # This broker does create topics for whoever lets it: without that the test would say nothing.
    assert careless in topics


def test_invalid_topic_name_says_what_a_name_may_have(kafka):
    with pytest.raises(BrokerError, match=r"INVALID_TOPIC_EXCEPTION.*1 to 249"):
        kafka.get_partitions({"not a name"})


def test_missing_partition_names_those_there_are(kafka, topic):
    with pytest.raises(BrokerError, match=rf"{topic}-9.*\[0, 1, 2\]"):
        kafka.get_latest_leader_offsets({TopicPartition(topic, 9)})
