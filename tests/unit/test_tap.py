"""The recording proxy in front of scripted brokers: clients stay on it, and all is recorded."""

import io
from contextlib import closing

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.net import ClientConfig, Connection, Deadline, Endpoint
from pyspark_kafkaproto.tap import Tap
from tests.fake_broker import FakeCluster
from tests.unit.capture.wire import read


def test_every_connection_goes_through_the_tap_and_into_the_file():
    file = io.BytesIO()
    with FakeCluster({"orders": 2}, nodes=2) as fake:
        fake.topics["orders"].move(1, 2)
        target = Endpoint.parse(fake.bootstrap_servers.split(",")[0])
        with (
            Tap(0, target, file.write) as tap,
            KafkaCluster({"bootstrap.servers": str(tap.endpoint)}) as cluster,
        ):
            partitions = cluster.get_partitions(["orders"])
            assert set(cluster.get_latest_leader_offsets(partitions).values()) == {0}
        ports = {int(server.rpartition(":")[2]) for server in fake.bootstrap_servers.split(",")}
    messages, _ = read(file.getvalue())
    brokers = {int(message.peers.broker.rpartition(":")[2]) for message in messages}
    assert brokers == ports
    apis = {message.api for message in messages if message.kind == "response"}
    assert {"ApiVersions", "Metadata", "ListOffsets"} <= apis
    assert [message.problem for message in messages if message.body() is None] == []


def test_a_broker_that_is_not_there_ends_the_connection():
    with Tap(0, Endpoint("127.0.0.1", 1), io.BytesIO().write) as tap:
        config = ClientConfig.parse({"bootstrap.servers": str(tap.endpoint)})
        with (
            pytest.raises(KafkaProtoError),
            closing(Connection.open(tap.endpoint, config, Deadline.after(5))),
        ):
            pass


def test_a_port_that_is_taken_is_named():
    nobody, write = Endpoint("127.0.0.1", 1), io.BytesIO().write
    with Tap(0, nobody, write) as tap, pytest.raises(ConfigError, match=str(tap.endpoint.port)):
        Tap(tap.endpoint.port, nobody, write)
