"""The doctor on every executor: an executor may lack what the driver has (names, routes, files)."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_kafkaproto.cluster import Finding, KafkaCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = ("executor", *Finding._fields)
_SCHEMA = ", ".join(f"{name} string" for name in _COLUMNS)
_ARROW = pa.schema([(name, pa.string()) for name in _COLUMNS])


def diagnose_executors(
    spark: SparkSession,
    config: Mapping[str, object],
    topics: Collection[str] = (),
    groups: Collection[str] = (),
    *,
    tasks: int | None = None,
) -> dict[str, list[Finding]]:
    """`KafkaCluster.diagnose` in Spark's Python workers: findings by the host that they ran on.

    Args:
        spark: the session.
        config: Kafka's client properties, as for `KafkaCluster`.
        topics: whose rights to look at.
        groups: whose rights to look at.
        tasks: how many run at the same time; None: as many as there are cores, so that every
            executor gets one. Name a number where that is not known (Spark Connect), or where
            dynamic allocation could not start as many at once.
    """
    count = spark.sparkContext.defaultParallelism if tasks is None else tasks
    cluster = KafkaCluster(config)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        found = cluster.diagnose(topics, groups)
        rows = [dict(zip(_COLUMNS, (platform.node(), *item), strict=True)) for item in found]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)

    # A barrier: all tasks run side by side, so none waits for a core that another has just left.
    frame = spark.range(count, numPartitions=count).mapInArrow(run, _SCHEMA, barrier=True)
    by_host: dict[str, list[Finding]] = {}
    for host, *finding in dict.fromkeys(tuple(row) for row in frame.collect()):
        by_host.setdefault(host, []).append(Finding(*finding))
    return by_host
