"""Fetch, API key 1.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class FetchRequest(Request):
    API_KEY = 1
    API_NAME = "Fetch"
    VERSIONS = Versions(0, 18)
    FLEXIBLE_FROM = 12

    class ReplicaState(Struct):
        replica_id: int = field("int32", "15+", default=-1)
        replica_epoch: int = field("int64", "15+", default=-1)

    class Topic(Struct):
        class Partition(Struct):
            partition: int = field("int32", "0+")
            current_leader_epoch: int = field("int32", "9+", default=-1, ignorable=True)
            fetch_offset: int = field("int64", "0+")
            last_fetched_epoch: int = field("int32", "12+", default=-1)
            log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
            partition_max_bytes: int = field("int32", "0+")
            replica_directory_id: bytes = field("uuid", "17+", tag=0, ignorable=True)
            high_watermark: int = field(
                "int64", "18+", default=9223372036854775807, tag=1, ignorable=True
            )

        topic: str = field("string", "0-12", ignorable=True)
        topic_id: bytes = field("uuid", "13+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class ForgottenTopic(Struct):
        topic: str = field("string", "7-12", ignorable=True)
        topic_id: bytes = field("uuid", "13+", ignorable=True)
        partitions: tuple[int, ...] = array("int32", "7+")

    cluster_id: str | None = field(
        "string", "12+", default=None, nullable="12+", tag=0, ignorable=True
    )
    # -1: a consumer
    replica_id: int = field("int32", "0-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field("int32", "0+")
    # the broker waits for so many, at most max_wait_ms
    min_bytes: int = field("int32", "0+")
    # the first batch of an answer may be larger (KIP-74)
    max_bytes: int = field("int32", "3+", default=2147483647, ignorable=True)
    # 0: read_uncommitted, 1: read_committed
    isolation_level: int = field("int8", "4+", default=0, ignorable=True)
    session_id: int = field("int32", "7+", default=0, ignorable=True)
    # -1: no incremental session
    session_epoch: int = field("int32", "7+", default=-1, ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "7+")
    rack_id: str = field("string", "11+", default="", ignorable=True)


class FetchResponse(Response):
    API_KEY = 1
    API_NAME = "Fetch"
    VERSIONS = Versions(0, 18)
    FLEXIBLE_FROM = 12

    class Topic(Struct):
        class Partition(Struct):
            class DivergingEpoch(Struct):
                epoch: int = field("int32", "12+", default=-1)
                end_offset: int = field("int64", "12+", default=-1)

            class CurrentLeader(Struct):
                leader_id: int = field("int32", "12+", default=-1)
                leader_epoch: int = field("int32", "12+", default=-1)

            class SnapshotId(Struct):
                end_offset: int = field("int64", "0+", default=-1)
                epoch: int = field("int32", "0+", default=-1)

            class AbortedTransaction(Struct):
                producer_id: int = field("int64", "4+")
                first_offset: int = field("int64", "4+")

            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            # -1 with OFFSET_OUT_OF_RANGE
            high_watermark: int = field("int64", "0+")
            last_stable_offset: int = field("int64", "4+", default=-1, ignorable=True)
            log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
            diverging_epoch: DivergingEpoch = field(DivergingEpoch, "12+", tag=0)
            current_leader: CurrentLeader = field(CurrentLeader, "12+", tag=1)
            snapshot_id: SnapshotId = field(SnapshotId, "12+", tag=2)
            # may be unsorted
            aborted_transactions: tuple[AbortedTransaction, ...] | None = array(
                AbortedTransaction, "4+", nullable="4+", ignorable=True
            )
            # -1: keep reading here (KIP-392)
            preferred_read_replica: int = field("int32", "11+", default=-1)
            # whole batches, then perhaps a piece of one
            records: Buffer | None = field("records", "0+", nullable="0+")

        topic: str = field("string", "0-12", ignorable=True)
        topic_id: bytes = field("uuid", "13+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class NodeEndpoint(Struct):
        node_id: int = field("int32", "16+")
        host: str = field("string", "16+")
        port: int = field("int32", "16+")
        rack: str | None = field("string", "16+", default=None, nullable="16+")

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "7+", ignorable=True)
    session_id: int = field("int32", "7+", default=0)
    responses: tuple[Topic, ...] = array(Topic, "0+")
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "16+", tag=0)
