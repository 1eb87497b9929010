"""`kafkaproto reassignments`: list, propose, begin, cancel, unthrottle."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path

import click

from pyspark_kafkaproto.cli.assignment_file import assignment_in, assignment_text, keep_way_back
from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.move_plan import check_brokers, planned
from pyspark_kafkaproto.cli.move_rows import (
    plan_columns,
    plan_rows,
    show_or_say,
    show_under_way,
    show_unthrottled,
    tell_cancelled,
)
from pyspark_kafkaproto.cli.moving import Moving
from pyspark_kafkaproto.cli.output import gathered, json_option, table_text
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.values import existing_topics, find_partitions, known_texts, parse_ids
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import counted


@click.group()
def reassignments() -> None:
    """Move replicas between brokers: list, propose, begin, cancel, unthrottle.

    \b
    Examples:
      kafkaproto reassignments propose orders --brokers 1,2,3 > moves.json
      kafkaproto reassignments propose --all --without 3 > moves.json
      kafkaproto reassignments begin moves.json --throttle 50000000 --wait
      kafkaproto reassignments list
      kafkaproto reassignments cancel orders:0
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@reassignments.command("list")
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC[:PARTITION,…]]…")
@json_option
def list_(cluster: KafkaCluster, topics: tuple[str, ...], as_json: bool) -> None:
    """What is under way, of TOPICs (all, if none is named).

    \b
    Examples:
      kafkaproto reassignments list
      kafkaproto reassignments list orders:0,1
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if not topics:
        show_under_way(cluster.list_reassignments(), as_json=as_json)
        return
    refused = Refused()
    known = known_texts(cluster, "TOPIC", topics, refused)
    told = refused.each(known, partial(find_partitions, cluster, "TOPIC")) if known else []
    if told:
        show_under_way(cluster.list_reassignments(set().union(*told)), as_json=as_json)
    refused.tell()


@reassignments.command()
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
@click.option("--all", "every", is_flag=True, help="All topics, Kafka's own too.")
@click.option("--brokers", metavar="ID,…", help="Those to use.  [default: all]")
@click.option("--without", metavar="ID,…", help="All but those.")
def propose(
    cluster: KafkaCluster,
    topics: tuple[str, ...],
    every: bool,
    brokers: str | None,
    without: str | None,
) -> None:
    """Print where the replicas of TOPICs could be, for `begin`; changes nothing.

    As many replicas and preferred leaders at each broker, racks kept apart where brokers tell
    theirs, and as little moved as that takes. The file is that of Kafka's own
    kafka-reassign-partitions; what can stay is not in it.

    \b
    Examples:
      kafkaproto reassignments propose orders > moves.json
      kafkaproto reassignments propose orders payments --brokers 1,2,3 > moves.json
      kafkaproto reassignments propose --all --without 3 > moves.json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if bool(topics) is every:
        raise click.UsageError("name TOPICs, or say --all")
    if brokers is not None and without is not None:
        raise click.UsageError("give one of --brokers, --without")
    used = None if brokers is None else parse_ids("--brokers", brokers)
    topology = cluster.describe() if every else existing_topics(cluster, topics)
    if without is not None:
        used = _all_but(topology.brokers, parse_ids("--without", without))
    names = {name for name, topic in topology.topics.items() if not topic.error_code}
    try:
        proposed = cluster.propose_reassignment(names, used)
    except ConfigError as error:
        option, given = ("--brokers", brokers) if without is None else ("--without", without)
        if error.option != "brokers" or given is None:  # as Python has it
            raise
        left = "" if without is None else ", to be left"
        raise ConfigError(option, given, f"{error.allowed}{left}") from error
    present = {item: topology.partition(item).replicas for item in topology.partitions_of(names)}
    click.echo(assignment_text(proposed))
    copies = sum(len(set(own) - set(present[item])) for item, own in proposed.items())
    led = sum(own[:1] != present[item][:1] for item, own in proposed.items())
    click.echo(
        f"{len(proposed)} of {counted(len(present), 'partition')} would change: "
        f"{counted(copies, 'replica')} to copy, {counted(led, 'preferred leader')} to change",
        err=True,
    )


