"""ListOffsets, API key 2.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ListOffsetsRequest(Request):
    API_KEY = 2
    API_NAME = "ListOffsets"
    VERSIONS = Versions(0, 11)
    FLEXIBLE_FROM = 6

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            current_leader_epoch: int = field("int32", "4+", default=-1, ignorable=True)
            # -1: latest, -2: earliest, else milliseconds
            timestamp: int = field("int64", "0+")
            max_num_offsets: int = field("int32", "0", default=1)

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    # -1: a consumer
    replica_id: int = field("int32", "0+")
    # 0: read_uncommitted, 1: read_committed
    isolation_level: int = field("int8", "2+")
    topics: tuple[Topic, ...] = array(Topic, "0+")
    timeout_ms: int = field("int32", "10+", ignorable=True)


class ListOffsetsResponse(Response):
    API_KEY = 2
    API_NAME = "ListOffsets"
    VERSIONS = Versions(0, 11)
    FLEXIBLE_FROM = 6

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            old_style_offsets: tuple[int, ...] = array("int64", "0")
            timestamp: int = field("int64", "1+", default=-1)
            # -1: no record is that young
            offset: int = field("int64", "1+", default=-1)
            leader_epoch: int = field("int32", "4+", default=-1)

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
