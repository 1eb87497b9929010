"""CreateDelegationToken, API key 38.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class CreateDelegationTokenRequest(Request):
    API_KEY = 38
    API_NAME = "CreateDelegationToken"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Renewer(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")

    owner_principal_type: str | None = field("string", "3+", nullable="3+")
    owner_principal_name: str | None = field("string", "3+", nullable="3+")
    renewers: tuple[Renewer, ...] = array(Renewer, "0+")
    max_lifetime_ms: int = field("int64", "0+")


class CreateDelegationTokenResponse(Response):
    API_KEY = 38
    API_NAME = "CreateDelegationToken"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    error_code: int = field("int16", "0+")
    principal_type: str = field("string", "0+")
    principal_name: str = field("string", "0+")
    token_requester_principal_type: str = field("string", "3+")
    token_requester_principal_name: str = field("string", "3+")
    issue_timestamp_ms: int = field("int64", "0+")
    expiry_timestamp_ms: int = field("int64", "0+")
    max_timestamp_ms: int = field("int64", "0+")
    token_id: str = field("string", "0+")
    hmac: bytes = field("bytes", "0+", secret=True)
    throttle_time_ms: int = field("int32", "0+")
