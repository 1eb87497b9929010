"""`kafkaproto topics`: list, describe, create, delete, alter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import click

from pyspark_kafkaproto.cli.configs import check_unset
from pyspark_kafkaproto.cli.connection import (
    confirmed,
    confirmed_of_topic,
    connected,
    telling_deleted,
    yes_option,
)
from pyspark_kafkaproto.cli.output import aside, json_option, show, show_json, table_text, tell
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.values import (
    existing_topics,
    is_id,
    parse_pairs,
    parse_partition_offsets,
    told_topics,
)
from pyspark_kafkaproto.cluster import (
    Change,
    ConfigChange,
    ConfigResource,
    KafkaCluster,
    NewTopic,
    TopicPartition,
    Topology,
)
from pyspark_kafkaproto.cluster.configs import check_each_once
from pyspark_kafkaproto.error_codes import TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError, joined
from pyspark_kafkaproto.wire.printable import printed

PARTITION_COLUMNS = {
    "topic": "Topic",
    "partition": "Partition",
    "leader": "Leader",
    "leader_epoch": "Epoch",
    "replicas": "Replicas",
    "isr": "In sync",
    "offline": "Offline",
}
_PARTITIONS = click.IntRange(1, 2**31 - 1)  # what the protocol can say
_REPLICAS = click.IntRange(1, 2**15 - 1)
_LIST = {"topic": "Topic", "partitions": "Partitions", "replicas": "Replicas"}
_CONFIGS = {"topic": "Topic", "name": "Setting", "value": "Value", "source": "Set by"}


@click.group()
def topics() -> None:
    """Topics: list, describe, create, delete, alter.

    \b
    Examples:
      kafkaproto topics list
      kafkaproto topics describe orders
      kafkaproto topics create orders --partitions 6 --replication-factor 3
      kafkaproto topics create orders --config retention.ms=86400000
      kafkaproto topics create orders --assign 0=1,2 --assign 1=2,3
      kafkaproto topics alter orders --partitions 12
      kafkaproto topics alter orders --delete-records 0=1000
      kafkaproto topics delete orders --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@topics.command("list")
@connected
@click.option("--internal", is_flag=True, help="Kafka's own topics, too.")
@json_option
def list_(cluster: KafkaCluster, internal: bool, as_json: bool) -> None:
    """Names, numbers of partitions and of replicas.

    \b
    Examples:
      kafkaproto topics list
      kafkaproto topics list --json | jq -r '.[].topic'
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    rows = [
        {
            "topic": name,
            "partitions": len(topic.partitions),
            "replicas": max((len(item.replicas) for item in topic.partitions.values()), default=0),
            "is_internal": topic.is_internal,
        }
        for name, topic in sorted(cluster.describe().topics.items())
        if internal or not topic.is_internal
    ]
    show(rows, _LIST, as_json=as_json)


@topics.command()
@connected
@click.argument("names", nargs=-1, metavar="[TOPIC]…")
@json_option
def describe(cluster: KafkaCluster, names: tuple[str, ...], as_json: bool) -> None:
    """Partitions of TOPICs (all, if none is named), and what is configured for them.

    \b
    Examples:
      kafkaproto topics describe orders
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    topology = described_topics(cluster, names, refused)
    if topology is None:
        refused.tell()
        return
    resources = {ConfigResource("topic", name) for name in topology.topics}
    configs = refused.others(partial(cluster.describe_configs, resources))
    settings = [
        {"topic": resource.name, "name": entry.name, "value": entry.value, "source": entry.source}
        for resource, entries in sorted(configs.items())
        for entry in entries.values()
        if entry.source == "topic"
    ]
    partitions = partition_rows(topology)
    if as_json:
        show_json({"partitions": partitions, "configs": settings})
    else:
        click.echo(table_text(partitions, PARTITION_COLUMNS), nl=False)
        if settings:
            click.echo("\n" + table_text(settings, _CONFIGS), nl=False)
    refused.tell()


