"""Lag of a thousand groups: a few requests, within three seconds."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, NewTopic

pytestmark = pytest.mark.broker

GROUPS, PARTITIONS, MOST_S = 1000, 10, 3.0


def test_lag_of_a_thousand_groups(broker, new_name):
    topic, prefix = new_name(), new_name("lag")
    groups = [f"{prefix}-{number}" for number in range(GROUPS)]
    config = {"bootstrap.servers": broker.bootstrap_servers}
    with KafkaCluster(config) as cluster:
        cluster.create_topics([NewTopic(topic, PARTITIONS, 1)])
        partitions = cluster.get_partitions({topic})
        cluster.set_group_offsets({group: dict.fromkeys(partitions, 0) for group in groups})
    with KafkaCluster(config) as fresh:
        began = time.perf_counter()
        rows = fresh.lag(groups)
        took_s = time.perf_counter() - began
        print(f"lag of {GROUPS} groups with {PARTITIONS} partitions each: {took_s:.2f} s")
        assert len(rows) == GROUPS * PARTITIONS
        assert {row.lag for row in rows} == {0}
        fresh.delete_groups(groups)
        fresh.delete_topics({topic})
    assert took_s <= MOST_S
