"""`kafkaproto quotas`: how much clients may ask for: list, set, remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show, show_json, tell
from pyspark_kafkaproto.cli.values import parse_pairs
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import QUOTAS, QuotaEntity, QuotaFilter, QuotaName
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.wire.printable import printed

_LIST = {
    "user": "User",
    "client_id": "Client id",
    "ip": "Address",
    "quota": "Quota",
    "value": "Value",
}
_KINDS = {"user": "--user", "client_id": "--client-id", "ip": "--ip"}
_HELP = {
    "user": "A user, as it logs in.",
    "client_id": "A client's client.id.",
    "ip": "Where connections come from.",
}

Name = str | QuotaName | None


def _of_entity(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command` the parts of an entity as `parts`, and the options that say them."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        parts: dict[str, Name] = {}
        for kind, option in _KINDS.items():
            name, is_default = options.pop(kind), options.pop(f"default_{kind}")
            if name == "":
                raise ConfigError(option, name, f"expected a name, or {_default(option)}")
            if name is not None and is_default:
                raise click.UsageError(f"{option} or {_default(option)}, not both")
            parts[kind] = QuotaName.DEFAULT if is_default else name
        if parts["ip"] and (parts["user"] or parts["client_id"]):
            raise click.UsageError("neither a user nor a client id goes with an address")
        return command(*arguments, parts=parts, **options)

    for kind, option in reversed(_KINDS.items()):
        help_text = f"All without a quota of their own by {_LIST[kind].lower()}."
        run = click.option(_default(option), f"default_{kind}", is_flag=True, help=help_text)(run)
        metavar = "NAME" if kind != "ip" else "ADDRESS"
        run = click.option(option, kind, metavar=metavar, help=_HELP[kind])(run)
    return run


def _default(option: str) -> str:
    return option.replace("--", "--default-")


@click.group()
def quotas() -> None:
    """How much users, client ids and addresses may ask for: list, set, remove.

    \b
    Examples:
      kafkaproto quotas list
      kafkaproto quotas set consumer_byte_rate=10000000 --user reports
      kafkaproto quotas set producer_byte_rate=1000000 --default-user --client-id loader
      kafkaproto quotas set connection_creation_rate=20 --default-ip
      kafkaproto quotas remove --user reports
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@quotas.command("list")
@connected
@_of_entity
@click.option(
    "--strict", is_flag=True, help="Without --client-id: none that is for one; and so on."
)
@json_option
def list_(cluster: KafkaCluster, parts: dict[str, Name], strict: bool, as_json: bool) -> None:
    """What is set, for all or for those that are named.

    \b
    Examples:
      kafkaproto quotas list
      kafkaproto quotas list --user reports             (for single client ids of it, too)
      kafkaproto quotas list --user reports --strict
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if strict and not any(parts.values()):
        raise click.UsageError("--strict goes with --user, --client-id or --ip")
    found = cluster.describe_quotas(QuotaFilter(**parts, is_strict=strict))
    if as_json:
        show_json([_as_json(entity) | {"quotas": own} for entity, own in found.items()])
        return
    rows = [
        {
            "user": _shown(entity.user),
            "client_id": _shown(entity.client_id),
            "ip": _shown(entity.ip),
            "quota": quota,
            "value": int(value) if value.is_integer() else value,
        }
        for entity, own in found.items()
        for quota, value in sorted(own.items())
    ]
    show(rows, _LIST, as_json=False)


@quotas.command("set")
@connected
@click.argument("pairs", nargs=-1, required=True, metavar="QUOTA=VALUE…")
@_of_entity
@click.option("--validate-only", is_flag=True, help="Only ask whether it could be done.")
@json_option
def set_(
    cluster: KafkaCluster,
    pairs: tuple[str, ...],
    parts: dict[str, Name],
    validate_only: bool,
    as_json: bool,
) -> None:
    """Set quotas of a user, a client id, both together, or an address.

    producer_byte_rate and consumer_byte_rate are bytes per second, request_percentage percent of a
    thread's time, controller_mutation_rate partitions made or deleted per second, each at every
    broker; connection_creation_rate is connections per second, of addresses alone.

    \b
    Examples:
      kafkaproto quotas set consumer_byte_rate=10000000 --user reports
      kafkaproto quotas set producer_byte_rate=1000000 --default-user --client-id loader
      kafkaproto quotas set connection_creation_rate=20 --default-ip
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    entity = _entity(parts)
    values = {
        quota: _number(quota, text)
        for quota, text in parse_pairs("QUOTA=VALUE", pairs, "QUOTA=VALUE").items()
    }
    cluster.alter_quotas({entity: values}, validate_only=validate_only)
    result = "could be set" if validate_only else "set"
    row = _as_json(entity) | {"quotas": values, "result": result}
    tell([row], f"{', '.join(values)} of {printed(str(entity))} {result}", as_json=as_json)


@quotas.command()
@connected
@click.argument("names", nargs=-1, metavar="[QUOTA]…", type=click.Choice(QUOTAS))
@_of_entity
@yes_option
@json_option
def remove(
    cluster: KafkaCluster,
    names: tuple[str, ...],
    parts: dict[str, Name],
    is_sure: bool,
    as_json: bool,
) -> None:
    """Take QUOTAs away (all, if none is named); the next more general one holds then.

    \b
    Examples:
      kafkaproto quotas remove --user reports
      kafkaproto quotas remove consumer_byte_rate --user reports --client-id loader --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    entity = _entity(parts)

    def ask() -> Mapping[str, float]:
        return cluster.describe_quotas(QuotaFilter(**parts, is_strict=True)).get(entity, {})

    # What was set just now is news to some brokers.
    there = cluster.believed(ask, lambda own: bool(own) and own.keys() >= set(names))
    doomed = sorted(set(names) or there)
    if not there or not there.keys() >= set(doomed):
        missing = ", ".join(sorted(set(doomed) - there.keys())) or "quota"
        raise click.ClickException(f"no {missing} is set for {printed(str(entity))}")
    confirmed(f"Remove {', '.join(doomed)} of {printed(str(entity))}?", is_sure=is_sure)
    cluster.alter_quotas({entity: dict.fromkeys(doomed)})
    row = _as_json(entity) | {"quotas": doomed, "result": "removed"}
    tell([row], f"{', '.join(doomed)} of {printed(str(entity))} removed", as_json=as_json)


def _entity(parts: Mapping[str, Name]) -> QuotaEntity:
    if not any(parts.values()):
        raise click.UsageError("say whose: --user, --client-id, --ip, or --default-… of them")
    return QuotaEntity(**parts)


def _number(quota: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError("QUOTA=VALUE", f"{quota}={text}", "expected a number as VALUE") from None


def _as_json(entity: QuotaEntity) -> dict[str, object]:
    """The parts that it has; null is the default, as in the protocol."""
    named = {kind: getattr(entity, kind) for kind in _KINDS}
    return {
        "entity": {
            kind: None if isinstance(name, QuotaName) else name
            for kind, name in named.items()
            if name is not None
        }
    }


def _shown(name: Name) -> str | None:
    return "(default)" if isinstance(name, QuotaName) else name
