"""A fake coordinator of one group: who joins leads it, beside members that are made up."""

from __future__ import annotations

from pyspark_kafkaproto.client.group.classic.assignors import Subscriber
from pyspark_kafkaproto.client.group.classic.subscription import subscription_bytes
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatResponse
from pyspark_kafkaproto.messages.join_group import JoinGroupResponse
from pyspark_kafkaproto.messages.leave_group import LeaveGroupResponse
from pyspark_kafkaproto.messages.sync_group import SyncGroupResponse
from tests.unit.cluster.committing import FakeCoordinator

MEMBER_ID_REQUIRED = 79
VERSIONS = {"JoinGroup": (0, 9), "SyncGroup": (0, 5), "Heartbeat": (0, 4), "LeaveGroup": (0, 5)}
VERSIONS["DescribeGroups"] = (0, 6)


class FakeGroup:
    """Lets members join at once, with an id of its own for who has none.

    Attributes:
        committed: {(topic, partition): (offset, metadata)}.
        epochs: {(topic, partition): (offset, leader epoch)}, as committed last.
        others: members that joined, too; subscribers.
        generation: the last one.
        commit: the answer to an OffsetCommit, which is noted in `committed`.
        fetch: the answer to an OffsetFetch, which says what is noted there.
        shared: what the leader has shared out last, as bytes by member id.
        returns: the id of a static member that is gone, and comes back without a rebalance.
    """

    def __init__(self, brokers, *others: Subscriber):
        self.others = others
        self.generation = 0
        self.ids = 0
        self.shared = {}
        self.returns = None
        self._brokers = brokers
        coordinator = FakeCoordinator(brokers, g={})
        self.committed, self.commit = coordinator.offsets["g"], coordinator.commit
        self.fetch, self.epochs = coordinator.fetch, coordinator.epochs
        brokers.versions |= VERSIONS
        brokers.on("JoinGroup", self.join)
        brokers.on("SyncGroup", self.sync)
        brokers.on("Heartbeat", HeartbeatResponse())
        brokers.on("LeaveGroup", LeaveGroupResponse())
        brokers.on("DescribeGroups", self.describe)

    def join(self, call):
        request, part = call.request, JoinGroupResponse.Member
        member_id = request.member_id
        if not member_id:
            self.ids += 1
            member_id = f"m{self.ids}"
            if request.group_instance_id is None and call.header.api_version >= 4:
                return JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id=member_id)
        gone, self.returns = self.returns, None
        if gone is not None:
            self.shared[member_id] = self.shared.pop(gone)
        self.generation += gone is None
        name, metadata = request.protocols[0].name, request.protocols[0].metadata
        members = [part(member_id=member_id, metadata=metadata)]
        for other in self.others:
            told = subscription_bytes(other.topics, "")
            members.append(part(member_id=other.member_id, metadata=told))
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=name,
            leader=member_id,
            skip_assignment=gone is not None,
            member_id=member_id,
            members=tuple(members),
        )

    def sync(self, call):
        if call.request.assignments:
            self.shared = {item.member_id: item.assignment for item in call.request.assignments}
        return SyncGroupResponse(assignment=self.shared[call.request.member_id])

    def describe(self, call):
        part = DescribeGroupsResponse.Group
        members = tuple(
            part.Member(member_id=member_id, member_assignment=told)
            for member_id, told in self.shared.items()
        )
        one = part(group_id="g", group_state="Stable", protocol_type="consumer", members=members)
        return DescribeGroupsResponse(groups=(one,))

    def said(self) -> list[str]:
        """What was said to the coordinator, in order, but for heartbeats."""
        about = {"JoinGroup", "SyncGroup", "OffsetFetch", "OffsetCommit", "LeaveGroup"}
        return [call.api for call in list(self._brokers.calls) if call.api in about]


def beats(brokers, *codes):
    """Heartbeats answered with each of `codes` once; well again after them."""
    answers = [HeartbeatResponse(error_code=code) for code in codes]
    brokers.on("Heartbeat", *answers, HeartbeatResponse())
