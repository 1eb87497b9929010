"""`kafkaproto groups`: list, describe, offsets, delete; `reset` has a room of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, telling_deleted, yes_option
from pyspark_kafkaproto.cli.described import group_rows, show_groups
from pyspark_kafkaproto.cli.group_names import (
    all_groups_options,
    all_readers,
    check_named,
    type_option,
)
from pyspark_kafkaproto.cli.group_reset import reset
from pyspark_kafkaproto.cli.output import (
    gathered,
    json_option,
    show,
    show_json,
    tell,
)
from pyspark_kafkaproto.cli.refused import Refused, all_of, merged
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.cluster import (
    GROUP_STATES,
    CommittedOffset,
    DescribedGroup,
    KafkaCluster,
    TopicPartition,
)
from pyspark_kafkaproto.error_codes import NON_EMPTY_GROUP
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import printed

_LIST = {"group": "Group", "type": "Type", "state": "State", "users": "Used by"}
# Who is in groups of a protocol type; others, such as connect, are shown as they are.
_USERS = {"consumer": "consumers", "share": "share consumers", "streams": "streams applications"}
_OFFSETS = {
    "group": "Group",
    "topic": "Topic",
    "partition": "Partition",
    "offset": "Offset",
    "metadata": "Metadata",
}


@click.group()
def groups() -> None:
    """Groups, of whichever type: list, describe, offsets, reset, delete.

    \b
    Examples:
      kafkaproto groups list --state Empty
      kafkaproto groups describe reports
      kafkaproto groups offsets reports nightly
      kafkaproto groups reset reports --to-earliest --topic orders --dry-run
      kafkaproto groups reset reports --to-time 2026-11-21T08:00 --yes
      kafkaproto groups reset reports --shift=-100 --topic orders:0,1
      kafkaproto groups reset reports --to orders:0=4711
      kafkaproto groups delete reports
      kafkaproto groups delete reports --topic orders     (only what it has committed there)
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


groups.add_command(reset)


@groups.command("list")
@connected
@click.option(
    "--state",
    "states",
    type=click.Choice(GROUP_STATES, case_sensitive=False),
    multiple=True,
    help="Those in this state alone; repeatable.",
)
@type_option
@json_option
def list_(
    cluster: KafkaCluster, states: tuple[str, ...], types: tuple[str, ...], as_json: bool
) -> None:
    """The groups of all brokers: which protocol each speaks, its state, and what uses it.

    The type is classic, or one of those whose groups the brokers share out: consumer, share,
    streams. A classic group is mostly of consumers, too.

    \b
    Examples:
      kafkaproto groups list
      kafkaproto groups list --state Empty --type consumer
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    found = cluster.list_groups(states, types)
    rows: list[dict[str, object]] = [
        {
            "group": item.group,
            "type": item.type,
            "state": item.state,
            "protocol_type": item.protocol_type,
        }
        for item in found
    ]
    if as_json:
        show_json(rows)
        return
    for row, item in zip(rows, found, strict=True):
        row["users"] = _USERS.get(item.protocol_type, item.protocol_type)
    show(rows, _LIST, as_json=False)


@groups.command()
@connected
@click.argument("names", nargs=-1, metavar="[GROUP]…")
@all_groups_options
@json_option
def describe(
    cluster: KafkaCluster,
    names: tuple[str, ...],
    types: tuple[str, ...],
    every: bool,
    as_json: bool,
) -> None:
    """State and members of GROUPs, and which partitions each member reads.

    In a share group several members may read the same partition. Of a streams group the tasks are
    shown, its topology, and what keeps it from working.

    \b
    Examples:
      kafkaproto groups describe reports
      kafkaproto groups describe --all-groups --type streams
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    check_named(names, types, every=every)
    asked = [item.group for item in cluster.list_groups(types=types)] if every else names
    refused = Refused()
    told = refused.each(asked, cluster.describe_groups)
    found = [item for _, item in sorted(merged(told).items())]
    if as_json and (found or not refused):
        show_json(group_rows(found))
    elif found:
        show_groups(found)
    refused.tell()


