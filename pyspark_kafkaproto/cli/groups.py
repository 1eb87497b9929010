"""`kafkaproto groups`: list, describe, offsets, reset, delete."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, telling_deleted, yes_option
from pyspark_kafkaproto.cli.described import group_rows, show_groups
from pyspark_kafkaproto.cli.moments import parse_span, parse_time
from pyspark_kafkaproto.cli.output import (
    gathered,
    json_option,
    show,
    show_json,
    table_text,
    was_seen,
)
from pyspark_kafkaproto.cli.refused import Refused, all_of, merged
from pyspark_kafkaproto.cli.values import find_partitions, parse_topic_offsets
from pyspark_kafkaproto.cluster import (
    GROUP_STATES,
    GROUP_TYPES,
    BackBy,
    CommittedOffset,
    DescribedGroup,
    KafkaCluster,
    Moved,
    ResetTo,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    TopicPartition,
    ToTime,
)
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError

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
_MOVED = {"topic": "Topic", "partition": "Partition", "before": "Before", "after": "After"}


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


@groups.command("list")
@connected
@click.option(
    "--state",
    "states",
    type=click.Choice(GROUP_STATES, case_sensitive=False),
    multiple=True,
    help="Those in this state alone; repeatable.",
)
@click.option(
    "--type",
    "types",
    type=click.Choice(GROUP_TYPES, case_sensitive=False),
    multiple=True,
    help="Those of this type alone; repeatable.",
)
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
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
@json_option
def describe(cluster: KafkaCluster, names: tuple[str, ...], as_json: bool) -> None:
    """State and members of GROUPs, and which partitions each member reads.

    In a share group several members may read the same partition. Of a streams group the tasks are
    shown, its topology, and what keeps it from working.

    \b
    Examples:
      kafkaproto groups describe reports
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    refused = Refused()
    told = refused.each(names, cluster.describe_groups)
    found = [item for _, item in sorted(merged(told).items())]
    if found and as_json:
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
@click.argument("group")
@click.option("--to-earliest", is_flag=True, help="To the first record that is there.")
@click.option("--to-latest", is_flag=True, help="Behind the last record.")
@click.option(
    "--to-time",
    metavar="TIME",
    help="To the first record of TIME or later; without a zone local time.",
)
@click.option("--back-by", metavar="SPAN", help="To the first record of the last 90s, 10m, 2h, 7d.")
@click.option("--shift", type=int, metavar="COUNT", help="So many on, or back: --shift=-100.")
@click.option(
    "--to",
    "named",
    metavar="TOPIC:PARTITION=OFFSET",
    multiple=True,
    help="To this offset, of this partition alone.",
)
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,…]",
    multiple=True,
    help="Which; without it those that the group has committed for, without the repartition topics "
    "of a streams group.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be.")
@yes_option
@json_option
def reset(
    cluster: KafkaCluster,
    group: str,
    topics: tuple[str, ...],
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
    **ways: object,
) -> None:
    """Move what GROUP has committed; refused while it has members.

    Of a share group, move where it starts: what lies before is done with by this, what lies behind
    is given to members once more.

    \b
    Examples:
      kafkaproto groups reset reports --to-earliest --topic orders --dry-run
      kafkaproto groups reset reports --to-time 2026-11-21T08:00 --yes
      kafkaproto groups reset reports --shift=-100 --topic orders:0,1
      kafkaproto groups reset reports --to orders:0=4711
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    to = _way(ways)
    if isinstance(to, ToOffsets) and topics:
        raise click.UsageError("--to names its partitions: --topic does not go with it")
    partitions = find_partitions(cluster, "--topic", topics) if topics else None
    move = cluster.reset_consumer_offsets
    if _is_share_group(cluster, group):
        move = cluster.reset_share_group_offsets
    try:
        planned = move(group, to, partitions, dry_run=True)
    except ConfigError as error:
        if error.option != "partitions":  # as Python has it
            raise
        raise click.UsageError(
            f"group {group} has no offsets: name what to reset, --topic TOPIC"
        ) from error
    if not dry_run:
        seen = planned
        if not is_sure:
            click.echo(table_text(_moved_rows(planned), _MOVED), err=True)
        confirmed(f"Move the offsets of group {group}?", is_sure=is_sure)
        # Just what was shown: the partitions' ends may have moved on meanwhile.
        shown = ToOffsets({item: moved.after for item, moved in planned.items()})
        try:
            planned = move(group, shown)
        except KafkaProtoError as error:
            if error.usable:  # some partitions are moved, though others were refused
                show(_moved_rows(error.usable), _MOVED, as_json=as_json)
            raise
        if planned == seen and was_seen(is_sure=is_sure, as_json=as_json):
            click.echo(f"moved the offsets of group {group}", err=True)
            return
    show(_moved_rows(planned), _MOVED, as_json=as_json)


@groups.command()
@connected
@click.argument("names", nargs=-1, required=True, metavar="GROUP…")
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
    topics: tuple[str, ...],
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete GROUPs with their offsets; refused while they have members.

    Internal topics of a streams group stay: kafkaproto topics delete.

    \b
    Examples:
      kafkaproto groups delete reports
      kafkaproto groups delete reports --topic orders     (only what it has committed there)
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
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


def _is_share_group(cluster: KafkaCluster, group: str) -> bool:
    """Whether it is one; a group that there is not is to be made as one that commits."""
    try:
        return _shares(cluster.describe_groups({group})[group])
    except BrokerError as error:
        if error.code == GROUP_ID_NOT_FOUND:
            return False
        raise


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


def _way(ways: Mapping[str, object]) -> ResetTo:
    """The one way that was given."""
    # By identity: --shift=0 is given, though 0 equals False.
    given = {
        name: value
        for name, value in ways.items()
        if value is not None and value is not False and value != ()
    }
    if len(given) != 1:
        raise click.UsageError(
            "give one of --to-earliest, --to-latest, --to-time, --back-by, --shift, --to"
        )
    match next(iter(given.items())):
        case "to_earliest", _:
            return ToEarliest()
        case "to_latest", _:
            return ToLatest()
        case "to_time", str(text):
            return ToTime(parse_time("--to-time", text))
        case "back_by", str(text):
            return BackBy(parse_span("--back-by", text))
        case "shift", int(count):
            return ShiftBy(count)
        case _, tuple(texts):
            return ToOffsets(parse_topic_offsets("--to", texts))
    raise AssertionError(given)  # an option was added to the command and not to this table


def _forgotten_rows(group: str, partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [{"group": group, **item._asdict(), "result": "deleted"} for item in partitions]


def _moved_rows(moved: Mapping[TopicPartition, Moved]) -> list[dict[str, object]]:
    return [{**item._asdict(), **to._asdict()} for item, to in sorted(moved.items())]
