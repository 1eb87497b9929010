"""The recipes of docs/recipes.md, run one after the other as they stand there."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from pyspark_kafkaproto import Producer, ProducerRecord

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore"),  # PySpark's, about pandas 3
]

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_PARTITIONS = 3
_HOUR_MS = 3_600_000


def records():
    """Of one partition each: old and new, with and without key, value and headers."""
    now = int(time.time() * 1000)
    for number in range(30):
        yield ProducerRecord(
            None if number % 7 == 0 else f'{{"id": {number}, "price": {number}.5}}',
            key=None if number % 5 == 0 else f"key-{number % 4}",
            headers=[("n", b"%d" % number), ("n", None)] if number % 3 else [],
            partition=number * number % _PARTITIONS,
            timestamp_ms=now - 2 * _HOUR_MS if number < 20 else now - number,
        )


def in_order(spark, servers, topic):
    rows = spark.read.format("kafkaproto").option("kafka.bootstrap.servers", servers)
    rows = rows.options(subscribe=topic, includeHeaders=True).load()
    wanted = rows.select("partition", "offset", "key", "value", "headers", "timestamp")
    return [(row.partition, *row[2:]) for row in sorted(wanted.collect(), key=lambda row: row[:2])]


def test_recipes_do_what_the_page_says(spark, broker, new_topic, new_name, tmp_path):
    pytest.importorskip("pandas")
    servers = broker.bootstrap_servers
    topic, copy, prices = (new_topic(partitions=_PARTITIONS) for _ in range(3))
    with Producer({"bootstrap.servers": servers}, topic=topic) as producer:
        producer.send(list(records()))
    stand_ins = {
        '"broker-1:9092"': f'"{servers}"',
        '"subscribe": "orders"': f'"subscribe": "{topic}"',
        'topic="orders-copy"': f'topic="{copy}"',
        '"transactionalIdPrefix", "orders-copy"': f'"transactionalIdPrefix", "{new_name("copy")}"',
        '"prices"': f'"{prices}"',
        '"orders-lag-checkpoint"': f'"{tmp_path}/checkpoint"',
    }
    code = "\n".join(_BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    for name, real in stand_ins.items():
        assert name in code
        code = code.replace(name, real)
    names = {"spark": spark}
    exec(compile(code, str(PAGE), "exec"), names)
    assert names["last_hour"].count() == 10
    assert names["newest"].count() == sum(
        min(10, sum(record.partition == number for record in records()))
        for number in range(_PARTITIONS)
    )
    parsed = names["parsed"].where("id IS NOT NULL").collect()
    assert {(row.id, row.price) for row in parsed} == {
        (number, number + 0.5) for number in range(30) if number % 7
    }
    assert in_order(spark, servers, copy) == in_order(spark, servers, topic)
    written = sorted((row[1:3]) for row in in_order(spark, servers, prices))
    assert written == [(b"a", b"10.50")] * 2 + [(b"b", None)] * 2
    assert names["progress"]["numInputRows"] >= 0
