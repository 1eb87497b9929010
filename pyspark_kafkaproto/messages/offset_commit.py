"""OffsetCommit, API key 8.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class OffsetCommitRequest(Request):
    API_KEY = 8
    API_NAME = "OffsetCommit"
    VERSIONS = Versions(0, 10)
    FLEXIBLE_FROM = 8

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            committed_offset: int = field("int64", "0+")
            committed_leader_epoch: int = field("int32", "6+", default=-1, ignorable=True)
            commit_timestamp: int = field("int64", "1", default=-1)
            committed_metadata: str | None = field("string", "0+", nullable="0+")

        name: str = field("string", "0-9", ignorable=True)
        topic_id: bytes = field("uuid", "10+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    group_id: str = field("string", "0+")
    # -1: not a member
    generation_id_or_member_epoch: int = field("int32", "1+", default=-1, ignorable=True)
    member_id: str = field("string", "1+", ignorable=True)
    group_instance_id: str | None = field("string", "7+", default=None, nullable="7+")
    retention_time_ms: int = field("int64", "2-4", default=-1, ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")


class OffsetCommitResponse(Response):
    API_KEY = 8
    API_NAME = "OffsetCommit"
    VERSIONS = Versions(0, 10)
    FLEXIBLE_FROM = 8

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")

        name: str = field("string", "0-9", ignorable=True)
        topic_id: bytes = field("uuid", "10+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
