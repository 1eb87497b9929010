"""The cluster of the broker of the whole run; files with a broker of their own have theirs."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import KafkaCluster


@pytest.fixture(scope="module")
def kafka(broker):
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        yield cluster
