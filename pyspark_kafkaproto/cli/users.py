"""`kafkaproto users`: SCRAM users: list, set, delete."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.files import cannot_read, shown_name
from pyspark_kafkaproto.cli.output import json_option, show, tell
from pyspark_kafkaproto.cli.refused import Refused, merged
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import SCRAM_MECHANISMS, ScramCredential
from pyspark_kafkaproto.cluster.admin.users import LEAST_ITERATIONS, MOST_ITERATIONS
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.wire.printable import printed

_LIST = {"user": "User", "mechanism": "Mechanism", "iterations": "Iterations"}
_MOST_BYTES = 65_536  # of a file with a password
_MECHANISM = click.Choice(SCRAM_MECHANISMS, case_sensitive=False)
_Own = tuple[str, str]  # user and mechanism
_ITERATIONS = click.IntRange(LEAST_ITERATIONS, MOST_ITERATIONS)


@click.group()
def users() -> None:
    """Users who log in with SCRAM: list, set, delete.

    \b
    Examples:
      kafkaproto users list
      kafkaproto users set reports
      kafkaproto users set reports --password-file reports.password --iterations 8192
      kafkaproto users delete reports
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@users.command("list")
@connected
@click.argument("names", nargs=-1, metavar="[USER]…")
@json_option
def list_(cluster: KafkaCluster, names: tuple[str, ...], as_json: bool) -> None:
    """USERs (all, if none is named), their mechanisms and iterations; never a password.

    \b
    Examples:
      kafkaproto users list
      kafkaproto users list reports --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    told = refused.each(names, cluster.describe_users) if names else [cluster.describe_users()]
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, own in sorted(merged(told).items())
        for mechanism, iterations in sorted(own.items())
    ]
    if told:
        show(rows, _LIST, as_json=as_json)
    refused.tell()


@users.command("set")
@connected
@click.argument("name", metavar="USER")
@click.option(
    "--mechanism",
    "mechanisms",
    type=_MECHANISM,
    multiple=True,
    default=["SCRAM-SHA-512"],
    show_default=True,
    help="With which it logs in; repeatable.",
)
@click.option(
    "--iterations",
    type=_ITERATIONS,
    default=LEAST_ITERATIONS,
    show_default=True,
    help="How often the password is hashed.",
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Its one line is the password; - is standard input. Without it you are asked.",
)
@json_option
def set_(
    cluster: KafkaCluster,
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: str | None,
    as_json: bool,
) -> None:
    """Make USER, or give it another password; what other mechanisms it has stays.

    The password is no argument: those of a process are to be seen by everybody on the machine.

    \b
    Examples:
      kafkaproto users set reports
      kafkaproto users set reports --password-file reports.password --iterations 8192
      pass show kafka/reports | kafkaproto users set reports --password-file -
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    password = _asked_for(name) if password_file is None else _read(password_file)
    wanted = [ScramCredential(name, password, item, iterations) for item in mechanisms]
    with _telling([(item.user, item.mechanism) for item in wanted], "set", as_json=as_json):
        cluster.set_users(wanted)


@users.command()
@connected
@click.argument("names", nargs=-1, required=True, metavar="USER…")
@click.option(
    "--mechanism",
    "mechanisms",
    type=_MECHANISM,
    multiple=True,
    help="Only what is set for it; the user stays with the other.",
)
@yes_option
@json_option
def delete(
    cluster: KafkaCluster,
    names: tuple[str, ...],
    mechanisms: tuple[str, ...],
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete USERs: they can log in no more; who is connected stays so, and ACLs and quotas stay.

    \b
    Examples:
      kafkaproto users delete reports
      kafkaproto users delete reports --mechanism SCRAM-SHA-256 --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    chosen = set(mechanisms) or None
    doomed = cluster.delete_users(set(names), chosen, dry_run=True)
    shown = "; ".join(map(_shown, sorted(doomed)))
    confirmed(f"Delete the credentials of {shown}?", is_sure=is_sure)
    with _telling(doomed, "deleted", as_json=as_json):
        cluster.delete_users(set(names), chosen)


@contextmanager
def _telling(credentials: Collection[_Own], result: str, *, as_json: bool) -> Iterator[None]:
    """Say what was done: all of it, or what was not refused."""
    try:
        yield
    except KafkaProtoError as error:
        if error.usable:
            _tell(error.usable, result, as_json=as_json)
        raise
    _tell(credentials, result, as_json=as_json)


def _tell(credentials: Collection[_Own], result: str, *, as_json: bool) -> None:
    done = sorted(set(credentials))
    rows = [{"user": user, "mechanism": mechanism, "result": result} for user, mechanism in done]
    tell(rows, f"{result}: {'; '.join(map(_shown, done))}", as_json=as_json)


def _shown(own: _Own) -> str:
    return f"{printed(own[0])}, {own[1]}"


def _asked_for(name: str) -> str:
    """The password as it is typed, twice, and not shown."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked for the password: --password-file is needed")
    try:
        question = f"Password of {printed(name)}"
        return str(click.prompt(question, hide_input=True, confirmation_prompt=True, err=True))
    except click.Abort:
        raise KeyboardInterrupt from None


def _read(file: str) -> str:
    """The one line of a file, without its end.

    What is wrong with it is told without a word of it.
    """
    try:
        with click.open_file(file, "rb") as opened:
            data: bytes = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise cannot_read("--password-file", file, error) from None
    shown = shown_name(file)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{shown} is not text in UTF-8") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password or len(data) > _MOST_BYTES:
        raise click.UsageError(f"{shown}: expected one line, the password")
    return password
