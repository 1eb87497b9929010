"""`kafkaproto metadata`: brokers, topics and partitions as one of the brokers tells them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

import click

from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.output import cell_text, json_option, show_json, table_text
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.topics import PARTITION_COLUMNS, described_topics, partition_rows
from pyspark_kafkaproto.cluster import KafkaCluster, Problem, Topology
from pyspark_kafkaproto.wire.ids import id_text
from pyspark_kafkaproto.wire.printable import counted

_BROKERS = {"id": "Broker", "address": "Address", "rack": "Rack", "is_controller": "Controller"}


@click.command()
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
@json_option
def metadata(cluster: KafkaCluster, topics: tuple[str, ...], as_json: bool) -> None:
    """Brokers, and TOPICs (all, if none is named) with leaders, replicas and those in sync.

    \b
    Examples:
      kafkaproto metadata -b broker-1:9092
      kafkaproto metadata orders payments
      kafkaproto metadata --json | jq '.topics[].name'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    topology = described_topics(cluster, topics, refused) or cluster.describe(())
    problems = cluster.find_problems(set(topology.topics) if topics else None)
    if as_json:
        show_json(
            {
                "cluster_id": topology.cluster_id,
                "brokers": _broker_rows(topology),
                "partitions": partition_rows(topology),
                "topics": [_topic(name, topology) for name in sorted(topology.topics)],
                "problems": [item._asdict() for item in problems],
            }
        )
    else:
        _show(topology, problems)
    refused.tell()


def _show(topology: Topology, problems: Iterable[Problem]) -> None:
    brokers, partitions = _broker_rows(topology), partition_rows(topology)
    click.echo(f"cluster {cell_text(topology.cluster_id)}, {counted(len(brokers), 'broker')}")
    click.echo(table_text(brokers, _BROKERS))
    topics_text = counted(len(topology.topics), "topic")
    click.echo(f"{topics_text}, {counted(len(partitions), 'partition')}")
    if partitions:
        click.echo(table_text(partitions, PARTITION_COLUMNS), nl=False)
    for item in problems:
        click.echo(f"{item.subject}: {item.what}; {item.meaning}", err=True)


def _broker_rows(topology: Topology) -> list[dict[str, object]]:
    return [
        {
            "id": node_id,
            "address": str(broker.endpoint),
            "rack": broker.rack,
            "is_controller": node_id == topology.controller_id,
        }
        for node_id, broker in sorted(topology.brokers.items())
    ]


def _topic(name: str, topology: Topology) -> dict[str, object]:
    topic = topology.topics[name]
    shown = {key: value for key, value in asdict(topic).items() if key != "partitions"}
    shown["topic_id"] = id_text(topic.topic_id) if topic.topic_id else None
    return shown | {"partitions": len(topic.partitions)}