@topics.command()
@connected
@click.argument("name", metavar="TOPIC")
@click.option("-p", "--partitions", type=_PARTITIONS, help="How many.  [default: broker's]")
@click.option("-r", "--replication-factor", type=_REPLICAS, help="Copies.  [default: broker's]")
@click.option("-c", "--config", "configs", metavar="KEY=VALUE", multiple=True, help="Set.")
@click.option(
    "--assign",
    metavar="PARTITION=BROKER,…",
    multiple=True,
    help="Leader first; for each partition.",
)
@click.option("--validate-only", is_flag=True, help="Only ask whether it could be made.")
@click.option("--if-not-exists", is_flag=True, help="One that exists is left as it is.")
@json_option
def create(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    assign: tuple[str, ...],
    validate_only: bool,
    if_not_exists: bool,
    as_json: bool,
) -> None:
    """Make TOPIC.

    \b
    Examples:
      kafkaproto topics create orders --partitions 6 --replication-factor 3
      kafkaproto topics create orders --config retention.ms=86400000 --if-not-exists
      kafkaproto topics create orders --assign 0=1,2 --assign 1=2,3
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    topic = NewTopic(
        name,
        partitions or -1,
        replication_factor or -1,
        parse_pairs("--config", configs),
        _assignment(assign),
    )
    try:
        cluster.create_topics([topic], validate_only=validate_only)
    except BrokerError as error:
        if not (if_not_exists and error.code == TOPIC_ALREADY_EXISTS):
            raise
        result = "exists already"
    else:
        result = "could be created" if validate_only else "created"
    tell([{"topic": name, "result": result}], f"topic {name} {result}", as_json=as_json)


@topics.command()
@connected
@click.argument("names", nargs=-1, required=True, metavar="TOPIC…")
@click.option("--if-exists", is_flag=True, help="Those that are not there are no error.")
@yes_option
@json_option
def delete(
    cluster: KafkaCluster, names: tuple[str, ...], if_exists: bool, is_sure: bool, as_json: bool
) -> None:
    """Delete TOPICs with all their records.

    \b
    Examples:
      kafkaproto topics delete orders
      kafkaproto topics delete orders payments --yes
      kafkaproto topics delete orders --if-exists --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    there = _there(cluster, names) if if_exists else existing_topics(cluster, names).topics
    if not there:
        tell([], "nothing to delete", as_json=as_json)
        return
    doomed = [name for name in names if name in there]
    confirmed(f"Delete {', '.join(doomed)} with all their records?", is_sure=is_sure)
    with telling_deleted("topic", doomed, as_json=as_json):
        cluster.delete_topics(set(doomed))


def _there(cluster: KafkaCluster, names: Collection[str]) -> Collection[str]:
    """Those of `names` that there are; the others are said.

    Raises:
        BrokerError: topics may not be seen, or cannot be called so.
    """
    topology, errors = told_topics(cluster, names)
    if others := [error for error in errors if error.code != UNKNOWN_TOPIC_OR_PARTITION]:
        raise joined(others)
    for name in dict.fromkeys(names):
        if name not in topology.topics:
            aside(f"there is no topic {printed(name)}")
    return topology.topics


