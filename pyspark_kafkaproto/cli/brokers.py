"""`kafkaproto brokers`: log-dirs, unregister."""

from __future__ import annotations

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show, tell
from pyspark_kafkaproto.cli.refused import Refused, merged
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import LogDir

_ID = click.IntRange(0, 2**31 - 1)
_COLUMNS = {
    "broker": "Broker",
    "folder": "Folder",
    "error": "Error",
    "total_bytes": "Total",
    "usable_bytes": "Usable",
    "replicas": "Replicas",
    "size_bytes": "Size",
    "lag": "Lag",
}


@click.group()
def brokers() -> None:
    """Brokers: log-dirs, unregister.

    \b
    Examples:
      kafkaproto brokers log-dirs
      kafkaproto brokers unregister 3
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@brokers.command("log-dirs")
@connected
@click.argument("ids", nargs=-1, type=_ID, metavar="[ID]…")
@json_option
def log_dirs(cluster: KafkaCluster, ids: tuple[int, ...], as_json: bool) -> None:
    """The folders of brokers (all, if none is named): space, and what is in them.

    Sizes in bytes; Lag is that of the replica which lacks the most records.

    \b
    Examples:
      kafkaproto brokers log-dirs
      kafkaproto brokers log-dirs 1 --json | jq '.[].logs[] | select(.is_future)'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    if ids:
        told = refused.each(ids, cluster.describe_log_dirs)
    else:  # one may go as it is asked: it is among all for a while yet
        told = [dict(refused.known(cluster.describe_log_dirs))]
    rows = [
        _row(node_id, path, folder)
        for node_id, folders in sorted(merged(told).items())
        for path, folder in sorted(folders.items())
    ]
    if told:
        show(rows, _COLUMNS, as_json=as_json)
    refused.tell()


@brokers.command()
@connected
@click.argument("node_id", type=_ID, metavar="ID")
@yes_option
@json_option
def unregister(cluster: KafkaCluster, node_id: int, is_sure: bool, as_json: bool) -> None:
    """Have the cluster forget broker ID, which will not come back.

    What it held is not moved: `reassignments propose --all --without ID` before it ends, or after.
    One that runs leads nothing from then on, until it is started again.

    \b
    Examples:
      kafkaproto brokers unregister 3
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    topology = cluster.describe(())
    runs = f"Broker {node_id} runs, end it first. " if node_id in topology.brokers else ""
    confirmed(f"{runs}Unregister broker {node_id}?", is_sure=is_sure)
    cluster.unregister_broker(node_id)
    row = {"broker": node_id, "result": "unregistered"}
    tell([row], f"broker {node_id} unregistered", as_json=as_json)


def _row(node_id: int, path: str, folder: LogDir) -> dict[str, object]:
    return {
        "broker": node_id,
        "folder": path,
        "error": folder.error,
        "total_bytes": folder.total_bytes,
        "usable_bytes": folder.usable_bytes,
        "is_cordoned": folder.is_cordoned,
        "replicas": len(folder.replicas),
        "size_bytes": sum(item.size_bytes for item in folder.replicas.values()),
        "lag": max((item.lag for item in folder.replicas.values()), default=0),
        "logs": [
            {**item._asdict(), **log._asdict()} for item, log in sorted(folder.replicas.items())
        ],
    }
