"""A member of the classic protocol: it joins with all others, and beats until they do so again.

All partitions are given up at each rebalance: the eager way; `cooperative` has the other. Where
this member leads the group it shares the partitions out for all, and looks from time to time
whether topics have changed.
Protocol: the group membership protocol, KIP-62, KIP-345.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final

from pyspark_kafkaproto.client.group.classic.coordinator import (
    Coordinator,
    Joined,
    MemberIdRequired,
)
from pyspark_kafkaproto.client.group.keeper import Due, Keeper
from pyspark_kafkaproto.client.group.membership import Membership, State
from pyspark_kafkaproto.error_codes import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import ConsumerConfig

_FIRST_LOOK_S: Final = 1.0
_JOINS_AGAIN: Final = (ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS)


class ClassicKeeper(Keeper[Coordinator]):
    """Keeps a membership by JoinGroup, SyncGroup and Heartbeat."""

    def __init__(
        self, config: ConsumerConfig, topics: Collection[str], membership: Membership
    ) -> None:
        super().__init__(config, Coordinator(config, topics), membership)
        self._shared: Mapping[str, int] | None = None
        self._beat_at = self._look_at = time.monotonic()
        self._looks_in_vain = 0

    def _enter(self) -> None:
        member = self._membership
        joined = self._coordinator.join(member.member.member_id, member.reason)
        found = self._coordinator.sync(joined)
        self._begin(found)
        member.joined(found.member, found.assignment)

    def _begin(self, found: Joined) -> None:
        """A generation has begun, and we are in it."""
        self._shared = found.shared
        self._beat_at = time.monotonic() + self._config.heartbeat_interval_s
        self._looks_in_vain = 0
        self._plan_look()

    def _share_out_anew(self, reason: str) -> None:
        """The group does: join again, once the reader has let its partitions go."""
        self._membership.rebalance(reason)

    def _clock(self) -> list[Due]:
        beat = Due(self._beat_at, self._beat)
        return [beat] if self._shared is None else [beat, Due(self._look_at, self._look)]

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + self._config.heartbeat_interval_s
        self._coordinator.heartbeat(self._membership.member)

    def _look(self) -> None:
        """The leader shares out anew when a topic has got partitions, or has come at all."""
        self._plan_look()
        shared = self._shared or {}
        wanted = shared.keys() | self._coordinator.wanted
        if self._coordinator.count_partitions(wanted) != shared:
            self._share_out_anew("topics have changed")

    def _plan_look(self) -> None:
        """When the leader looks at topics again: soon, then ever later, where one is missing."""
        wait_s = self._config.metadata_max_age_s
        if self._shared is None or self._coordinator.wanted <= self._shared.keys():
            self._looks_in_vain = 0
        else:
            wait_s = min(_FIRST_LOOK_S * 2**self._looks_in_vain, wait_s)
            self._looks_in_vain += 1
        self._look_at = time.monotonic() + wait_s

    def _judge(self, error: BrokerError, *, in_commit: bool = False) -> None:
        member = self._membership
        known = member.member.member_id
        if isinstance(error, MemberIdRequired):
            member.named(error.member_id)
            self._failed_joins = 0
        elif member.state is State.JOINING and error.code in (*_JOINS_AGAIN, UNKNOWN_MEMBER_ID):
            member.named("" if error.code == UNKNOWN_MEMBER_ID else known)
        elif error.code == REBALANCE_IN_PROGRESS:
            self._share_out_anew("the group is rebalancing")
        elif error.code == ILLEGAL_GENERATION:
            member.lost("our generation was over", member_id=known)
        elif error.code == UNKNOWN_MEMBER_ID:
            member.lost("the coordinator had given us up")
        else:
            super()._judge(error, in_commit=in_commit)
