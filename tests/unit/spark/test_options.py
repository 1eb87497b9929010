"""The source's options: good, bad, missing, unknown, not supported yet."""

import logging
import pickle
import re

import pytest

from pyspark_kafkaproto.client import OffsetRange, ReadSettings
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import Backoff, Endpoint
from pyspark_kafkaproto.spark.option_table import OPTIONS, Use, options_for
from pyspark_kafkaproto.spark.options import Chosen, option_value, parse_read_options
from pyspark_kafkaproto.spark.range_text import parse_ranges, ranges_json
from pyspark_kafkaproto.spark.starts import Earliest, Latest, Specific, Timestamp

SERVERS = {"kafka.bootstrap.servers": "b-1:9092"}
LEAST = SERVERS | {"subscribe": "orders"}
RANGES = {"offsetranges": '[["a",0,1,5]]'}
ORDERS = TopicPartition("orders", 0)
TIMES = '{"orders":{"0":5}}'


def test_least_that_must_be_given_has_sparks_defaults():
    options = parse_read_options(LEAST)
    assert options.client.bootstrap_servers == (Endpoint("b-1", 9092),)
    assert options.subscribe == ("orders",)
    assert (options.subscribe_pattern, options.assign) == (None, None)
    assert (options.start.limit, options.end.limit) == (Earliest(), Latest())
    assert options.settings == ReadSettings(fail_on_data_loss=True, uses_threads=False)
    assert options.max_partitions is None


@pytest.mark.parametrize("use", [Use.BATCH, Use.STREAM, Use.WRITE])
def test_every_option_has_a_meaning_and_each_name_once_per_use(use):
    names = [option.name.lower() for option in OPTIONS if use & option.uses]
    assert len(set(names)) == len(names)
    assert all(option.meaning.endswith(".") for option in OPTIONS)


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("subscribe", "a, b ,,a", "subscribe", ("a", "b")),
        (
            "startingoffsets",
            '{"orders":{"0":5}}',
            "start",
            Chosen("startingOffsets", Specific({ORDERS: 5})),
        ),
        (
            "endingoffsets",
            '{"orders":{"0":7}}',
            "end",
            Chosen("endingOffsets", Specific({ORDERS: 7})),
        ),
        ("minpartitions", "3", "min_partitions", 3),
        ("maxrecordsperpartition", "3", "max_records", 3),
        ("committedfallback", "error", "fallback", None),
        ("kafka.group.id", " g ", "group", "g"),
        ("maxpartitions", " 8 ", "max_partitions", 8),
        (
            "failondataloss",
            "FALSE",
            "settings",
            ReadSettings(fail_on_data_loss=False, uses_threads=False),
        ),
        (
            "maxbatchbytes",
            "1000",
            "settings",
            ReadSettings(batch_limit_bytes=1000, uses_threads=False),
        ),
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
        ("subscribepattern", "subscribePattern", "a-[a-z&&[^b]]", "a set in a set"),
        ("subscribepattern", "subscribePattern", "a-[]a[xy]]", "a set in a set"),
        ("subscribepattern", "subscribePattern", r"\[[a-z]&&[ab&&b]", "a set in a set"),
        ("assign", "assign", "orders", '{"topicA":[0,1]'),
        ("startingoffsets", "startingOffsets", "now", "JSON"),
        ("endingoffsets", "endingOffsets", "now", "JSON"),
        ("includeheaders", "includeHeaders", "yes", "true or false"),
        ("failondataloss", "failOnDataLoss", "1", "true or false"),
        ("maxpartitions", "maxPartitions", "0", "1 or more"),
        ("maxpartitions", "maxPartitions", "2.5", "1 or more"),
        ("maxpartitions", "maxPartitions", "-3", "1 or more"),
        ("maxbatchbytes", "maxBatchBytes", "1g", "1 or more"),
        ("minpartitions", "minPartitions", "0", "1 or more"),
        ("minpartitions", "minPartitions", "9" * 5000, "1 or more"),
        ("kafkaconsumer.polltimeoutms", "kafkaConsumer.pollTimeoutMs", "9" * 5000, "from"),
        ("maxrecordsperpartition", "maxRecordsPerPartition", "x", "1 or more"),
        ("startingtimestamp", "startingTimestamp", "x", "milliseconds"),
        ("startingoffsetsbytimestamp", "startingOffsetsByTimestamp", "x", "milliseconds"),
        (
            "startingoffsetsbytimestampstrategy",
            "startingOffsetsByTimestampStrategy",
            "earliest",
            "error or latest",
        ),
        ("fetchoffset.numretries", "fetchOffset.numRetries", "0", "1 or more"),
        ("fetchoffset.retryintervalms", "fetchOffset.retryIntervalMs", "1s", "milliseconds"),
        ("kafkaconsumer.polltimeoutms", "kafkaConsumer.pollTimeoutMs", "0", "from 1"),
        ("committedfallback", "committedFallback", "latest", "earliest"),
        ("kafka.group.id", "kafka.group.id", " ", "a name"),
        ("subscribepattern", "subscribePattern", " ", "regular expression"),
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
    ("given", "start", "end"),
    [
        (
            {"startingoffsets": "latest", "startingoffsetsbytimestamp": TIMES},
            Chosen("startingOffsetsByTimestamp", Timestamp({ORDERS: 5})),
            Chosen("endingOffsets", Latest()),
        ),
        (
            {"startingtimestamp": "7", "startingoffsetsbytimestamp": "?", "startingoffsets": "?"},
            Chosen("startingTimestamp", Timestamp(7)),
            Chosen("endingOffsets", Latest()),
        ),
        (
            {"endingtimestamp": "7", "endingoffsetsbytimestamp": "?", "endingoffsets": "?"},
            Chosen("startingOffsets", Earliest()),
            Chosen("endingTimestamp", Timestamp(7)),
        ),
        (
            {"endingoffsetsbytimestamp": TIMES, "endingoffsets": "earliest"},
            Chosen("startingOffsets", Earliest()),
            Chosen("endingOffsetsByTimestamp", Timestamp({ORDERS: 5})),
        ),
    ],
)
def test_timestamp_comes_before_by_timestamp_before_offsets(given, start, end):
    options = parse_read_options(LEAST | given)
    assert (options.start, options.end) == (start, end)


