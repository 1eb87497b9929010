"""`capture.to`: what a process says and hears, in a file of its own that its owner alone reads."""

import stat
from pathlib import Path

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.options import client_config
from tests.fake_broker import FakeCluster
from tests.unit.capture.wire import read


def test_a_process_writes_its_frames_into_one_private_file(tmp_path):
    folder = tmp_path / "frames"
    with FakeCluster({"orders": 1}) as fake:
        properties = {"bootstrap.servers": fake.bootstrap_servers, "capture.to": str(folder)}
        for _ in range(2):
            with KafkaCluster(properties) as cluster:
                cluster.get_partitions(["orders"])
    (path,) = folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    messages, notes = read(path.read_bytes())
    assert [message.problem for message in messages if message.body() is None] == []
    told = {(message.api, message.kind) for message in messages}
    kinds = ("request", "response")
    assert told == {(api, kind) for api in ("ApiVersions", "Metadata") for kind in kinds}
    assert {message.peers.broker for message in messages} == {fake.bootstrap_servers}
    assert notes == []


def test_without_it_nothing_looks_on():
    assert client_config({"kafka.bootstrap.servers": "b:9092"}).capture_to == ""


def test_the_sources_option_is_the_same():
    for name in ("captureTo", "captureto"):
        config = client_config({"kafka.bootstrap.servers": "b:9092", name: "/frames"})
        assert config.capture_to == "/frames"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    path = Path(tmp_path / "file")
    path.touch()
    with FakeCluster({"orders": 1}) as fake:
        properties = {"bootstrap.servers": fake.bootstrap_servers, "capture.to": str(path)}
        with pytest.raises(ConfigError, match=r"capture\.to"), KafkaCluster(properties) as cluster:
            cluster.get_partitions(["orders"])
