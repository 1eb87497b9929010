"""SaslHandshake, API key 17.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, array, field


class SaslHandshakeRequest(Request):
    API_KEY = 17
    API_NAME = "SaslHandshake"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = None

    mechanism: str = field("string", "0+")


class SaslHandshakeResponse(Response):
    API_KEY = 17
    API_NAME = "SaslHandshake"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = None

    error_code: int = field("int16", "0+")
    mechanisms: tuple[str, ...] = array("string", "0+")