@pytest.mark.parametrize(
    ("given", "no_match"),
    [
        ({"startingtimestamp": "7"}, "error"),
        ({"startingoffsets": "-10m"}, "latest"),
        ({"startingoffsets": "-10m", "startingoffsetsbytimestampstrategy": "ERROR"}, "error"),
        ({"startingtimestamp": "7", "startingoffsetsbytimestampstrategy": "latest"}, "latest"),
    ],
)
def test_time_later_than_every_record_is_an_error_where_spark_has_one(given, no_match):
    assert parse_read_options(LEAST | given).no_match == no_match


def test_driver_and_tasks_have_deadlines_of_their_own():
    options = parse_read_options(
        LEAST
        | {
            "fetchoffset.numretries": "3",
            "fetchoffset.retryintervalms": "250",
            "kafkaconsumer.polltimeoutms": "5000",
            "kafka.default.api.timeout.ms": "20000",
        }
    )
    assert options.driver.default_api_timeout_s == 60
    assert options.driver.request_timeout_s == 30
    assert options.driver.backoff == Backoff(0.25, 0.25)
    assert options.client.default_api_timeout_s == options.client.request_timeout_s == 5
    assert options.client.backoff == Backoff(0.1, 1.0)
    plain = parse_read_options(LEAST)
    assert plain.driver == plain.client


