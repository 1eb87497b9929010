"""A member of a share group, to its coordinator: heartbeats as by KIP-848, with less to say.

Nothing is given up or claimed: several members may read a partition, and what each of them has is
known to the partition's leader.
Protocol: KIP-932.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Final

from pyspark_kafkaproto.client.group.incremental.assigned import IdPartition
from pyspark_kafkaproto.client.group.incremental.coordinator import Beaten, Coordinator
from pyspark_kafkaproto.client.group.incremental.keeper import IncrementalKeeper
from pyspark_kafkaproto.client.share.answers import SWITCHED_OFF, TOO_OLD
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.error_codes import (
    GROUP_ID_NOT_FOUND,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    UNSUPPORTED_VERSION,
)
from pyspark_kafkaproto.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from pyspark_kafkaproto.net import ConsumerConfig

_OF_ANOTHER_TYPE: Final = "it is a group of another type: a share group needs a name of its own"

_ADVICE: Final = {
    GROUP_ID_NOT_FOUND: _OF_ANOTHER_TYPE,
    GROUP_MAX_SIZE_REACHED: "the group has as many members as the brokers' "
    "group.share.max.size allows",
    INCONSISTENT_GROUP_PROTOCOL: _OF_ANOTHER_TYPE,
    UNSUPPORTED_VERSION: SWITCHED_OFF,
}


class ShareCoordinator(Coordinator):
    """What a member says to its group's coordinator."""

    _advice = _ADVICE
    _too_old: ClassVar[str] = TOO_OLD

    def __init__(self, config: ConsumerConfig, topics: Collection[str]) -> None:
        super().__init__(config, topics)
        self._names = tuple(sorted(topics))

    def _brief(self, member: GroupMember, owned: Collection[IdPartition] | None) -> Any:
        del owned
        return ShareGroupHeartbeatRequest(
            group_id=self._group, member_id=member.member_id, member_epoch=member.generation
        )

    def _whole(self, member: GroupMember, owned: Collection[IdPartition]) -> Any:
        del owned
        return ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=member.member_id,
            member_epoch=member.generation,
            rack_id=self._config.client.client_rack or None,
            subscribed_topic_names=self._names,
        )


class ShareKeeper(IncrementalKeeper):
    """Keeps a membership by ShareGroupHeartbeat."""

    _speaks: ClassVar[type[Coordinator]] = ShareCoordinator

    def _take(self, answer: Beaten) -> None:
        """A heartbeat that comes late is told what is new, in an answer that nobody gets.

        Coordinators take the epoch before it then, and tell its member of the next one alone.
        """
        if answer.assignment is None and answer.member_epoch != self._membership.member.generation:
            self._said = None  # ask for all of it
        super()._take(answer)
