"""Kafka's client properties: read, checked, hashable; nothing unknown without a word."""

import logging
import pickle
from dataclasses import FrozenInstanceError

import pytest

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net import Backoff, ClientConfig, Endpoint, ProducerConfig
from pyspark_kafkaproto.net.properties import names_of
from pyspark_kafkaproto.net.security import SecurityConfig

SERVERS = {"bootstrap.servers": "b-1:9092"}
MS = 1000

# property, text, the field, its value
GOOD = [
    (
        "bootstrap.servers",
        "b-1:9092, [::1]:9093 ,",
        "bootstrap_servers",
        (Endpoint("b-1", 9092), Endpoint("::1", 9093)),
    ),
    ("client.id", " me ", "client_id", "me"),
    ("client.rack", "eu-1a", "client_rack", "eu-1a"),
    ("capture.to", "/frames", "capture_to", "/frames"),
    ("capture.errors", "false", "capture_errors", False),
    ("request.timeout.ms", "1500", "request_timeout_s", 1.5),
    ("default.api.timeout.ms", 2000, "default_api_timeout_s", 2.0),
    ("socket.connection.setup.timeout.ms", "1", "connection_setup_timeout_s", 0.001),
    ("retry.backoff.ms", "0", "retry_backoff_s", 0.0),
    ("retry.backoff.max.ms", "50", "retry_backoff_max_s", 0.05),
    ("reconnect.backoff.ms", "10", "reconnect_backoff_s", 0.01),
    ("reconnect.backoff.max.ms", "20", "reconnect_backoff_max_s", 0.02),
    ("connections.max.idle.ms", "1000", "connections_max_idle_s", 1.0),
    ("connections.max.idle.ms", "0", "connections_max_idle_s", 0.0),
    ("isolation.level", "READ_COMMITTED", "isolation_level", "read_committed"),
    ("check.crcs", "False", "check_crcs", False),
    ("fetch.max.bytes", "1", "fetch_max_bytes", 1),
    ("max.partition.fetch.bytes", " 4096 ", "max_partition_fetch_bytes", 4096),
    ("receive.message.max.bytes", "2147483647", "receive_message_max_bytes", 2**31 - 1),
]

# property, text, a part of what is allowed
BAD = [
    ("bootstrap.servers", "", "host:port"),
    ("bootstrap.servers", " , ", "host:port"),
    ("bootstrap.servers", "b-1", "host:port"),
    ("bootstrap.servers", "b-1:9092;b-2:9092", "host:port"),
    ("request.timeout.ms", "0", "from 1 to 2147483647"),
    ("request.timeout.ms", "30s", "whole number"),
    ("request.timeout.ms", "1_000", "whole number"),
    ("request.timeout.ms", "2147483648", "from 1 to 2147483647"),
    ("default.api.timeout.ms", "-1", "from 1"),
    ("socket.connection.setup.timeout.ms", "", "whole number"),
    ("retry.backoff.ms", "-1", "from 0"),
    ("retry.backoff.max.ms", "1.5", "whole number"),
    ("reconnect.backoff.ms", "-1", "from 0"),
    ("reconnect.backoff.max.ms", "soon", "whole number"),
    ("connections.max.idle.ms", "-2", "from 0 to 9223372036854775807, or -1"),
    ("retry.backoff.ms", "9223372036854775808", "from 0 to 9223372036854775807"),
    ("isolation.level", "serializable", "read_uncommitted or read_committed"),
    ("check.crcs", "yes", "true or false"),
    ("capture.errors", "maybe", "true or false"),
    ("fetch.max.bytes", "0", "from 1"),
    ("max.partition.fetch.bytes", "1MB", "whole number"),
    ("receive.message.max.bytes", "999", "from 1000"),
]


# Those of security have their own file.
NAMES = names_of(ClientConfig).keys() - names_of(SecurityConfig).keys()


def test_every_property_has_a_good_example():
    assert {name for name, *_ in GOOD} == NAMES


def test_every_property_that_can_be_wrong_has_a_bad_example():
    free_text = {"client.id", "client.rack", "capture.to"}
    assert {name for name, *_ in BAD} == NAMES - free_text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("socket.connection.setup.timeout.ms", "9223372036854775807"),
        ("retry.backoff.max.ms", "2147483648"),
        ("reconnect.backoff.ms", "9223372036854775807"),
        ("reconnect.backoff.max.ms", "4294967296"),
        ("connections.max.idle.ms", "9223372036854775807"),
        ("connections.max.idle.ms", "-1"),
    ],
)
def test_a_time_that_kafka_has_64_bits_for_is_one_that_never_comes(name, text):
    longest_s = (2**31 - 1) / 1000  # no time-out of the system's is longer
    config = ClientConfig.parse({"bootstrap.servers": "b-1:9092", name: text})
    attribute = next(found for other, _, found, _ in GOOD if other == name)
    assert getattr(config, attribute) == longest_s


@pytest.mark.parametrize(("name", "text", "attribute", "value"), GOOD)
def test_good_value_is_read(name, text, attribute, value):
    assert getattr(ClientConfig.parse(SERVERS | {name: text}), attribute) == value


