"""`kafkaproto devbroker`: a real Apache Kafka on this machine, started and stopped.

Standard output carries the answer alone (an address, a table, JSON), so that scripts can take it;
progress and hints go to standard error.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from pyspark_kafkaproto.cli.interrupts import heed_sigterm
from pyspark_kafkaproto.cli.output import json_option, table_text
from pyspark_kafkaproto.cli.typed import as_typed
from pyspark_kafkaproto.cli.values import parse_pairs
from pyspark_kafkaproto.devbroker import (
    DEFAULT_VERSION,
    DevBroker,
    RunningBroker,
    default_data_dir,
    find_running,
)
from pyspark_kafkaproto.devbroker.jars import cache_dir, class_path, resolve_version
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.exit_codes import NOT_WELL

_PAUSE_S = 0.3
_as_typed = as_typed(version="--kafka-version", advertised="--listener", properties="--property")
_STATUS_COLUMNS = {
    "servers": "Bootstrap servers",
    "version": "Kafka",
    "pids": "Processes",
    "data_dir": "Data",
}


def _default_dir() -> Path | None:
    try:
        return default_data_dir()
    except ConfigError:
        return None


class _Folder(click.Path):
    """A folder, of which no name is not the working directory: a shell's variable was not set."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail("expected a folder, not nothing", param, ctx)
        return super().convert(value, param, ctx)


def _data_dir_option(command: Callable[..., Any]) -> Callable[..., Any]:
    shown = str(_default_dir() or "none, as this user has no home")
    with suppress(RuntimeError):  # no home
        shown = shown.replace(str(Path.home()), "~", 1)
    return click.option(
        "--data-dir",
        type=_Folder(file_okay=False, resolve_path=True, path_type=Path),
        default=default_data_dir,
        show_default=False,  # click would bracket it twice
        help=f"Where the broker keeps its data from start to start.  [default: {shown}]",
    )(command)


def _version_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kafka-version",
        metavar="VERSION",
        help=f"Of Apache Kafka, 3.9.0 or later.  [default: KAFKA_HOME's, else {DEFAULT_VERSION}]",
    )(command)


@click.group()
def devbroker() -> None:
    """A real Apache Kafka on this machine: no Docker, no Maven, Java 17 is enough.

    \b
    Examples:
      kafkaproto devbroker start
      kafkaproto devbroker start --nodes 3 --data-dir three-nodes
      kafkaproto devbroker start --property message.max.bytes=10000000
      kafkaproto devbroker start --listener INSIDE:PLAINTEXT --listener OUTSIDE:PLAINTEXT@kafka
      export KAFKA_BOOTSTRAP_SERVERS=$(kafkaproto devbroker start)
      kafkaproto devbroker stop
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@devbroker.command()
@_data_dir_option
@json_option
@click.option("--foreground", is_flag=True, help="Stay, and stop the broker at Ctrl-C.")
@_version_option
@click.option(
    "--listener",
    "listeners",
    metavar="NAME:PROTOCOL[@HOST[:PORT]]",
    multiple=True,
    help="May be repeated. PROTOCOL is Kafka's (PLAINTEXT, SSL, …); after @ stands the address "
    "that clients are sent to, for trying out a wrong one.",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many brokers.",
)
@click.option("--property", "pairs", metavar="KEY=VALUE", multiple=True, help="Of the broker.")
@_as_typed
def start(
    data_dir: Path,
    as_json: bool,
    foreground: bool,
    kafka_version: str | None,
    listeners: tuple[str, ...],
    nodes: int,
    pairs: tuple[str, ...],
) -> None:
    """Start the broker and print its address once it serves clients.

    It runs in the background, until `stop`; one that runs already with the same settings is used.

    \b
    Examples:
      export KAFKA_BOOTSTRAP_SERVERS=$(kafkaproto devbroker start)
      kafkaproto devbroker start --listener INSIDE:PLAINTEXT --listener OUTSIDE:PLAINTEXT@kafka
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    running = find_running(data_dir)
    if foreground and running:
        raise click.ClickException(f"a broker runs on {data_dir}: {running.bootstrap_servers}")
    properties = parse_pairs("--property", pairs)
    protocols, advertised = _listeners(listeners)
    broker = DevBroker(
        data_dir,
        version=kafka_version,
        nodes=nodes,
        listeners=protocols,
        advertised=advertised,
        properties=properties,
    )
    if foreground:
        _serve(broker, data_dir, as_json=as_json)
        return
    broker.start(detached=True)
    _show_started(data_dir, as_json=as_json)
    folder = "" if data_dir == _default_dir() else f" --data-dir {shlex.quote(str(data_dir))}"
    click.echo(f"data in {data_dir}; to stop it: kafkaproto devbroker stop{folder}", err=True)


