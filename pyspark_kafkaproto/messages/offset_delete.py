"""OffsetDelete, API key 47.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class OffsetDeleteRequest(Request):
    API_KEY = 47
    API_NAME = "OffsetDelete"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = None

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    group_id: str = field("string", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class OffsetDeleteResponse(Response):
    API_KEY = 47
    API_NAME = "OffsetDelete"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = None

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    error_code: int = field("int16", "0+")
    throttle_time_ms: int = field("int32", "0+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
