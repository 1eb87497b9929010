"""A client over its quota: a real broker answers its Fetch with nothing but a time to wait."""

from __future__ import annotations

import logging

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import QuotaEntity
from pyspark_kafkaproto.net import ClientConfig, connections_for

pytestmark = pytest.mark.broker

# 200 kB go out before a client is throttled; a first answer of 100 may come before the quota does.
RECORDS = 400


def test_a_throttled_reader_waits_and_gets_every_record(broker, new_topic, new_name, caplog):
    topic, client = new_topic(), new_name("client")
    broker.produce(topic, [f"{number} ".ljust(1000, ".") for number in range(RECORDS)])
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        cluster.alter_quotas({QuotaEntity(client_id=client): {"consumer_byte_rate": 20_000}})
    config = ClientConfig.parse(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": client,
            "max.partition.fetch.bytes": "100000",
        }
    )
    task = ReadTask((OffsetRange(topic, 0, None, None),))
    with caplog.at_level(logging.INFO, "pyspark_kafkaproto.net"):
        found = [
            offset
            for batch in read_batches(task, config, ReadSettings(), schema_for(["offset"]))
            for offset in batch.column(0).to_pylist()
        ]
    connections_for(config).close()
    assert found == list(range(RECORDS))
    assert any("throttles us" in record.getMessage() for record in caplog.records)
