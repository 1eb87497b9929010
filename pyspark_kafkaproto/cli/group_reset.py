"""`kafkaproto groups reset`: what groups have committed, or where share groups start, moved.

Planned for each group first, shown, and done once it is confirmed. Of groups that are named all
are moved or none, as far as that can be known; of all that there are those with members stay, as
with Kafka's own tool, and are told at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.group_names import all_groups_options, all_readers, check_named
from pyspark_kafkaproto.cli.offset_plan import OffsetPlan, plan_text
from pyspark_kafkaproto.cli.output import Row, json_option, show_json, table_text, was_seen
from pyspark_kafkaproto.cli.refused import Refused, merged
from pyspark_kafkaproto.cli.reset_ways import Way, the_way, way_options
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.cluster import (
    KafkaCluster,
    Moved,
    ResetTo,
    ToOffsets,
    TopicPartition,
)
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import printed

_MOVED = {"topic": "Topic", "partition": "Partition", "before": "Before", "after": "After"}

_Plan = Mapping[TopicPartition, Moved]
_Call = Callable[..., dict[TopicPartition, Moved]]


class _Target(NamedTuple):
    """Where a group is to go, and what moves it."""

    call: _Call
    to: ResetTo


@click.command()
@connected
@click.argument("names", nargs=-1, metavar="[GROUP]…")
@all_groups_options
@way_options
@click.option(
    "--topic",
    "topics",
    metavar="TOPIC[:PARTITION,…]",
    multiple=True,
    help="Which; without it those that the group has committed for, without the repartition topics "
    "of a streams group.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be.")
@click.option("--export", "as_csv", is_flag=True, help="Print CSV, for --from-file.")
@yes_option
@json_option
def reset(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    names: tuple[str, ...],
    types: tuple[str, ...],
    every: bool,
    topics: tuple[str, ...],
    dry_run: bool,
    as_csv: bool,
    is_sure: bool,
    as_json: bool,
    **ways: object,
) -> None:
    """Move what GROUPs have committed; refused while they have members.

    Of a share group, move where it starts: what lies before is done with by this, what lies behind
    is given to members once more. With --all-groups, consumers' groups unless --type says more,
    those with members stay, and are told.

    \b
    Examples:
      kafkaproto groups reset reports --to-earliest --topic orders --dry-run
      kafkaproto groups reset reports --to-time 2026-11-21T08:00 --yes
      kafkaproto groups reset reports --shift=-100 --topic orders:0,1
      kafkaproto groups reset reports --to orders:0=4711
      kafkaproto groups reset --all-groups --type consumer --to-latest --topic orders --dry-run
      kafkaproto groups reset reports --shift=0 --dry-run --export > reports.csv
      kafkaproto groups reset reports --from-file reports.csv
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if as_csv and as_json:
        raise click.UsageError("--export prints CSV: --json does not go with it")
    way = the_way(ways, has_topics=bool(topics))
    partitions = find_partitions(cluster, "--topic", topics) if topics else None
    targets = _targets(cluster, way, names, types, every=every)
    refused = Refused()
    planned = _planned(targets, partitions, refused, every=every)
    if not every:
        refused.tell()  # before anything is moved
    is_many = len(set(names)) != 1
    done = planned
    if planned and not dry_run:
        if not is_sure:
            click.echo(_table(planned, is_many=is_many), err=True)
        confirmed(f"Move the offsets of {_named(planned)}?", is_sure=is_sure)
        done = _moved(targets, planned, refused)
        if done == planned and not as_csv and was_seen(is_sure=is_sure, as_json=as_json):
            click.echo(f"moved the offsets of {_named(planned)}", err=True)
            refused.tell()
            return
    if done or not refused:
        _show(done, is_many=is_many, as_csv=as_csv, as_json=as_json)
    refused.tell()


def _targets(
    cluster: KafkaCluster,
    way: Way,
    names: Collection[str],
    types: Collection[str],
    *,
    every: bool,
) -> dict[str, _Target]:
    """Where each group is to go; a group that there is not is to be made as one that commits."""
    if isinstance(way, OffsetPlan):
        if every or types:
            option = "--all-groups" if every else "--type"
            raise click.UsageError(f"--from-file says which groups: {option} does not go with it")
        return {
            name: _Target(_call(cluster, is_share=_is_share_group(cluster, name)), ToOffsets(own))
            for name, own in way.of(names).items()
        }
    check_named(names, types, every=every)
    if every:
        return {
            item.group: _Target(_call(cluster, is_share=item.type == "share"), way)
            for item in all_readers(cluster, types)
        }
    return {
        name: _Target(_call(cluster, is_share=_is_share_group(cluster, name)), way)
        for name in names
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
    targets: Mapping[str, _Target],
    partitions: Collection[TopicPartition] | None,
    refused: Refused,
    *,
    every: bool,
) -> dict[str, _Plan]:
    """Where each group would go; of `every` group, those that have nothing to move are left out."""
    planned: dict[str, _Plan] = {}
    for group, target in targets.items():
        try:
            planned |= merged(refused.each([group], partial(_plan, target, partitions)))
        except ConfigError as error:
            if error.option != "partitions":  # as Python has it
                raise
            if not every:
                text = f"group {group} has no offsets: name what to reset, --topic TOPIC"
                raise click.UsageError(text) from error
    return planned


def _plan(
    target: _Target, partitions: Collection[TopicPartition] | None, groups: Iterable[str]
) -> dict[str, _Plan]:
    return {group: target.call(group, target.to, partitions, dry_run=True) for group in groups}


def _moved(
    targets: Mapping[str, _Target], planned: Mapping[str, _Plan], refused: Refused
) -> dict[str, _Plan]:
    """What is moved: just what was shown, as the partitions' ends may have moved on meanwhile."""
    done: dict[str, _Plan] = {}
    for group, plan in planned.items():
        shown = ToOffsets({item: moved.after for item, moved in plan.items()})
        try:
            done[group] = targets[group].call(group, shown)
        except KafkaProtoError as error:
            refused.note(error)
            if error.usable:  # some partitions are moved, though others were refused
                done[group] = error.usable
            if not isinstance(error, BrokerError):
                break  # nobody answers: each other group would be waited for as long
    return done


def _named(groups: Collection[str]) -> str:
    return f"group{'s' * (len(groups) > 1)} {', '.join(map(printed, groups))}"


def _show(moved: Mapping[str, _Plan], *, is_many: bool, as_csv: bool, as_json: bool) -> None:
    """Print where they go, or went; of one group that was named without its name."""
    if as_csv:
        after = {
            group: {item: to.after for item, to in plan.items()} for group, plan in moved.items()
        }
        click.echo(plan_text(after, is_many=is_many), nl=False)
    elif as_json:
        show_json(_rows(moved, is_many=is_many))
    else:
        click.echo(_table(moved, is_many=is_many), nl=False)


def _table(moved: Mapping[str, _Plan], *, is_many: bool) -> str:
    columns = {"group": "Group", **_MOVED} if is_many else _MOVED
    return table_text(_rows(moved, is_many=is_many), columns)


def _rows(moved: Mapping[str, _Plan], *, is_many: bool) -> list[Row]:
    return [
        {**({"group": group} if is_many else {}), **item._asdict(), **to._asdict()}
        for group, plan in moved.items()
        for item, to in sorted(plan.items())
    ]
