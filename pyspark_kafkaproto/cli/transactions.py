"""`kafkaproto transactions`: what exactly-once writes have left, shown and put in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from pyspark_kafkaproto.cli.connection import configured, confirmed, yes_option
from pyspark_kafkaproto.cli.output import Row, gathered, json_option, show, show_json
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError

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
_topic_option = click.option(
    "--decision-topic",
    metavar="TOPIC",
    default=_TOPIC,
    show_default=True,
    help="The option decisionTopic.",
)


@click.group()
def transactions() -> None:
    """Transactions of exactly-once writes, by their transactionalIdPrefix.

    \b
    Examples:
      kafkaproto transactions list nightly
      kafkaproto transactions recover nightly
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@transactions.command("list")
@configured
@click.argument("prefix")
@_topic_option
@json_option
def list_(properties: Mapping[str, str], prefix: str, decision_topic: str, as_json: bool) -> None:
    """Show what was decided last under PREFIX, and what is open.

    A row for each streaming query, by its id, and one named `batch` for batch jobs. In state
    `decided` some transactions may still have to be committed: `recover` does so.

    \b
    Examples:
      kafkaproto transactions list nightly
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
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

    log = _log(properties, decision_topic, prefix)
    with _telling_no_topic(decision_topic):
        decisions = log.read(surely=True)
    waiting = {name for name, decision in decisions.items() if not decision.is_done}
    chosen = sorted(names or waiting | batch_commit.open_transactions(log).keys())
    if not chosen:
        if as_json:
            show_json([])
        else:
            click.echo(f"nothing is open under {prefix}")
        return
    confirmed(f"Fence whoever writes as {', '.join(chosen)}, and recover?", is_sure=is_sure)
    with gathered(as_json=as_json) as rows:
        for name in chosen:
            completed = batch_commit.recover(log, name, accept_missing=accept_missing)
            rows.append(_recovered_row(name, completed))
            if not as_json:
                what = "nothing was decided" if completed is None else f"completed {completed}"
                click.echo(f"{name}: {what}; what was not decided is aborted")


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
