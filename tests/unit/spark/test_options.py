"""The source's options: good, bad, missing, unknown, not supported yet."""

import logging
import pickle

import pytest

from pyspark_kafkaproto.client import ReadSettings
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.spark.options import OPTIONS, option_value, parse_read_options
from pyspark_kafkaproto.spark.starts import Earliest, Latest, Specific

SERVERS = {"kafka.bootstrap.servers": "b-1:9092"}
LEAST = SERVERS | {"subscribe": "orders"}


def test_least_that_must_be_given_has_sparks_defaults():
    options = parse_read_options(LEAST)
    assert options.client.bootstrap_servers == (Endpoint("b-1", 9092),)
    assert options.subscribe == ("orders",)
    assert (options.subscribe_pattern, options.assign) == (None, None)
    assert (options.start, options.end) == (Earliest(), Latest())
    assert options.settings == ReadSettings(fail_on_data_loss=True)
    assert options.max_partitions is None


def test_every_option_has_a_meaning_and_each_name_once():
    names = [option.name.lower() for option in OPTIONS]
    assert len(set(names)) == len(names)
    assert all(option.meaning for option in OPTIONS)


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("subscribe", "a, b ,,a", "subscribe", ("a", "b")),
        (
            "startingoffsets",
            '{"orders":{"0":5}}',
            "start",
            Specific({TopicPartition("orders", 0): 5}),
        ),
        ("endingoffsets", '{"orders":{"0":7}}', "end", Specific({TopicPartition("orders", 0): 7})),
        ("maxpartitions", " 8 ", "max_partitions", 8),
        ("failondataloss", "FALSE", "settings", ReadSettings(fail_on_data_loss=False)),
        ("maxbatchbytes", "1000", "settings", ReadSettings(batch_limit_bytes=1000)),
    ],
)
def test_good_value_is_read(name, text, attribute, value):
    assert getattr(parse_read_options(LEAST | {name: text}), attribute) == value


def test_client_properties_go_to_the_client():
    options = parse_read_options(
        LEAST | {"kafka.isolation.level": "read_committed", "kafka.request.timeout.ms": "5000"}
    )
    assert options.client.is_read_committed
    assert options.client.request_timeout_s == 5


@pytest.mark.parametrize(
    ("name", "shown", "text", "allowed"),
    [
        ("subscribe", "subscribe", " , ", "names of topics"),
        ("subscribepattern", "subscribePattern", "a(", "regular expression"),
        ("assign", "assign", "orders", '{"topicA":[0,1]'),
        ("startingoffsets", "startingOffsets", "now", "JSON"),
        ("endingoffsets", "endingOffsets", "now", "JSON"),
        ("includeheaders", "includeHeaders", "yes", "true or false"),
        ("failondataloss", "failOnDataLoss", "1", "true or false"),
        ("maxpartitions", "maxPartitions", "0", "1 or more"),
        ("maxpartitions", "maxPartitions", "2.5", "1 or more"),
        ("maxpartitions", "maxPartitions", "-3", "1 or more"),
        ("maxbatchbytes", "maxBatchBytes", "1g", "1 or more"),
        ("kafka.request.timeout.ms", "kafka.request.timeout.ms", "x", "whole number"),
        ("kafka.bootstrap.servers", "kafka.bootstrap.servers", "b-1", "host:port"),
    ],
)
def test_bad_value_names_the_option_as_documented(name, shown, text, allowed):
    given = (SERVERS if name in {"assign", "subscribepattern"} else LEAST) | {name: text}
    with pytest.raises(ConfigError) as caught:
        parse_read_options(given)
    assert caught.value.option == shown
    assert caught.value.value == text
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"subscribe": "a", "assign": '{"a":[0]}'},
        {"subscribe": "a", "subscribepattern": "a.*"},
        {"subscribe": "a", "subscribepattern": "a.*", "assign": '{"a":[0]}'},
    ],
    ids=len,
)
def test_exactly_one_selection_must_be_given(given):
    with pytest.raises(ConfigError, match=r"assign / subscribe / subscribePattern.*exactly one"):
        parse_read_options(SERVERS | given)


def test_bootstrap_servers_are_asked_for_by_sparks_name():
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers.*required"):
        parse_read_options({"subscribe": "orders"})


@pytest.mark.parametrize(
    "name",
    [
        *("startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp", "minPartitions"),
        *("endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy"),
        *("maxRecordsPerPartition", "groupIdPrefix", "kafka.group.id"),
    ],
)
def test_option_of_sparks_connector_that_is_missing_here_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name}.*does not support"):
        parse_read_options(LEAST | {name.lower(): "5"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [("startingofset", "did you mean startingOffsets?"), ("maxpartition", "maxPartitions?")],
)
def test_misspelt_option_is_named_with_what_was_meant(caplog, name, hint):
    with caplog.at_level(logging.WARNING):
        parse_read_options(LEAST | {name: "1"})
    assert name in caplog.text
    assert hint in caplog.text


def test_unknown_option_is_named_without_its_value(caplog):
    with caplog.at_level(logging.WARNING):
        parse_read_options(LEAST | {"xyzzy": "hunter2"})
    assert "xyzzy" in caplog.text
    assert "hunter2" not in caplog.text


def test_one_option_can_be_asked_for_alone():
    assert option_value({"includeheaders": "true"}, "includeHeaders") is True
    assert option_value({}, "includeHeaders") is False
    with pytest.raises(ConfigError, match="includeHeaders"):
        option_value({"includeheaders": "?"}, "includeHeaders")


def test_options_are_pickled_for_the_executors():
    options = parse_read_options(SERVERS | {"subscribepattern": "ord.*"})
    assert pickle.loads(pickle.dumps(options)) == options
