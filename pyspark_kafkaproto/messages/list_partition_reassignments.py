"""ListPartitionReassignments, API key 46.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ListPartitionReassignmentsRequest(Request):
    API_KEY = 46
    API_NAME = "ListPartitionReassignments"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        name: str = field("string", "0+")
        partition_indexes: tuple[int, ...] = array("int32", "0+")

    timeout_ms: int = field("int32", "0+", default=60000)
    topics: tuple[Topic, ...] | None = array(Topic, "0+", default=None, nullable="0+")


class ListPartitionReassignmentsResponse(Response):
    API_KEY = 46
    API_NAME = "ListPartitionReassignments"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            replicas: tuple[int, ...] = array("int32", "0+")
            adding_replicas: tuple[int, ...] = array("int32", "0+")
            removing_replicas: tuple[int, ...] = array("int32", "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")
