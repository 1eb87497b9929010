"""DeleteAcls, API key 31.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DeleteAclsRequest(Request):
    API_KEY = 31
    API_NAME = "DeleteAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Filter(Struct):
        resource_type_filter: int = field("int8", "0+")
        resource_name_filter: str | None = field("string", "0+", nullable="0+")
        pattern_type_filter: int = field("int8", "1+", default=3)
        principal_filter: str | None = field("string", "0+", nullable="0+")
        host_filter: str | None = field("string", "0+", nullable="0+")
        operation: int = field("int8", "0+")
        permission_type: int = field("int8", "0+")

    filters: tuple[Filter, ...] = array(Filter, "0+")


class DeleteAclsResponse(Response):
    API_KEY = 31
    API_NAME = "DeleteAcls"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class FilterResult(Struct):
        class MatchingAcl(Struct):
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", nullable="0+")
            resource_type: int = field("int8", "0+")
            resource_name: str = field("string", "0+")
            pattern_type: int = field("int8", "1+", default=3)
            principal: str = field("string", "0+")
            host: str = field("string", "0+")
            operation: int = field("int8", "0+")
            permission_type: int = field("int8", "0+")

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        matching_acls: tuple[MatchingAcl, ...] = array(MatchingAcl, "0+")

    throttle_time_ms: int = field("int32", "0+")
    filter_results: tuple[FilterResult, ...] = array(FilterResult, "0+")
