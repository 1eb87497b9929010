"""`kafkaproto lag`: how far groups are behind, once or again and again, as a table or a picture."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from rich.live import Live

from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.moments import parse_span
from pyspark_kafkaproto.cli.output import Row, drawn, json_option, show
from pyspark_kafkaproto.cli.plot import LagOverTime, check_plot
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.values import existing_topics
from pyspark_kafkaproto.cluster import KafkaCluster, Lag
from pyspark_kafkaproto.error_codes import GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import BrokerError, ConfigError

_COLUMNS = {
    "group": "Group",
    "topic": "Topic",
    "partition": "Partition",
    "offset": "Offset",
    "log_size": "LogSize",
    "lag": "Lag",
    "owner": "Owner",
}


@click.command()
@connected
@click.argument("groups", nargs=-1, metavar="[GROUP]…")
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC",
    multiple=True,
    help="Every partition of it, and no other topic.",
)
@click.option(
    "--watch", is_flag=False, flag_value="2s", metavar="[SPAN]", help="Again every SPAN (2s)."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png",
    help="Draw it, too; needs the extra [plot].",
)
@json_option
def lag(
    cluster: KafkaCluster,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    watch: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """How far GROUPs (all, if none is named) are behind: a row per partition.

    Of a share group the offset is where it starts; records behind that may be done, too, so that
    its lag is what the brokers count.

    \b
    Examples:
      kafkaproto lag
      kafkaproto lag reports --topic orders
      kafkaproto lag reports --watch 5s --plot lag.png      drawn until Ctrl-C
      kafkaproto lag --json | jq 'map(.lag // 0) | add'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if plot is not None:
        check_plot(plot)
    seen = None if plot is None else LagOverTime()
    every_s = None if watch is None else parse_span("--watch", watch)
    if every_s == 0:
        raise ConfigError("--watch", watch, "expected a span above 0, such as 2s")
    if topics:
        existing_topics(cluster, topics)
    try:
        if every_s is None:
            _show(cluster, groups, topics, seen, as_json=as_json)
        elif sys.stdout.isatty() and not as_json:
            _watch(cluster, groups, topics, seen, every_s)
        else:
            while True:
                _show(cluster, groups, topics, seen, as_json=as_json)
                sys.stdout.flush()
                time.sleep(every_s)
    finally:
        if plot is not None and seen:
            seen.draw(plot)
            click.echo(f"drawn to {plot}", err=True)


def _show(
    cluster: KafkaCluster,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    seen: LagOverTime | None,
    *,
    as_json: bool,
) -> None:
    refused = Refused()
    rows = _rows(cluster, groups, topics, seen, refused)
    if rows is not None:
        show(rows, _COLUMNS, as_json=as_json)
    refused.tell()


def _watch(
    cluster: KafkaCluster,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    seen: LagOverTime | None,
    every_s: float,
) -> None:
    """The table in place, until Ctrl-C."""
    with Live(auto_refresh=False) as live:
        while True:
            refused = Refused()
            rows = _rows(cluster, groups, topics, seen, refused)
            if rows is not None:
                live.update(drawn(rows, _COLUMNS, live.console.width), refresh=True)
            refused.tell()
            time.sleep(every_s)


def _rows(
    cluster: KafkaCluster,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    seen: LagOverTime | None,
    refused: Refused,
) -> list[Row] | None:
    """None: all groups are refused."""
    chosen = set(topics) or None

    def of(names: set[str] | None) -> list[Lag]:
        found = cluster.lag(names, chosen)
        if names and chosen:
            _check_there(cluster, names, found)
        return found

    told = refused.each(groups, of) if groups else _of_all(cluster, refused, of)
    if not told:
        return None
    rows = sorted((row for own in told for row in own), key=lambda row: row[:3])
    if seen is not None:
        seen.add(rows)
    return [row._asdict() for row in rows]


def _check_there(cluster: KafkaCluster, names: set[str], rows: Iterable[Lag]) -> None:
    """Refuse a group that there is not: with topics it has rows all the same, as if it lagged by 0.

    Raises:
        BrokerError: there is none of such a name.
    """
    silent = names - {row.group for row in rows if row.offset is not None or row.owner}
    if silent:
        cluster.describe_groups(silent)


def _of_all(
    cluster: KafkaCluster, refused: Refused, of: Callable[[set[str] | None], list[Lag]]
) -> list[list[Lag]]:
    """Of all groups; of each by itself where some are listed and cannot be looked into.

    This user may not, or they are share groups, which are switched off in the cluster.
    """
    try:
        return [of(None)]
    except BrokerError as error:
        if error.code not in (GROUP_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION):
            raise
        is_off = error.code == UNSUPPORTED_VERSION
        if is_off:  # for all such groups together: each by itself would say the same
            refused.note(error)
    listed = (item for item in cluster.list_groups() if item.reads_topics)
    return refused.each(
        (item.group for item in listed if not (is_off and item.type == "share")), of
    )
