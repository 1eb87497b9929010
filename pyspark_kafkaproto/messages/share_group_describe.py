"""ShareGroupDescribe, API key 77.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class TopicPartitions(Struct):
    topic_id: bytes = field("uuid", "0+")
    topic_name: str = field("string", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions, "0+")


class ShareGroupDescribeRequest(Request):
    API_KEY = 77
    API_NAME = "ShareGroupDescribe"
    VERSIONS = Versions(1, 1)
    FLEXIBLE_FROM = 0

    group_ids: tuple[str, ...] = array("string", "0+")
    include_authorized_operations: bool = field("bool", "0+")


class ShareGroupDescribeResponse(Response):
    API_KEY = 77
    API_NAME = "ShareGroupDescribe"
    VERSIONS = Versions(1, 1)
    FLEXIBLE_FROM = 0

    class Group(Struct):
        class Member(Struct):
            member_id: str = field("string", "0+")
            rack_id: str | None = field("string", "0+", default=None, nullable="0+")
            member_epoch: int = field("int32", "0+")
            client_id: str = field("string", "0+")
            client_host: str = field("string", "0+")
            subscribed_topic_names: tuple[str, ...] = array("string", "0+")
            assignment: Assignment = field(Assignment, "0+")

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", default=None, nullable="0+")
        group_id: str = field("string", "0+")
        group_state: str = field("string", "0+")
        group_epoch: int = field("int32", "0+")
        assignment_epoch: int = field("int32", "0+")
        assignor_name: str = field("string", "0+")
        members: tuple[Member, ...] = array(Member, "0+")
        authorized_operations: int = field("int32", "0+", default=-2147483648)

    throttle_time_ms: int = field("int32", "0+")
    groups: tuple[Group, ...] = array(Group, "0+")