@devbroker.command()
@_data_dir_option
@json_option
def stop(data_dir: Path, as_json: bool) -> None:
    """Stop the broker and keep its data.

    \b
    Examples:
      kafkaproto devbroker stop
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    running = find_running(data_dir)
    if running is not None:
        running.stop()
    if as_json:
        click.echo(json.dumps({"stopped": running is not None, "data_dir": str(data_dir)}))
    elif running is not None:
        click.echo(f"stopped the broker at {running.bootstrap_servers}; data kept in {data_dir}")
    else:
        click.echo(f"no broker runs on {data_dir}")


@devbroker.command()
@_data_dir_option
@json_option
@click.pass_context
def status(ctx: click.Context, data_dir: Path, as_json: bool) -> None:
    """Show where the broker answers; exit code 0 if it runs, 3 if not.

    \b
    Examples:
      kafkaproto devbroker status
      kafkaproto devbroker status --json | jq -r .bootstrap_servers
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    running = find_running(data_dir)
    if as_json:
        click.echo(json.dumps(_as_json(data_dir, running)))
    elif running is None:
        click.echo(f"no broker runs on {data_dir}")
    else:
        click.echo(table_text([_row(running)], _STATUS_COLUMNS), nl=False)
    ctx.exit(0 if running else NOT_WELL)


@devbroker.command()
@_version_option
@_as_typed
def fetch(kafka_version: str | None) -> None:
    """Fetch Apache Kafka's jars and tools, for a later start without a network.

    \b
    Examples:
      kafkaproto devbroker fetch
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    version = resolve_version(kafka_version)
    class_path(version, with_tools=True)
    click.echo(f"Apache Kafka {version} is in {os.environ.get('KAFKA_HOME') or cache_dir()}")


def _serve(broker: DevBroker, data_dir: Path, *, as_json: bool) -> None:
    """Run until Ctrl-C, SIGTERM or the broker's own end."""
    heed_sigterm()
    try:
        with broker:
            _show_started(data_dir, as_json=as_json)
            while broker.is_running:
                time.sleep(_PAUSE_S)
            raise click.ClickException(f"the broker ended by itself: see the logs in {data_dir}")
    except KeyboardInterrupt:
        click.echo(f"stopped; data kept in {data_dir}", err=True)


def _show_started(data_dir: Path, *, as_json: bool) -> None:
    running = find_running(data_dir)
    if running is None:
        raise click.ClickException(f"the broker ended by itself: see the logs in {data_dir}")
    click.echo(json.dumps(_as_json(data_dir, running)) if as_json else running.bootstrap_servers)
    for name, address in list(running.listeners.items())[1:]:
        click.echo(f"listener {name}: {address}", err=True)
    click.echo("for the commands here and for jobs, in this shell:", err=True)
    click.echo(f"export KAFKA_BOOTSTRAP_SERVERS={running.bootstrap_servers}", err=True)


def _as_json(data_dir: Path, running: RunningBroker | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"running": running is not None, "data_dir": str(data_dir)}
    if running is not None:
        shown |= {
            "bootstrap_servers": running.bootstrap_servers,
            "listeners": dict(running.listeners),
            "kafka_version": running.version,
            "pids": running.pids,
        }
    return shown


def _row(running: RunningBroker) -> dict[str, object]:
    return {
        "servers": running.bootstrap_servers,
        "version": running.version,
        "pids": running.pids,
        "data_dir": str(running.data_dir),
    }


def _listeners(texts: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Protocols and advertised addresses by listener name."""
    protocols, advertised = {}, {}
    for text in texts:
        listener, at, address = text.partition("@")
        name, colon, protocol = listener.partition(":")
        if not (colon and name and protocol) or (at and not address):
            expected = "expected NAME:PROTOCOL or NAME:PROTOCOL@HOST"
            raise click.BadParameter(f"{text!r}: {expected}", param_hint="--listener")
        protocols[name] = protocol
        if at:
            advertised[name] = address
    return protocols, advertised
