"""The doctor on every executor: an executor may lack what the driver has (names, routes, files)."""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster import Finding, KafkaCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        spark: the session; one of Spark Connect cannot say what runs where.
        config: Kafka's client properties, as for `KafkaCluster`.
        topics: whose rights to look at.
        groups: whose rights to look at.
        tasks: how many run at the same time; None: as many as there are cores, so that every
            executor gets one. Name a smaller number where dynamic allocation could not start as
            many at once.
    """
    context = spark.sparkContext
    count = context.defaultParallelism if tasks is None else tasks
    cluster = KafkaCluster(config)

    def run(numbers: Iterable[int]) -> Iterable[tuple[str, Finding]]:
        del numbers
        for finding in cluster.diagnose(topics, groups):
            yield platform.node(), finding

    # A barrier: all tasks run side by side, so none waits for a core that another has just left.
    found = context.parallelize(range(count), count).barrier().mapPartitions(run).collect()
    by_host: dict[str, list[Finding]] = {}
    for host, finding in found:
        seen = by_host.setdefault(host, [])
        if _unlike(finding, seen):
            seen.append(finding)
    return by_host


def _unlike(finding: Finding, seen: Collection[Finding]) -> bool:
    """Whether no other task on this host has found the same; how long it took does not count."""
    return all(item[:3] != finding[:3] for item in seen)
