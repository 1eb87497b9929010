"""Members of groups, by the bare protocol: for tests that need a group with somebody in it.

Nothing beats here: the session time-out is long enough for a test.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.error_codes import ERROR_CODES
from pyspark_kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.messages.join_group import JoinGroupRequest
from pyspark_kafkaproto.messages.leave_group import LeaveGroupRequest
from pyspark_kafkaproto.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from pyspark_kafkaproto.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from pyspark_kafkaproto.messages.sync_group import SyncGroupRequest
from pyspark_kafkaproto.net import Connection, Deadline
from pyspark_kafkaproto.wire.schema import encode

Subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology

_VERSION = (0).to_bytes(2)
_SESSION_MS = 45_000
_LEAVING = -1


@contextmanager
def _coordinator(kafka: KafkaCluster, group: str) -> Iterator[Connection]:
    deadline = Deadline.after(30)
    router = kafka._router
    # Of a fresh broker's first group there is none yet: its log is made by the first question.
    place = router.retrying("find it", lambda: router.coordinator(group, deadline), deadline)
    connection = Connection.open(place, kafka.config, deadline)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def classic_member(kafka: KafkaCluster, group: str, topic: str, *partitions: int) -> Iterator[str]:
    """A group of the classic protocol with one member, which reads `partitions`; gives its id."""
    subscription = encode(ConsumerProtocolSubscription(topics=(topic,)), 0)
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=_SESSION_MS,
        rebalance_timeout_ms=_SESSION_MS,
        protocol_type="consumer",
        protocols=(JoinGroupRequest.Protocol(name="range", metadata=_VERSION + subscription),),
    )
    part = ConsumerProtocolAssignment.AssignedPartition(topic=topic, partitions=partitions)
    mine = encode(ConsumerProtocolAssignment(assigned_partitions=(part,)), 0)
    with _coordinator(kafka, group) as connection:
        joined = connection.request(join, Deadline.after(30), 3)  # no id is required before 4
        assert joined.error_code == 0
        assignment = SyncGroupRequest.Assignment(
            member_id=joined.member_id, assignment=_VERSION + mine
        )
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(assignment,),
        )
        assert connection.request(sync, Deadline.after(30), 3).error_code == 0
        yield joined.member_id
        leave = LeaveGroupRequest(group_id=group, member_id=joined.member_id)
        assert connection.request(leave, Deadline.after(30), 2).error_code == 0


@contextmanager
def consumer_member(kafka: KafkaCluster, group: str, topic: str) -> Iterator[str]:
    """A consumer group (KIP-848) with one member that reads all of `topic`; gives its id."""
    member_id = str(uuid.uuid4())

    def beat(epoch: int, owned: tuple[object, ...] | None) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=_SESSION_MS if epoch == 0 else -1,
            subscribed_topic_names=(topic,) if epoch == 0 else None,
            topic_partitions=owned,
        )

    with _coordinator(kafka, group) as connection:
        joined = connection.request(beat(0, ()), Deadline.after(30))
        assert joined.error_code == 0, joined.error_message
        deadline = Deadline.after(30)
        answer = joined
        while answer.assignment is None or not answer.assignment.topic_partitions:
            deadline.check("waiting for an assignment")
            answer = connection.request(beat(answer.member_epoch, None), Deadline.after(30))
            assert answer.error_code == 0, answer.error_message
        part = ConsumerGroupHeartbeatRequest.TopicPartitions
        owned = tuple(
            part(topic_id=item.topic_id, partitions=item.partitions)
            for item in answer.assignment.topic_partitions
        )
        connection.request(beat(answer.member_epoch, owned), Deadline.after(30))
        yield member_id
        connection.request(beat(_LEAVING, None), Deadline.after(30))


@contextmanager
def share_members(
    kafka: KafkaCluster, group: str, topic: str, count: int = 1
) -> Iterator[list[str]]:
    """A share group (KIP-932) with `count` members, which read `topic` by now; gives their ids."""
    epochs = {str(uuid.uuid4()): 0 for _ in range(count)}

    def beat(member_id: str, epoch: int) -> int:
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=(topic,) if epoch == 0 else None,
        )
        answer = connection.request(request, Deadline.after(30))
        assert answer.error_code == 0, answer.error_message
        return answer.member_epoch

    def is_shared() -> bool:
        found = kafka.describe_groups({group})[group]
        return all(item.epoch == found.epoch and item.assignment for item in found.members)

    with _coordinator(kafka, group) as connection:
        deadline = Deadline.after(30)
        while True:
            epochs = {member_id: beat(member_id, epoch) for member_id, epoch in epochs.items()}
            if is_shared():
                break
            deadline.check(f"the share group {group}")
            time.sleep(0.1)
        yield list(epochs)
        for member_id in epochs:
            beat(member_id, _LEAVING)


class StreamsMember:
    """A member of a streams group (KIP-1071), which takes whatever tasks it is given."""

    def __init__(
        self, connection: Connection, group: str, subtopologies: tuple[Subtopology, ...]
    ) -> None:
        self.member_id = str(uuid.uuid4())
        self._connection = connection
        self._group = group
        topology = StreamsGroupHeartbeatRequest.Topology(epoch=1, subtopologies=subtopologies)
        none = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
        self._last = self._beat(
            0,
            rebalance_timeout_ms=_SESSION_MS,
            topology=topology,
            process_id=self.member_id,
            client_tags=(),
            **none,
        )

    def beat(self) -> None:
        """Say that the tasks of the last answer were taken up."""
        given = {}
        if self._last.active_tasks is not None:
            kinds = ("active_tasks", "standby_tasks", "warmup_tasks")
            given = {kind: getattr(self._last, kind) or () for kind in kinds}
        self._last = self._beat(self._last.member_epoch, **given)

    def leave(self) -> None:
        """Leave the group."""
        self._beat(_LEAVING)

    def _beat(self, epoch: int, **fields: object) -> StreamsGroupHeartbeatResponse:
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=epoch, **fields
        )
        deadline = Deadline.after(30)
        # A fresh broker's coordinator loads its log at first.
        while (answer := self._connection.request(request, deadline)).error_code:
            assert ERROR_CODES[answer.error_code].is_retriable, answer
            deadline.check(f"a coordinator that takes a heartbeat: {answer}")
            time.sleep(0.1)
        return answer


@contextmanager
def streams_members(
    kafka: KafkaCluster,
    group: str,
    subtopologies: tuple[Subtopology, ...],
    is_there: Callable[[], bool],
    count: int = 1,
) -> Iterator[list[str]]:
    """A streams group with `count` members that beat until `is_there`; gives their ids."""
    with _coordinator(kafka, group) as connection:
        members = [StreamsMember(connection, group, subtopologies) for _ in range(count)]
        deadline = Deadline.after(30)
        while not is_there():
            deadline.check(f"the streams group {group}")
            time.sleep(0.1)
            for member in members:
                member.beat()
        yield [member.member_id for member in members]
        for member in members:
            member.leave()
