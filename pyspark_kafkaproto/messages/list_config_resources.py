"""ListConfigResources, API key 74.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ListConfigResourcesRequest(Request):
    API_KEY = 74
    API_NAME = "ListConfigResources"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    resource_types: tuple[int, ...] = array("int8", "1+")


class ListConfigResourcesResponse(Response):
    API_KEY = 74
    API_NAME = "ListConfigResources"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class ConfigResource(Struct):
        resource_name: str = field("string", "0+")
        resource_type: int = field("int8", "1+", default=16, ignorable=True)

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    config_resources: tuple[ConfigResource, ...] = array(ConfigResource, "0+")
