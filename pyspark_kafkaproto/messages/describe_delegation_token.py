"""DescribeDelegationToken, API key 41.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeDelegationTokenRequest(Request):
    API_KEY = 41
    API_NAME = "DescribeDelegationToken"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Owner(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")

    owners: tuple[Owner, ...] | None = array(Owner, "0+", nullable="0+")


class DescribeDelegationTokenResponse(Response):
    API_KEY = 41
    API_NAME = "DescribeDelegationToken"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Token(Struct):
        class Renewer(Struct):
            principal_type: str = field("string", "0+")
            principal_name: str = field("string", "0+")

        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")
        token_requester_principal_type: str = field("string", "3+")
        token_requester_principal_name: str = field("string", "3+")
        issue_timestamp: int = field("int64", "0+")
        expiry_timestamp: int = field("int64", "0+")
        max_timestamp: int = field("int64", "0+")
        token_id: str = field("string", "0+")
        hmac: bytes = field("bytes", "0+", secret=True)
        renewers: tuple[Renewer, ...] = array(Renewer, "0+")

    error_code: int = field("int16", "0+")
    tokens: tuple[Token, ...] = array(Token, "0+")
    throttle_time_ms: int = field("int32", "0+")
