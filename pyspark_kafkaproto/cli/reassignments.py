"""`kafkaproto reassignments`: list, propose, begin, cancel, unthrottle."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from pyspark_kafkaproto.cli.assignment_file import Assigned, assignment_text, read_assignment
from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import Row, gathered, json_option, show, table_text, tell
from pyspark_kafkaproto.cli.values import find_partitions, parse_ids
from pyspark_kafkaproto.cluster import ConfigResource, KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica, Throttle
from pyspark_kafkaproto.cluster.admin.reassignments import replicas_before
from pyspark_kafkaproto.errors import BrokerError, ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import counted

_UNDER_WAY = {
    "topic": "Topic",
    "partition": "Partition",
    "replicas": "Replicas",
    "adding": "Adding",
    "removing": "Removing",
}
_MOVES = {"topic": "Topic", "partition": "Partition", "before": "Before", "after": "After"}
_FOLDERS = {"folders": "Folders"}
_THROTTLES = {"type": "Type", "name": "Name", "settings": "Settings"}
_ASK_EVERY_S = 1.0
_NEWS_TURNS = 10  # in which a broker hears of the end of a move

_NOTHING = "no replicas are being moved"
_STAYS = "the throttle stays: `kafkaproto reassignments unthrottle` takes it back"
_KEEP = (
    "these brokers keep the rates, as more is being moved, or named by topics, than this: "
    "`kafkaproto reassignments unthrottle` takes them back"
)

_Assignment = Mapping[TopicPartition, tuple[int, ...]]
_Throttles = Collection[Throttle]


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
    chosen = find_partitions(cluster, "TOPIC", topics) if topics else None
    rows = [
        {
            **item._asdict(),
            "replicas": found.replicas,
            "adding": found.adding,
            "removing": found.removing,
        }
        for item, found in sorted(cluster.list_reassignments(chosen).items())
    ]
    _show_or_say(rows, _UNDER_WAY, _NOTHING, as_json=as_json)


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
    topology = cluster.describe(None if every else set(topics), must_exist=bool(topics))
    if without is not None:
        used = _all_but(topology.brokers, parse_ids("--without", without))
    names = {name for name, topic in topology.topics.items() if not topic.error_code}
    proposed = cluster.propose_reassignment(names, used)
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
    plan = _planned(cluster, read_assignment(str(file), _text_of(file)))
    rows = _plan_rows(plan)
    columns = _MOVES | _FOLDERS if plan.folders else _MOVES
    if dry_run or not rows:
        _show_or_say(rows, columns, "all replicas are where they are to be", as_json=as_json)
        return
    if not is_sure:
        click.echo(table_text(rows, columns), err=True)
    confirmed(f"Move the replicas of {counted(len(rows), 'partition')}?", is_sure=is_sure)
    if rollback is not None:
        _keep_way_back(rollback, {item: plan.before[item] for item in plan.moves})
    with gathered(as_json=as_json) as told:
        throttles: list[Throttle] = []
        try:
            if folder_throttle is not None and plan.folders:
                brokers = {item.broker for item in plan.folders}
                throttles.append(cluster.throttle_folders(brokers, folder_throttle))
            copied = _begin_copies(cluster, plan, rows, told)
            if throttle is not None and plan.moves:
                throttles.append(cluster.throttle_reassignment(plan.moves, throttle))
            with _telling_of_refusals(rows, told, copied):
                cluster.reassign_partitions(
                    plan.moves, allow_replication_factor_change=not keep_replication_factor
                )
        except BaseException as error:
            _after_refusal(cluster, error, throttles)
            raise
        told[:] = _with_result(rows, "begun", plan.partitions)
        click.echo(f"began to move {counted(len(rows), 'partition')}", err=True)
        if wait:
            _wait(cluster, plan, throttles)
            _take_back(cluster, throttles)
            _check_moved(cluster, plan.moves)
            told[:] = _with_result(rows, "moved", plan.partitions)
            click.echo(f"moved {counted(len(rows), 'partition')}", err=True)
        else:
            _tell_stays(throttles)


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
            _tell_cancelled(error.usable, as_json=as_json)
        raise
    _tell_cancelled(done, as_json=as_json)


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
    try:
        done = cluster.remove_throttles(set(topics) or None)
    except KafkaProtoError as error:
        if error.usable:
            _show_unthrottled(error.usable, as_json=as_json)
        raise
    _show_unthrottled(done, as_json=as_json)


def _tell_cancelled(done: Collection[TopicPartition], *, as_json: bool) -> None:
    rows = [{**item._asdict(), "result": "cancelled"} for item in sorted(done)]
    text = f"cancelled the moves of {counted(len(rows), 'partition')}" if rows else _NOTHING
    tell(rows, text, as_json=as_json)


def _show_unthrottled(done: Mapping[ConfigResource, tuple[str, ...]], *, as_json: bool) -> None:
    rows = [
        {"type": resource.type, "name": resource.name, "settings": names, "result": "removed"}
        for resource, names in sorted(done.items())
    ]
    _show_or_say(rows, _THROTTLES, "no throttle is set", as_json=as_json)


def _show_or_say(
    rows: Collection[Row], columns: Mapping[str, str], none: str, *, as_json: bool
) -> None:
    """The rows; for people `none`, beside the output, where there is none."""
    if rows or as_json:
        show(rows, columns, as_json=as_json)
    else:
        click.echo(none, err=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where replicas are now, which partitions are to be elsewhere, and which replicas' folders."""

    before: _Assignment
    moves: _Assignment
    folders: Mapping[Replica, str]

    @property
    def partitions(self) -> set[TopicPartition]:
        """All that something is to be done about."""
        return {*self.moves, *(TopicPartition(item.topic, item.partition) for item in self.folders)}


