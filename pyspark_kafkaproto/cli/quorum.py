"""`kafkaproto quorum`: who keeps the cluster's metadata, and how far each is."""

from __future__ import annotations

import click

from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.moments import show_time
from pyspark_kafkaproto.cli.output import json_option, show_json, table_text
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import Quorum, QuorumReplica

_COLUMNS = {
    "node": "Node",
    "role": "Role",
    "log_end_offset": "LogEnd",
    "lag": "Lag",
    "last_fetch": "Last fetch",
    "last_caught_up": "Last caught up",
}


@click.command()
@connected
@json_option
def quorum(cluster: KafkaCluster, as_json: bool) -> None:
    """Who keeps the cluster's metadata: leader, voters, observers, and how far each is.

    \b
    Examples:
      kafkaproto quorum
      kafkaproto quorum --json | jq '.nodes[] | select(.lag > 0)'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.describe_quorum()
    rows = _rows(found)
    if as_json:
        show_json(
            {
                "leader": found.leader_id,
                "leader_epoch": found.leader_epoch,
                "high_watermark": found.high_watermark,
                "nodes": rows,
            }
        )
        return
    click.echo(
        f"leader {found.leader_id} in epoch {found.leader_epoch}, "
        f"high watermark {found.high_watermark}\n"
    )
    click.echo(table_text(rows, _COLUMNS), nl=False)


def _rows(found: Quorum) -> list[dict[str, object]]:
    roles = [(item, "voter") for item in found.voters]
    roles += [(item, "observer") for item in found.observers]
    return [
        _row(item, "leader" if item.node_id == found.leader_id else role)
        for item, role in sorted(roles, key=lambda pair: (pair[1] != "voter", pair[0].node_id))
    ]


def _row(item: QuorumReplica, role: str) -> dict[str, object]:
    return {
        "node": item.node_id,
        "role": role,
        "log_end_offset": item.log_end_offset,
        "lag": item.lag,
        "last_fetch": _time(item.last_fetch_ms),
        "last_caught_up": _time(item.last_caught_up_ms),
        "directory_id": item.directory_id,
        "endpoints": {name: str(place) for name, place in item.endpoints.items()},
    }


def _time(timestamp_ms: int | None) -> str | None:
    return None if timestamp_ms is None else show_time(timestamp_ms)
