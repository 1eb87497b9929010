"""ElectLeaders, API key 43.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ElectLeadersRequest(Request):
    API_KEY = 43
    API_NAME = "ElectLeaders"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class TopicPartitions(Struct):
        topic: str = field("string", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    election_type: int = field("int8", "1+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(
        TopicPartitions, "0+", nullable="0+"
    )
    timeout_ms: int = field("int32", "0+", default=60000)


class ElectLeadersResponse(Response):
    API_KEY = 43
    API_NAME = "ElectLeaders"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        class PartitionResult(Struct):
            partition_id: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", nullable="0+")

        topic: str = field("string", "0+")
        partition_result: tuple[PartitionResult, ...] = array(PartitionResult, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "1+")
    replica_election_results: tuple[Topic, ...] = array(Topic, "0+")
