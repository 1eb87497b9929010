"""AlterUserScramCredentials, API key 51.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AlterUserScramCredentialsRequest(Request):
    API_KEY = 51
    API_NAME = "AlterUserScramCredentials"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Deletion(Struct):
        name: str = field("string", "0+")
        mechanism: int = field("int8", "0+")

    class Upsertion(Struct):
        name: str = field("string", "0+")
        mechanism: int = field("int8", "0+")
        iterations: int = field("int32", "0+")
        salt: bytes = field("bytes", "0+")
        salted_password: bytes = field("bytes", "0+", secret=True)

    deletions: tuple[Deletion, ...] = array(Deletion, "0+")
    upsertions: tuple[Upsertion, ...] = array(Upsertion, "0+")


class AlterUserScramCredentialsResponse(Response):
    API_KEY = 51
    API_NAME = "AlterUserScramCredentials"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Result(Struct):
        user: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Result, ...] = array(Result, "0+")