@pytest.mark.parametrize(("name", "text", "allowed"), BAD)
def test_bad_value_names_property_value_and_what_is_allowed(name, text, allowed):
    with pytest.raises(ConfigError) as caught:
        ClientConfig.parse(SERVERS | {name: text}, prefix="kafka.")
    assert caught.value.option == f"kafka.{name}"
    assert allowed in caught.value.allowed
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("properties", [{}, {"client.id": "me"}])
def test_bootstrap_servers_are_required(properties):
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers.*required"):
        ClientConfig.parse(properties, "kafka.")


def test_defaults_are_the_java_clients_but_for_block_sizes():
    config = ClientConfig.parse(SERVERS)
    assert config.request_timeout_s == 30
    assert config.default_api_timeout_s == 60
    assert config.connection_setup_timeout_s == 10
    assert config.backoff == Backoff(0.1, 1.0)
    assert config.fetch_max_bytes == config.max_partition_fetch_bytes == 8 << 20
    assert config.check_crcs
    assert not config.is_read_committed


@pytest.mark.parametrize(
    ("given", "retry", "reconnect"),
    [
        ({}, (0.1, 1.0), (0.05, 1.0)),
        ({"retry.backoff.ms": 5000}, (1.0, 1.0), (0.05, 1.0)),
        ({"retry.backoff.max.ms": 50}, (0.05, 0.05), (0.05, 1.0)),
        ({"retry.backoff.ms": 5000, "retry.backoff.max.ms": 9000}, (5.0, 9.0), (0.05, 1.0)),
        ({"reconnect.backoff.ms": 100}, (0.1, 1.0), (0.1, 0.1)),
        ({"reconnect.backoff.max.ms": 20}, (0.1, 1.0), (0.02, 0.02)),
        ({"reconnect.backoff.ms": 9, "reconnect.backoff.max.ms": 90}, (0.1, 1.0), (0.009, 0.09)),
    ],
)
def test_waits_are_those_of_the_java_client(given, retry, reconnect):
    config = ClientConfig.parse(SERVERS | given)
    assert config.backoff == Backoff(*retry)
    assert config.reconnect_backoff == Backoff(*reconnect)


def test_a_wait_that_is_more_than_its_most_is_told_once(caplog):
    for _ in range(2):
        ClientConfig.parse(SERVERS | {"retry.backoff.ms": 5001}, "kafka.")  # by no other test
    (said,) = caplog.messages
    assert "kafka.retry.backoff.ms is 5001, more than kafka.retry.backoff.max.ms: each" in said


@pytest.mark.slow
def test_unknown_property_is_named_once_without_its_value(caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            ClientConfig.parse(SERVERS | {"acks": "hunter2"}, "kafka.")
    assert [record.getMessage() for record in caplog.records] == [
        "client property kafka.acks is not known here: it has no effect"
    ]


@pytest.mark.parametrize("name", [None, 1, b"client.id"])
def test_a_name_of_a_property_that_is_no_text_is_refused(name):
    with pytest.raises(ConfigError, match=r"option 'config' is \[.*\]: expected names of"):
        ClientConfig.parse(SERVERS | {name: "me"})


def test_a_property_that_is_misspelt_is_pointed_out(caplog):
    ClientConfig.parse(SERVERS | {"isolation.levle": "read_committed"}, "kafka.")
    (said,) = caplog.messages
    assert said.endswith("has no effect; did you mean kafka.isolation.level?")


@pytest.mark.parametrize("name", ["kafka.client.id", "Client.Id", "client_id", "kafka_client_id"])
def test_a_property_that_is_written_otherwise_is_pointed_out(caplog, name):
    """With Spark's prefix, or as other clients write theirs."""
    ClientConfig.parse(SERVERS | {name: "me"})
    (said,) = caplog.messages
    assert said.endswith("has no effect; did you mean client.id?")


@pytest.mark.parametrize(
    "name", ["kafka.bootstrap.servers", "bootstrap_servers", "bootstrap.server"]
)
def test_bootstrap_servers_under_another_name_are_pointed_out(name):
    expected = rf"'bootstrap\.servers' is missing: required: .*\(there is '{name}'\)"
    with pytest.raises(ConfigError, match=expected):
        ClientConfig.parse({"client.id": "me", name: "b:9092"})


@pytest.mark.parametrize("name", ["kafka.security.protocol", "kafka_ssl_ca_location"])
def test_a_property_of_security_that_is_written_otherwise_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name}.*none of security is ignored"):
        ClientConfig.parse(SERVERS | {name: "SSL"})


@pytest.mark.parametrize("name", ["fetch.min.bytes", "metadata.max.idle.ms"])
def test_a_property_of_the_java_client_is_not_taken_for_another_misspelt(caplog, name):
    ProducerConfig.parse(SERVERS | {name: "1"}, "kafka.")
    (said,) = caplog.messages
    assert said.endswith("has no effect")


@pytest.mark.parametrize("name", ["securty.protocol", "sasl_mechanism", "ssl-truststore.location"])
def test_what_reads_like_a_property_of_security_is_refused(name):
    with pytest.raises(ConfigError, match=rf"kafka\.{name}.*none of security is ignored.*mean kaf"):
        ClientConfig.parse(SERVERS | {name: "SSL"}, "kafka.")


def test_is_a_value():
    config = ClientConfig.parse(SERVERS | {"client.id": "me"})
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    assert hash(again) == hash(config)
    assert config != ClientConfig.parse(SERVERS)
    with pytest.raises(FrozenInstanceError):
        config.client_id = "you"
