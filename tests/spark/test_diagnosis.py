"""The doctor in Spark's workers."""

from __future__ import annotations

import platform

import pytest

from pyspark_kafkaproto.spark.diagnosis import diagnose_executors

pytestmark = pytest.mark.spark


def test_every_hop_is_tried_where_the_executors_run(spark, broker, new_topic, new_name):
    topic, group = new_topic(), new_name("group")
    config = {"bootstrap.servers": f"{broker.bootstrap_servers},nowhere.invalid:9092"}
    found = diagnose_executors(spark, config, {topic}, {group})
    assert found.keys() == {platform.node()}
    results = {(item.hop, item.subject): item for item in found[platform.node()]}
    assert results["rights", f"topic {topic!r}"].result == "ok"
    assert results["coordinator", f"group {group!r}"].result == "ok"
    broken = [key for key, item in results.items() if item.result == "broken"]
    assert broken == [("resolve", "nowhere.invalid:9092")]