@groups.command()
@connected
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
@json_option
def offsets(cluster: KafkaCluster, names: tuple[str, ...], as_json: bool) -> None:
    """What GROUPs have committed, with the text beside it.

    A share group commits nothing: shown is where it starts, before which all is done.

    \b
    Examples:
      kafkaproto groups offsets reports nightly
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    told = refused.each(names, partial(_offsets_of, cluster))
    rows = [
        {"group": group, **item._asdict(), **committed._asdict()}
        for group, own in sorted(merged(told).items())
        for item, committed in sorted(own.items())
    ]
    if told:
        show(rows, _OFFSETS, as_json=as_json)
    refused.tell()


def _offsets_of(
    cluster: KafkaCluster, names: Collection[str]
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    found = cluster.get_group_offsets(names)
    # One that has committed nothing may have members, share records, or not be there.
    if silent := {group for group, own in found.items() if not own}:
        described = cluster.describe_groups(silent)
        found |= _share_offsets(cluster, {name for name in silent if _shares(described[name])})
    return found


@groups.command()
@connected
@click.argument("names", nargs=-1, metavar="[GROUP]…")
@all_groups_options
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,…]",
    multiple=True,
    help="Only what the group has committed there; the group stays.",
)
@yes_option
@json_option
def delete(
    cluster: KafkaCluster,
    names: tuple[str, ...],
    types: tuple[str, ...],
    every: bool,
    topics: tuple[str, ...],
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete GROUPs with their offsets; refused while they have members.

    With --all-groups, consumers' groups unless --type says more, those with members stay, and are
    told. Internal topics of a streams group stay: kafkaproto topics delete.

    \b
    Examples:
      kafkaproto groups delete reports
      kafkaproto groups delete reports --topic orders     (only what it has committed there)
      kafkaproto groups delete --all-groups --type share
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    check_named(names, types, every=every)
    if every and topics:
        raise click.UsageError("--topic goes with names of groups, not with --all-groups")
    if every:
        _delete_all(cluster, types, is_sure=is_sure, as_json=as_json)
        return
    found = all_of(names, cluster.describe_groups)
    if not topics:
        confirmed(f"Delete the groups {', '.join(names)}?", is_sure=is_sure)
        with telling_deleted("group", names, as_json=as_json):
            cluster.delete_groups(set(names))
        return
    sharing = {name for name, item in found.items() if _shares(item)}
    for text in topics if sharing else ():
        if ":" in text:
            raise click.UsageError(
                f"{', '.join(sorted(sharing))}: a share group forgets whole topics, not {text}"
            )
    partitions = find_partitions(cluster, "--topic", topics)
    _check_begun(cluster, sharing, {item.topic for item in partitions})
    shown = ", ".join(map(str, sorted(partitions)))
    confirmed(f"Delete the offsets of {', '.join(names)} for {shown}?", is_sure=is_sure)
    with gathered(as_json=as_json) as rows:
        for name in dict.fromkeys(names):
            try:
                if name in sharing:
                    cluster.delete_share_group_offsets(name, {item.topic for item in partitions})
                else:
                    cluster.delete_consumer_offsets(name, partitions)
            except KafkaProtoError as error:
                done = _done(partitions, error.usable or ())
                if done:
                    rows.extend(_forgotten_rows(name, done))
                    shown = ", ".join(map(str, done))
                    click.echo(f"deleted offsets of {name} for {shown}", err=True)
                raise
            rows.extend(_forgotten_rows(name, sorted(partitions)))
            click.echo(f"deleted offsets of {name}", err=True)


def _delete_all(
    cluster: KafkaCluster, types: Collection[str], *, is_sure: bool, as_json: bool
) -> None:
    """Delete those without members, as Kafka's own tool does, and tell which are left."""
    refused = Refused()
    names = [item.group for item in all_readers(cluster, types)]
    found = merged(refused.each(names, cluster.describe_groups))
    for name, item in sorted(found.items()):
        if item.members:
            text = f"it has members ({len(item.members)}), and stays: stop them, then delete it"
            refused.note(BrokerError(NON_EMPTY_GROUP, "DeleteGroups", f"group {name!r}", text))
    doomed = sorted(name for name, item in found.items() if not item.members)
    if doomed:
        confirmed(f"Delete the groups {', '.join(map(printed, doomed))}?", is_sure=is_sure)
        try:
            with telling_deleted("group", doomed, as_json=as_json):
                cluster.delete_groups(set(doomed))
        except KafkaProtoError as error:
            refused.note(error)
    elif not refused:
        tell([], "there is no group", as_json=as_json)
    refused.tell()


def _check_begun(cluster: KafkaCluster, groups: Collection[str], topics: Collection[str]) -> None:
    """Refuse, as Kafka's own tool does, topics that one of these share groups has nothing of."""
    there = {
        group: cluster.delete_share_group_offsets(group, topics, dry_run=True)
        for group in sorted(groups)
    }
    missing = [
        f"group {group}, topic {topic}"
        for group, own in there.items()
        for topic in sorted(set(topics) - own)
    ]
    if missing:
        text = f"{'; '.join(missing)}: there is no offset information to delete"
        raise click.ClickException(f"{text} (kafkaproto groups offsets shows what there is)")


def _done(
    partitions: Iterable[TopicPartition], told: Collection[TopicPartition | str]
) -> list[TopicPartition]:
    """Those of `partitions` that are `told`, themselves or by their topics."""
    return sorted(item for item in partitions if item in told or item.topic in told)


def _shares(item: DescribedGroup) -> bool:
    return item.type == "share"


def _share_offsets(
    cluster: KafkaCluster, groups: Collection[str]
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Where they start, as if it was committed."""
    return {
        group: {
            item: CommittedOffset(start.offset, leader_epoch=start.leader_epoch)
            for item, start in own.items()
        }
        for group, own in cluster.get_share_group_offsets(groups).items()
    }


def _forgotten_rows(group: str, partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [{"group": group, **item._asdict(), "result": "deleted"} for item in partitions]