def _planned(cluster: KafkaCluster, wanted: Assigned) -> _Plan:
    """What of `wanted` is another place, or is not settled yet."""
    topology = cluster.describe({item.topic for item in wanted.replicas}, must_exist=True)
    under_way = cluster.list_reassignments(wanted.replicas)
    before = replicas_before(topology, under_way, wanted.replicas)
    moves = {
        item: replicas
        for item, replicas in wanted.replicas.items()
        if before[item] != replicas or item in under_way
    }
    return _Plan(before, moves, _not_there(cluster, wanted.folders))


def _not_there(cluster: KafkaCluster, folders: Mapping[Replica, str]) -> dict[Replica, str]:
    """Those replicas that are not, or not as a whole, in the folders named."""
    if not folders:
        return {}
    found = cluster.describe_log_dirs({item.broker for item in folders})
    there = {
        (Replica(broker, *partition), path)
        for broker, own in found.items()
        for path, folder in own.items()
        for partition, log in folder.replicas.items()
        if not log.is_future
    }
    return {item: path for item, path in folders.items() if (item, path) not in there}


def _begin_copies(
    cluster: KafkaCluster, plan: _Plan, rows: Iterable[Row], told: list[Row]
) -> set[TopicPartition]:
    """Name the replicas' folders to their brokers: the partitions that are copied to them now."""
    copied: set[TopicPartition] = set()
    try:
        copied = _copied(cluster.move_replicas(plan.folders))
    except KafkaProtoError as error:
        copied = _copied(error.usable or {})
        if copied:
            click.echo(f"began to move {counted(len(copied), 'partition')}", err=True)
        raise
    finally:
        told.extend(_with_result(rows, "begun", copied))
    return copied


def _copied(folders: Mapping[Replica, bool]) -> set[TopicPartition]:
    """Those of which a replica is being copied; one that is still to come is made there then."""
    return {
        TopicPartition(item.topic, item.partition) for item, is_there in folders.items() if is_there
    }


def _plan_rows(plan: _Plan) -> list[dict[str, object]]:
    folders: dict[TopicPartition, list[str]] = {}
    for item, path in sorted(plan.folders.items()):
        partition = TopicPartition(item.topic, item.partition)
        folders.setdefault(partition, []).append(f"{item.broker}:{path}")
    return [
        {
            **item._asdict(),
            "before": plan.before[item],
            "after": plan.moves.get(item, plan.before[item]),
            "folders": folders.get(item, []),
            "result": "would be moved",
        }
        for item in sorted(plan.partitions)
    ]


