"""Which broker tests get: tests/brokers.py."""

import socket

import pytest

from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import ConfigError, DeadlineExceeded
from tests import brokers


class FakeContainer:
    """What of testcontainers' KafkaContainer is used."""

    def __init__(self, image):
        self.image = image
        self.seen = []

    def with_kraft(self):
        self.seen.append("kraft")
        return self

    def __enter__(self):
        FakeContainer.last = self
        self.seen.append("up")
        return self

    def __exit__(self, *error):
        self.seen.append("down")

    def get_bootstrap_server(self):
        return "localhost:32768"


def test_docker_is_used_when_asked_for(tmp_path):
    environ = {"KAFKAPROTO_BROKER": "docker"}
    with brokers.open_broker(environ, tmp_path, FakeContainer) as opened:
        assert opened.bootstrap_servers == "localhost:32768"
        assert FakeContainer.last.seen == ["kraft", "up"]
    assert FakeContainer.last.image == brokers.IMAGE
    assert FakeContainer.last.seen == ["kraft", "up", "down"]


def test_a_given_broker_comes_before_docker(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        environ = {"KAFKA_BOOTSTRAP_SERVERS": address, "KAFKAPROTO_BROKER": "docker"}
        with brokers.open_broker(environ, tmp_path) as opened:
            assert opened.bootstrap_servers == address


@pytest.mark.slow
def test_a_given_broker_that_does_not_answer_is_an_error_and_no_skip(tmp_path, monkeypatch):
    monkeypatch.setattr(brokers, "_ANSWER_S", 0.1)
    with (
        pytest.raises(DeadlineExceeded, match=r"127\.0\.0\.1:9 to accept"),
        brokers.open_broker({"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}, tmp_path),
    ):
        pass


def test_without_both_it_is_the_embedded_one(tmp_path, monkeypatch):
    monkeypatch.setattr(DevBroker, "start", lambda broker: broker)
    with brokers.open_broker({}, tmp_path) as opened:
        assert isinstance(opened, DevBroker)


def test_an_unknown_kind_is_refused(tmp_path):
    environ = {"KAFKAPROTO_BROKER": "podman"}
    with (
        pytest.raises(ConfigError, match="expected docker"),
        brokers.open_broker(environ, tmp_path),
    ):
        pass
