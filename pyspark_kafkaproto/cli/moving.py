"""Carrying out a plan of moves: its throttles, what is told of it, and waiting for its end."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import click

from pyspark_kafkaproto.cli.assignment_file import Assigned, Assignment
from pyspark_kafkaproto.cli.move_plan import Plan, planned, under_way
from pyspark_kafkaproto.cli.move_rows import with_result
from pyspark_kafkaproto.cli.output import Row
from pyspark_kafkaproto.cluster import ConfigResource, KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica, Throttle
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import counted

_ASK_EVERY_S = 1.0
_NEWS_TURNS = 10  # in which a broker hears of the end of a move

_WHY_STRAY = (
    "the topic was deleted, a folder has failed (kafkaproto brokers log-dirs), or somebody has "
    "moved it elsewhere"
)
_STAYS = "the throttle stays: `kafkaproto reassignments unthrottle` takes it back"
_KEEP = (
    "these brokers keep the rates, as more is being moved, or named by topics, than this: "
    "`kafkaproto reassignments unthrottle` takes them back"
)


class Moving:
    """A plan that is carried out.

    Args:
        cluster: where.
        plan: what is to be moved.
        rows: the plan's, see `plan_rows`.
        told: gets the rows of what was begun or moved, with that as their result.
    """

    def __init__(
        self, cluster: KafkaCluster, plan: Plan, rows: Collection[Row], told: list[Row]
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._rows = rows
        self._told = told
        self._throttles: list[Throttle] = []

    def begin(
        self, throttle: int | None, folder_throttle: int | None, *, keeps_factor: bool
    ) -> None:
        """Have it all begun, bounded first; where that is refused the throttle is taken back.

        Args:
            throttle: bytes a second from broker to broker; None: as fast as it goes.
            folder_throttle: the same between the folders of one.
            keeps_factor: refuse to have more or fewer replicas.
        """
        plan = self._plan
        try:
            if folder_throttle is not None and plan.folders:
                brokers = {item.broker for item in plan.folders}
                self._throttles.append(self._cluster.throttle_folders(brokers, folder_throttle))
            copied = self._begin_copies()
            if throttle is not None and plan.moves:
                self._throttles.append(self._cluster.throttle_reassignment(plan.moves, throttle))
            with self._telling_of_refusals(copied):
                self._cluster.reassign_partitions(
                    plan.moves, allow_replication_factor_change=not keeps_factor
                )
        except BaseException as error:
            self._after_refusal(error)
            raise
        self._tell("begun", plan.partitions)
        _say_begun(len(self._rows))

    def finish(self) -> None:
        """Wait until it is all moved, and take the throttle back.

        Raises:
            click.ClickException: it was moved elsewhere, or is not copied any more.
        """
        stray = self._wait()
        self._take_back()
        _check_moved(self._cluster, self._plan.moves)
        if stray:
            names = ", ".join(f"{item} in {path}" for item, path in sorted(stray.items()))
            raise click.ClickException(
                f"not there, and not being copied there any more: {names}: {_WHY_STRAY}"
            )
        self._tell("moved", self._plan.partitions)
        click.echo(f"moved {counted(len(self._rows), 'partition')}", err=True)

    def tell_of_throttles(self) -> None:
        """Say that they stay, if there are any."""
        if any(self._throttles):
            click.echo(_STAYS, err=True)

    def _tell(self, result: str, partitions: Collection[TopicPartition]) -> None:
        self._told[:] = with_result(self._rows, result, partitions)

    def _begin_copies(self) -> set[TopicPartition]:
        """Name the replicas' folders to their brokers: the partitions that are copied to them."""
        copied: set[TopicPartition] = set()
        try:
            copied = _copied(self._cluster.move_replicas(self._plan.folders))
        except KafkaProtoError as error:
            copied = _copied(error.usable or {})
            if copied:
                _say_begun(len(copied))
            raise
        finally:
            self._tell("begun", copied)
        return copied

    @contextmanager
    def _telling_of_refusals(self, copied: Collection[TopicPartition]) -> Iterator[None]:
        """Tell what of the moves has begun where not all of them have."""
        try:
            yield
        except KafkaProtoError as error:
            self._tell("begun", {*copied, *(error.usable or ())})
            if error.usable:
                _say_begun(len(error.usable))
            raise

    def _after_refusal(self, error: BaseException) -> None:
        """Some may have begun all the same, or nobody knows: what bounds those stays."""
        if isinstance(error, BrokerError) and not error.usable:
            self._take_back()
        else:
            self.tell_of_throttles()

    def _take_back(self) -> None:
        kept: set[ConfigResource] = set()
        try:
            for item in self._throttles:
                kept |= self._cluster.end_throttle(item)
        except BaseException:
            self.tell_of_throttles()
            raise
        if kept:
            names = ", ".join(sorted((item.name for item in kept), key=int))
            click.echo(f"{names}: {_KEEP}", err=True)

    def _wait(self) -> Mapping[Replica, str]:
        """Until nothing of it is under way; the replicas whose copies came to nothing."""
        said, turns = None, 0
        try:
            while (found := under_way(self._cluster, self._plan)).partitions:
                left = len(found.partitions)
                if said != left:
                    said = left
                    of = counted(len(self._plan.partitions), "partition")
                    click.echo(f"{said} of {of} under way", err=True)
                # A broker tells of a copy a little later than it is asked for.
                turns = turns + 1 if found.stray else 0
                if turns > _NEWS_TURNS:
                    break
                time.sleep(_ASK_EVERY_S)
        except BaseException:
            click.echo("brokers go on moving what is under way", err=True)
            self.tell_of_throttles()
            raise
        return found.stray


def _say_begun(count: int) -> None:
    click.echo(f"began to move {counted(count, 'partition')}", err=True)


def _copied(folders: Mapping[Replica, bool]) -> set[TopicPartition]:
    """Those of which a replica is being copied; one that is still to come is made there then."""
    return {
        TopicPartition(item.topic, item.partition) for item, is_there in folders.items() if is_there
    }


def _check_moved(cluster: KafkaCluster, moves: Assignment) -> None:
    """Whether it is as it was to be: somebody else may have cancelled it, or begun another."""

    def others() -> Assignment:
        return planned(cluster, Assigned(dict(moves), {})).moves

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
