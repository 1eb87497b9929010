"""ReadShareGroupState, API key 84.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ReadShareGroupStateRequest(Request):
    API_KEY = 84
    API_NAME = "ReadShareGroupState"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            partition: int = field("int32", "0+")
            leader_epoch: int = field("int32", "0+")

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    group_id: str = field("string", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class ReadShareGroupStateResponse(Response):
    API_KEY = 84
    API_NAME = "ReadShareGroupState"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            class StateBatch(Struct):
                first_offset: int = field("int64", "0+")
                last_offset: int = field("int64", "0+")
                delivery_state: int = field("int8", "0+")
                delivery_count: int = field("int16", "0+")

            partition: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")
            state_epoch: int = field("int32", "0+")
            start_offset: int = field("int64", "0+")
            state_batches: tuple[StateBatch, ...] = array(StateBatch, "0+")

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    results: tuple[Topic, ...] = array(Topic, "0+")
