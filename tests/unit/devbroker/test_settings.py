from pathlib import Path

import pytest

from pyspark_kafkaproto.devbroker.settings import Settings
from pyspark_kafkaproto.errors import ConfigError

ONE = [{"PLAINTEXT": 9092, "CONTROLLER": 9093}]


def _settings(nodes=1, listeners=None, properties=None):
    plain = {"PLAINTEXT": "PLAINTEXT"}
    return Settings(nodes, plain if listeners is None else listeners, properties or {})


def _properties(settings, node_id=1, ports=ONE):
    text = settings.server_properties(node_id, ports, Path("/data/logs"))
    return dict(line.split("=", 1) for line in text.splitlines())


def test_one_node_is_broker_and_controller_on_loopback_alone():
    found = _properties(_settings())
    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert found["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert found["log.dirs"] == "/data/logs"
    assert found["offsets.topic.replication.factor"] == "1"
    assert found["transaction.state.log.min.isr"] == "1"
    # a client must be shown not to create topics, so the broker must be willing to
    assert found["auto.create.topics.enable"] == "true"


def test_three_nodes_know_each_other_and_replicate():
    ports = [{"PLAINTEXT": 9000 + n, "CONTROLLER": 9100 + n} for n in (1, 2, 3)]
    found = _properties(_settings(nodes=3), 2, ports)
    assert found["node.id"] == "2"
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:9002,CONTROLLER://127.0.0.1:9102"
    voters = "1@127.0.0.1:9101,2@127.0.0.1:9102,3@127.0.0.1:9103"
    assert found["controller.quorum.voters"] == voters
    assert found["offsets.topic.replication.factor"] == "3"
    assert found["transaction.state.log.min.isr"] == "2"


def test_further_listeners_get_their_protocol_and_the_first_stays_the_brokers_own():
    settings = _settings(listeners={"INSIDE": "PLAINTEXT", "TLS": "SSL"})
    ports = [{"INSIDE": 1, "TLS": 2, "CONTROLLER": 3}]
    found = _properties(settings, 1, ports)
    assert found["inter.broker.listener.name"] == "INSIDE"
    assert found["advertised.listeners"] == "INSIDE://127.0.0.1:1,TLS://127.0.0.1:2"
    protocols = "INSIDE:PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT"
    assert found["listener.security.protocol.map"] == protocols


def test_clients_of_a_listener_can_be_sent_elsewhere():
    settings = Settings(
        1,
        {"IN": "PLAINTEXT", "OUT": "PLAINTEXT", "FAR": "PLAINTEXT"},
        {},
        {"OUT": "kafka", "FAR": "kafka:9"},
    )
    found = _properties(settings, 1, [{"IN": 1, "OUT": 2, "FAR": 3, "CONTROLLER": 4}])
    assert found["advertised.listeners"] == "IN://127.0.0.1:1,OUT://kafka:2,FAR://kafka:9"
    assert "OUT://127.0.0.1:2" in found["listeners"]


@pytest.mark.parametrize("advertised", [{"NONE": "kafka"}, {"IN": "a b"}, {"IN": "kafka:"}])
def test_advertised_addresses_that_cannot_be_used_are_named(advertised):
    with pytest.raises(ConfigError, match="expected one of IN, with host or host:port"):
        Settings(1, {"IN": "PLAINTEXT"}, {}, advertised)


def test_given_properties_come_over_the_file_and_the_file_over_the_defaults(tmp_path, monkeypatch):
    file = tmp_path / "broker.properties"
    file.write_text("# ours\nnum.partitions=7\nauto.create.topics.enable=false\n")
    monkeypatch.setenv("KAFKAPROTO_BROKER_PROPERTIES", str(file))
    found = _properties(_settings(properties={"num.partitions": "9"}))
    assert found["num.partitions"] == "9"
    assert found["auto.create.topics.enable"] == "false"
    assert found["group.initial.rebalance.delay.ms"] == "0"


def test_values_are_escaped_as_java_reads_them():
    jaas = 'a required path="C:\\x";\nb;'
    text = _settings(properties={"jaas": jaas}).server_properties(1, ONE, Path("/home/jürgen"))
    assert 'jaas=a required path=\\"C:\\\\x\\";\\nb;\n' in text
    assert "log.dirs=/home/j\\u00fcrgen\n" in text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"nodes": 0}, "nodes"),
        ({"listeners": {}}, "listeners"),
        ({"listeners": {"CONTROLLER": "SSL"}}, "CONTROLLER"),
        ({"listeners": {"X": "TLS"}}, "X: TLS"),
        ({"properties": {"node.id": "4"}}, "use nodes="),
        ({"properties": {"log.dirs": "/"}}, "use data_dir="),
    ],
)
def test_settings_that_cannot_be_used_are_named(arguments, named):
    with pytest.raises(ConfigError, match=named):
        _settings(**arguments)


def test_a_file_may_not_set_what_is_ours_either(tmp_path, monkeypatch):
    file = tmp_path / "broker.properties"
    file.write_text("listeners=PLAINTEXT://0.0.0.0:9092\n")
    monkeypatch.setenv("KAFKAPROTO_BROKER_PROPERTIES", str(file))
    with pytest.raises(ConfigError, match="use listeners="):
        _settings().server_properties(1, ONE, Path("/d"))


def test_a_file_is_read_as_kafka_reads_it(tmp_path, monkeypatch):
    file = tmp_path / "broker.properties"
    file.write_text("compression.type : \\\n  zstd\nlog.cleaner.threads 2\n")
    monkeypatch.setenv("KAFKAPROTO_BROKER_PROPERTIES", str(file))
    lines = _settings().server_properties(1, ONE, Path("/d")).splitlines()
    assert {"compression.type=zstd", "log.cleaner.threads=2"} <= set(lines)
