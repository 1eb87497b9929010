"""`kafkaproto tokens`: delegation tokens: list, create, renew, expire."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.moments import parse_span, show_time
from pyspark_kafkaproto.cli.output import Row, gathered, json_option, show, tell
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import SCRAM_MECHANISMS, DelegationToken
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.wire.printable import printed

_LIST = {
    "token_id": "Token",
    "owner": "Owner",
    "requester": "Requested by",
    "renewers": "Renewers",
    "expires": "Expires",
    "ends": "Ends",
}
_HMAC = {"hmac": "HMAC"}
_MECHANISM = click.Choice(SCRAM_MECHANISMS, case_sensitive=False)
_OWN_ALONE = 0o600  # of a file with a secret


@click.group()
def tokens() -> None:
    """Delegation tokens, which log in for a time: list, create, renew, expire.

    \b
    Examples:
      kafkaproto tokens list
      kafkaproto tokens create --to token.properties
      kafkaproto tokens renew zzyZN7wWTcSKhFYGMFPRdg
      kafkaproto tokens expire zzyZN7wWTcSKhFYGMFPRdg
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@tokens.command("list")
@connected
@click.option(
    "--owner",
    "owners",
    metavar="TYPE:NAME",
    multiple=True,
    help="Those that User:reports owns, requested or may renew.",
)
@click.option("--hmac", "shows_hmac", is_flag=True, help="Show what stands for the password, too.")
@json_option
def list_(cluster: KafkaCluster, owners: tuple[str, ...], shows_hmac: bool, as_json: bool) -> None:
    """The tokens that you may see: your own ones, and of users on whom you have DESCRIBE_TOKENS.

    \b
    Examples:
      kafkaproto tokens list
      kafkaproto tokens list --owner User:reports --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.describe_delegation_tokens(set(owners) or None)
    rows = [_row(token) | (_secret(token) if shows_hmac else {}) for token in found]
    show(rows, _LIST | (_HMAC if shows_hmac else {}), as_json=as_json)


@tokens.command()
@connected
@click.option(
    "--owner", metavar="TYPE:NAME", help="Whom it stands for, User:reports.  [default: you]"
)
@click.option(
    "--renewer",
    "renewers",
    metavar="TYPE:NAME",
    multiple=True,
    help="Who may renew and expire it beside its owner.",
)
@click.option(
    "--max-lifetime", metavar="SPAN", help="Its end, such as 7d.  [default: what brokers allow]"
)
@click.option(
    "--mechanism",
    type=_MECHANISM,
    default=SCRAM_MECHANISMS[-1],
    show_default=True,
    help="With which the properties log in.",
)
@click.option(
    "--to",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A new file for the properties, which nobody else may read.",
)
@json_option
def create(
    cluster: KafkaCluster,
    owner: str | None,
    renewers: tuple[str, ...],
    max_lifetime: str | None,
    mechanism: str,
    file: Path | None,
    as_json: bool,
) -> None:
    """Make a token, and print the client properties that log in with it: they hold its secret.

    Whoever has them is its owner to the brokers until it expires.

    \b
    Examples:
      kafkaproto tokens create --to token.properties
      kafkaproto tokens create --renewer User:scheduler --max-lifetime 7d --to token.properties
      kafkaproto tokens create --owner User:reports --json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    lifetime_s = _span("--max-lifetime", max_lifetime)
    # A file that cannot be written is found before there is a token for it.
    opened = None if file is None else _new_file(file)
    try:
        token = cluster.create_delegation_token(owner, set(renewers), lifetime_s)
    except BaseException:
        if opened is not None and file is not None:
            os.close(opened)
            file.unlink()
        raise
    text = _properties(token, mechanism)
    if opened is not None and file is not None:
        _write(opened, file, text, token)
    elif not as_json:
        click.echo(text, nl=False)
    done = _row(token) | {"result": "created"} | (_secret(token) if opened is None else {})
    told = f"created: {_shown(token)}, expires {show_time(token.expiry_timestamp_ms)}"
    tell([done], told, as_json=as_json)


