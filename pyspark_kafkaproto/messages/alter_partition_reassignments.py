"""AlterPartitionReassignments, API key 45.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AlterPartitionReassignmentsRequest(Request):
    API_KEY = 45
    API_NAME = "AlterPartitionReassignments"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            replicas: tuple[int, ...] | None = array("int32", "0+", default=None, nullable="0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    timeout_ms: int = field("int32", "0+", default=60000)
    allow_replication_factor_change: bool = field("bool", "1+", default=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")


class AlterPartitionReassignmentsResponse(Response):
    API_KEY = 45
    API_NAME = "AlterPartitionReassignments"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", nullable="0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    allow_replication_factor_change: bool = field("bool", "1+", default=True, ignorable=True)
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    responses: tuple[Topic, ...] = array(Topic, "0+")
