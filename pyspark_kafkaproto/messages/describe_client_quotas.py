"""DescribeClientQuotas, API key 48.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeClientQuotasRequest(Request):
    API_KEY = 48
    API_NAME = "DescribeClientQuotas"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Component(Struct):
        entity_type: str = field("string", "0+")
        match_type: int = field("int8", "0+")
        match: str | None = field("string", "0+", nullable="0+")

    components: tuple[Component, ...] = array(Component, "0+")
    strict: bool = field("bool", "0+")


class DescribeClientQuotasResponse(Response):
    API_KEY = 48
    API_NAME = "DescribeClientQuotas"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Entry(Struct):
        class Entity(Struct):
            entity_type: str = field("string", "0+")
            entity_name: str | None = field("string", "0+", nullable="0+")

        class Value(Struct):
            key: str = field("string", "0+")
            value: float = field("float64", "0+")

        entity: tuple[Entity, ...] = array(Entity, "0+")
        values: tuple[Value, ...] = array(Value, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    entries: tuple[Entry, ...] | None = array(Entry, "0+", nullable="0+")
