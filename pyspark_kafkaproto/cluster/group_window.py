"""The part of KafkaCluster about groups: offsets, members, lag.

What executors ask for none of is loaded where it is asked, as in `access_window`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.given import (
    Offsets,
    by_partition,
    check_map,
    checked_offsets,
    checked_partitions,
    checked_words,
)
from pyspark_kafkaproto.cluster.groups.committed import (
    CommittedOffset,
    check_groups,
    commit_offsets,
    delete_offsets,
    fetch_offsets,
)
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router, one_call
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.groups.described import DescribedGroup, ListedGroup
    from pyspark_kafkaproto.cluster.groups.lag import Lag
    from pyspark_kafkaproto.cluster.groups.reset import Moved, ResetTo
    from pyspark_kafkaproto.cluster.groups.share_offsets import ShareOffset


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
            groups: names; one that there is not has committed nothing, nor has a share group.
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
        check_map("offsets", offsets, "the offsets of each group")
        checked = {group: checked_offsets(own) for group, own in offsets.items()}
        commit_offsets(self._router, checked)

    @one_call
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
            group: a group without members, and no share group; a new one is made by this.
            to: where to; what lies outside of a partition's records becomes their nearest end.
            partitions: which; None: those that the group has committed for, or that `to` names;
                of a streams group those of repartition topics left out.
            dry_run: whether to only tell what would be.

        Raises:
            BrokerError: the group has members, or a partition was refused; `usable` has those
                that were moved all the same.
            ConfigError: there is nothing to move, or nothing committed to shift; or it is a share
                group.
        """
        from pyspark_kafkaproto.cluster.groups.reset import reset_offsets

        chosen = None if partitions is None else checked_partitions(partitions)
        return reset_offsets(self._router, group, _checked_way(to), chosen, dry_run=dry_run)

    def delete_consumer_offsets(self, group: str, partitions: Collection[tuple[str, int]]) -> None:
        """Forget what `group` has committed for `partitions`.

        Raises:
            BrokerError: members of the group read such a topic, or there is no such group;
                `usable` has the set that is done all the same.
        """
        with _of_one_group():
            delete_offsets(self._router, group, checked_partitions(partitions))

    # Share groups' offsets (KIP-932)

    def get_share_group_offsets(
        self, groups: Collection[str], partitions: Collection[tuple[str, int]] | None = None
    ) -> dict[str, dict[TopicPartition, ShareOffset]]:
        """Where each of many share groups is; partitions where it has not begun are left out.

        Args:
            groups: names; a group that there is not, or that is no share group, is nowhere.
            partitions: which ones; None: all that the group knows of.

        Raises:
            BrokerError: a group may not be seen, or share groups are switched off in the cluster.
            UnsupportedVersion: brokers before Kafka 4.1 have none.
        """
        from pyspark_kafkaproto.cluster.groups.share_offsets import fetch_share_offsets

        chosen = None if partitions is None else set(checked_partitions(partitions))
        check_groups(groups)
        return {
            group: {
                item: start
                for item, start in own.items()
                if start is not None and (chosen is None or item in chosen)
            }
            for group, own in fetch_share_offsets(self._router, groups).items()
        }

    @one_call
    def reset_share_group_offsets(
        self,
        group: str,
        to: ResetTo,
        partitions: Collection[tuple[str, int]] | None = None,
        *,
        dry_run: bool = False,
    ) -> dict[TopicPartition, Moved]:
        """Move where a share group starts, in the ways of `reset_consumer_offsets`.

        Records before are done with by this, those behind are given to members once more.

        Args:
            group: a share group without members; a new one is made by this.
            to: where to; what lies outside of a partition's records becomes their nearest end.
            partitions: which; None: those that the group knows of, or that `to` names.
            dry_run: whether to only tell what would be.

        Raises:
            BrokerError: the group has members, or a partition was refused (`usable` has those that
                were moved all the same); or share groups are switched off in the cluster.
            ConfigError: there is nothing to move, or to shift; or it is no share group.
            UnsupportedVersion: brokers before Kafka 4.1 have none.
        """
        from pyspark_kafkaproto.cluster.groups.reset import reset_share_offsets

        chosen = None if partitions is None else checked_partitions(partitions)
        return reset_share_offsets(self._router, group, _checked_way(to), chosen, dry_run=dry_run)

    @one_call
    def delete_share_group_offsets(
        self, group: str, topics: Collection[str], *, dry_run: bool = False
    ) -> set[str]:
        """Forget where a share group without members is in all partitions of `topics`.

        Args:
            group: a share group without members.
            topics: which; nothing to forget there is no error.
            dry_run: whether to only tell where there is something.

        Returns:
            The topics where there is something to forget.

        Raises:
            BrokerError: the group has members, or there is no such group or topic; `usable` has
                the set of topics that are done all the same.
            ConfigError: it is no share group.
        """
        from pyspark_kafkaproto.cluster.groups.share_offsets import delete_share_offsets

        try:
            return delete_share_offsets(self._router, group, topics, dry_run=dry_run)
        except KafkaProtoError as error:
            if error.usable is not None:
                error.usable = set(error.usable)
            raise

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
        from pyspark_kafkaproto.cluster.groups.described import GROUP_STATES, GROUP_TYPES
        from pyspark_kafkaproto.cluster.groups.members import list_groups

        return list_groups(
            self._router,
            checked_words("state", states, GROUP_STATES),
            checked_words("type", types, GROUP_TYPES),
        )

    @one_call
    def describe_groups(self, groups: Collection[str]) -> dict[str, DescribedGroup]:
        """State, members and assignments of each group, of whichever type.

        A streams group has its topology, with what keeps it from working.

        Raises:
            BrokerError: there is no such group, or it may not be seen; `usable` has the others.
        """
        from pyspark_kafkaproto.cluster.groups.members import describe_groups

        return describe_groups(self._router, groups)

    def delete_groups(self, groups: Collection[str]) -> None:
        """Delete groups that have no members, with their offsets.

        Internal topics of a streams group stay.

        Raises:
            BrokerError: a group has members, or is not there; `usable` has those deleted.
        """
        from pyspark_kafkaproto.cluster.groups.members import delete_groups

        delete_groups(self._router, groups)

    @one_call
    def lag(
        self, groups: Collection[str] | None = None, topics: Collection[str] | None = None
    ) -> list[Lag]:
        """How far groups are behind, one row per partition, sorted.

        Args:
            groups: names; None: all groups.
            topics: whose partitions, all of them; None: those that a group has committed for or
                that its members read; of a share group those that it knows of.

        Raises:
            BrokerError: without `topics`, a group that is not there; or a topic that is not there.
        """
        from pyspark_kafkaproto.cluster.groups.lag import lag_of

        if topics is not None:
            check_set("topics", topics)
        return lag_of(self._router, groups, topics)


def _checked_way(to: ResetTo) -> ResetTo:
    from pyspark_kafkaproto.cluster.groups.reset import ResetTo, ToOffsets

    if not isinstance(to, ResetTo):
        raise ConfigError("to", to, "expected ToEarliest(), ToLatest(), ToOffsets(…), …")
    return ToOffsets(by_partition(to.offsets)) if isinstance(to, ToOffsets) else to


@contextmanager
def _of_one_group() -> Iterator[None]:
    """An error's `usable` as the set of partitions: the group is the caller's."""
    try:
        yield
    except KafkaProtoError as error:
        if error.usable is not None:
            error.usable = {item.partition for item in error.usable}
        raise
