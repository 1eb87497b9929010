"""PushTelemetry, API key 72.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class PushTelemetryRequest(Request):
    API_KEY = 72
    API_NAME = "PushTelemetry"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    client_instance_id: bytes = field("uuid", "0+")
    subscription_id: int = field("int32", "0+")
    terminating: bool = field("bool", "0+")
    compression_type: int = field("int8", "0+")
    metrics: bytes = field("bytes", "0+")


class PushTelemetryResponse(Response):
    API_KEY = 72
    API_NAME = "PushTelemetry"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