def _with_result(
    rows: Iterable[Row], result: str, partitions: Collection[TopicPartition]
) -> list[Row]:
    return [
        {**row, "result": result} for row in rows if (row["topic"], row["partition"]) in partitions
    ]


@contextmanager
def _telling_of_refusals(
    rows: Iterable[Row], told: list[Row], copied: set[TopicPartition]
) -> Iterator[None]:
    """Tell what of the moves has begun where not all of them have."""
    try:
        yield
    except KafkaProtoError as error:
        told[:] = _with_result(rows, "begun", {*copied, *(error.usable or ())})
        if error.usable:
            click.echo(f"began to move {counted(len(error.usable), 'partition')}", err=True)
        raise


def _after_refusal(cluster: KafkaCluster, error: BaseException, throttles: _Throttles) -> None:
    """Some may have begun all the same, or nobody knows: what bounds those stays."""
    if isinstance(error, BrokerError) and not error.usable:
        _take_back(cluster, throttles)
    else:
        _tell_stays(throttles)


def _take_back(cluster: KafkaCluster, throttles: _Throttles) -> None:
    kept: set[ConfigResource] = set()
    try:
        for item in throttles:
            kept |= cluster.end_throttle(item)
    except BaseException:
        _tell_stays(throttles)
        raise
    if kept:
        names = ", ".join(sorted((item.name for item in kept), key=int))
        click.echo(f"{names}: {_KEEP}", err=True)


def _tell_stays(throttles: _Throttles) -> None:
    if any(throttles):
        click.echo(_STAYS, err=True)


def _wait(cluster: KafkaCluster, plan: _Plan, throttles: _Throttles) -> None:
    """Until nothing of it is under way."""
    said = None
    try:
        while left := _under_way(cluster, plan):
            if said != len(left):
                said = len(left)
                of = counted(len(plan.partitions), "partition")
                click.echo(f"{said} of {of} under way", err=True)
            time.sleep(_ASK_EVERY_S)
    except BaseException:
        click.echo("brokers go on moving what is under way", err=True)
        _tell_stays(throttles)
        raise


def _under_way(cluster: KafkaCluster, plan: _Plan) -> set[TopicPartition]:
    moving = set(cluster.list_reassignments(plan.moves))
    # Folders are asked about once replicas are at their brokers.
    coming = {} if moving else _not_there(cluster, plan.folders)
    return moving | {TopicPartition(item.topic, item.partition) for item in coming}


def _check_moved(cluster: KafkaCluster, moves: _Assignment) -> None:
    """Whether it is as it was to be: somebody else may have cancelled it, or begun another."""

    def others() -> _Assignment:
        return _planned(cluster, Assigned(dict(moves), {})).moves

    # The broker that is asked may not have heard of the end.
    for _ in range(_NEWS_TURNS):
        if not others():
            return
        time.sleep(_ASK_EVERY_S)
    if other := others():
        names = ", ".join(map(str, sorted(other)))
        raise click.ClickException(
            f"other replicas than asked for: {names}: cancelled by somebody?"
        )


def _text_of(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read()
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise click.FileError(str(file), why) from error


def _keep_way_back(file: Path, before: _Assignment) -> None:
    """Write it, unless it is kept there already.

    A move that is begun again finds less to move, and metadata has forgotten the order of what is
    on its way: the first file knows more.

    Raises:
        ConfigError: the file is there, and is about something else.
    """
    try:
        found = file.read_text("utf-8") if file.exists() else ""
        if not found.strip():
            file.write_text(f"{assignment_text(before)}\n", "utf-8")
            return
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from error
    except ValueError:  # it is no text
        found = "-"
    text = "it is there, and leads elsewhere: give a file that is not there yet"
    try:
        kept = read_assignment(str(file), found).replicas
    except ConfigError:
        raise ConfigError("--rollback", str(file), text) from None
    if any(set(kept.get(item, ())) != set(replicas) for item, replicas in before.items()):
        raise ConfigError("--rollback", str(file), text)


def _all_but(present: Collection[int], without: Collection[int]) -> list[int]:
    left = sorted(set(present) - set(without))
    if not left:
        raise ConfigError("--without", ",".join(map(str, without)), "no broker would be left")
    return left
