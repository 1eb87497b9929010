"""DescribeShareGroupOffsets, API key 90.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeShareGroupOffsetsRequest(Request):
    API_KEY = 90
    API_NAME = "DescribeShareGroupOffsets"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Group(Struct):
        class Topic(Struct):
            topic_name: str = field("string", "0+")
            partitions: tuple[int, ...] = array("int32", "0+")

        group_id: str = field("string", "0+")
        topics: tuple[Topic, ...] | None = array(Topic, "0+", nullable="0+")

    groups: tuple[Group, ...] = array(Group, "0+")


class DescribeShareGroupOffsetsResponse(Response):
    API_KEY = 90
    API_NAME = "DescribeShareGroupOffsets"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = field("int32", "0+")
                start_offset: int = field("int64", "0+")
                leader_epoch: int = field("int32", "0+")
                lag: int = field("int64", "1+", default=-1, ignorable=True)
                error_code: int = field("int16", "0+")
                error_message: str | None = field("string", "0+", default=None, nullable="0+")

            topic_name: str = field("string", "0+")
            topic_id: bytes = field("uuid", "0+")
            partitions: tuple[Partition, ...] = array(Partition, "0+")

        group_id: str = field("string", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", default=None, nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    groups: tuple[Group, ...] = array(Group, "0+")
