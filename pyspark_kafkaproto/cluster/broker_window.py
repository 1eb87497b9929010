"""The part of KafkaCluster about brokers: where replicas are, who leads, the quorum, features.

What it asks with is loaded where it is asked, as in `access_window`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.configs import ConfigResource
from pyspark_kafkaproto.cluster.given import (
    by_partition,
    checked_brokers,
    checked_levels,
    checked_partitions,
)
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router, one_call
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.admin.features import Direction, Features
    from pyspark_kafkaproto.cluster.admin.log_dirs import LogDir, Replica
    from pyspark_kafkaproto.cluster.admin.placement import Assignment
    from pyspark_kafkaproto.cluster.admin.quorum import Quorum
    from pyspark_kafkaproto.cluster.admin.reassignments import Reassignment
    from pyspark_kafkaproto.cluster.admin.throttles import Throttle

# A key's type is taken as it is: one Mapping would refuse what both of these take.
Replicas = Mapping[TopicPartition, Iterable[int]] | Mapping[tuple[str, int], Iterable[int]]
ReplicasOrNone = (
    Mapping[TopicPartition, Iterable[int] | None] | Mapping[tuple[str, int], Iterable[int] | None]
)


class BrokerWindow:
    """What KafkaCluster does about brokers and the replicas that they hold."""

    _router: Router

    # Replicas

    def reassign_partitions(
        self, assignments: ReplicasOrNone, *, allow_replication_factor_change: bool = True
    ) -> None:
        """Have partitions held by other brokers: `{TopicPartition("orders", 0): (2, 3, 1)}`.

        The preferred leader comes first. Returns when the controller has taken it up: replicas are
        copied from then on, and `list_reassignments` shows which. Asked for again it is no other
        reassignment (KIP-455).

        Args:
            assignments: ids of brokers; None cancels what is under way for the partition.
            allow_replication_factor_change: False has the controller refuse more or fewer
                replicas than there are (KIP-860, Kafka 4.1).

        Raises:
            BrokerError: there is no such partition or broker, or nothing to cancel; `usable` has
                the partitions that were done all the same.
            ConfigError: no broker is named, one twice, or such an id there cannot be.
            UnsupportedVersion: the controller cannot be told to keep the number of replicas.
        """
        from pyspark_kafkaproto.cluster.admin.reassignments import reassign_partitions

        checked = {
            item: None if given is None else _checked_replicas(item, given)
            for item, given in by_partition(assignments).items()
        }
        reassign_partitions(
            self._router, checked, allow_replication_factor_change=allow_replication_factor_change
        )

    @one_call
    def cancel_reassignments(
        self,
        partitions: Collection[tuple[str, int]] | None = None,
        *,
        may_be_over: bool = False,
    ) -> set[TopicPartition]:
        """Have replicas stay where they were before, of `partitions` (None: all under way).

        Args:
            partitions: which.
            may_be_over: whether to leave out those that nothing is under way for (any more); of all
                they are left out at any rate.

        Returns:
            Those that were cancelled.

        Raises:
            BrokerError: nothing is under way for one of `partitions`, and it is not left out;
                `usable` has those cancelled.
        """
        from pyspark_kafkaproto.cluster.admin.reassignments import cancel_reassignments

        return cancel_reassignments(self._router, _chosen(partitions), may_be_over=may_be_over)

    def list_reassignments(
        self, partitions: Collection[tuple[str, int]] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """What is under way, of `partitions` (None: of all); those that stay are left out."""
        from pyspark_kafkaproto.cluster.admin.reassignments import list_reassignments

        return list_reassignments(self._router, _chosen(partitions))

    @one_call
    def propose_reassignment(
        self, topics: Collection[str], brokers: Collection[int] | None = None
    ) -> Assignment:
        """Where the partitions of `topics` could be, for `reassign_partitions`; changes nothing.

        Even within one replica and one preferred leader over the brokers, as far as racks leave it
        to be, and moving as little as that takes. What can stay as it is, is left out.

        Args:
            topics: names.
            brokers: ids of those to use; None: all there are at the moment.

        Raises:
            BrokerError: there is no such topic, or no such broker.
            ConfigError: a partition has more replicas than there are brokers to use, or is being
                moved already.
        """
        from pyspark_kafkaproto.cluster.admin.placement import propose_assignment

        check_set("topics", topics)
        used = None if brokers is None else checked_brokers("brokers", brokers)
        topology = self._router.described(topics, must_exist=True)
        proposed = propose_assignment(topology, topics, used)
        moving = sorted(self.list_reassignments(topology.partitions_of(topics)))
        if moving:
            names = ", ".join(map(str, moving[:5]))
            text = f"replicas of {names} are being moved: expected topics of which none are"
            raise ConfigError("topics", sorted(topics), text)
        return proposed

    def throttle_reassignment(self, assignments: Replicas, bytes_per_s: int) -> Throttle:
        """Bound how fast each broker copies what `assignments` move, in and out (KIP-73).

        Called before `reassign_partitions`, or while it goes on.

        Returns:
            What `end_throttle` takes once nothing of it is under way.

        Raises:
            BrokerError: a setting is refused; those that were made are taken back.
            ConfigError: the rate is none.
        """
        from pyspark_kafkaproto.cluster.admin.throttles import throttle_reassignment

        _check_rate(bytes_per_s)
        checked = {
            item: _checked_replicas(item, given)
            for item, given in by_partition(assignments).items()
        }
        topology = self._router.described({item.topic for item in checked}, must_exist=True)
        return throttle_reassignment(self._router, topology, checked, bytes_per_s)

    def throttle_folders(self, brokers: Collection[int], bytes_per_s: int) -> Throttle:
        """Bound how fast each of `brokers` copies between its own folders (KIP-113).

        It holds for all that they copy so. Called before `move_replicas`, or while that goes on;
        brokers that are away are passed over.

        Returns:
            What `end_throttle` takes once the copies are there.

        Raises:
            BrokerError: a setting is refused; those that were made are taken back.
            ConfigError: the rate is none.
        """
        from pyspark_kafkaproto.cluster.admin.throttles import throttle_folders

        _check_rate(bytes_per_s)
        chosen = checked_brokers("brokers", brokers)
        return throttle_folders(self._router, self._router.described(()), chosen, bytes_per_s)

    def end_throttle(self, throttle: Throttle) -> set[ConfigResource]:
        """Take back what was set for a throttle, as far as nobody else is in need of it.

        Topics name no more what they name for this throttle alone. Rates are what they were before;
        those of others that were moving something then, or are now, are left to them: the last of
        them takes all away.

        Returns:
            The brokers that keep a rate for others.

        Raises:
            BrokerError: a broker or topic refuses; names them all. What could be done is done, and
                `usable` has what would be returned.
        """
        from pyspark_kafkaproto.cluster.admin.throttles import end_throttle

        return end_throttle(self._router, throttle)

    def remove_throttles(
        self, topics: Collection[str] | None = None
    ) -> dict[ConfigResource, tuple[str, ...]]:
        """Take throttles of moves from all brokers, and from `topics` (None: all).

        Returns:
            The settings that were set, by who had them.

        Raises:
            BrokerError: a broker or topic refuses, or a broker that has replicas is away, which
                keeps its rates; names them all. What could be done is done, and `usable` has it.
        """
        from pyspark_kafkaproto.cluster.admin.throttle_settings import remove_throttles

        if topics is not None:
            check_set("topics", topics)
        return remove_throttles(self._router, self._router.described(topics, must_exist=True))

    # Leaders

    @one_call
    def elect_leaders(
        self, partitions: Collection[tuple[str, int]] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, bool]:
        """Have the preferred leader lead, the first of a partition's replicas (KIP-460).

        Args:
            partitions: which; None: all there are.
            unclean: whether to elect, for partitions without a leader, one of the replicas that
                are there, though it lacks records: those are lost.

        Returns:
            Whether there was an election: False where it was not needed.

        Raises:
            BrokerError: there is no such partition, or nobody who could lead it; `usable` has what
                would be returned of the others.
        """
        from pyspark_kafkaproto.cluster.admin.elections import elect_leaders

        return elect_leaders(self._router, _chosen(partitions), unclean=unclean)

    # Folders

    @one_call
    def describe_log_dirs(
        self, brokers: Collection[int] | None = None
    ) -> dict[int, dict[str, LogDir]]:
        """The folders of each broker (None: of all) by path: space, and the replicas in them.

        Raises:
            BrokerError: there is no such broker at the moment, or this user may not ask; `usable`
                has the others.
        """
        from pyspark_kafkaproto.cluster.admin.log_dirs import describe_log_dirs

        used = None if brokers is None else checked_brokers("brokers", brokers)
        return describe_log_dirs(self._router, used)

    def move_replicas(self, folders: Mapping[Replica, str]) -> dict[Replica, bool]:
        """Have replicas in other folders of their brokers: `{Replica(1, "orders", 0): "/disk-2"}`.

        Returns when the brokers have begun: `describe_log_dirs` shows the copy as a future one
        until it is whole (KIP-113).

        Returns:
            Whether the broker has the replica: one that comes to it later is made in that folder
            then.

        Raises:
            BrokerError: there is no such broker, or it has no such folder; `usable` has what would
                be returned of the others.
        """
        from pyspark_kafkaproto.cluster.admin.log_dirs import checked_folders, move_replicas

        return move_replicas(self._router, checked_folders(folders))

    # The cluster

    def describe_quorum(self) -> Quorum:
        """Who keeps the cluster's metadata, who leads them, how far each is (KIP-595).

        Raises:
            BrokerError: this user may not ask.
            UnsupportedVersion: the cluster has ZooKeeper, and no quorum.
        """
        from pyspark_kafkaproto.cluster.admin.quorum import describe_quorum

        return describe_quorum(self._router)

    def describe_features(self) -> Features:
        """Levels of features: which a broker knows, and which are in force (KIP-584)."""
        from pyspark_kafkaproto.cluster.admin.features import describe_features

        return describe_features(self._router)

    @one_call
    def update_features(
        self,
        levels: Mapping[str, int],
        direction: Direction | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Put levels of features in force, all of them or none: `{"metadata.version": 33}`.

        Args:
            levels: by feature; 0 takes one out of force, which is a downgrade.
            direction: whether levels may go down; None: Direction.UPGRADE, they may not.
            validate_only: whether to ask only if it could be done.

        Raises:
            BrokerError: a level is not known to all brokers, or goes the other way, ….
            ConfigError: such a level there cannot be.
            UnsupportedVersion: brokers before Kafka 3.3 cannot be asked so.
        """
        from pyspark_kafkaproto.cluster.admin.features import Direction, update_features

        checked = checked_levels(levels)
        chosen: object = direction or Direction.UPGRADE
        if not isinstance(chosen, Direction):
            raise ConfigError("direction", chosen, "expected one of Direction.…")
        update_features(self._router, checked, chosen, validate_only=validate_only)

    def registered_brokers(self) -> set[int]:
        """Ids of the brokers that are registered, those that are away included (KIP-1073).

        Raises:
            UnsupportedVersion: brokers before Kafka 4.0 tell of those alone that run.
        """
        from pyspark_kafkaproto.cluster.admin.brokers import registered_brokers

        return registered_brokers(self._router)

    def unregister_broker(self, node_id: int) -> None:
        """Have the cluster forget a broker that will not come back (KIP-631).

        What it held is not moved: reassign that first.

        Raises:
            BrokerError: there is no such broker, or this user may not.
            UnsupportedVersion: the cluster has ZooKeeper, and no registrations of this kind.
        """
        from pyspark_kafkaproto.cluster.admin.brokers import unregister_broker

        (checked,) = checked_brokers("node_id", (node_id,))
        unregister_broker(self._router, checked)


def _chosen(partitions: Collection[tuple[str, int]] | None) -> list[TopicPartition] | None:
    return None if partitions is None else checked_partitions(partitions)


def _checked_replicas(partition: TopicPartition, brokers: Iterable[int]) -> tuple[int, ...]:
    return checked_brokers(f"replicas of {partition}", brokers)


def _check_rate(bytes_per_s: int) -> None:
    if isinstance(bytes_per_s, bool) or not isinstance(bytes_per_s, int) or bytes_per_s < 1:
        raise ConfigError("bytes_per_s", bytes_per_s, "expected a whole number from 1 on")
