"""`kafkaproto leaders`: elect."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show_json, table_text
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError

_ELECTED = {"topic": "Topic", "partition": "Partition", "result": "Result"}


@click.group()
def leaders() -> None:
    """Leaders of partitions: elect.

    \b
    Examples:
      kafkaproto leaders elect orders
      kafkaproto leaders elect --all
      kafkaproto leaders elect orders:3 --unclean
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@leaders.command()
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC[:PARTITION,…]]…")
@click.option("--all", "every", is_flag=True, help="Every partition there is.")
@click.option(
    "--unclean",
    is_flag=True,
    help="For partitions without a leader: a replica that is there, though it lacks records.",
)
@yes_option
@json_option
def elect(
    cluster: KafkaCluster,
    topics: tuple[str, ...],
    every: bool,
    unclean: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Have the preferred leader lead, the first of a partition's replicas.

    Partitions that need no election are left out of the table. --unclean loses the records that
    the new leader lacks, and asks first.

    \b
    Examples:
      kafkaproto leaders elect orders:0,1
      kafkaproto leaders elect --all
      kafkaproto leaders elect orders:3 --unclean --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if bool(topics) is every:
        raise click.UsageError("name TOPICs, or say --all")
    chosen = find_partitions(cluster, "TOPIC", topics) if topics else None
    if unclean:
        whose = "all partitions" if every else ", ".join(topics)
        question = f"Elect leaders of {whose} that may lack records? Those are lost then."
        confirmed(question, is_sure=is_sure)
    try:
        elected = cluster.elect_leaders(chosen, unclean=unclean)
    except KafkaProtoError as error:
        if error.usable:
            _show(error.usable, as_json=as_json)
        raise
    _show(elected, as_json=as_json)


def _show(elected: Mapping[TopicPartition, bool], *, as_json: bool) -> None:
    rows = [
        {**item._asdict(), "result": "elected" if is_new else "not needed"}
        for item, is_new in sorted(elected.items())
    ]
    if as_json:
        show_json(rows)
        return
    new = [row for row in rows if row["result"] == "elected"]
    if new:
        click.echo(table_text(new, _ELECTED), nl=False)
    click.echo(f"{len(new)} elected, {len(rows) - len(new)} needed no election", err=True)
