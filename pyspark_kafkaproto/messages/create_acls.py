"""CreateAcls, API key 30.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class CreateAclsRequest(Request):
    API_KEY = 30
    API_NAME = "CreateAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Creation(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        resource_pattern_type: int = field("int8", "1+", default=3)
        principal: str = field("string", "0+")
        host: str = field("string", "0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    creations: tuple[Creation, ...] = array(Creation, "0+")


class CreateAclsResponse(Response):
    API_KEY = 30
    API_NAME = "CreateAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Result(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Result, ...] = array(Result, "0+")
