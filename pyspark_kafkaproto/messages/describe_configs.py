"""DescribeConfigs, API key 32.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeConfigsRequest(Request):
    API_KEY = 32
    API_NAME = "DescribeConfigs"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    class Resource(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configuration_keys: tuple[str, ...] | None = array("string", "0+", nullable="0+")

    resources: tuple[Resource, ...] = array(Resource, "0+")
    include_synonyms: bool = field("bool", "1+", default=False)
    include_documentation: bool = field("bool", "3+", default=False)


class DescribeConfigsResponse(Response):
    API_KEY = 32
    API_NAME = "DescribeConfigs"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 4

    class Resource(Struct):
        class Config(Struct):
            class Synonym(Struct):
                name: str = field("string", "1+")
                value: str | None = field("string", "1+", nullable="0+", secret=True)
                source: int = field("int8", "1+")

            name: str = field("string", "0+")
            value: str | None = field("string", "0+", nullable="0+", secret=True)
            read_only: bool = field("bool", "0+")
            is_default: bool = field("bool", "0")
            config_source: int = field("int8", "1+", default=-1, ignorable=True)
            is_sensitive: bool = field("bool", "0+")
            synonyms: tuple[Synonym, ...] = array(Synonym, "1+", ignorable=True)
            config_type: int = field("int8", "3+", default=0, ignorable=True)
            documentation: str | None = field("string", "3+", nullable="0+", ignorable=True)

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configs: tuple[Config, ...] = array(Config, "0+")

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Resource, ...] = array(Resource, "0+")
