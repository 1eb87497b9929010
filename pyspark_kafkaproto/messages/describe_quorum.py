"""DescribeQuorum, API key 55.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ReplicaState(Struct):
    replica_id: int = field("int32", "0+")
    replica_directory_id: bytes = field("uuid", "2+")
    log_end_offset: int = field("int64", "0+")
    last_fetch_timestamp: int = field("int64", "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field("int64", "1+", default=-1, ignorable=True)


class DescribeQuorumRequest(Request):
    API_KEY = 55
    API_NAME = "DescribeQuorum"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")

        topic_name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")


class DescribeQuorumResponse(Response):
    API_KEY = 55
    API_NAME = "DescribeQuorum"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "2+", nullable="2+", ignorable=True)
            leader_id: int = field("int32", "0+")
            leader_epoch: int = field("int32", "0+")
            high_watermark: int = field("int64", "0+")
            current_voters: tuple[ReplicaState, ...] = array(ReplicaState, "0+")
            observers: tuple[ReplicaState, ...] = array(ReplicaState, "0+")

        topic_name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class Node(Struct):
        class Listener(Struct):
            name: str = field("string", "2+")
            host: str = field("string", "2+")
            port: int = field("uint16", "2+")

        node_id: int = field("int32", "2+")
        listeners: tuple[Listener, ...] = array(Listener, "2+")

    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "2+", nullable="2+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
    nodes: tuple[Node, ...] = array(Node, "2+")