@tokens.command()
@connected
@click.argument("token_ids", nargs=-1, required=True, metavar="TOKEN…")
@click.option(
    "--for", "period", metavar="SPAN", help="From now on, such as 12h.  [default: what brokers say]"
)
@json_option
def renew(
    cluster: KafkaCluster, token_ids: tuple[str, ...], period: str | None, as_json: bool
) -> None:
    """Have TOKENs expire later, by their ids; their ends stay.

    \b
    Examples:
      kafkaproto tokens renew zzyZN7wWTcSKhFYGMFPRdg
      kafkaproto tokens renew zzyZN7wWTcSKhFYGMFPRdg --for 12h
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    period_s = _span("--for", period)
    with gathered(as_json=as_json) as rows:
        for token in _find(cluster, token_ids):
            expiry_ms = cluster.renew_delegation_token(token, period_s)
            rows.append(_done(token, expiry_ms, "renewed"))
            _say(f"renewed: {_shown(token)}, expires {show_time(expiry_ms)}", as_json=as_json)


@tokens.command()
@connected
@click.argument("token_ids", nargs=-1, required=True, metavar="TOKEN…")
@click.option("--in", "after", metavar="SPAN", help="From now on, such as 1h.  [default: at once]")
@yes_option
@json_option
def expire(
    cluster: KafkaCluster,
    token_ids: tuple[str, ...],
    after: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Have TOKENs expire, by their ids: nobody logs in with them any more.

    Who is connected stays so until the token would have expired before.

    \b
    Examples:
      kafkaproto tokens expire zzyZN7wWTcSKhFYGMFPRdg
      kafkaproto tokens expire zzyZN7wWTcSKhFYGMFPRdg --in 1h --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    after_s = _span("--in", after)
    doomed = _find(cluster, token_ids)
    when = "now" if after is None else f"in {printed(after)}"
    confirmed(f"Have {'; '.join(map(_shown, doomed))} expire {when}?", is_sure=is_sure)
    with gathered(as_json=as_json) as rows:
        for token in doomed:
            expiry_ms = cluster.expire_delegation_token(token, after_s)
            rows.append(_done(token, expiry_ms, "expired" if expiry_ms is None else "expires"))
            told = "expired: " if expiry_ms is None else f"expires {show_time(expiry_ms)}: "
            _say(told + _shown(token), as_json=as_json)


def _span(option: str, text: str | None) -> float | None:
    seconds = None if text is None else parse_span(option, text)
    if seconds == 0:
        raise ConfigError(option, text, "expected a span of more than 0")
    return seconds


def _find(cluster: KafkaCluster, token_ids: Iterable[str]) -> list[DelegationToken]:
    """The tokens of these ids, each once.

    Their HMACs are asked for: arguments of a process are to be seen by everybody on the machine.
    """
    wanted = list(dict.fromkeys(token_ids))
    # What was made just now is news to some brokers.
    found = cluster.believed(
        lambda: {token.token_id: token for token in cluster.describe_delegation_tokens()},
        lambda found: found.keys() >= set(wanted),
    )
    if missing := [printed(item) for item in wanted if item not in found]:
        raise click.ClickException(
            f"there is no token {', '.join(missing)} that you may see: kafkaproto tokens list "
            "shows those that there are"
        )
    return [found[item] for item in wanted]


def _row(token: DelegationToken) -> dict[str, object]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": token.renewers,
        "issued": show_time(token.issue_timestamp_ms),
        "expires": show_time(token.expiry_timestamp_ms),
        "ends": show_time(token.max_timestamp_ms),
    }


def _secret(token: DelegationToken) -> dict[str, object]:
    return {"hmac": token.hmac.reveal()}


def _done(token: DelegationToken, expiry_ms: int | None, result: str) -> Row:
    expires = None if expiry_ms is None else show_time(expiry_ms)
    return {"token_id": token.token_id, "owner": token.owner, "expires": expires, "result": result}


def _say(text: str, *, as_json: bool) -> None:
    if not as_json:
        click.echo(text, err=True)


def _shown(token: DelegationToken) -> str:
    return f"{printed(token.token_id)} of {printed(token.owner)}"


def _properties(token: DelegationToken, mechanism: str) -> str:
    """As a file of Kafka's holds them: a backslash is written twice."""
    pairs = token.login(mechanism).items()
    return "".join("{}={}\n".format(name, value.replace("\\", r"\\")) for name, value in pairs)


def _new_file(file: Path) -> int:
    """A file that was not there before, for its owner alone."""
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWN_ALONE)
    except OSError as error:
        raise click.UsageError(f"--to {file}: {error.strerror}") from None


def _write(opened: int, file: Path, text: str, token: DelegationToken) -> None:
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        file.unlink(missing_ok=True)
        raise click.ClickException(
            f"{file} cannot be written: {error.strerror}; token {_shown(token)} is made all the "
            "same: kafkaproto tokens expire ends it, kafkaproto tokens list --hmac shows its secret"
        ) from error
