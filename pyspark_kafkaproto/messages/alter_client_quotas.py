"""AlterClientQuotas, API key 49.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AlterClientQuotasRequest(Request):
    API_KEY = 49
    API_NAME = "AlterClientQuotas"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Entry(Struct):
        class Entity(Struct):
            entity_type: str = field("string", "0+")
            entity_name: str | None = field("string", "0+", nullable="0+")

        class Op(Struct):
            key: str = field("string", "0+")
            value: float = field("float64", "0+")
            remove: bool = field("bool", "0+")

        entity: tuple[Entity, ...] = array(Entity, "0+")
        ops: tuple[Op, ...] = array(Op, "0+")

    entries: tuple[Entry, ...] = array(Entry, "0+")
    validate_only: bool = field("bool", "0+")


class AlterClientQuotasResponse(Response):
    API_KEY = 49
    API_NAME = "AlterClientQuotas"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 1

    class Entry(Struct):
        class Entity(Struct):
            entity_type: str = field("string", "0+")
            entity_name: str | None = field("string", "0+", nullable="0+")

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        entity: tuple[Entity, ...] = array(Entity, "0+")

    throttle_time_ms: int = field("int32", "0+")
    entries: tuple[Entry, ...] = array(Entry, "0+")
