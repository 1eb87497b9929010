from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.root import kafkaproto
from tests.fake_broker import FakeCluster
from tests.unit.cluster.admin.fake_settings import keep_settings


@pytest.fixture
def brokers():
    """Two fake nodes; orders-0 has 30 records, orders-1 none."""
    with FakeCluster({"orders": 2, "empty": 1}, nodes=2) as fake:
        fake.logs["orders", 0].fill(3)
        yield fake


@pytest.fixture
def settings(brokers):
    """What is set for whom: (type, name) to settings; changes are made there."""
    return keep_settings(brokers)


@pytest.fixture
def command(brokers):
    """Runs a command against the fake nodes; gives click's result."""

    def run(*words, **options):
        environ = {"KAFKA_BOOTSTRAP_SERVERS": brokers.bootstrap_servers}
        return CliRunner(env=environ).invoke(kafkaproto, words, **options)

    return run


@pytest.fixture
def rows(command):
    """Runs a command with --json and gives what it printed."""

    def run(*words):
        done = command(*words, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run
