"""TxnOffsetCommit, API key 28.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class TxnOffsetCommitRequest(Request):
    API_KEY = 28
    API_NAME = "TxnOffsetCommit"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 3

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            committed_offset: int = field("int64", "0+")
            committed_leader_epoch: int = field("int32", "2+", default=-1, ignorable=True)
            committed_metadata: str | None = field("string", "0+", nullable="0+")

        name: str = field("string", "0-5", ignorable=True)
        topic_id: bytes = field("uuid", "6+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    transactional_id: str = field("string", "0+")
    group_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    generation_id_or_member_epoch: int = field("int32", "3+", default=-1)
    member_id: str = field("string", "3+", default="")
    group_instance_id: str | None = field("string", "3+", default=None, nullable="3+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class TxnOffsetCommitResponse(Response):
    API_KEY = 28
    API_NAME = "TxnOffsetCommit"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 3

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")

        name: str = field("string", "0-5", ignorable=True)
        topic_id: bytes = field("uuid", "6+", ignorable=True)
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")
