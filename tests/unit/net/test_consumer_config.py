"""The properties of a group member, in Kafka's names."""

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ConsumerConfig

LEAST = {"bootstrap.servers": "broker-1:9092", "group.id": "reports"}


def test_defaults_are_the_java_clients_but_for_the_assignors():
    config = ConsumerConfig.parse(LEAST)
    assert (config.group_id, config.group_instance_id) == ("reports", None)
    assert (config.session_timeout_s, config.heartbeat_interval_s) == (45, 3)
    assert (config.max_poll_interval_s, config.auto_commit_interval_s) == (300, 5)
    assert (config.auto_offset_reset, config.enable_auto_commit) == ("latest", True)
    assert (config.fetch_min_bytes, config.fetch_max_wait_s) == (1, 0.5)
    assert config.max_poll_records is None, "a batch is what one fetch gave, in the Java client 500"
    assert config.assignors == ("range", "roundrobin", "cooperative-sticky")
    assert not config.is_cooperative, "one of several that are not"
    assert config.client.client_id == "pyspark-kafkaproto"


def test_properties_of_a_java_consumer_are_read():
    given = {
        "group.instance.id": "till-1",
        "session.timeout.ms": "6000",
        "enable.auto.commit": "FALSE",
        "auto.offset.reset": "Earliest",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor,"
        "org.apache.kafka.clients.consumer.RangeAssignor",
        "isolation.level": "read_committed",
        "max.poll.records": "500",
    }
    config = ConsumerConfig.parse(LEAST | given)
    assert config.max_poll_records == 500
    assert (config.group_instance_id, config.session_timeout_s) == ("till-1", 6)
    assert (config.enable_auto_commit, config.auto_offset_reset) == (False, "earliest")
    assert config.assignors == ("roundrobin", "range")
    assert config.client.is_read_committed


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("group.id", " ", "expected a name"),
        ("group.instance.id", "", "expected a name"),
        ("session.timeout.ms", "soon", "whole number"),
        ("max.poll.records", "0", "from 1"),
        ("heartbeat.interval.ms", "45000", "less than session.timeout.ms, 45000"),
        ("auto.offset.reset", "soon", "latest or earliest or none or by_duration:P7D"),
        ("auto.offset.reset", "by_duration:P", "by_duration:P7D"),
        ("auto.offset.reset", "by_duration:PT", "by_duration:P7D"),
        ("auto.offset.reset", "by_duration:P1DT", "by_duration:P7D"),
        ("auto.offset.reset", "by_duration:-P1D", "by_duration:P7D"),
        ("auto.offset.reset", "by_duration:P1M", "by_duration:P7D"),
        ("auto.offset.reset", "by_duration:PT1D", "by_duration:P7D"),
        ("partition.assignment.strategy", "range,uniform", "sticky, cooperative-sticky"),
        ("partition.assignment.strategy", "", "expected some of range, roundrobin"),
        ("group.protocol", "streams", "expected classic or consumer"),
        ("group.remote.assignor", "uniform", "not with group.protocol=classic"),
        ("group.remote.assignor", " ", "expected a name"),
    ],
)
def test_what_cannot_be_used_is_named(name, value, why):
    with pytest.raises(ConfigError, match=rf"kafka\.{name}.*{why}"):
        ConsumerConfig.parse(LEAST | {name: value}, "kafka.")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("by_duration:P7D", 604_800),
        ("by_duration:pt1h30m", 5400),
        ("by_duration:P1DT0.5S", 86_400.5),
        ("BY_DURATION:PT0S", 0),
        ("earliest", None),
    ],
)
def test_durations_are_read_as_java_does(given, seconds):
    assert ConsumerConfig.parse(LEAST | {"auto.offset.reset": given}).reset_back_s == seconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("org.apache.kafka.clients.consumer.CooperativeStickyAssignor", True),
        ("cooperative-sticky,sticky", False),
        ("sticky", False),
    ],
)
def test_who_reads_on_while_partitions_move(given, expected):
    config = ConsumerConfig.parse(LEAST | {"partition.assignment.strategy": given})
    assert config.is_cooperative is expected


def test_a_member_needs_a_group():
    with pytest.raises(ConfigError, match=r"group\.id.*required"):
        ConsumerConfig.parse({"bootstrap.servers": "broker-1:9092"})


def test_a_property_of_members_that_is_misspelt_is_pointed_out(caplog):
    ConsumerConfig.parse(LEAST | {"auto.offset.resett": "earliest"})
    (said,) = caplog.messages
    assert said.endswith("has no effect; did you mean auto.offset.reset?")


def test_the_protocol_of_the_brokers_making_takes_their_assignor():
    given = LEAST | {"group.protocol": "CONSUMER", "group.remote.assignor": "range"}
    config = ConsumerConfig.parse(given)
    assert (config.group_protocol, config.group_remote_assignor) == ("consumer", "range")
    assert ConsumerConfig.parse(LEAST).group_remote_assignor is None


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("session.timeout.ms", "6000", "group.consumer.session.timeout.ms"),
        ("heartbeat.interval.ms", "100", "group.consumer.heartbeat.interval.ms"),
        ("partition.assignment.strategy", "range", "group.remote.assignor"),
    ],
)
def test_what_the_brokers_decide_is_refused_in_their_protocol(name, value, instead):
    given = LEAST | {"group.protocol": "consumer", name: value}
    with pytest.raises(ConfigError, match=rf"kafka\.{name}.*not with.*consumer: .*{instead}"):
        ConsumerConfig.parse(given, "kafka.")
