"""ApiVersions, API key 18.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ApiVersionsRequest(Request):
    API_KEY = 18
    API_NAME = "ApiVersions"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    client_software_name: str = field("string", "3+", ignorable=True)
    client_software_version: str = field("string", "3+", ignorable=True)
    cluster_id: str | None = field("string", "5+", default=None, nullable="5+", ignorable=True)
    node_id: int = field("int32", "5+", default=-1, ignorable=True)


class ApiVersionsResponse(Response):
    API_KEY = 18
    API_NAME = "ApiVersions"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3
    HAS_HEADER_TAGS = False

    class ApiVersion(Struct):
        api_key: int = field("int16", "0+")
        min_version: int = field("int16", "0+")
        max_version: int = field("int16", "0+")

    class SupportedFeature(Struct):
        name: str = field("string", "3+")
        min_version: int = field("int16", "3+")
        max_version: int = field("int16", "3+")

    class FinalizedFeature(Struct):
        name: str = field("string", "3+")
        max_version_level: int = field("int16", "3+")
        min_version_level: int = field("int16", "3+")

    error_code: int = field("int16", "0+")
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion, "0+")
    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    supported_features: tuple[SupportedFeature, ...] = array(
        SupportedFeature, "3+", tag=0, ignorable=True
    )
    # -1: unknown
    finalized_features_epoch: int = field("int64", "3+", default=-1, tag=1, ignorable=True)
    # meaningful only with an epoch of 0 or more
    finalized_features: tuple[FinalizedFeature, ...] = array(
        FinalizedFeature, "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = field("bool", "3+", default=False, tag=3, ignorable=True)
