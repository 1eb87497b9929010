"""Heartbeat, API key 12.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class HeartbeatRequest(Request):
    API_KEY = 12
    API_NAME = "Heartbeat"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    group_id: str = field("string", "0+")
    generation_id: int = field("int32", "0+")
    member_id: str = field("string", "0+")
    group_instance_id: str | None = field("string", "3+", default=None, nullable="3+")


class HeartbeatResponse(Response):
    API_KEY = 12
    API_NAME = "Heartbeat"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0+")
