"""The quorum that keeps a cluster's metadata (KRaft): who leads it, and how far each one is.

Protocol: KIP-595 (DescribeQuorum), KIP-836 (times), KIP-853 (folders, addresses).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.controller import ask_controller_once, needing_kraft, refusal
from pyspark_kafkaproto.cluster.routing import Router, only
from pyspark_kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.wire.declaration import NO_ID
from pyspark_kafkaproto.wire.ids import id_text

_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A node that keeps the metadata's log.

    Args:
        node_id: which.
        directory_id: of the folder that has it; None where the leader does not tell.
        log_end_offset: behind its last record; -1: not known.
        lag: how many records the leader has beyond those; None where either is not known.
        last_fetch_ms: when it asked the leader last, in ms since 1970; None: not known.
        last_caught_up_ms: when it last had all that the leader had, in ms since 1970.
        endpoints: where it listens for other controllers, by the listener's name.
    """

    node_id: int
    directory_id: str | None
    log_end_offset: int
    lag: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    endpoints: Mapping[str, Endpoint]


@dataclass(frozen=True, slots=True)
class Quorum:
    """Its leader in which epoch, what is known to be kept by most, and who keeps it.

    `voters` elect the leader; `observers` (brokers, and controllers on their way to become voters)
    only copy.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


def describe_quorum(router: Router) -> Quorum:
    """The quorum, as its leader sees it.

    Raises:
        BrokerError: this user may not ask.
        UnsupportedVersion: the cluster has ZooKeeper, and no quorum.
    """
    part = DescribeQuorumRequest.Topic
    request = DescribeQuorumRequest(
        topics=(part(topic_name=_TOPIC, partitions=(part.Partition(partition_index=0),)),)
    )
    with needing_kraft("quorum"):
        return ask_controller_once(router, "describe the quorum", request, _read)


def _read(answer: DescribeQuorumResponse) -> Quorum:
    _check(answer.error_code, answer.error_message)
    topic = only(answer.topics, answer.API_NAME)
    found = only(topic.partitions, answer.API_NAME)
    _check(found.error_code, found.error_message)
    endpoints = {
        node.node_id: {
            listener.name: Endpoint(listener.host, listener.port) for listener in node.listeners
        }
        for node in answer.nodes
    }
    every = (*found.current_voters, *found.observers)
    # A leader that leaves the voters is an observer for a while.
    end = next((item.log_end_offset for item in every if item.replica_id == found.leader_id), -1)

    def replica(item: ReplicaState) -> QuorumReplica:
        return QuorumReplica(
            item.replica_id,
            None if item.replica_directory_id == NO_ID else id_text(item.replica_directory_id),
            item.log_end_offset,
            None if min(end, item.log_end_offset) < 0 else end - item.log_end_offset,
            _known(item.last_fetch_timestamp),
            _known(item.last_caught_up_timestamp),
            endpoints.get(item.replica_id, {}),
        )

    return Quorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        tuple(map(replica, found.current_voters)),
        tuple(map(replica, found.observers)),
    )


def _check(code: int, message: str | None) -> None:
    if code:
        raise refusal(code, DescribeQuorumResponse.API_NAME, "the quorum", message)


def _known(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms
