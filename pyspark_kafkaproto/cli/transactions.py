"""`kafkaproto transactions`: what exactly-once writes have left, shown and put in order.

What the cluster has of all others is in `hanging`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pyspark_kafkaproto.cli import hanging
from pyspark_kafkaproto.cli.connection import configured, confirmed, opened, yes_option
from pyspark_kafkaproto.cli.output import Row, gathered, json_option, show, show_json
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError, joined

if TYPE_CHECKING:
    from pyspark_kafkaproto.client.decisions import Decision, DecisionLog

_TOPIC = "kafkaproto-decisions"
_HEADINGS = {
    "name": "name",
    "batch": "batch",
    "state": "state",
    "decided": "to commit",
    "open": "open",
}
_ID = click.IntRange(0, 2**63 - 1)
_topic_option = click.option(
    "--decision-topic",
    metavar="TOPIC",
    default=_TOPIC,
    show_default=True,
    help="The option decisionTopic.",
)


@click.group()
def transactions() -> None:
    """Transactions: all of the cluster, those that hang, and those of exactly-once writes.

    A PREFIX is the option transactionalIdPrefix of such writes.

    \b
    Examples:
      kafkaproto transactions list --state Ongoing
      kafkaproto transactions find-hanging orders
      kafkaproto transactions abort orders:0 --start-offset 4211
      kafkaproto transactions list nightly
      kafkaproto transactions recover nightly
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


for _command in (
    hanging.describe,
    hanging.producers,
    hanging.find_hanging,
    hanging.abort,
    hanging.fence,
):
    transactions.add_command(_command)


@transactions.command("list")
@configured
@click.argument("prefix", required=False)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only in it: Ongoing, Empty, …"
)
@click.option("--producer-id", "producer_ids", multiple=True, type=_ID, help="Only of it.")
@click.option(
    "--longer-than", metavar="SPAN", help="Only what is open for longer: 90s, 2h (Kafka 3.8)."
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match as a whole (Kafka 4.1).")
@_topic_option
@json_option
@click.pass_context
def list_(
    context: click.Context,
    /,
    properties: Mapping[str, str],
    prefix: str | None,
    decision_topic: str,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show all transactions of the cluster, or what was decided last under PREFIX and is open.

    With PREFIX a row for each streaming query that writes exactly once, by its id, and one named
    `batch` for batch jobs. In state `decided` some transactions may still have to be committed:
    `recover` does so. --longer-than with --state takes those in that state that began so long ago,
    ended or not.

    \b
    Examples:
      kafkaproto transactions list
      kafkaproto transactions list --longer-than 10m
      kafkaproto transactions list --state Ongoing --pattern 'copier-.*'
      kafkaproto transactions list nightly
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if prefix is None:
        if context.get_parameter_source("decision_topic") is not ParameterSource.DEFAULT:
            raise click.UsageError("--decision-topic goes with PREFIX")
        with opened(properties) as cluster:
            hanging.list_all(cluster, **filters, as_json=as_json)
        return
    if any(value not in (None, ()) for value in filters.values()):
        raise click.UsageError("filters are for all transactions of the cluster: leave out PREFIX")
    _list_decided(properties, prefix, decision_topic, as_json=as_json)


def _list_decided(
    properties: Mapping[str, str], prefix: str, decision_topic: str, *, as_json: bool
) -> None:
    from pyspark_kafkaproto.client.batch_commit import open_transactions  # noqa: PLC0415 - pyarrow

    log = _log(properties, decision_topic, prefix)
    with _telling_no_topic(decision_topic):
        decisions = log.read()
    left = open_transactions(log)
    rows = []
    for name in sorted(decisions.keys() | left.keys()):
        decision = decisions.get(name)
        rows.append(
            {
                "name": name,
                "batch": None if decision is None else decision.batch,
                "state": None if decision is None else ("done" if decision.is_done else "decided"),
                "decided": 0 if decision is None else len(decision.writers),
                "open": len(left.get(name, ())),
            }
        )
    if rows or as_json:
        show(rows, _HEADINGS, as_json=as_json)
    else:
        click.echo(f"nothing is decided or open under {prefix}")


@transactions.command()
@configured
@click.argument("prefix")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Only this one of `list`.")
@click.option(
    "--accept-missing",
    is_flag=True,
    help="Take for done what was decided, but is gone: its transactions have timed out.",
)
@_topic_option
@yes_option
@json_option
def recover(
    properties: Mapping[str, str],
    prefix: str,
    names: tuple[str, ...],
    accept_missing: bool,
    decision_topic: str,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Commit what was decided under PREFIX, and abort what is open and was not.

    For what a dead job or query has left: one that runs fails by this, or makes this fail. What was
    decided in another topic than --decision-topic is taken for undecided, and aborted.

    \b
    Examples:
      kafkaproto transactions recover nightly
      kafkaproto transactions recover nightly --name batch --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    from pyspark_kafkaproto.client import batch_commit  # noqa: PLC0415 - pyarrow
    from pyspark_kafkaproto.client.decisions import BATCH_JOBS  # noqa: PLC0415 - pyarrow

    log = _log(properties, decision_topic, prefix)
    with _telling_no_topic(decision_topic):
        decisions = log.read(surely=True)
    waiting = {name for name, decision in decisions.items() if not decision.is_done}
    left = batch_commit.open_transactions(log).keys()
    if unknown := set(names) - decisions.keys() - left - {BATCH_JOBS}:
        shown = ", ".join(sorted(unknown))
        raise click.ClickException(
            f"nothing was decided, and nothing is open, of {shown} under {prefix}: "
            f"{log.command('list')} shows the names that there are"
        )
    chosen = sorted(names or waiting | left)
    if not chosen:
        if as_json:
            show_json([])
        else:
            click.echo(f"nothing is open under {prefix}")
        return
    confirmed(f"Fence whoever writes as {', '.join(chosen)}, and recover?", is_sure=is_sure)
    gone: list[LocalProtocolError] = []
    with gathered(as_json=as_json) as rows:
        for name in chosen:
            try:
                completed = batch_commit.recover(log, name, accept_missing=accept_missing)
            except LocalProtocolError as error:  # of this name: readers wait for the others too
                gone.append(error)
                continue
            rows.append(_recovered_row(name, completed))
            if not as_json:
                what = "nothing was decided" if completed is None else f"completed {completed}"
                click.echo(f"{name}: {what}; what was not decided is aborted")
        if gone:
            raise joined(gone)


def _recovered_row(name: str, completed: Decision | None) -> Row:
    return {
        "name": name,
        "batch": None if completed is None else completed.batch,
        "committed": 0 if completed is None else len(completed.writers),
        "result": "aborted" if completed is None else "completed",
    }


@contextmanager
def _telling_no_topic(topic: str) -> Iterator[None]:
    """The first decision makes the topic: where there is none, nothing was decided."""
    try:
        yield
    except BrokerError as error:
        if error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        text = f"there is no topic {topic!r} that this user may see: nothing was decided there"
        advice = "--decision-topic names the one that the writer's option decisionTopic says"
        raise click.ClickException(f"{text}; {advice}") from error


def _log(properties: Mapping[str, str], topic: str, prefix: str) -> DecisionLog:
    from pyspark_kafkaproto.client.decisions import DecisionLog  # noqa: PLC0415 - pyarrow
    from pyspark_kafkaproto.net import ClientConfig  # noqa: PLC0415 - as above

    return DecisionLog(ClientConfig.parse(properties), topic, prefix)
