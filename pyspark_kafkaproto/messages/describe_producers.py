"""DescribeProducers, API key 61.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeProducersRequest(Request):
    API_KEY = 61
    API_NAME = "DescribeProducers"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        name: str = field("string", "0+")
        partition_indexes: tuple[int, ...] = array("int32", "0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")


class DescribeProducersResponse(Response):
    API_KEY = 61
    API_NAME = "DescribeProducers"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            class ActiveProducer(Struct):
                producer_id: int = field("int64", "0+")
                producer_epoch: int = field("int32", "0+")
                last_sequence: int = field("int32", "0+", default=-1)
                last_timestamp: int = field("int64", "0+", default=-1)
                coordinator_epoch: int = field("int32", "0+")
                current_txn_start_offset: int = field("int64", "0+", default=-1)

            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")
            active_producers: tuple[ActiveProducer, ...] = array(ActiveProducer, "0+")

        name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")
