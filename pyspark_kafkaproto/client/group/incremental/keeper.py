"""A member of the protocol of KIP-848: it beats, and is told what to read.

What it is to give up it gives up in its next poll, and a heartbeat says so at once: the coordinator
gives a partition to nobody before. All others are read on meanwhile. Who is not heard of, or does
not give up for max.poll.interval.ms, is fenced: others read its partitions by then.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Collection
from typing import ClassVar, Final

from pyspark_kafkaproto.client.group.incremental.assigned import Assigned, IdPartition
from pyspark_kafkaproto.client.group.incremental.coordinator import JOINING, Beaten, Coordinator
from pyspark_kafkaproto.client.group.keeper import GONE, Due, Keeper
from pyspark_kafkaproto.client.group.membership import Membership, State
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster.groups.committed import GroupMember
from pyspark_kafkaproto.error_codes import (
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import ConsumerConfig
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.wire.ids import id_text

_log = logging.getLogger(__name__)

_WORTH_A_WORD: Final = 8  # failures in a row: some five seconds of them
# Said to who joins: by brokers before 4.1 to whom they know already (KAFKA-19233), by all to a
# static member that is there, be it the same.
_IN_OUR_WAY: Final = (FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID)
_GIVEN_UP: Final = (FENCED_MEMBER_EPOCH, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID)


class IncrementalKeeper(Keeper[Coordinator]):
    """Keeps a membership by ConsumerGroupHeartbeat.

    Attributes:
        member_id: the member's, for all its life.
    """

    _speaks: ClassVar[type[Coordinator]] = Coordinator

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Collection[str] | SubscriptionPattern,
        membership: Membership,
    ) -> None:
        super().__init__(config, self._speaks(config, topics), membership)
        # One for its life: who is fenced, and comes back under it, leaves no ghost in the group.
        self.member_id = id_text(uuid.uuid4().bytes)
        self._assigned = Assigned()
        self._said: frozenset[IdPartition] | None = None  # to be held; None: has to be said anew
        self._beat_at = self._beat_after = time.monotonic()
        self._failed_beats = 0
        self._names_at = 0.0
        self._looks_in_vain = 0

    def looks_first(self, error: BrokerError) -> bool:
        """What is gone is shared out no more: an error where heartbeats have not said so."""
        return error.code in GONE and self._may_hear_of_it()

    def _enter(self) -> None:
        who = GroupMember(self.member_id, JOINING, self._config.group_instance_id)
        try:
            answer = self._let_in(who)
        except KafkaProtoError:
            if self._membership.state is State.CLOSED and self._coordinator.may_be_heard:
                self._leave_aside(who, self._soon)
            raise
        self._membership.named(self.member_id)  # whoever closes it from now on leaves
        if self._membership.state is State.CLOSED:
            # Meanwhile: whoever has closed it did not know that we would be let in.
            self._leave_aside(who, self._soon)
            return
        self._said = frozenset()
        self._look_at_topics()
        self._take(answer)
        self._membership.joined(self._as_in(answer), self._assigned.partitions)

    def _let_in(self, who: GroupMember) -> Beaten:
        try:
            return self._coordinator.join(who)
        except BrokerError as error:
            if error.code not in _IN_OUR_WAY or not self._took_leave(who):
                raise
            return self._coordinator.join(who)

    def _took_leave(self, who: GroupMember) -> bool:
        """End a membership of our own, the word of which was lost; False: it is another's."""
        try:
            self._coordinator.leave(who, "it joins anew", self._soon)
        except BrokerError as error:
            _log.debug("who is in our way is somebody else: %s", error)
            return False
        return True

    def _clock(self) -> list[Due]:
        self._owned = self._membership.owned
        beat_at = self._beat_after  # a little after one that failed
        if self._assigned.held_with(self._owned) == self._said:
            beat_at = max(beat_at, self._beat_at)
        beat = Due(beat_at, self._beat)
        if not self._assigned.unnamed:
            return [beat]
        return [beat, Due(self._names_at, self._look_up_again)]

    def _beat(self) -> None:
        member, held = self._membership.member, self._assigned.held_with(self._membership.owned)
        said, self._said = self._said, None
        try:
            if said is None:
                answer = self._coordinator.beat_anew(member, held)
            else:
                answer = self._coordinator.beat(member, None if held == said else held)
        except KafkaProtoError:
            self._failed_beats += 1
            wait_s = self._config.client.backoff.wait_s(self._failed_beats)
            self._beat_after = time.monotonic() + wait_s
            raise
        self._failed_beats = 0
        self._said = held
        self._take(answer)
        self._go_on(self._as_in(answer))

    def _go_on(self, member: GroupMember) -> None:
        changes = self._membership.changes
        self._membership.goes_on(member, self._assigned.partitions)
        if self._membership.changes != changes:
            self._say_what_is_read()

    def _take(self, answer: Beaten) -> None:
        self._beat_at = time.monotonic() + answer.heartbeat_interval_ms / 1000
        self._beats += 1
        if answer.assignment is not None:
            self._in_doubt_until = None
            self._assigned.note_target(
                IdPartition(topic.topic_id, number)
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            )
            self._looks_in_vain = 0
            self._look_up()

    def _as_in(self, answer: Beaten) -> GroupMember:
        return GroupMember(self.member_id, answer.member_epoch, self._config.group_instance_id)

    # The names of topics

    def _look_at_topics(self) -> None:
        """Learn the names of what is subscribed to; none of it is needed to be a member."""
        try:
            self._assigned.note_names(self._coordinator.look_at_topics())
        except KafkaProtoError as error:
            _log.debug("the subscribed topics were not looked at: %s", error)

    def _look_up(self) -> None:
        """Ask what topics are called; a little later again, where nobody knew."""
        if not self._assigned.unnamed:
            return
        self._looks_in_vain += 1
        wait_s = self._config.client.backoff.wait_s(self._looks_in_vain)
        self._names_at = time.monotonic() + wait_s
        try:
            names = self._coordinator.names_of(self._assigned.unnamed)
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            _log.debug("names of topics were not looked up: %s", error)
            return
        self._assigned.note_names(names)

    def _look_up_again(self) -> None:
        self._look_up()
        self._go_on(self._membership.member)

    # What the coordinator says about us

    def _say_failed(self, error: KafkaProtoError) -> None:
        """Once of what lasts: a coordinator that moves is found with the next try or two."""
        if self._failed_beats == _WORTH_A_WORD:
            super()._say_failed(error)
        else:
            _log.debug("heartbeat %d in a row failed: %s", self._failed_beats, error)

    def _passes(self, error: KafkaProtoError) -> bool:
        """A commit of an epoch that has just ended is good in the next one."""
        is_stale = isinstance(error, BrokerError) and error.code == STALE_MEMBER_EPOCH
        return (is_stale and self._membership.is_member) or super()._passes(error)

    def _judge(self, error: BrokerError, *, in_commit: bool = False) -> None:
        if error.code in _GIVEN_UP and self._membership.is_member:
            self._membership.lost("the coordinator had given us up")
        elif error.code == STALE_MEMBER_EPOCH:
            self._said = None  # the answer that told of the epoch was lost: ask for all of it
        else:
            super()._judge(error, in_commit=in_commit)
