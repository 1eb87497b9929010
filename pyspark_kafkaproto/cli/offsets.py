"""`kafkaproto offsets`: where partitions begin and end, and what was written when."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import click

from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.moments import TIME_EXAMPLE, parse_time, show_time
from pyspark_kafkaproto.cli.output import json_option, show
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.values import find_partitions, known_texts
from pyspark_kafkaproto.cluster import Found, KafkaCluster, TopicPartition

_BOUNDS = {
    "topic": "Topic",
    "partition": "Partition",
    "earliest": "Earliest",
    "latest": "Latest",
    "count": "Offsets",
}
_AT = {"topic": "Topic", "partition": "Partition", "offset": "Offset"}
_WHEN = f"earliest, latest, last-stable, max-timestamp, {TIME_EXAMPLE}"


@click.command()
@connected
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:PARTITION,…]…")
@click.option(
    "--at",
    metavar="WHEN",
    help="earliest, latest, last-stable, max-timestamp, or a time: 2026-11-21T08:00 (local time, "
    "or with its zone), -10m.",
)
@json_option
def offsets(cluster: KafkaCluster, topics: tuple[str, ...], at: str | None, as_json: bool) -> None:
    """The earliest and the latest offset of each partition, or the one at a point in time.

    \b
    Examples:
      kafkaproto offsets orders
      kafkaproto offsets orders:0,1 --at latest
      kafkaproto offsets orders --at=-10m              the first record of the last ten minutes
      kafkaproto offsets orders --at 2026-11-21T08:00
      kafkaproto offsets orders --at max-timestamp
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    known = known_texts(cluster, "TOPIC", topics, refused)
    told = refused.each(known, lambda texts: _rows(cluster, texts, at, refused)) if known else []
    columns = _BOUNDS if at is None else _AT
    if at == "max-timestamp":
        columns = _AT | {"timestamp": "Timestamp"}
    if told:
        # Each once, though it is named as itself and with its topic.
        rows = {(row["topic"], row["partition"]): row for own in told for row in own}
        show([rows[item] for item in sorted(rows)], columns, as_json=as_json)
    refused.tell()


def _rows(
    cluster: KafkaCluster, texts: Collection[str], at: str | None, refused: Refused
) -> list[dict[str, Any]]:
    partitions = find_partitions(cluster, "TOPIC", texts)
    # As Kafka's own tool: what nobody leads keeps no other partition from being shown.
    if at is None:
        return _bounds(cluster, partitions, refused)
    if at == "max-timestamp":
        return _newest(refused.known(partial(cluster.get_max_timestamp_offsets, partitions)))
    found = refused.known(partial(_at, cluster, partitions, at))
    return [{**item._asdict(), "offset": offset} for item, offset in sorted(found.items())]


def _bounds(
    cluster: KafkaCluster, partitions: set[TopicPartition], refused: Refused
) -> list[dict[str, object]]:
    first = refused.known(partial(cluster.get_earliest_leader_offsets, partitions))
    # Not of the others, which would be waited for once more.
    last = refused.known(partial(cluster.get_latest_leader_offsets, set(first)))
    return [
        {**item._asdict(), "earliest": first[item], "latest": end, "count": end - first[item]}
        for item, end in sorted(last.items())
    ]


def _newest(found: Mapping[TopicPartition, Found | None]) -> list[dict[str, object]]:
    return [
        {
            **item._asdict(),
            "offset": None if newest is None else newest.offset,
            "timestamp": None if newest is None else show_time(newest.timestamp),
        }
        for item, newest in sorted(found.items())
    ]


def _at(
    cluster: KafkaCluster, partitions: set[TopicPartition], at: str
) -> Mapping[TopicPartition, int | None]:
    if at == "earliest":
        return cluster.get_earliest_leader_offsets(partitions)
    if at == "latest":
        return cluster.get_latest_leader_offsets(partitions)
    if at == "last-stable":
        return cluster.get_last_stable_offsets(partitions)
    return cluster.get_leader_offsets(partitions, parse_time("--at", at, _WHEN))
