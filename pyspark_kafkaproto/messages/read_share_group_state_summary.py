"""ReadShareGroupStateSummary, API key 87.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ReadShareGroupStateSummaryRequest(Request):
    API_KEY = 87
    API_NAME = "ReadShareGroupStateSummary"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition: int = field("int32", "0+")
            leader_epoch: int = field("int32", "0+")

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    group_id: str = field("string", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class ReadShareGroupStateSummaryResponse(Response):
    API_KEY = 87
    API_NAME = "ReadShareGroupStateSummary"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")
            state_epoch: int = field("int32", "0+")
            leader_epoch: int = field("int32", "0+")
            start_offset: int = field("int64", "0+")
            delivery_complete_count: int = field("int32", "1+", default=-1, ignorable=True)

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    results: tuple[Topic, ...] = array(Topic, "0+")
