"""The options that every command has which talks to a cluster, and the cluster they lead to."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from pyspark_kafkaproto.cli.client_properties import FLAGS, gather
from pyspark_kafkaproto.cli.output import aside, tell
from pyspark_kafkaproto.cli.typed import naming_typed
from pyspark_kafkaproto.cluster import ConfigChange, KafkaCluster
from pyspark_kafkaproto.cluster.silence import waiting_aloud
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import printed

# Settings of topics by which brokers delete records that are there.
_DELETING = ("retention.", "local.retention.", "cleanup.policy")

_OPTIONS = (
    click.option(
        "-b",
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Where the cluster is.  [env: KAFKA_BOOTSTRAP_SERVERS]",
    ),
    click.option(
        "-F",
        "--config-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A client.properties of Kafka's.  [env: KAFKAPROTO_CLIENT_PROPERTIES]",
    ),
    click.option(
        "-X",
        "--property",
        "client_properties",
        metavar="KEY=VALUE",
        multiple=True,
        help="A client property, over the file's.",
    ),
    click.option(
        "--capture-to",
        type=click.Path(file_okay=False),
        metavar="FOLDER",
        help="Write what is said as pcapng, for kafkaproto dissect.",
    ),
)


def connected(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command` a KafkaCluster as first argument, and the options that say which."""

    @wraps(command)
    def run(properties: Mapping[str, str], *arguments: Any, **options: Any) -> Any:
        with opened(properties) as cluster:
            return command(cluster, *arguments, **options)

    return configured(run)


@contextmanager
def opened(properties: Mapping[str, str]) -> Iterator[KafkaCluster]:
    """The cluster that the client's properties lead to, for a command that is `configured`."""
    with KafkaCluster(properties) as cluster, waiting_aloud(lambda: cluster.waits_for, aside):
        yield cluster


def configured(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command` the client's properties as `properties`, and the options that say them."""

    @wraps(command)
    def run(
        *arguments: Any,
        bootstrap_servers: str | None,
        config_file: Path | None,
        client_properties: tuple[str, ...],
        capture_to: str | None,
        **options: Any,
    ) -> Any:
        if capture_to == "":
            raise ConfigError("--capture-to", capture_to, "expected a folder")
        if capture_to is not None:
            client_properties = (*client_properties, f"capture.to={capture_to}")
        properties = gather(os.environ, bootstrap_servers, config_file, client_properties)
        given = {"bootstrap.servers": bootstrap_servers, "capture.to": capture_to}
        words = {name: FLAGS[name] for name, value in given.items() if value is not None}
        with naming_typed(words):
            return command(properties, *arguments, **options)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


def confirmed(question: str, *, is_sure: bool) -> None:
    """Ask before something is destroyed; exit code 1 and nothing done unless the answer is yes."""
    if is_sure:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as abort:
        is_ended = isinstance(abort.__context__, KeyboardInterrupt)  # and not out of answers
        if is_ended or os.isatty(0):
            raise KeyboardInterrupt from None  # Ctrl-C at the question
        click.echo(err=True)  # the question's line is still open
        raise click.UsageError("nobody answers the question: --yes is needed") from None
    if not agreed:
        raise click.ClickException("nothing was changed")


def confirmed_of_topic(name: str, changes: Iterable[ConfigChange], *, is_sure: bool) -> None:
    """Ask before settings are changed by which brokers delete records."""
    named = [item.name for item in changes if item.name.startswith(_DELETING)]
    if named:
        question = f"Change {', '.join(named)} of topic {name}? Brokers may delete records by it."
        confirmed(question, is_sure=is_sure)


@contextmanager
def telling_deleted(kind: str, names: Collection[str], *, as_json: bool) -> Iterator[None]:
    """Say which of `names` were deleted: all of them, or those that were not refused."""
    try:
        yield
    except KafkaProtoError as error:
        if error.usable:
            _tell_deleted(kind, error.usable, as_json=as_json)
        raise
    _tell_deleted(kind, names, as_json=as_json)


def _tell_deleted(kind: str, names: Collection[str], *, as_json: bool) -> None:
    done = sorted(set(names))
    rows = [{kind: name, "result": "deleted"} for name in done]
    tell(rows, f"deleted {', '.join(map(printed, done))}", as_json=as_json)


def yes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--yes`, for programs and for the sure."""
    return click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")(command)
