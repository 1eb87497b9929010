"""RenewDelegationToken, API key 39.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class RenewDelegationTokenRequest(Request):
    API_KEY = 39
    API_NAME = "RenewDelegationToken"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    hmac: bytes = field("bytes", "0+", secret=True)
    renew_period_ms: int = field("int64", "0+")


class RenewDelegationTokenResponse(Response):
    API_KEY = 39
    API_NAME = "RenewDelegationToken"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    error_code: int = field("int16", "0+")
    expiry_timestamp_ms: int = field("int64", "0+")
    throttle_time_ms: int = field("int32", "0+")
