"""OffsetFetch, API key 9.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class OffsetFetchRequest(Request):
    API_KEY = 9
    API_NAME = "OffsetFetch"
    VERSIONS = Versions(0, 10)
    FLEXIBLE_FROM = 6

    class Topic(Struct):
        name: str = field("string", "0-7")
        partition_indexes: tuple[int, ...] = array("int32", "0-7")

    class Group(Struct):
        class Topic(Struct):
            name: str = field("string", "8-9", ignorable=True)
            topic_id: bytes = field("uuid", "10+", ignorable=True)
            partition_indexes: tuple[int, ...] = array("int32", "8+")

        group_id: str = field("string", "8+")
        member_id: str | None = field("string", "9+", default=None, nullable="9+", ignorable=True)
        member_epoch: int = field("int32", "9+", default=-1, ignorable=True)
        # null: all that the group has
        topics: tuple[Topic, ...] | None = array(Topic, "8+", nullable="8+")

    group_id: str = field("string", "0-7")
    # null: all that the group has
    topics: tuple[Topic, ...] | None = array(Topic, "0-7", nullable="2-7")
    groups: tuple[Group, ...] = array(Group, "8+")
    # wait for open transactions (UNSTABLE_OFFSET_COMMIT)
    require_stable: bool = field("bool", "7+", default=False)


class OffsetFetchResponse(Response):
    API_KEY = 9
    API_NAME = "OffsetFetch"
    VERSIONS = Versions(0, 10)
    FLEXIBLE_FROM = 6

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0-7")
            # -1: none committed
            committed_offset: int = field("int64", "0-7")
            committed_leader_epoch: int = field("int32", "5-7", default=-1, ignorable=True)
            metadata: str | None = field("string", "0-7", nullable="0-7")
            error_code: int = field("int16", "0-7")

        name: str = field("string", "0-7")
        partitions: tuple[Partition, ...] = array(Partition, "0-7")

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = field("int32", "8+")
                # -1: none committed
                committed_offset: int = field("int64", "8+")
                committed_leader_epoch: int = field("int32", "8+", default=-1, ignorable=True)
                metadata: str | None = field("string", "8+", nullable="8+")
                error_code: int = field("int16", "8+")

            name: str = field("string", "8-9", ignorable=True)
            topic_id: bytes = field("uuid", "10+", ignorable=True)
            partitions: tuple[Partition, ...] = array(Partition, "8+")

        group_id: str = field("string", "8+")
        topics: tuple[Topic, ...] = array(Topic, "8+")
        error_code: int = field("int16", "8+", default=0)

    throttle_time_ms: int = field("int32", "3+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0-7")
    error_code: int = field("int16", "2-7", default=0, ignorable=True)
    groups: tuple[Group, ...] = array(Group, "8+")
