"""A member of the classic protocol: it joins with all others, and beats until they do so again.

All partitions are given up at each rebalance: the eager way; `cooperative` has the other. Where
this member leads the group it shares the partitions out for all, and looks from time to time
whether topics have changed. Who subscribes by a pattern looks itself which topics match: before it
joins, so that a topic that is made has the group share out once and not once for each member, and
from time to time. Either looks where the reader finds something gone.
Protocol: the group membership protocol, KIP-62, KIP-345.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from enum import Enum
from math import inf
from typing import Final

from pyspark_kafkaproto.client.group.classic.coordinator import (
    Coordinator,
    Joined,
    MemberIdRequired,
)
from pyspark_kafkaproto.client.group.keeper import GONE, Due, Keeper
from pyspark_kafkaproto.client.group.membership import NO_GENERATION, Membership, State
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.error_codes import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError
from pyspark_kafkaproto.net import ConsumerConfig

_FIRST_LOOK_S: Final = 1.0
_JOINS_AGAIN: Final = (ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS)


class Doubt(Enum):
    """Whether a topic that the reader finds gone has been looked up since."""

    NONE = "none"
    RAISED = "raised"
    LOOKED_AT = "looked at"


class ClassicKeeper(Keeper[Coordinator]):
    """Keeps a membership by JoinGroup, SyncGroup and Heartbeat."""

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Collection[str] | SubscriptionPattern,
        membership: Membership,
    ) -> None:
        super().__init__(config, Coordinator(config, topics), membership)
        self._shared: Mapping[str, int] | None = None
        self._beat_at = self._look_at = time.monotonic()
        self._looks_in_vain = 0
        self._doubt = Doubt.NONE  # the reader raises it, the look that follows answers it

    def looks_first(self, error: BrokerError) -> bool:
        """An error where it is there yet: what is gone matches no pattern, and is not shared out.

        By names the group's leader alone can help: it finds that there are fewer partitions, of
        which the others hear by a heartbeat.
        """
        if error.code not in GONE:
            return False
        if not self._coordinator.is_by_pattern and self._shared is None:
            return self._may_hear_of_it()
        is_answered = self._doubt is Doubt.LOOKED_AT
        self._doubt = Doubt.NONE if is_answered else Doubt.RAISED
        return not is_answered

    def look_soon(self) -> None:
        """The leader has shared out the partitions of the topic before."""
        if self._shared is not None:
            self._doubt = Doubt.RAISED

    def _enter(self) -> None:
        member = self._membership
        self._coordinator.look_up_topics()
        try:
            joined = self._coordinator.join(member.member.member_id, member.reason)
        except LocalProtocolError as error:
            if isinstance(error.__cause__, MemberIdRequired):  # who has ended asks no more
                # Whoever has closed it did not know that we would be named: all others would wait
                # for who has that name to join, until its session ends.
                who = GroupMember(error.__cause__.member_id, NO_GENERATION)
                self._leave_aside(who, self._soon)
            raise
        found = self._coordinator.sync(joined)
        self._begin(found)
        member.joined(found.member, found.assignment)

    def _begin(self, found: Joined) -> None:
        """A generation has begun, and we are in it."""
        self._shared = found.shared
        self._doubt, self._in_doubt_until = Doubt.NONE, None
        self._beat_at = time.monotonic() + self._config.heartbeat_interval_s
        self._looks_in_vain = 0
        self._plan_look()

    def _share_out_anew(self, reason: str) -> None:
        """The group does: join again, once the reader has let its partitions go."""
        self._membership.rebalance(reason)

    def _clock(self) -> list[Due]:
        beat = Due(self._beat_at, self._beat)
        if self._shared is None and not self._coordinator.is_by_pattern:
            return [beat]
        return [beat, Due(-inf if self._doubt is Doubt.RAISED else self._look_at, self._look)]

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + self._config.heartbeat_interval_s
        self._coordinator.heartbeat(self._membership.member)
        self._beats += 1

    def _look(self) -> None:
        """Have the group share out anew when other topics match our pattern.

        The leader does, too, when a topic of anybody's has got partitions, or has come at all.
        """
        self._plan_look()
        is_doubted = self._doubt is Doubt.RAISED
        if self._coordinator.look_up_topics():
            self._doubt = Doubt.NONE
            self._share_out_anew("other topics match our pattern")
            return
        if is_doubted:
            self._doubt = Doubt.LOOKED_AT
        shared = self._shared
        if shared is None:
            return
        wanted = shared.keys() | self._coordinator.wanted
        if self._coordinator.count_partitions(wanted) != shared:
            self._doubt = Doubt.NONE
            self._share_out_anew("topics have changed")

    def _plan_look(self) -> None:
        """When to look at topics again: soon, then ever later, where one is missing, or all are."""
        wait_s = self._config.metadata_max_age_s
        wanted = self._coordinator.wanted
        is_there = self._shared is None or wanted <= self._shared.keys()
        if is_there and (self._coordinator.topics or not self._coordinator.is_by_pattern):
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
