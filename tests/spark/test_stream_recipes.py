"""The recipes of docs/streaming.md, run one after the other as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from tests.spark.streaming import is_at, numbered, put, wait_until

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_recipes_do_what_the_page_says(spark, broker, new_topic, new_name, tmp_path):
    servers, topic, group = broker.bootstrap_servers, new_topic(partitions=2), new_name("exactly")
    put(servers, topic, 0, numbered(0, 20))
    code = "\n".join(_BLOCK.findall(PAGE.read_text()))
    stand_ins = {
        '"broker-1:9092"': f'"{servers}"',
        '"subscribe", "orders"': f'"subscribe", "{topic}"',
        '"orders-exactly"': f'"{group}"',
        '"orders-to-parquet"': f'"{new_name("behind")}"',
        '"orders-': f'"{tmp_path}/orders-',
    }
    for name, real in stand_ins.items():
        assert name in code
        code = code.replace(name, real)
    names = {"spark": spark}
    try:
        exec(compile(code, str(PAGE), "exec"), names)
        put(servers, topic, 1, numbered(20, 30))
        wait_until("what came later", lambda: is_at(names["following"], 30), names["following"])
        wait_until("the listener", lambda: names["listener"].behind is not None)
    finally:
        for query in spark.streams.active:
            query.stop()
        if "listener" in names:
            spark.streams.removeListener(names["listener"])
    rows = spark.read.parquet(f"{tmp_path}/orders-rows")
    assert sorted(row.value for row in rows.collect()) == numbered(0, 30)
    by_batch = spark.read.parquet(f"{tmp_path}/orders-batches/*")
    assert sorted(row.value for row in by_batch.collect()) == numbered(0, 20)
    watchful = spark.read.parquet(f"{tmp_path}/orders-watchful-rows")
    assert watchful.count() == 20
    logged = (tmp_path / "orders-watchful-checkpoint" / "offsets" / "1").read_text()
    assert re.search(
        rf'"{topic}": ?{{"0": ?20, ?"1": ?0}}, ?"{topic}:\S{{22}}:0,0": ?{{}}}}', logged
    )
    with KafkaCluster({"bootstrap.servers": servers}) as cluster:
        assert cluster.get_consumer_offsets(group, {TopicPartition(topic, 0)}) == {
            TopicPartition(topic, 0): 20
        }
