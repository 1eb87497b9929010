"""ConsumerGroupHeartbeat, API key 68.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class TopicPartitions(Struct):
    topic_id: bytes = field("uuid", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class ConsumerGroupHeartbeatRequest(Request):
    API_KEY = 68
    API_NAME = "ConsumerGroupHeartbeat"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class TopicPartitions(Struct):
        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0+")
    member_epoch: int = field("int32", "0+")
    instance_id: str | None = field("string", "0+", default=None, nullable="0+")
    rack_id: str | None = field("string", "0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = field("int32", "0+", default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array(
        "string", "0+", default=None, nullable="0+"
    )
    subscribed_topic_regex: str | None = field("string", "1+", default=None, nullable="1+")
    server_assignor: str | None = field("string", "0+", default=None, nullable="0+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(
        TopicPartitions, "0+", default=None, nullable="0+"
    )


class ConsumerGroupHeartbeatResponse(Response):
    API_KEY = 68
    API_NAME = "ConsumerGroupHeartbeat"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Assignment(Struct):
        topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    member_id: str | None = field("string", "0+", default=None, nullable="0+")
    member_epoch: int = field("int32", "0+")
    heartbeat_interval_ms: int = field("int32", "0+")
    assignment: Assignment | None = field(Assignment, "0+", default=None, nullable="0+")
