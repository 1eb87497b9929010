"""OffsetForLeaderEpoch, API key 23.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class OffsetForLeaderEpochRequest(Request):
    API_KEY = 23
    API_NAME = "OffsetForLeaderEpoch"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    class Topic(Struct):
        class Partition(Struct):
            partition: int = field("int32", "0+")
            current_leader_epoch: int = field("int32", "2+", default=-1, ignorable=True)
            leader_epoch: int = field("int32", "0+")

        topic: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    replica_id: int = field("int32", "3+", default=-2, ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")


class OffsetForLeaderEpochResponse(Response):
    API_KEY = 23
    API_NAME = "OffsetForLeaderEpoch"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    class Topic(Struct):
        class Partition(Struct):
            error_code: int = field("int16", "0+")
            partition: int = field("int32", "0+")
            leader_epoch: int = field("int32", "1+", default=-1, ignorable=True)
            end_offset: int = field("int64", "0+", default=-1)

        topic: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
