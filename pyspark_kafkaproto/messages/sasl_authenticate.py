"""SaslAuthenticate, API key 36.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class SaslAuthenticateRequest(Request):
    API_KEY = 36
    API_NAME = "SaslAuthenticate"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    auth_bytes: bytes = field("bytes", "0+", secret=True)


class SaslAuthenticateResponse(Response):
    API_KEY = 36
    API_NAME = "SaslAuthenticate"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    auth_bytes: bytes = field("bytes", "0+", secret=True)
    session_lifetime_ms: int = field("int64", "1+", default=0, ignorable=True)
