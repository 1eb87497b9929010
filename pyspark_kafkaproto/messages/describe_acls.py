"""DescribeAcls, API key 29.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeAclsRequest(Request):
    API_KEY = 29
    API_NAME = "DescribeAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    resource_type_filter: int = field("int8", "0+")
    resource_name_filter: str | None = field("string", "0+", nullable="0+")
    pattern_type_filter: int = field("int8", "1+", default=3)
    principal_filter: str | None = field("string", "0+", nullable="0+")
    host_filter: str | None = field("string", "0+", nullable="0+")
    operation: int = field("int8", "0+")
    permission_type: int = field("int8", "0+")


class DescribeAclsResponse(Response):
    API_KEY = 29
    API_NAME = "DescribeAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Resource(Struct):
        class Acl(Struct):
            principal: str = field("string", "0+")
            host: str = field("string", "0+")
            operation: int = field("int8", "0+")
            permission_type: int = field("int8", "0+")

        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        pattern_type: int = field("int8", "1+", default=3)
        acls: tuple[Acl, ...] = array(Acl, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    resources: tuple[Resource, ...] = array(Resource, "0+")
