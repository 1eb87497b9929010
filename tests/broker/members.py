"""A member of a group, by the bare protocol: for tests that need a group with somebody in it.

Nothing beats here: the session time-out is long enough for a test.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pyspark_kafkaproto.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from pyspark_kafkaproto.messages.join_group import JoinGroupRequest
from pyspark_kafkaproto.messages.leave_group import LeaveGroupRequest
from pyspark_kafkaproto.messages.sync_group import SyncGroupRequest
from pyspark_kafkaproto.net import Connection, Deadline
from pyspark_kafkaproto.wire.schema import encode

_VERSION = (0).to_bytes(2)
_SESSION_MS = 45_000
_LEAVING = -1


@contextmanager
def _coordinator(kafka: KafkaCluster, group: str) -> Iterator[Connection]:
    deadline = Deadline.after(30)
    place = kafka._router.coordinators([group], deadline)[group]
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
