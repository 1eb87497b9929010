"""DeleteRecords, API key 21.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DeleteRecordsRequest(Request):
    API_KEY = 21
    API_NAME = "DeleteRecords"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            offset: int = field("int64", "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")
    timeout_ms: int = field("int32", "0+")


class DeleteRecordsResponse(Response):
    API_KEY = 21
    API_NAME = "DeleteRecords"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            low_watermark: int = field("int64", "0+")
            error_code: int = field("int16", "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")
