"""Metadata, API key 3.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class MetadataRequest(Request):
    API_KEY = 3
    API_NAME = "Metadata"
    VERSIONS = Versions(0, 13)
    FLEXIBLE_FROM = 9

    class Topic(Struct):
        topic_id: bytes = field("uuid", "10+", ignorable=True)
        name: str | None = field("string", "0+", nullable="10+")

    # null: all (in v0 the empty array means all)
    topics: tuple[Topic, ...] | None = array(Topic, "0+", nullable="1+")
    allow_auto_topic_creation: bool = field("bool", "4+", default=True)
    include_cluster_authorized_operations: bool = field("bool", "8-10")
    include_topic_authorized_operations: bool = field("bool", "8+")


class MetadataResponse(Response):
    API_KEY = 3
    API_NAME = "Metadata"
    VERSIONS = Versions(0, 13)
    FLEXIBLE_FROM = 9

    class Broker(Struct):
        node_id: int = field("int32", "0+")
        host: str = field("string", "0+")
        port: int = field("int32", "0+")
        rack: str | None = field("string", "1+", default=None, nullable="1+", ignorable=True)

    class Topic(Struct):
        class Partition(Struct):
            error_code: int = field("int16", "0+")
            partition_index: int = field("int32", "0+")
            # -1: none now
            leader_id: int = field("int32", "0+")
            leader_epoch: int = field("int32", "7+", default=-1, ignorable=True)
            replica_nodes: tuple[int, ...] = array("int32", "0+")
            isr_nodes: tuple[int, ...] = array("int32", "0+")
            offline_replicas: tuple[int, ...] = array("int32", "5+", ignorable=True)

        error_code: int = field("int16", "0+")
        name: str | None = field("string", "0+", nullable="12+")
        topic_id: bytes = field("uuid", "10+", ignorable=True)
        is_internal: bool = field("bool", "1+", default=False, ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")
        topic_authorized_operations: int = field("int32", "8+", default=-2147483648)

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    brokers: tuple[Broker, ...] = array(Broker, "0+")
    cluster_id: str | None = field("string", "2+", default=None, nullable="2+", ignorable=True)
    controller_id: int = field("int32", "1+", default=-1, ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
    cluster_authorized_operations: int = field("int32", "8-10", default=-2147483648)
    error_code: int = field("int16", "13+", ignorable=True)
