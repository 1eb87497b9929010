"""A fake coordinator of one group of KIP-848: members come and go, and it shares out what there is.

By the rules of Kafka's own: a partition belongs to nobody else until its reader has said that it is
given up; who is in an epoch of before is let be where its last answer may have been lost; what a
member has to read is told when that changes, and to whoever says everything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pyspark_kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.unit.cluster.committing import FakeCoordinator, committing, fetch_refused

UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STALE_MEMBER_EPOCH = 25, 110, 113
FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID = 82, 111
JOINING = 0
BEAT_MS = 10

Pair = tuple[bytes, int]  # topic id and partition


@dataclass(slots=True)
class FakeMember:
    """A member as its coordinator knows it."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    instance_id: str | None = None
    epoch: int = 0
    epoch_before: int = 0
    assigned: frozenset[Pair] = frozenset()
    revoking: frozenset[Pair] = frozenset()
    target: frozenset[Pair] = frozenset()

    @property
    def has(self) -> frozenset[Pair]:
        """What it may be reading."""
        return self.assigned | self.revoking


@dataclass(slots=True)
class FakeHeartbeats:
    """The coordinator.

    Attributes:
        members: by their ids.
        epoch: of the group.
        committed: {(topic, partition): (offset, metadata)}.
        heard: (member id, epoch, what it said it reads or None) of each heartbeat.
    """

    brokers: object
    members: dict[str, FakeMember] = field(default_factory=dict)
    epoch: int = 0
    committed: dict = field(default_factory=dict)
    heard: list = field(default_factory=list)
    _commit: object = None
    _fetch: object = None

    def __post_init__(self):
        coordinator = FakeCoordinator(self.brokers, g={})
        self.committed, self._commit = coordinator.offsets["g"], coordinator.commit
        self.brokers.versions["ConsumerGroupHeartbeat"] = (0, 1)
        self.brokers.on("ConsumerGroupHeartbeat", self.beat)
        self.brokers.on("OffsetCommit", self.commit)
        self._fetch = coordinator.fetch
        self.brokers.on("OffsetFetch", self.fetch)

    # What it is told

    def beat(self, call):
        """The answer to a heartbeat."""
        request = call.request
        owned = None if request.topic_partitions is None else _pairs(request.topic_partitions)
        self.heard.append((request.member_id, request.member_epoch, owned))
        if request.member_epoch < JOINING:
            return self._let_go(request)
        if request.member_epoch == JOINING:
            code = self._let_in(request, owned)
        else:
            code = self._refusal(request, owned)
        if code:
            return beat_refused(code)
        member = self.members[request.member_id]
        before = member.assigned
        self._advance(member, owned)
        self._check()
        is_whole = request.rebalance_timeout_ms != -1 and owned is not None
        told = member.assigned if is_whole or member.assigned != before else None
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=BEAT_MS,
            assignment=None if told is None else _assignment(told),
        )

    def commit(self, call):
        """The answer to an OffsetCommit: of a member in its epoch alone."""
        request = call.request
        member = self.members.get(request.member_id)
        if member is None:
            return committing(UNKNOWN_MEMBER_ID)(call)
        if member.epoch != request.generation_id_or_member_epoch:
            return committing(STALE_MEMBER_EPOCH)(call)
        return self._commit(call)

    def fetch(self, call):
        """The answer to an OffsetFetch: a member that says who it is is to be in its epoch."""
        (asked,) = call.request.groups
        if asked.member_id is not None:
            member = self.members.get(asked.member_id)
            if member is None:
                return fetch_refused(UNKNOWN_MEMBER_ID)(call)
            if member.epoch != asked.member_epoch:
                return fetch_refused(STALE_MEMBER_EPOCH)(call)
        return self._fetch(call)

    # What befalls members

    def fence(self, member_id):
        """Give a member up, as when its session has ended."""
        del self.members[member_id]
        self.share_out()

    def share_out(self):
        """Begin an epoch, by round robin over who wants a topic: few partitions stay in place."""
        self.epoch += 1
        targets = {member_id: set() for member_id in self.members}
        for name, topic in sorted(self.brokers.topics.items()):
            readers = [one for one, member in sorted(self.members.items()) if _wants(member, name)]
            for number in range(len(topic.leaders) if readers else 0):
                targets[readers[number % len(readers)]].add((topic.topic_id, number))
        for member_id, member in self.members.items():
            member.target = frozenset(targets[member_id])

    def _let_in(self, request, owned):
        assert owned == frozenset(), "who joins reads nothing"
        assert request.rebalance_timeout_ms > 0
        before = FakeMember()
        for member_id, member in list(self.members.items()):
            if request.instance_id is not None and member.instance_id == request.instance_id:
                if member.epoch != -2:
                    return UNRELEASED_INSTANCE_ID
                before = self.members.pop(member_id)
        self.members[request.member_id] = FakeMember(
            topics=request.subscribed_topic_names,
            pattern=request.subscribed_topic_regex,
            instance_id=request.instance_id,
            assigned=before.assigned,
            target=before.target,
        )
        if before.epoch != -2:
            self.share_out()
        return 0

    def _let_go(self, request):
        if request.member_id not in self.members:
            others = [item.instance_id for item in self.members.values()]
            is_taken = request.instance_id is not None and request.instance_id in others
            code = FENCED_INSTANCE_ID if is_taken else UNKNOWN_MEMBER_ID
            return ConsumerGroupHeartbeatResponse(error_code=code)
        if request.member_epoch == -2:
            self.members[request.member_id].epoch = -2
        else:
            del self.members[request.member_id]
            self.share_out()
        return ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch)

    def _refusal(self, request, owned):
        member = self.members.get(request.member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if request.member_epoch == member.epoch:
            return 0
        is_late = request.member_epoch == member.epoch_before and owned is not None
        return 0 if is_late and owned <= member.assigned else FENCED_MEMBER_EPOCH

    def _advance(self, member, owned):
        """CurrentAssignmentBuilder's way: revoke, then take what others have released."""
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking = frozenset()
        elif member.epoch == self.epoch and member.assigned == member.target:
            return
        kept = member.assigned & member.target
        surplus = (member.assigned if owned is None else owned) - member.target
        if surplus:
            member.assigned, member.revoking = kept, surplus
            return
        taken = {
            pair for other in self.members.values() if other is not member for pair in other.has
        }
        member.assigned = kept | (member.target - taken)
        if member.epoch != self.epoch:
            member.epoch_before, member.epoch = member.epoch, self.epoch

    def _check(self):
        """Nobody reads what another one may still be reading."""
        every = [pair for member in self.members.values() for pair in member.has]
        assert len(every) == len(set(every)), self.members


def _wants(member, topic):
    if member.pattern is not None:
        return re.fullmatch(member.pattern, topic) is not None
    return topic in member.topics


def _pairs(topics):
    return frozenset((topic.topic_id, number) for topic in topics for number in topic.partitions)


def _assignment(pairs):
    topics = {topic_id for topic_id, _ in pairs}
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=tuple(
            TopicPartitions(
                topic_id=topic_id,
                partitions=tuple(sorted(number for other, number in pairs if other == topic_id)),
            )
            for topic_id in sorted(topics)
        )
    )


def beat_refused(code, text="said by the fake"):
    """The answer to a heartbeat that is not taken."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=text)
