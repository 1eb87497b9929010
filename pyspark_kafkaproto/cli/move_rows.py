"""What is shown of moves of replicas: rows and their columns, and a word where there are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import click

from pyspark_kafkaproto.cli.move_plan import Plan
from pyspark_kafkaproto.cli.output import Row, show, tell
from pyspark_kafkaproto.cluster import ConfigResource, TopicPartition
from pyspark_kafkaproto.cluster.admin import Reassignment
from pyspark_kafkaproto.wire.printable import counted

_UNDER_WAY = {
    "topic": "Topic",
    "partition": "Partition",
    "replicas": "Replicas",
    "adding": "Adding",
    "removing": "Removing",
}
_MOVES = {"topic": "Topic", "partition": "Partition", "before": "Before", "after": "After"}
_FOLDERS = {"folders": "Folders"}
_THROTTLES = {"type": "Type", "name": "Name", "settings": "Settings"}
_NOTHING = "no replicas are being moved"


def show_under_way(found: Mapping[TopicPartition, Reassignment], *, as_json: bool) -> None:
    """What is being moved."""
    rows = [
        {
            **item._asdict(),
            "replicas": own.replicas,
            "adding": own.adding,
            "removing": own.removing,
        }
        for item, own in sorted(found.items())
    ]
    show_or_say(rows, _UNDER_WAY, _NOTHING, as_json=as_json)


def plan_columns(plan: Plan) -> dict[str, str]:
    """Those of `plan_rows`, for people."""
    return _MOVES | _FOLDERS if plan.folders else _MOVES


def plan_rows(plan: Plan) -> list[dict[str, object]]:
    """A row for each partition that something is to be done about."""
    folders: dict[TopicPartition, list[str]] = {}
    for item, path in sorted(plan.folders.items()):
        partition = TopicPartition(item.topic, item.partition)
        folders.setdefault(partition, []).append(f"{item.broker}:{path}")
    return [
        {
            **item._asdict(),
            "before": plan.before[item],
            "after": plan.moves.get(item, plan.before[item]),
            "folders": folders.get(item, []),
            "result": "would be moved",
        }
        for item in sorted(plan.partitions)
    ]


def with_result(
    rows: Iterable[Row], result: str, partitions: Collection[TopicPartition]
) -> list[Row]:
    """The rows of these partitions, with what became of them."""
    return [
        {**row, "result": result} for row in rows if (row["topic"], row["partition"]) in partitions
    ]


def tell_cancelled(done: Collection[TopicPartition], *, as_json: bool) -> None:
    """Whose moves were cancelled."""
    rows = [{**item._asdict(), "result": "cancelled"} for item in sorted(done)]
    text = f"cancelled the moves of {counted(len(rows), 'partition')}" if rows else _NOTHING
    tell(rows, text, as_json=as_json)


def show_unthrottled(done: Mapping[ConfigResource, tuple[str, ...]], *, as_json: bool) -> None:
    """Which settings were removed from whom."""
    rows = [
        {"type": resource.type, "name": resource.name, "settings": names, "result": "removed"}
        for resource, names in sorted(done.items())
    ]
    show_or_say(rows, _THROTTLES, "no throttle is set", as_json=as_json)


def show_or_say(
    rows: Collection[Row], columns: Mapping[str, str], none: str, *, as_json: bool
) -> None:
    """The rows; for people `none`, beside the output, where there is none."""
    if rows or as_json:
        show(rows, columns, as_json=as_json)
    else:
        click.echo(none, err=True)
