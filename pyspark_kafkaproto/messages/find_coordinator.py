"""FindCoordinator, API key 10.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class FindCoordinatorRequest(Request):
    API_KEY = 10
    API_NAME = "FindCoordinator"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 3

    key: str = field("string", "0-3")
    # 0: group, 1: transaction, 2: share
    key_type: int = field("int8", "1+", default=0)
    coordinator_keys: tuple[str, ...] = array("string", "4+")


class FindCoordinatorResponse(Response):
    API_KEY = 10
    API_NAME = "FindCoordinator"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 3

    class Coordinator(Struct):
        key: str = field("string", "4+")
        node_id: int = field("int32", "4+")
        host: str = field("string", "4+")
        port: int = field("int32", "4+")
        error_code: int = field("int16", "4+")
        error_message: str | None = field("string", "4+", nullable="4+", ignorable=True)

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0-3")
    error_message: str | None = field("string", "1-3", nullable="1-3", ignorable=True)
    node_id: int = field("int32", "0-3")
    host: str = field("string", "0-3")
    port: int = field("int32", "0-3")
    coordinators: tuple[Coordinator, ...] = array(Coordinator, "4+")
