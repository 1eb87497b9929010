"""IncrementalAlterConfigs, API key 44.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class IncrementalAlterConfigsRequest(Request):
    API_KEY = 44
    API_NAME = "IncrementalAlterConfigs"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Resource(Struct):
        class Config(Struct):
            name: str = field("string", "0+")
            config_operation: int = field("int8", "0+")
            value: str | None = field("string", "0+", nullable="0+", secret=True)

        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configs: tuple[Config, ...] = array(Config, "0+")

    resources: tuple[Resource, ...] = array(Resource, "0+")
    validate_only: bool = field("bool", "0+")


class IncrementalAlterConfigsResponse(Response):
    API_KEY = 44
    API_NAME = "IncrementalAlterConfigs"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Resource(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")

    throttle_time_ms: int = field("int32", "0+")
    responses: tuple[Resource, ...] = array(Resource, "0+")