def test_ranges_take_the_place_of_a_selection():
    text = '[["b",0,1,5],["a",1,7,9],["a",1,null,3],["a",1,3,6]]'
    ranges = parse_read_options(SERVERS | {"offsetranges": text}).ranges
    assert ranges == (
        OffsetRange("a", 1, None, 3),
        OffsetRange("a", 1, 3, 6),
        OffsetRange("a", 1, 7, 9),
        OffsetRange("b", 0, 1, 5),
    )
    assert parse_ranges("offsetRanges", ranges_json(ranges)) == ranges
    assert parse_ranges("offsetRanges", ranges_json([])) == ()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        *(("", "JSON"), ("{}", "JSON"), ("[1]", "start, stop")),
        *(('[["a",0,1]]', "start, stop"), ('[["",0,1,2]]', "start, stop")),
        *(('[["a",-1,1,2]]', "start, stop"), ('[["a",0,true,2]]', "start, stop")),
        *(('[["a",0,-2,2]]', "start, stop"), ('[["a",0,5,2]]', "ends before it starts")),
        ('[["a",0,1,5],["a",0,4,9]]', "may not overlap"),
        ('[["a",0,1,null],["a",0,4,9]]', "may not overlap"),
        ('[["a",0,null,5],["a",0,null,9]]', "may not overlap"),
        ('[["a",0,1,2],["a",1]]', r"\['a', 1\]: expected"),
        ('[["a",0,1,2]', "no JSON .*line 1 column 13.*expected JSON like"),
    ],
)
def test_bad_ranges_are_named_with_what_was_given_and_what_is_allowed(text, part):
    with pytest.raises(ConfigError, match=f"offsetRanges.*{re.escape(text)}.*{part}"):
        parse_read_options(SERVERS | {"offsetranges": text})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (RANGES | {"startingoffsets": "earliest"}, "startingOffsets.*offsetRanges says already"),
        (RANGES | {"endingtimestamp": "5"}, "endingTimestamp.*offsetRanges says already"),
        (RANGES | {"subscribe": "a"}, "exactly one"),
        (
            {"subscribe": "a", "maxpartitions": "2", "maxrecordsperpartition": "5"},
            "maxPartitions.*2.*maxRecordsPerPartition",
        ),
        (
            {"subscribe": "a", "minpartitions": "3", "maxpartitions": "2"},
            "minPartitions.*3.*maxPartitions, which is 2",
        ),
        ({"subscribe": "a", "startingoffsets": "committed"}, "kafka.group.id.*startingOffsets"),
        ({"subscribe": "a", "endingoffsets": "committed"}, "kafka.group.id.*endingOffsets"),
    ],
)
def test_what_contradicts_each_other_is_refused(given, text):
    with pytest.raises(ConfigError, match=text):
        parse_read_options(SERVERS | given)


@pytest.mark.parametrize(
    "name",
    [
        *("auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit"),
        "interceptor.classes",
    ],
)
def test_client_property_that_spark_refuses_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=rf"kafka\.{name}.*'x'.*not supported"):
        parse_read_options(LEAST | {f"kafka.{name}": "x"})


