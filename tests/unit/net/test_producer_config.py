"""The producer's properties: read, checked, against each other too, in Kafka's way."""

import pickle

import pytest

from pyspark_kafkaproto.client import Producer
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import ProducerConfig

SERVERS = {"bootstrap.servers": "b-1:9092"}


def parse(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return ProducerConfig.parse(SERVERS | given, "kafka.")


def test_defaults_are_idempotent_and_wait_for_all():
    config = parse()
    assert (config.acks, config.enable_idempotence, config.max_in_flight) == (-1, True, 5)
    assert (config.codec, config.level, config.partitioner) == (0, None, "murmur2")
    assert (config.delivery_timeout_s, config.client.request_timeout_s) == (120, 30)
    assert config.max_request_size == 1 << 20
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config) == hash(parse())


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("acks", "ALL", "acks", -1),
        ("acks", "-1", "acks", -1),
        ("acks", "1", "acks", 1),
        ("compression_type", "ZSTD", "codec", 4),
        ("batch_size", "16384", "batch_size", 16384),
        ("linger_ms", "5", "linger_s", 0.005),
        ("linger_ms", "9223372036854775807", "linger_s", (2**31 - 1) / 1000),
        ("metadata_max_age_ms", "9223372036854775807", "metadata_max_age_s", (2**31 - 1) / 1000),
        ("buffer_memory", "9223372036854775807", "buffer_memory", 2**63 - 1),
        ("retries", "3", "retries", 3),
        ("partitioner", "round_robin", "partitioner", "round_robin"),
        ("partitioner_ignore_keys", "true", "partitioner", "sticky"),
        ("partitioner_ignore_keys", "false", "partitioner", "murmur2"),
        ("delivery_timeout_ms", "60000", "delivery_timeout_s", 60),
    ],
)
def test_good_value_is_read(name, text, attribute, value):
    assert getattr(parse(**{name: text}), attribute) == value


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("acks", "2", "expected all, -1, 0 or 1"),
        ("compression_type", "brotli", "none or gzip"),
        ("compression_gzip_level", "10", "from 1 to 9"),
        ("batch_size", "-1", "from 0"),
        ("max_in_flight_requests_per_connection", "0", "from 1"),
        ("partitioner", "fnv1a", "murmur2 or consistent_random"),
        (
            "partitioner_class",
            "org.example.Mine",
            r"a Java class cannot be used here: give kafka\.partitioner, murmur2 or ",
        ),
        ("delivery_timeout_ms", "1000", r"at least kafka\.request\.timeout\.ms, 30000"),
        ("request_timeout_ms", "soon", "whole number"),
    ],
)
def test_bad_value_names_the_option_as_it_was_given(name, text, allowed):
    with pytest.raises(ConfigError, match=rf"'kafka\.{name.replace('_', '.')}'.*{allowed}"):
        parse(**{name: text})


@pytest.mark.parametrize("partitioner", ["round_robin", "sticky"])
def test_keys_are_ignored_by_whoever_never_goes_by_them(partitioner):
    config = parse(partitioner_ignore_keys="true", partitioner=partitioner)
    assert config.partitioner == partitioner


@pytest.mark.parametrize("partitioner", ["murmur2", "consistent_random"])
def test_who_goes_by_keys_cannot_ignore_them(partitioner):
    told = rf"'kafka\.partitioner\.ignore\.keys' .*kafka\.partitioner={partitioner} goes by keys"
    with pytest.raises(ConfigError, match=told):
        parse(partitioner_ignore_keys="true", partitioner=partitioner)


def test_the_level_is_that_of_the_codec_in_use():
    levels = {"compression_gzip_level": "9", "compression_zstd_level": "-5"}
    assert parse(compression_type="zstd", **levels).level == -5
    assert parse(compression_type="gzip", **levels).level == 9
    assert parse(compression_type="snappy", **levels).level is None


def test_level_1_below_0_of_gzip_is_its_default_as_kafka_has_it():
    assert parse(compression_type="gzip", compression_gzip_level="-1").level is None
    with pytest.raises(ConfigError, match=r"compression\.gzip\.level.*'0': .* 1 to 9, or -1"):
        parse(compression_gzip_level="0")


CONTRADICTIONS = [
    ("acks", "1"),
    ("retries", "0"),
    ("max_in_flight_requests_per_connection", "6"),
]


@pytest.mark.parametrize(("name", "text"), CONTRADICTIONS)
def test_idempotence_gives_way_where_nobody_asked_for_it(name, text):
    assert not parse(**{name: text}).enable_idempotence


@pytest.mark.parametrize(("name", "text"), CONTRADICTIONS)
def test_idempotence_that_was_asked_for_does_not(name, text):
    with pytest.raises(ConfigError, match=r"with enable.idempotence=true expected"):
        parse(**{name: text, "enable_idempotence": "true"})


def test_delivery_timeout_grows_with_what_it_holds():
    assert parse(request_timeout_ms="200000").delivery_timeout_s == 201


def test_a_linger_that_nobody_gave_leaves_delivery_timeout_its_room():
    # Java's client lingers for 0 or 5 ms: what it takes is not refused for our own default.
    config = parse(delivery_timeout_ms="30000", request_timeout_ms="29900")
    assert (config.linger_s, config.delivery_timeout_s) == (pytest.approx(0.1), 30)
    assert parse(delivery_timeout_ms="30000").linger_s == 0
    assert parse(delivery_timeout_ms="31000").linger_s == 1
    least = r"kafka\.linger\.ms \+ kafka\.request\.timeout\.ms, 31000"
    with pytest.raises(ConfigError, match=rf"kafka\.delivery.*30999: expected at least {least}"):
        parse(delivery_timeout_ms="30999", linger_ms="1000")


def test_a_transactional_id_needs_idempotence_by_name():
    config = parse(transactional_id="mine", transaction_timeout_ms="5000")
    assert (config.transactional_id, config.transaction_timeout_s) == ("mine", 5.0)
    assert parse().transactional_id is None
    with pytest.raises(ConfigError, match=r"kafka\.enable\.idempotence.*transactions need"):
        parse(transactional_id="mine", enable_idempotence="false")
    with pytest.raises(ConfigError, match=r"kafka\.acks.*expected all"):
        parse(transactional_id="mine", acks="1")
    with pytest.raises(ConfigError, match=r"kafka\.transactional\.id.*expected a name"):
        parse(transactional_id=" ")


def test_a_property_of_producers_that_is_misspelt_is_pointed_out(caplog):
    parse(compression_typ="lz4")
    (said,) = caplog.messages
    assert said.endswith("has no effect; did you mean kafka.compression.type?")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"isolation.level": "read_committed"}, "for reading"),
        ({"client.rack": "a"}, "for reading"),
        ({"compression.zstd.level": "3"}, "compression.type is none"),
        ({"compression.type": "lz4", "compression.zstd.level": "3"}, "compression.type is lz4"),
        ({"transaction.timeout.ms": "3"}, "in transactions"),
    ],
)
def test_a_producer_names_what_changes_nothing_of_what_it_writes(given, why, caplog):
    Producer(SERVERS | given)
    (said,) = caplog.messages
    assert f"{list(given)[-1]} has no effect on what is written" in said
    assert why in said


@pytest.mark.parametrize(
    "given",
    [
        {"compression.type": "zstd", "compression.zstd.level": "3"},
        {"transactional.id": "mine", "transaction.timeout.ms": "5000"},
    ],
)
def test_what_changes_something_of_it_is_not_named(given, caplog):
    Producer(SERVERS | given)
    assert not caplog.messages
