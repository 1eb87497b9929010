"""GetTelemetrySubscriptions, API key 71.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, array, field


class GetTelemetrySubscriptionsRequest(Request):
    API_KEY = 71
    API_NAME = "GetTelemetrySubscriptions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    client_instance_id: bytes = field("uuid", "0+")


class GetTelemetrySubscriptionsResponse(Response):
    API_KEY = 71
    API_NAME = "GetTelemetrySubscriptions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    client_instance_id: bytes = field("uuid", "0+")
    subscription_id: int = field("int32", "0+")
    accepted_compression_types: tuple[int, ...] = array("int8", "0+")
    push_interval_ms: int = field("int32", "0+")
    telemetry_max_bytes: int = field("int32", "0+")
    delta_temporality: bool = field("bool", "0+")
    requested_metrics: tuple[str, ...] = array("string", "0+")