def test_every_option_of_sparks_connector_is_there():
    ours = {option.name for option in options_for(Use.BATCH).values() if not option.is_ours}
    assert ours == {
        *("assign", "subscribe", "subscribePattern", "startingOffsets", "endingOffsets"),
        *("startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp"),
        *("endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "failOnDataLoss"),
        *("minPartitions", "maxRecordsPerPartition", "includeHeaders", "fetchOffset.numRetries"),
        *("fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs", "groupIdPrefix"),
        "kafka.group.id",
    }


def test_group_is_no_client_property_and_a_prefix_is_said_to_do_nothing(caplog):
    with caplog.at_level(logging.WARNING):
        given = {"kafka.group.id": "g", "groupidprefix": "p", "startingoffsets": "committed"}
        assert parse_read_options(LEAST | given).group == "g"
    assert "group.id" not in caplog.text
    assert "groupIdPrefix has no effect" in caplog.text


@pytest.mark.parametrize(
    ("given", "name", "why"),
    [
        ({"startingtimestamp": "1", "startingoffsets": "x"}, "startingOffsets", "startingTimestam"),
        ({"endingtimestamp": "1", "endingoffsetsbytimestamp": TIMES}, "endingOffsetsByT", "ending"),
        ({"startingoffsetsbytimestampstrategy": "latest"}, "startingOffsetsByTim", "at no time"),
        ({"committedfallback": "error"}, "committedFallback", "not `committed`"),
        ({"kafka.group.id": "g"}, "kafka.group.id", "joins no group"),
        ({"kafka.group.id": "g", "startingtimestamp": "1"}, "kafka.group.id", "nothing is"),
        ({"columnnameofcorruptrecord": "bad"}, "columnNameOfCorruptRecord", "not PERMISSIVE"),
        ({"captureto": "/a", "kafka.capture.to": "/b"}, "kafka.capture.to", "captureTo comes"),
        ({"maxtriggerdelay": "1s"}, "maxTriggerDelay", "batch reads"),
    ],
)
def test_what_has_no_effect_beside_the_others_is_named_once(given, name, why, caplog):
    """A stream has its source made twice, and its sink for each batch."""
    for _ in range(2):
        parse_read_options(LEAST | given)
    (said,) = caplog.messages
    assert said.startswith(f"option {name}")
    assert "has no effect" in said
    assert why in said


@pytest.mark.parametrize(
    "given",
    [
        {"startingoffsets": "-10m", "startingoffsetsbytimestampstrategy": "error"},
        {"startingoffsets": "committed", "committedfallback": "error", "kafka.group.id": "g"},
        {"endingoffsets": "committed", "kafka.group.id": "g"},
        {"mode": "permissive", "columnnameofcorruptrecord": "bad"},
        {"captureto": "/a", "kafka.capture.to": "/a"},
    ],
)
def test_what_has_an_effect_is_not_named(given, caplog):
    parse_read_options(LEAST | given)
    assert not caplog.messages


def test_property_of_the_java_client_alone_is_named_once(caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            parse_read_options(LEAST | {"kafka.fetch.min.bytes": "1"})
    assert caplog.text.count("kafka.fetch.min.bytes") == 1


@pytest.mark.parametrize(
    "name", ["security.protocol", "sasl.jaas.config", "ssl.foo", "securty.protocol"]
)
def test_security_without_the_prefix_is_refused_and_its_value_not_shown(name):
    """A connection would be less safe than its owner believes."""
    with pytest.raises(ConfigError, match=rf"{name}.*prefix.*give kafka\.{name}") as caught:
        parse_read_options(LEAST | {name: "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["security_protocol", "kafka_security_protocol"])
def test_security_that_is_written_otherwise_is_refused_with_its_name_here(name):
    with pytest.raises(ConfigError, match=rf"'{name}'.*give kafka\.security\.protocol"):
        parse_read_options(LEAST | {name: "SSL"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("startingofset", "did you mean startingOffsets?"),
        ("maxpartition", "maxPartitions?"),
        ("bootstrap.servers", "did you mean kafka.bootstrap.servers?"),
        ("fetch.max.bytes", "did you mean kafka.fetch.max.bytes?"),
    ],
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


def test_servers_without_the_clients_beginning_are_pointed_out():
    told = r"'kafka\.bootstrap\.servers' is missing: there is 'bootstrap\.servers'.*with kafka\."
    with pytest.raises(ConfigError, match=told):
        parse_read_options({"bootstrap.servers": "b-1:9092", "subscribe": "orders"})


def test_a_selection_that_is_misspelt_is_pointed_out():
    with pytest.raises(ConfigError, match=r"there is 'subcribe': did you mean subscribe\?"):
        parse_read_options({"kafka.bootstrap.servers": "b-1:9092", "subcribe": "orders"})