@topics.command()
@connected
@click.argument("name", metavar="TOPIC")
@click.option("-p", "--partitions", type=_PARTITIONS, help="How many there are to be in all.")
@click.option("-c", "--config", "configs", metavar="KEY=VALUE", multiple=True, help="Set.")
@click.option("--unset", metavar="KEY", multiple=True, help="Bring a default back.")
@click.option(
    "--delete-records",
    "before",
    metavar="PARTITION=OFFSET",
    multiple=True,
    help="Delete the records below OFFSET (-1: all).",
)
@yes_option
@json_option
def alter(
    cluster: KafkaCluster,
    name: str,
    partitions: int | None,
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    before: tuple[str, ...],
    is_sure: bool,
    as_json: bool,
) -> None:
    """Add partitions to TOPIC, change its settings, delete its oldest records.

    \b
    Examples:
      kafkaproto topics alter orders --partitions 12
      kafkaproto topics alter orders --config retention.ms=86400000 --unset max.message.bytes
      kafkaproto topics alter orders --delete-records 0=1000 --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    changes = [ConfigChange(*pair) for pair in parse_pairs("--config", configs).items()]
    changes += [ConfigChange(key, None, Change.DELETE) for key in unset]
    offsets = parse_partition_offsets("--delete-records", name, before, least=-1)
    if not (partitions or changes or offsets):
        raise click.UsageError("say what: --partitions, --config, --unset or --delete-records")
    check_each_once(changes)
    confirmed_of_topic(name, changes, is_sure=is_sure)
    if offsets:
        cluster.find_leaders(offsets)
        confirmed(f"Delete the oldest records of {_names(offsets)}?", is_sure=is_sure)

    steps: list[Callable[..., None]] = []
    check_unset(cluster, ConfigResource("topic", name), unset)
    if changes:
        steps.append(partial(cluster.alter_configs, {ConfigResource("topic", name): changes}))
    if partitions:
        steps.append(partial(cluster.add_partitions, {name: partitions}))
    # All of it or nothing: what can be refused is asked before anything is done, and offsets,
    # which nobody validates, come first.
    for step in steps:
        step(validate_only=True)
    begins = _delete_records(cluster, name, offsets, as_json=as_json)
    has_changed = bool(begins)
    try:
        for step in steps:
            step(validate_only=False)
            has_changed = True
    except KafkaProtoError:
        if has_changed:
            _tell_altered(name, begins, "altered in part", as_json=as_json)
        raise
    _tell_altered(name, begins, "altered", as_json=as_json)


def _delete_records(
    cluster: KafkaCluster, name: str, offsets: Mapping[TopicPartition, int], *, as_json: bool
) -> dict[TopicPartition, int]:
    """Delete them, and tell where each partition begins now, also where others refused."""
    try:
        begins = cluster.delete_records(offsets)
    except KafkaProtoError as error:
        if error.usable:
            _tell_begins(error.usable)
            _tell_altered(name, error.usable, "altered in part", as_json=as_json)
        raise
    _tell_begins(begins)
    return begins


def _tell_begins(begins: Mapping[TopicPartition, int]) -> None:
    for item, offset in sorted(begins.items()):
        click.echo(f"{item} begins at offset {offset} now", err=True)


def _tell_altered(
    name: str, begins: Mapping[TopicPartition, int], result: str, *, as_json: bool
) -> None:
    earliest = [
        {"partition": item.partition, "offset": offset} for item, offset in sorted(begins.items())
    ]
    row = {"topic": name, "result": result, "earliest": earliest}
    tell([row], f"topic {name} {result}", as_json=as_json)


def described_topics(
    cluster: KafkaCluster, names: Collection[str], refused: Refused
) -> Topology | None:
    """Those of `names` (all, if there is none) that are not refused; None: all of them are."""
    if not names:
        return cluster.describe()
    topology, errors = told_topics(cluster, names)
    for error in errors:
        refused.note(error)
    return topology if topology.topics else None


def partition_rows(topology: Topology) -> list[dict[str, object]]:
    """A row per partition, for PARTITION_COLUMNS."""
    return [
        {
            "topic": name,
            "partition": number,
            "leader": partition.leader_id if partition.leader_id >= 0 else None,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "offline": partition.offline_replicas,
        }
        for name, topic in sorted(topology.topics.items())
        for number, partition in sorted(topic.partitions.items())
    ]


def _assignment(texts: tuple[str, ...]) -> dict[int, tuple[int, ...]]:
    found = {}
    for number, brokers in parse_pairs("--assign", texts, "PARTITION=BROKER,…").items():
        ids = brokers.split(",")
        if not all(map(is_id, (number, *ids))):
            raise ConfigError("--assign", f"{number}={brokers}", "expected 0=1,2: ids of brokers")
        found[int(number)] = tuple(map(int, ids))
    return found


def _names(offsets: dict[TopicPartition, int]) -> str:
    return ", ".join(
        f"{item} (all)" if offset < 0 else f"{item} below {offset}"
        for item, offset in sorted(offsets.items())
    )