@reassignments.command()
@connected
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--throttle",
    type=click.IntRange(1, 2**63 - 1),
    metavar="BYTES",
    help="Each broker copies so many a second, in and out; taken back after --wait.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    "folder_throttle",
    type=click.IntRange(1, 2**63 - 1),
    metavar="BYTES",
    help="The same for what it copies between its own folders.",
)
@click.option("--wait", is_flag=True, help="Return when all is moved.")
@click.option(
    "--rollback",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write where the replicas are before, for going back; never over what is there.",
)
@click.option("--keep-replication-factor", is_flag=True, help="Refuse more or fewer replicas.")
@click.option("--dry-run", is_flag=True, help="Only show what would be.")
@yes_option
@json_option
def begin(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    file: Path,
    throttle: int | None,
    folder_throttle: int | None,
    wait: bool,
    rollback: Path | None,
    keep_replication_factor: bool,
    dry_run: bool,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Have replicas moved as FILE says (-: standard input), which `propose` prints.

    A file of Kafka's own kafka-reassign-partitions will do. Begun again, it is no other move.

    \b
    Examples:
      kafkaproto reassignments begin moves.json --wait
      kafkaproto reassignments begin moves.json --throttle 50000000 --wait --rollback before.json
      kafkaproto reassignments propose orders | kafkaproto reassignments begin - --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    plan = planned(cluster, assignment_in(file))
    check_brokers(cluster, plan)
    rows, columns = plan_rows(plan), plan_columns(plan)
    if dry_run or not rows:
        show_or_say(rows, columns, "all replicas are where they are to be", as_json=as_json)
        return
    if not is_sure:
        click.echo(table_text(rows, columns), err=True)
    confirmed(f"Move the replicas of {counted(len(rows), 'partition')}?", is_sure=is_sure)
    if rollback is not None:
        keep_way_back(rollback, plan.way_back)
    with gathered(as_json=as_json) as told:
        moving = Moving(cluster, plan, rows, told)
        moving.begin(throttle, folder_throttle, keeps_factor=keep_replication_factor)
        if wait:
            moving.finish()
        else:
            moving.tell_of_throttles()


@reassignments.command()
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC[:PARTITION,…]]…")
@click.option("--all", "every", is_flag=True, help="All that is under way.")
@yes_option
@json_option
def cancel(
    cluster: KafkaCluster, topics: tuple[str, ...], every: bool, is_sure: bool, as_json: bool
) -> None:
    """Leave the replicas of TOPICs where they were before; what was copied so far is dropped.

    Throttles stay, other than with Kafka's own tool: `unthrottle` takes them back.

    \b
    Examples:
      kafkaproto reassignments cancel orders:0,1
      kafkaproto reassignments cancel --all --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if bool(topics) is every:
        raise click.UsageError("name TOPICs, or say --all")
    chosen = find_partitions(cluster, "TOPIC", topics) if topics else None
    moving = cluster.list_reassignments(chosen)
    if moving:
        names = ", ".join(map(str, sorted(moving)))
        confirmed(f"Cancel the moves of {names}?", is_sure=is_sure)
    try:
        # Those that were shown, and no others that began meanwhile.
        done = cluster.cancel_reassignments(set(moving), may_be_over=every) if moving else set()
    except KafkaProtoError as error:
        if error.usable:
            tell_cancelled(error.usable, as_json=as_json)
        raise
    tell_cancelled(done, as_json=as_json)


@reassignments.command()
@connected
@click.argument("topics", nargs=-1, metavar="[TOPIC]…")
@json_option
def unthrottle(cluster: KafkaCluster, topics: tuple[str, ...], as_json: bool) -> None:
    """Take throttles of moves from all brokers, and from TOPICs (all, if none is named).

    For what `begin --throttle` or Kafka's own tool has left: the settings
    leader.replication.throttled.*, follower.replication.throttled.* and
    replica.alter.log.dirs.io.max.bytes.per.second, whoever has set them.

    \b
    Examples:
      kafkaproto reassignments unthrottle
      kafkaproto reassignments unthrottle orders
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if topics:
        existing_topics(cluster, topics)
    try:
        done = cluster.remove_throttles(set(topics) or None)
    except KafkaProtoError as error:
        if error.usable:
            show_unthrottled(error.usable, as_json=as_json)
        raise
    show_unthrottled(done, as_json=as_json)


def _all_but(present: Collection[int], without: Collection[int]) -> list[int]:
    left = sorted(set(present) - set(without))
    if not left:
        raise ConfigError("--without", ",".join(map(str, without)), "no broker would be left")
    return left
