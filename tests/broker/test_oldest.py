"""The oldest line of brokers: metadata, offsets, groups and records from Apache Kafka 3.9."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import (
    ConfigChange,
    ConfigResource,
    KafkaCluster,
    TopicPartition,
)
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import UnsupportedVersion
from pyspark_kafkaproto.net import connections_for
from tests.waiting import until

pytestmark = pytest.mark.broker


def test_kafka_3_9_is_read_and_committed_to():
    with DevBroker(version="3.9.1") as broker:
        broker.create_topic("orders", 2)
        broker.produce("orders", [f"k{n}:value {n}" for n in range(50)], key_separator=":")
        with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            partitions = cluster.get_partitions({"orders"})
            assert partitions == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
            latest = cluster.get_latest_leader_offsets(partitions)
            assert sum(latest.values()) == 50
            assert set(cluster.get_leader_offsets(partitions, 0).values()) <= {0, None}
            assert cluster.get_consumer_offsets("readers", partitions) == {}
            cluster.set_consumer_offsets("readers", latest)
            assert cluster.get_consumer_offsets("readers", partitions) == latest
            topology = cluster.describe({"orders"}, must_exist=True)
            task = ReadTask(
                tuple(OffsetRange(*item, None, None) for item in sorted(partitions)),
                cluster.find_leaders(partitions),
                {"orders": topology.topic("orders").topic_id},
            )
            batches = read_batches(task, cluster.config, ReadSettings(), schema_for(["value"]))
            values = [value for batch in batches for value in batch.column(0).to_pylist()]
            connections_for(cluster.config).close()
            metrics = ConfigResource("client-metrics", "all")
            cluster.alter_configs({metrics: [ConfigChange("interval.ms", "1000")]})
            until(lambda: cluster.list_config_resources({"client-metrics"}) == [metrics])
            with pytest.raises(UnsupportedVersion, match=r"before Kafka 4\.1 list"):
                cluster.list_config_resources()
    assert sorted(values) == sorted(f"value {n}".encode() for n in range(50))
