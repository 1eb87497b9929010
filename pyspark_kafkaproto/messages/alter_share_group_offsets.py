"""AlterShareGroupOffsets, API key 91.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AlterShareGroupOffsetsRequest(Request):
    API_KEY = 91
    API_NAME = "AlterShareGroupOffsets"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            start_offset: int = field("int64", "0+")

        topic_name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    group_id: str = field("string", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class AlterShareGroupOffsetsResponse(Response):
    API_KEY = 91
    API_NAME = "AlterShareGroupOffsets"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")

        topic_name: str = field("string", "0+")
        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    responses: tuple[Topic, ...] = array(Topic, "0+")
