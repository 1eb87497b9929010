"""A fake coordinator of one group of the classic protocol, with all its members in it.

By the rules of Kafka's own: a JoinGroup is answered when every member has come, or those who have
not are given up; the leader shares out, and whoever syncs waits for that; heartbeats and commits
say meanwhile that the group is rebalancing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_kafkaproto.client.group.classic.subscription import read_subscriber
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.leave_group import LeaveGroupResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from tests.unit.client.group.fake_group import MEMBER_ID_REQUIRED, VERSIONS
from tests.unit.cluster.committing import FakeCoordinator, committing

UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 25, 22, 27
PREPARING, COMPLETING, STABLE = "preparing", "completing", "stable"
PATIENCE_S = 10.0


@dataclass(slots=True)
class FakeSharing:
    """The coordinator.

    Attributes:
        members: the metadata of each, by its id; the first one leads.
        generation: the last one.
        committed: {(topic, partition): (offset, metadata)}.
        claims: what each JoinGroup said is read meanwhile, with the member's id.
        patience_s: how long who does not come to a rebalance is waited for.
        shared: the assignment of each, as its bytes.
    """

    brokers: object
    members: dict[str, bytes] = field(default_factory=dict)
    generation: int = 0
    state: str = PREPARING
    committed: dict = field(default_factory=dict)
    claims: list = field(default_factory=list)
    patience_s: float = PATIENCE_S
    shared: dict[str, bytes] = field(default_factory=dict)
    _come: dict[str, int] = field(default_factory=dict)  # the rebalance each has come to
    _rebalance: int = 0
    _expected: set[str] = field(default_factory=set)  # ids of who has not come back with them yet
    _ids: int = 0
    _name: str = ""
    _commit: object = None

    def __post_init__(self):
        coordinator = FakeCoordinator(self.brokers, g={})
        self.committed, self._commit = coordinator.offsets["g"], coordinator.commit
        self.brokers.versions |= VERSIONS
        self.brokers.on("JoinGroup", self.join)
        self.brokers.on("SyncGroup", self.sync)
        self.brokers.on("Heartbeat", self.beat)
        self.brokers.on("LeaveGroup", self.leave)
        self.brokers.on("OffsetCommit", self.commit)

    def join(self, call):
        """The answer to a JoinGroup: when all have come."""
        request = call.request
        if not request.member_id:
            self._ids += 1
            self._expected.add(f"m{self._ids}")
            return JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id=f"m{self._ids}")
        is_new = request.member_id not in self.members
        if is_new and request.member_id not in self._expected:
            return JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID)
        self._expected.discard(request.member_id)
        self._name, metadata = request.protocols[0].name, request.protocols[0].metadata
        part = JoinGroupResponse.Member
        one = part(member_id=request.member_id, metadata=metadata)
        claim = read_subscriber(one, "g", self._name).claim
        assert not (is_new and claim.partitions), "who is no member reads nothing"
        self.claims.append((request.member_id, claim))
        self.members[request.member_id] = metadata
        self._begin_rebalance()
        number = self._rebalance
        self._come[request.member_id] = number
        who = request.member_id
        if not self.brokers.hold(lambda: self._is_answered(who, number), self.patience_s):
            for late in [each for each in self.members if self._come.get(each) != number]:
                del self.members[late]
        if request.member_id not in self.members:
            return JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID)
        if self.state == PREPARING and self._rebalance == number:
            self.state, self.shared = COMPLETING, {}
            self.generation += 1
        leader = next(iter(self.members))
        everyone = tuple(part(member_id=who, metadata=told) for who, told in self.members.items())
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self._name,
            leader=leader,
            member_id=request.member_id,
            members=everyone if request.member_id == leader else (),
        )

    def sync(self, call):
        """The answer to a SyncGroup: when the leader has shared out."""
        request = call.request
        if code := self._refusal(request.member_id, request.generation_id):
            return SyncGroupResponse(error_code=code)
        if self.state == PREPARING:
            return SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS)
        if request.assignments:
            self.shared = {item.member_id: item.assignment for item in request.assignments}
            self.state = STABLE
        generation = self.generation

        def is_over():
            return (self.state, self.generation) != (COMPLETING, generation)

        if not self.brokers.hold(is_over, self.patience_s) or self.state != STABLE:
            return SyncGroupResponse(error_code=REBALANCE_IN_PROGRESS)
        return SyncGroupResponse(assignment=self.shared[request.member_id])

    def beat(self, call):
        """The answer to a Heartbeat."""
        code = self._refusal(call.request.member_id, call.request.generation_id)
        return HeartbeatResponse(error_code=code or self._rebalancing(STABLE))

    def commit(self, call):
        """The answer to an OffsetCommit: of a member of this generation alone."""
        request = call.request
        code = self._refusal(request.member_id, request.generation_id_or_member_epoch)
        code = code or self._rebalancing(STABLE, PREPARING)
        return committing(code)(call) if code else self._commit(call)

    def leave(self, call):
        """The answer to a LeaveGroup."""
        for member in call.request.members:
            self.fence(member.member_id)
        return LeaveGroupResponse()

    def fence(self, member_id):
        """Give a member up, as when its session has ended."""
        if self.members.pop(member_id, None) is not None:
            self._begin_rebalance()

    def rebalance(self):
        """Have all members join again."""
        with self.brokers.at_once():
            self._begin_rebalance()

    def _begin_rebalance(self):
        if self.state != PREPARING:
            self.state = PREPARING
            self._rebalance += 1

    def _is_answered(self, member_id, number):
        # Whoever leaves is told so in each answer that it waits for.
        if member_id not in self.members:
            return True
        is_over = self.state != PREPARING or self._rebalance != number
        return is_over or all(self._come.get(who) == number for who in self.members)

    def _refusal(self, member_id, generation):
        if member_id not in self.members:
            return UNKNOWN_MEMBER_ID
        return 0 if generation == self.generation else ILLEGAL_GENERATION

    def _rebalancing(self, *good):
        return 0 if self.state in good else REBALANCE_IN_PROGRESS
