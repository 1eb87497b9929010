"""What a member says in the classic protocol: join, sync, heartbeat, leave.

Errors of the table that pass are tried again; those about the generation are the keeper's business.
Protocol: the group membership protocol, KIP-62 (heartbeats), KIP-345 (static members), KIP-394
(member ids), KIP-814 (a static leader that comes back).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS
from pyspark_kafkaproto.client.group.classic.subscriber import (
    NOTHING,
    Assignment,
    Claim,
    numbered,
)
from pyspark_kafkaproto.client.group.classic.subscription import (
    assignment_bytes,
    read_subscriber,
    subscription_bytes,
    user_data_for,
)
from pyspark_kafkaproto.client.group.conversation import Conversation
from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern, compiled, matching
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.groups.committed import INSTANCE_TAKEN_OVER, GroupMember
from pyspark_kafkaproto.cluster.groups.members import find_classic_groups, read_assignment
from pyspark_kafkaproto.error_codes import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
)
from pyspark_kafkaproto.errors import (
    BrokerError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest
from pyspark_kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pyspark_kafkaproto.messages.leave_group import LeaveGroupRequest
from pyspark_kafkaproto.messages.sync_group import SyncGroupRequest
from pyspark_kafkaproto.net import ConsumerConfig, Deadline

_log = logging.getLogger(__name__)

_PROTOCOL_TYPE: Final = "consumer"
# The Java client's: a broker answers a JoinGroup when the rebalance time-out ends, not before.
_JOIN_GRACE_S: Final = 5.0
_LAST_LEAVE_OF_ONE: Final = 2

_ADVICE: Final = {
    INCONSISTENT_GROUP_PROTOCOL: "its other members share partitions out in a way that is not in "
    "our partition.assignment.strategy, or it is no group of consumers",
    GROUP_MAX_SIZE_REACHED: "the group has as many members as the broker's group.max.size allows",
    FENCED_INSTANCE_ID: INSTANCE_TAKEN_OVER,
}


@dataclass(frozen=True, slots=True)
class Joined:
    """A generation as its member sees it.

    `shared` has the number of partitions of each topic where this member leads the group and has
    shared them out, or found them so as it came back; None where another one does.
    """

    member: GroupMember
    assignment: frozenset[TopicPartition] = frozenset()
    shared: Mapping[str, int] | None = field(default=None)


class MemberIdRequired(BrokerError):
    """A JoinGroup is to come again, with the `member_id` that the coordinator made (KIP-394)."""

    def __init__(self, subject: str, member_id: str) -> None:
        super().__init__(MEMBER_ID_REQUIRED, "JoinGroup", subject)
        self.member_id = member_id


class Coordinator(Conversation):
    """What a member of the classic protocol says to its group's coordinator.

    Attributes:
        topics: what it subscribes to; by a pattern that which matched at the last look.
        wanted: what all members subscribe to, where this one leads.
    """

    def __init__(
        self, config: ConsumerConfig, topics: Collection[str] | SubscriptionPattern
    ) -> None:
        super().__init__(config)
        session = f"session.timeout.ms is {config.session_timeout_s * 1000:.0f}: the broker allows "
        allowed = "its group.min.session.timeout.ms to group.max.session.timeout.ms"
        self._advice = {**_ADVICE, INVALID_SESSION_TIMEOUT: session + allowed}
        self._given = topics
        self._pattern = compiled(topics) if isinstance(topics, SubscriptionPattern) else None
        self.topics: frozenset[str] = frozenset(topics if self._pattern is None else ())
        self.wanted = self.topics
        self._counts: dict[str, int] = {}  # the last ones that were believed
        self._missing: set[str] = set()  # topics that a warning has named
        self._before = NOTHING  # what this member had in the last generation that it was in

    def anew(self) -> Self:
        """Another one of the same member, with connections of its own."""
        return type(self)(self._config, self._given)

    @property
    def is_by_pattern(self) -> bool:
        """Whether topics are looked up, and may become others."""
        return self._pattern is not None

    def join(
        self,
        member_id: str,
        reason: str,
        held: Claim = NOTHING,
        meanwhile: Callable[[], object] | None = None,
    ) -> JoinGroupResponse:
        """Ask to be a member; answered when all members have come, or their time is over.

        Args:
            member_id: "" where the coordinator has not named us.
            reason: for the broker's log.
            held: what is read meanwhile.
            meanwhile: called time and again until all have come.

        Raises:
            MemberIdRequired: the group names us first.
            BrokerError: see `error_codes`.
            LocalProtocolError: the member has left meanwhile.
        """
        config = self._config
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=round(config.session_timeout_s * 1000),
            rebalance_timeout_ms=round(config.max_poll_interval_s * 1000),
            member_id=member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=tuple(
                JoinGroupRequest.Protocol(name=name, metadata=self._metadata(name, held))
                for name in config.assignors
            ),
            reason=reason or None,
        )
        # Who has no id yet, and is no static member, has to hear of it, so as to leave under it.
        is_known = bool(member_id) or config.group_instance_id is not None

        def wait() -> None:
            if is_known:
                self._check_not_left()
            if meanwhile is not None:
                meanwhile()

        answer_s = config.max_poll_interval_s + _JOIN_GRACE_S
        what = f"join group {self._group!r}"
        answer: JoinGroupResponse = self._ask(what, request, answer_s, meanwhile=wait)
        return answer

    def sync(self, joined: JoinGroupResponse) -> Joined:
        """Share the partitions out if we lead, and take ours."""
        name = joined.protocol_name or ""
        if name not in self._config.assignors:
            raise RemoteProtocolError(f"it shares out by {name!r}, not ours", where="JoinGroup")
        shared, assignment = self._share_out(joined, name)
        instance_id = self._config.group_instance_id
        member = GroupMember(joined.member_id, joined.generation_id, instance_id)
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=name,
            assignments=tuple(
                SyncGroupRequest.Assignment(member_id=other, assignment=assignment_bytes(own))
                for other, own in assignment.items()
            ),
        )
        answer_s = self._config.max_poll_interval_s + _JOIN_GRACE_S
        what = f"sync with group {self._group!r}"
        # A coordinator forgets the SyncGroup of who leaves meanwhile: nobody answers it.
        answer = self._ask(what, request, answer_s, meanwhile=self._check_not_left)
        where = f"group {self._group!r}, our assignment"
        given = read_assignment(answer.assignment, where)
        own = self.subscribed(given)
        if self._pattern is None and (others := sorted(set(given) - own)):
            _log.warning(
                "group %r: %s: given to us, and not among our topics: read by nobody until members "
                "come or go. Brokers give a static member that comes back what it had before",
                self._group,
                ", ".join(map(str, others)),
            )
        self._before = Claim(own, member.generation)
        return Joined(member, own, shared)

    def heartbeat(self, member: GroupMember) -> None:
        """Say that the member lives; raises what the coordinator has to say to that."""
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )
        self._ask(f"heartbeat to group {self._group!r}", request, self._patience_s)

    def leaves(self, member: GroupMember) -> bool:
        """A static member does not: it finds its partitions again within session.timeout.ms."""
        return member.instance_id is None and bool(member.member_id)

    def leave(self, member: GroupMember, reason: str, deadline: Deadline) -> None:
        """End the membership, so that the others need not wait for the session to end."""
        one = LeaveGroupRequest.Member(
            member_id=member.member_id, group_instance_id=member.instance_id, reason=reason
        )
        what = f"leave group {self._group!r}"
        timeout_s = self._config.client.request_timeout_s
        try:
            request = LeaveGroupRequest(group_id=self._group, members=(one,))
            self._ask(what, request, timeout_s, deadline)
        except UnsupportedVersion:
            old = LeaveGroupRequest(group_id=self._group, member_id=member.member_id)
            self._ask(what, old, timeout_s, deadline, _LAST_LEAVE_OF_ONE)

    def subscribed(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of topics that it subscribes to, by a pattern those that matched.

        Brokers give a static member that comes back what it had, whatever it subscribes to by now.
        """
        return frozenset(item for item in partitions if item.topic in self.topics)

    def look_up_topics(self) -> bool:
        """Subscribe to what matches the pattern now, where there is one; whether that is new.

        A broker that is behind knows of less: several are asked before a topic counts as deleted.
        """
        pattern = self._pattern
        if pattern is None:
            return False
        deadline = self.router.deadline()
        excludes = self._config.exclude_internal_topics

        def attempt() -> frozenset[str]:
            told = self.router.topology(None, deadline).topics.values()
            return matching(pattern, told, excludes_internal=excludes)

        found: frozenset[str] = frozenset()
        for _ in self.router.opinions():
            found |= self.router.retrying("look up topics", attempt, deadline)
            if found >= self.topics:
                break
        before, self.topics = self.topics, found
        return found != before

    def count_partitions(self, topics: Collection[str]) -> dict[str, int]:
        """How many partitions each topic has; those that are not there, or not for us, left out.

        A broker that is behind knows less than others: several are asked where one does not know
        a topic, or names fewer partitions than it had: nobody would read them until the next look.
        """
        deadline = self.router.deadline()

        def attempt() -> dict[str, int]:
            found = self.router.topology(topics, deadline).topics.values()
            return {item.name: len(item.partitions) for item in found if not item.error_code}

        counts: dict[str, int] = {}
        for _ in self.router.opinions() if topics else ():
            told = self.router.retrying("count partitions", attempt, deadline)
            # Topics do not shrink: whoever names more of one has heard more.
            counts |= {name: max(count, counts.get(name, 0)) for name, count in told.items()}
            if all(counts.get(topic, 0) >= self._counts.get(topic, 1) for topic in topics):
                break
        missing = set(topics) - counts.keys()
        for topic in sorted(missing - self._missing):
            _log.warning("group %r: topic %r is not there (yet), or not for us", self._group, topic)
        self._counts, self._missing = counts, missing
        return counts

    def _share_out(
        self, joined: JoinGroupResponse, name: str
    ) -> tuple[Mapping[str, int] | None, Assignment]:
        if joined.leader != joined.member_id:
            return None, {}
        members = [read_subscriber(item, self._group, name) for item in joined.members]
        self.wanted = frozenset(topic for item in members for topic in item.topics)
        counts = self.count_partitions(self.wanted)
        if joined.skip_assignment:  # a static leader has come back: what was shared out stays
            return self._read_whole(counts), {}
        return counts, ASSIGNORS[name](members, counts)

    def _read_whole(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Those topics whose partitions all have a reader; the others are to be shared out anew.

        They may have come, or grown, since the leader looked before it went: nobody else looks.
        """
        group = find_classic_groups(self.router, [self._group])[self._group]
        members = () if group is None else group.members
        read = {item for member in members for item in member.assignment}
        return {
            topic: count
            for topic, count in counts.items()
            if read.issuperset(numbered(topic, 0, count))
        }

    def _metadata(self, assignor: str, held: Claim) -> bytes:
        rack_id = self._config.client.client_rack
        before = self._before._replace(partitions=self.subscribed(self._before.partitions))
        user_data = user_data_for(assignor, before)
        return subscription_bytes(self.topics, rack_id, held, user_data)

    def _check(self, answer: Any, subject: str) -> None:
        # In a LeaveGroup answer the member has a code of its own, which changes nothing any more.
        if answer.error_code == MEMBER_ID_REQUIRED:
            raise MemberIdRequired(subject, answer.member_id)
        super()._check(answer, subject)
