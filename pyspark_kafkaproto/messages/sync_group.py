"""SyncGroup, API key 14.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class SyncGroupRequest(Request):
    API_KEY = 14
    API_NAME = "SyncGroup"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 4

    class Assignment(Struct):
        member_id: str = field("string", "0+")
        assignment: bytes = field("bytes", "0+")

    group_id: str = field("string", "0+")
    generation_id: int = field("int32", "0+")
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "3+", default=None, nullable="3+")
    protocol_type: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)
    assignments: tuple[Assignment, ...] = array(Assignment, "0+")


class SyncGroupResponse(Response):
    API_KEY = 14
    API_NAME = "SyncGroup"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0+")
    protocol_type: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = field("bytes", "0+")
