"""`kafkaproto doctor`: which hop on the way to the cluster is broken."""

from __future__ import annotations

import click

from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.output import json_option, show
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.exit_codes import NOT_WELL

_COLUMNS = {
    "hop": "Hop",
    "subject": "Of",
    "result": "Result",
    "detail": "Seen",
    "advice": "What to do",
}


@click.command()
@connected
@click.option(
    "--topic", "topics", metavar="TOPIC", multiple=True, help="Look at the rights on it, too."
)
@click.option(
    "--group", "groups", metavar="GROUP", multiple=True, help="Look at the rights on it, too."
)
@json_option
@click.pass_context
def doctor(
    ctx: click.Context,
    cluster: KafkaCluster,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    as_json: bool,
) -> None:
    """Go the way of a client, hop by hop; exit code 3 if one is broken.

    Resolve, connect, TLS, SASL, versions; then the addresses that the brokers advertise, and the
    rights on topics and groups. On every executor of a Spark application:
    pyspark_kafkaproto.spark.diagnosis.diagnose_executors.

    \b
    Examples:
      kafkaproto doctor -b broker-1:9092
      kafkaproto doctor -F client.properties --topic orders --group reports
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.diagnose(topics, groups)
    show([item._asdict() for item in found], _COLUMNS, as_json=as_json)
    ctx.exit(NOT_WELL if any(item.result == "broken" for item in found) else 0)
