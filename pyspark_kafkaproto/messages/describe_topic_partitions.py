"""DescribeTopicPartitions, API key 75.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeTopicPartitionsRequest(Request):
    API_KEY = 75
    API_NAME = "DescribeTopicPartitions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        name: str = field("string", "0+")

    class Cursor(Struct):
        topic_name: str = field("string", "0+")
        partition_index: int = field("int32", "0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")
    response_partition_limit: int = field("int32", "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", default=None, nullable="0+")


class DescribeTopicPartitionsResponse(Response):
    API_KEY = 75
    API_NAME = "DescribeTopicPartitions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            error_code: int = field("int16", "0+")
            partition_index: int = field("int32", "0+")
            leader_id: int = field("int32", "0+")
            leader_epoch: int = field("int32", "0+", default=-1, ignorable=True)
            replica_nodes: tuple[int, ...] = array("int32", "0+")
            isr_nodes: tuple[int, ...] = array("int32", "0+")
            eligible_leader_replicas: tuple[int, ...] | None = array(
                "int32", "0+", default=None, nullable="0+"
            )
            last_known_elr: tuple[int, ...] | None = array(
                "int32", "0+", default=None, nullable="0+"
            )
            offline_replicas: tuple[int, ...] = array("int32", "0+", ignorable=True)

        error_code: int = field("int16", "0+")
        name: str | None = field("string", "0+", nullable="0+")
        topic_id: bytes = field("uuid", "0+", ignorable=True)
        is_internal: bool = field("bool", "0+", default=False, ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")
        topic_authorized_operations: int = field("int32", "0+", default=-2147483648)

    class Cursor(Struct):
        topic_name: str = field("string", "0+")
        partition_index: int = field("int32", "0+")

    throttle_time_ms: int = field("int32", "0+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
    next_cursor: Cursor | None = field(Cursor, "0+", default=None, nullable="0+")
