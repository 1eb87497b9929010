"""JoinGroup, API key 11.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class JoinGroupRequest(Request):
    API_KEY = 11
    API_NAME = "JoinGroup"
    VERSIONS = Versions(0, 9)
    FLEXIBLE_FROM = 6

    class Protocol(Struct):
        name: str = field("string", "0+")
        metadata: bytes = field("bytes", "0+")

    group_id: str = field("string", "0+")
    session_timeout_ms: int = field("int32", "0+")
    rebalance_timeout_ms: int = field("int32", "1+", default=-1, ignorable=True)
    # empty in the first try; the answer gives one (KIP-394)
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "5+", default=None, nullable="5+")
    protocol_type: str = field("string", "0+")
    protocols: tuple[Protocol, ...] = array(Protocol, "0+")
    reason: str | None = field("string", "8+", default=None, nullable="8+", ignorable=True)


class JoinGroupResponse(Response):
    API_KEY = 11
    API_NAME = "JoinGroup"
    VERSIONS = Versions(0, 9)
    FLEXIBLE_FROM = 6

    class Member(Struct):
        member_id: str = field("string", "0+")
        group_instance_id: str | None = field(
            "string", "5+", default=None, nullable="5+", ignorable=True
        )
        metadata: bytes = field("bytes", "0+")

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    error_code: int = field("int16", "0+")
    generation_id: int = field("int32", "0+", default=-1)
    protocol_type: str | None = field("string", "7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = field("string", "0+", nullable="7+")
    leader: str = field("string", "0+")
    skip_assignment: bool = field("bool", "9+", default=False)
    member_id: str = field("string", "0+")
    members: tuple[Member, ...] = array(Member, "0+")
