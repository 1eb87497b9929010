"""A member of the classic protocol that reads on while the group shares out (KIP-429).

It joins again with all that it may be reading, and gives up what it is not assigned any more; then
it joins once more, so that this can go to others. All else goes on from one generation to the next.
While others are waited for, which may take as long as their max.poll.interval.ms, the coordinator
takes commits in the generation that ends: whoever gave up partitions, or its membership, without
the last of them would have all that was read since the one before read again.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from math import inf

from pyspark_kafkaproto.client.group.classic.keeper import ClassicKeeper
from pyspark_kafkaproto.client.group.classic.subscriber import Claim
from pyspark_kafkaproto.client.group.keeper import OF_THE_MEMBER, Due
from pyspark_kafkaproto.client.group.membership import Membership
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.error_codes import REBALANCE_IN_PROGRESS
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import ConsumerConfig


class CooperativeKeeper(ClassicKeeper):
    """Keeps a membership that lasts over generations."""

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Collection[str] | SubscriptionPattern,
        membership: Membership,
    ) -> None:
        super().__init__(config, topics, membership)
        self._join_at = inf  # when to join again; inf: it need not
        self._failed_again = 0
        self._why = ""
        self._waits_for_others = False  # the answer to a JoinGroup is on its way
        self._moving: frozenset[TopicPartition] = frozenset()  # not ours any more, and not said so

    def _enter(self) -> None:
        self._settle(frozenset())
        super()._enter()

    def _clock(self) -> list[Due]:
        self._owned = self._membership.owned
        if self._moving and not self._moving & self._owned and self._join_at == inf:
            self._share_out_anew("partitions were given up that are others' now")
        return [Due(self._join_at, self._join_again), *super()._clock()]

    def _settle(self, moving: frozenset[TopicPartition]) -> None:
        self._join_at, self._failed_again, self._moving = inf, 0, moving

    def _share_out_anew(self, reason: str) -> None:
        self._join_at, self._why = time.monotonic(), reason

    def _join_again(self) -> None:
        member = self._membership
        self._failed_again += 1
        self._join_at = time.monotonic() + self._config.client.backoff.wait_s(self._failed_again)
        self._coordinator.look_up_topics()
        if left := member.assignment - self._coordinator.subscribed(member.assignment):
            # Before it joins, as in Java: librdkafka's leader has members keep what they claim.
            member.goes_on(member.member, member.assignment - left)
            self._settle(left)
            return
        # All that may be read at any moment: of anything else somebody else may be told to begin.
        held = Claim(member.may_be_read, member.member.generation)
        self._waits_for_others = True
        try:
            joined = self._coordinator.join(
                member.member.member_id, self._why, held, self._commit_when_due
            )
        finally:
            self._waits_for_others = False
        # The one before is over from now on: nothing can be committed in it.
        instance_id = member.member.instance_id
        in_next = GroupMember(joined.member_id, joined.generation_id, instance_id)
        member.goes_on(in_next, member.assignment)
        found = self._coordinator.sync(joined)
        self._begin(found)
        self._settle(held.partitions - found.assignment)
        member.goes_on(found.member, found.assignment)
        self._say_what_is_read()

    def _passes(self, error: KafkaProtoError) -> bool:
        """A commit that the next generation has overtaken is good in that one."""
        if isinstance(error, BrokerError) and self._membership.is_member:
            if self._waits_for_others and error.code in OF_THE_MEMBER:
                return True
            if error.code == REBALANCE_IN_PROGRESS:
                return True
        return super()._passes(error)

    def _judge(self, error: BrokerError, *, in_commit: bool = False) -> None:
        if not (in_commit and self._waits_for_others):  # else the answer will tell what we are
            super()._judge(error, in_commit=in_commit)
