"""DescribeUserScramCredentials, API key 50.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeUserScramCredentialsRequest(Request):
    API_KEY = 50
    API_NAME = "DescribeUserScramCredentials"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class User(Struct):
        name: str = field("string", "0+")

    users: tuple[User, ...] | None = array(User, "0+", nullable="0+")


class DescribeUserScramCredentialsResponse(Response):
    API_KEY = 50
    API_NAME = "DescribeUserScramCredentials"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Result(Struct):
        class CredentialInfo(Struct):
            mechanism: int = field("int8", "0+")
            iterations: int = field("int32", "0+")

        user: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        credential_infos: tuple[CredentialInfo, ...] = array(CredentialInfo, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    results: tuple[Result, ...] = array(Result, "0+")
