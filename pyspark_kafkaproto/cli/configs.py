"""`kafkaproto configs`: settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import click

from pyspark_kafkaproto.cli.connection import (
    confirmed,
    confirmed_of_topic,
    connected,
    yes_option,
)
from pyspark_kafkaproto.cli.output import Row, json_option, show, tell
from pyspark_kafkaproto.cli.values import parse_pairs
from pyspark_kafkaproto.cluster import (
    Change,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    KafkaCluster,
)
from pyspark_kafkaproto.cluster.admin.throttle_settings import FOLDERS, RATES
from pyspark_kafkaproto.cluster.configs import TYPE_NUMBERS, check_each_once
from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    TOPIC_AUTHORIZATION_FAILED,
)
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.net.properties import meant

_TYPES = click.Choice(list(TYPE_NUMBERS))
# Of these all settings are listed that there are; loggers are refused by the brokers themselves.
_LISTED = ("topic", "broker", "client-metrics", "group")
_MAY_NOT_SEE = {
    TOPIC_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
    CLUSTER_AUTHORIZATION_FAILED,
}
_LIST = {"type": "Type", "name": "Name"}
_COLUMNS = {"name": "Setting", "value": "Value", "source": "Set by", "is_read_only": "Read-only"}
_OF_MANY = {"resource": "Of", **_COLUMNS}


@click.group()
def configs() -> None:
    """Settings of a topic, broker or group: list, describe, alter.

    \b
    Examples:
      kafkaproto configs list client-metrics group
      kafkaproto configs describe topic orders
      kafkaproto configs describe broker 1 --all
      kafkaproto configs alter topic orders --set retention.ms=86400000 --unset max.message.bytes
      kafkaproto configs alter topic orders --append cleanup.policy=compact
      kafkaproto configs alter broker '' --set log.cleaner.threads=2    (all brokers)
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@configs.command("list")
@connected
@click.argument("kinds", nargs=-1, type=_TYPES, metavar="[TYPE]…")
@json_option
def list_(cluster: KafkaCluster, kinds: tuple[str, ...], as_json: bool) -> None:
    """What has settings, of TYPEs (all, if none is named): groups and client-metrics that have any.

    A TYPE is topic, broker, broker-logger, client-metrics or group. Brokers before Kafka 4.1 list
    client-metrics alone.

    \b
    Examples:
      kafkaproto configs list client-metrics
      kafkaproto configs list client-metrics group
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.list_config_resources(set(kinds) or None)
    show([item._asdict() for item in found], _LIST, as_json=as_json)


@configs.command()
@connected
@click.argument("kind", type=_TYPES)
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Defaults, too.")
@json_option
def describe(
    cluster: KafkaCluster, kind: str, name: str | None, every: bool, as_json: bool
) -> None:
    """What is set for NAME, and who set it; secret values are not shown.

    Without NAME: for each that `kafkaproto configs list` shows.

    \b
    Examples:
      kafkaproto configs describe topic orders
      kafkaproto configs describe broker 1 --all
      kafkaproto configs describe group
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if name is not None:
        resource = ConfigResource(kind, name)
        own = cluster.describe_configs({resource})[resource]
        show(_rows(own, every=every), _COLUMNS, as_json=as_json)
        return
    found = cluster.describe_configs(cluster.list_config_resources({kind}))
    rows = [
        {"resource": item.name, **row}
        for item, own in sorted(found.items())
        for row in _rows(own, every=every)
    ]
    show(rows, _OF_MANY, as_json=as_json)


def _rows(entries: Mapping[str, ConfigEntry], *, every: bool) -> list[Row]:
    return [
        {
            "name": entry.name,
            "value": "(secret)" if entry.is_sensitive else entry.value,
            "source": entry.source,
            "is_read_only": entry.is_read_only,
            "is_sensitive": entry.is_sensitive,
        }
        for _, entry in sorted(entries.items())
        if every or not entry.is_default
    ]


@configs.command()
@connected
@click.argument("kind", type=_TYPES)
@click.argument("name")
@click.option("--set", "pairs", metavar="KEY=VALUE", multiple=True, help="Give it this value.")
@click.option("--unset", metavar="KEY", multiple=True, help="Bring a default back.")
@click.option("--append", metavar="KEY=MEMBER", multiple=True, help="Add to a list.")
@click.option("--subtract", metavar="KEY=MEMBER", multiple=True, help="Take from a list.")
@click.option("--validate-only", is_flag=True, help="Only ask whether it could be done.")
@yes_option
@json_option
def alter(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    kind: str,
    name: str,
    pairs: tuple[str, ...],
    unset: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    validate_only: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Change settings of NAME; all others stay as they are.

    \b
    Examples:
      kafkaproto configs alter topic orders --set retention.ms=86400000 --unset max.message.bytes
      kafkaproto configs alter topic orders --append cleanup.policy=compact --validate-only
      kafkaproto configs alter broker '' --set log.cleaner.threads=2    (all brokers)
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    changes = [
        ConfigChange(key, value, change)
        for option, texts, change in (
            ("--set", pairs, Change.SET),
            ("--append", append, Change.APPEND),
            ("--subtract", subtract, Change.SUBTRACT),
        )
        for key, value in parse_pairs(option, texts).items()
    ]
    changes += [ConfigChange(key, None, Change.DELETE) for key in unset]
    if not changes:
        raise click.UsageError("say what: --set, --unset, --append or --subtract")
    check_each_once(changes)
    if kind == "broker" and not validate_only:
        who = f"broker {name}" if name else "all brokers"
        confirmed(f"Change {', '.join(item.name for item in changes)} of {who}?", is_sure=is_sure)
    if kind == "topic" and not validate_only:
        confirmed_of_topic(name, changes, is_sure=is_sure)
    resource = ConfigResource(kind, name)
    check_unset(cluster, resource, unset)
    cluster.alter_configs({resource: changes}, validate_only=validate_only)
    result = "could be altered" if validate_only else "altered"
    row = {
        "type": kind,
        "name": name,
        "result": result,
        "settings": [each.name for each in changes],
    }
    tell([row], f"{resource} {result}", as_json=as_json)


def check_unset(cluster: KafkaCluster, resource: ConfigResource, unset: Collection[str]) -> None:
    """Refuse to unset what `resource` has no setting of: brokers say that it is done.

    Raises:
        ConfigError: there is none of such a name.
    """
    if not unset or resource.type not in _LISTED:
        return
    try:
        known = _known(cluster, resource)
    except BrokerError as error:
        if error.code in _MAY_NOT_SEE:  # whoever may change them need not be one who may see them
            return
        raise
    for name in unset:
        if name not in known:
            text = f"{resource} has no such setting{meant('', name, known)}"
            raise ConfigError("--unset", name, text)


def _known(cluster: KafkaCluster, resource: ConfigResource) -> set[str]:
    """The settings that `resource` has, or could have."""
    found = set(cluster.describe_configs({resource})[resource])
    if resource.type == "broker":
        found.update(RATES, (FOLDERS,))  # brokers list them where they are set alone
        if not resource.name:  # and all others, where all brokers are asked about
            any_broker = ConfigResource("broker", str(min(cluster.describe(()).brokers)))
            found.update(cluster.describe_configs({any_broker})[any_broker])
    return found
