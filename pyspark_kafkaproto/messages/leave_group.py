"""LeaveGroup, API key 13.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class LeaveGroupRequest(Request):
    API_KEY = 13
    API_NAME = "LeaveGroup"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 4

    class Member(Struct):
        member_id: str = field("string", "3+")
        group_instance_id: str | None = field("string", "3+", default=None, nullable="3+")
        reason: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0-2")
    members: tuple[Member, ...] = array(Member, "3+")


class LeaveGroupResponse(Response):
    API_KEY = 13
    API_NAME = "LeaveGroup"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 4

    class Member(Struct):
        member_id: str = field("string", "3+")
        group_instance_id: str | None = field("string", "3+", nullable="3+")
        error_code: int = field("int16", "3+")

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0+")
    members: tuple[Member, ...] = array(Member, "3+")
