"""`kafkaproto groups reset`: what groups have committed, or where share groups start, moved.

Planned for each group first, shown, and done once it is confirmed. Of groups that are named all
are moved or none, as far as that can be known; of all that there are those with members stay, as
with Kafka's own tool, and are told at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.group_names import all_groups_options, all_readers, check_named
from pyspark_kafkaproto.cli.moments import parse_span, parse_time
from pyspark_kafkaproto.cli.output import json_option, show, table_text, was_seen
from pyspark_kafkaproto.cli.refused import Refused, merged
from pyspark_kafkaproto.cli.values import find_partitions, parse_topic_offsets
from pyspark_kafkaproto.cluster import (
    BackBy,
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
from pyspark_kafkaproto.wire.printable import printed

_MOVED = {"topic": "Topic", "partition": "Partition", "before": "Before", "after": "After"}

_Plan = Mapping[TopicPartition, Moved]
_Call = Callable[..., dict[TopicPartition, Moved]]


@click.command()
@connected
@click.argument("names", nargs=-1, metavar="[GROUP]…")
@all_groups_options
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
    names: tuple[str, ...],
    types: tuple[str, ...],
    every: bool,
    topics: tuple[str, ...],
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
    **ways: object,
) -> None:
    """Move what GROUPs have committed; refused while they have members.

    Of a share group, move where it starts: what lies before is done with by this, what lies behind
    is given to members once more. With --all-groups those with members stay, and are told.

    \b
    Examples:
      kafkaproto groups reset reports --to-earliest --topic orders --dry-run
      kafkaproto groups reset reports --to-time 2026-11-21T08:00 --yes
      kafkaproto groups reset reports --shift=-100 --topic orders:0,1
      kafkaproto groups reset reports --to orders:0=4711
      kafkaproto groups reset --all-groups --type consumer --to-latest --topic orders --dry-run
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    check_named(names, types, every=every)
    to = _way(ways)
    if isinstance(to, ToOffsets) and topics:
        raise click.UsageError("--to names its partitions: --topic does not go with it")
    partitions = find_partitions(cluster, "--topic", topics) if topics else None
    calls = _calls_of_all(cluster, types) if every else _calls_of(cluster, names)
    refused = Refused()
    planned = _planned(calls, to, partitions, refused, every=every)
    if not every:
        refused.tell()  # before anything is moved
    is_many = len(set(names)) != 1
    done = planned
    if planned and not dry_run:
        if not is_sure:
            _show(planned, is_many=is_many, as_json=False, aside=True)
        confirmed(f"Move the offsets of {_named(planned)}?", is_sure=is_sure)
        done = _moved(calls, planned, refused)
        if done == planned and was_seen(is_sure=is_sure, as_json=as_json):
            click.echo(f"moved the offsets of {_named(planned)}", err=True)
            refused.tell()
            return
    if done or not refused:
        _show(done, is_many=is_many, as_json=as_json)
    refused.tell()


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


def _calls_of(cluster: KafkaCluster, names: Collection[str]) -> dict[str, _Call]:
    """What moves each of them; a group that there is not is to be made as one that commits."""
    return {name: _call(cluster, is_share=_is_share_group(cluster, name)) for name in names}


def _calls_of_all(cluster: KafkaCluster, types: Collection[str]) -> dict[str, _Call]:
    return {
        item.group: _call(cluster, is_share=item.type == "share")
        for item in all_readers(cluster, types)
    }


def _call(cluster: KafkaCluster, *, is_share: bool) -> _Call:
    return cluster.reset_share_group_offsets if is_share else cluster.reset_consumer_offsets


def _is_share_group(cluster: KafkaCluster, group: str) -> bool:
    try:
        return cluster.describe_groups({group})[group].type == "share"
    except BrokerError as error:
        if error.code == GROUP_ID_NOT_FOUND:
            return False
        raise


def _planned(
    calls: Mapping[str, _Call],
    to: ResetTo,
    partitions: Collection[TopicPartition] | None,
    refused: Refused,
    *,
    every: bool,
) -> dict[str, _Plan]:
    """Where each group would go; of `every` group, those that have nothing to move are left out."""
    planned: dict[str, _Plan] = {}
    for group, call in calls.items():
        try:
            planned |= merged(refused.each([group], partial(_plan, call, to, partitions)))
        except ConfigError as error:
            if error.option != "partitions":  # as Python has it
                raise
            if not every:
                text = f"group {group} has no offsets: name what to reset, --topic TOPIC"
                raise click.UsageError(text) from error
    return planned


def _plan(
    call: _Call, to: ResetTo, partitions: Collection[TopicPartition] | None, groups: Iterable[str]
) -> dict[str, _Plan]:
    return {group: call(group, to, partitions, dry_run=True) for group in groups}


def _moved(
    calls: Mapping[str, _Call], planned: Mapping[str, _Plan], refused: Refused
) -> dict[str, _Plan]:
    """What is moved: just what was shown, as the partitions' ends may have moved on meanwhile."""
    done: dict[str, _Plan] = {}
    for group, plan in planned.items():
        shown = ToOffsets({item: moved.after for item, moved in plan.items()})
        try:
            done[group] = calls[group](group, shown)
        except KafkaProtoError as error:
            refused.note(error)
            if error.usable:  # some partitions are moved, though others were refused
                done[group] = error.usable
            if not isinstance(error, BrokerError):
                break  # nobody answers: each other group would be waited for as long
    return done


def _named(groups: Collection[str]) -> str:
    return f"group{'s' * (len(groups) > 1)} {', '.join(map(printed, groups))}"


def _show(moved: Mapping[str, _Plan], *, is_many: bool, as_json: bool, aside: bool = False) -> None:
    """Print where they go, or went; of one group that was named without its name."""
    rows = [
        {"group": group, **item._asdict(), **to._asdict()}
        for group, plan in moved.items()
        for item, to in sorted(plan.items())
    ]
    if not is_many:
        for row in rows:
            del row["group"]
    columns = {"group": "Group", **_MOVED} if is_many else _MOVED
    if aside:
        click.echo(table_text(rows, columns), err=True)
    else:
        show(rows, columns, as_json=as_json)
