"""The part of KafkaCluster about groups: committed offsets, members, lag."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from pyspark_kafkaproto.cluster.given import (
    Offsets,
    by_partition,
    checked_offsets,
    checked_partitions,
)
from pyspark_kafkaproto.cluster.groups import (
    CommittedOffset,
    check_groups,
    commit_offsets,
    delete_offsets,
    fetch_offsets,
)
from pyspark_kafkaproto.cluster.lag import Lag, lag_of
from pyspark_kafkaproto.cluster.members import (
    DescribedGroup,
    ListedGroup,
    delete_groups,
    describe_groups,
    list_groups,
)
from pyspark_kafkaproto.cluster.reset import Moved, ResetTo, ToOffsets, reset_offsets
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError


class GroupWindow:
    """What KafkaCluster does about groups."""

    _router: Router

    # Committed offsets

    def get_consumer_offsets(
        self, group: str, partitions: Collection[tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """What `group` has committed; partitions without a committed offset are left out."""
        found = self.get_group_offsets([group], checked_partitions(partitions))[group]
        return {partition: committed.offset for partition, committed in found.items()}

    def get_group_offsets(
        self, groups: Collection[str], partitions: Collection[tuple[str, int]] | None = None
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """What each of many groups has committed, with the text beside it.

        Args:
            groups: names; one that there is not has committed nothing.
            partitions: which ones; None: all that the group has.
        """
        chosen = None if partitions is None else checked_partitions(partitions)
        check_groups(groups)
        return fetch_offsets(self._router, groups, chosen)

    def set_consumer_offsets(self, group: str, offsets: Offsets) -> None:
        """Commit `offsets` (each the next one to read) for a group that has no members.

        An offset may carry a text: `CommittedOffset(42, "by the nightly job")`.

        Raises:
            BrokerError: a partition was refused; `usable` has the set that was committed.
            ConfigError: such an offset, or partition, there cannot be.
        """
        with _of_one_group():
            self.set_group_offsets({group: offsets})

    def set_group_offsets(self, offsets: Mapping[str, Offsets]) -> None:
        """Commit for many groups without members, all at once.

        Raises:
            BrokerError: a partition was refused; `usable` has the (group, partition) pairs that
                were committed.
        """
        checked = {group: checked_offsets(own) for group, own in offsets.items()}
        commit_offsets(self._router, checked)

    def reset_consumer_offsets(
        self,
        group: str,
        to: ResetTo,
        partitions: Collection[tuple[str, int]] | None = None,
        *,
        dry_run: bool = False,
    ) -> dict[TopicPartition, Moved]:
        """Move what `group` has committed: `ToEarliest()`, `ShiftBy(-100)`, `BackBy(3600)`, ….

        Args:
            group: a group without members; a new one is made by this.
            to: where to; what lies outside of a partition's records becomes their nearest end.
            partitions: which; None: those that the group has committed for, or that `to` names.
            dry_run: whether to only tell what would be.

        Raises:
            BrokerError: the group has members, or a partition was refused; `usable` has those
                that were moved all the same.
            ConfigError: there is nothing to move, or nothing committed to shift.
        """
        chosen = None if partitions is None else checked_partitions(partitions)
        if isinstance(to, ToOffsets):
            to = ToOffsets(by_partition(to.offsets))
        return reset_offsets(self._router, group, to, chosen, dry_run=dry_run)

    def delete_consumer_offsets(self, group: str, partitions: Collection[tuple[str, int]]) -> None:
        """Forget what `group` has committed for `partitions`.

        Raises:
            BrokerError: members of the group read such a topic, or there is no such group;
                `usable` has the set that is done all the same.
        """
        with _of_one_group():
            delete_offsets(self._router, group, checked_partitions(partitions))

    # Groups

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[ListedGroup]:
        """The groups of all brokers, sorted by name; with `states` or `types`, those alone.

        Args:
            states: of `GROUP_STATES`: Empty, Stable, …; Assigning and Reconciling are of consumer
                groups alone, NotReady of streams groups.
            types: of `GROUP_TYPES`: classic, consumer, share, streams (brokers from 3.8 on).

        Raises:
            ConfigError: there is no such state, or type.
        """
        return list_groups(self._router, states, types)

    def describe_groups(self, groups: Collection[str]) -> dict[str, DescribedGroup]:
        """State, members and assignments of each group, classic or of KIP-848.

        Raises:
            BrokerError: there is no such group, or it may not be seen; `usable` has the others.
        """
        return describe_groups(self._router, groups)

    def delete_groups(self, groups: Collection[str]) -> None:
        """Delete groups that have no members, with all that they have committed.

        Raises:
            BrokerError: a group has members, or is not there; `usable` has those deleted.
        """
        delete_groups(self._router, groups)

    def lag(
        self, groups: Collection[str] | None = None, topics: Collection[str] | None = None
    ) -> list[Lag]:
        """How far groups are behind, one row per partition, sorted.

        Args:
            groups: names; None: all groups.
            topics: whose partitions, all of them; None: those that a group has committed for or
                that its members read.

        Raises:
            BrokerError: without `topics`, a group that is not there; or a topic that is not there.
        """
        return lag_of(self._router, groups, topics)


@contextmanager
def _of_one_group() -> Iterator[None]:
    """An error's `usable` as the set of partitions: the group is the caller's."""
    try:
        yield
    except KafkaProtoError as error:
        if error.usable is not None:
            error.usable = {item.partition for item in error.usable}
        raise
