"""DescribeGroups, API key 15.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeGroupsRequest(Request):
    API_KEY = 15
    API_NAME = "DescribeGroups"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 5

    groups: tuple[str, ...] = array("string", "0+")
    include_authorized_operations: bool = field("bool", "3+")


class DescribeGroupsResponse(Response):
    API_KEY = 15
    API_NAME = "DescribeGroups"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 5

    class Group(Struct):
        class Member(Struct):
            member_id: str = field("string", "0+")
            group_instance_id: str | None = field(
                "string", "4+", default=None, nullable="4+", ignorable=True
            )
            client_id: str = field("string", "0+")
            client_host: str = field("string", "0+")
            member_metadata: bytes = field("bytes", "0+")
            member_assignment: bytes = field("bytes", "0+")

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "6+", default=None, nullable="6+")
        group_id: str = field("string", "0+")
        group_state: str = field("string", "0+")
        protocol_type: str = field("string", "0+")
        protocol_data: str = field("string", "0+")
        members: tuple[Member, ...] = array(Member, "0+")
        authorized_operations: int = field("int32", "3+", default=-2147483648)

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    groups: tuple[Group, ...] = array(Group, "0+")
