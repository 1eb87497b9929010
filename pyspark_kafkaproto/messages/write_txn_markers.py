"""WriteTxnMarkers, API key 27.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class WriteTxnMarkersRequest(Request):
    API_KEY = 27
    API_NAME = "WriteTxnMarkers"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 1

    class Marker(Struct):
        class Topic(Struct):
            name: str = field("string", "0+")
            partition_indexes: tuple[int, ...] = array("int32", "0+")

        producer_id: int = field("int64", "0+")
        producer_epoch: int = field("int16", "0+")
        transaction_result: bool = field("bool", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")
        coordinator_epoch: int = field("int32", "0+")
        transaction_version: int = field("int8", "2+", default=0, ignorable=True)

    markers: tuple[Marker, ...] = array(Marker, "0+")


class WriteTxnMarkersResponse(Response):
    API_KEY = 27
    API_NAME = "WriteTxnMarkers"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 1

    class Marker(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = field("int32", "0+")
                error_code: int = field("int16", "0+")

            name: str = field("string", "0+")
            partitions: tuple[Partition, ...] = array(Partition, "0+")

        producer_id: int = field("int64", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")

    markers: tuple[Marker, ...] = array(Marker, "0+")
