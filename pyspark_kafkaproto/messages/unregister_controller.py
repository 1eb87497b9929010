"""UnregisterController, API key 94.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class UnregisterControllerRequest(Request):
    API_KEY = 94
    API_NAME = "UnregisterController"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    controller_id: int = field("int32", "0+")


class UnregisterControllerResponse(Response):
    API_KEY = 94
    API_NAME = "UnregisterController"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
