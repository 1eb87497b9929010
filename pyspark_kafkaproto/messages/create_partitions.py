"""CreatePartitions, API key 37.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class CreatePartitionsRequest(Request):
    API_KEY = 37
    API_NAME = "CreatePartitions"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        class Assignment(Struct):
            broker_ids: tuple[int, ...] = array("int32", "0+")

        name: str = field("string", "0+")
        count: int = field("int32", "0+")
        assignments: tuple[Assignment, ...] | None = array(Assignment, "0+", nullable="0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")
    timeout_ms: int = field("int32", "0+")
    validate_only: bool = field("bool", "0+")


class CreatePartitionsResponse(Response):
    API_KEY = 37
    API_NAME = "CreatePartitions"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        name: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", default=None, nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Topic, ...] = array(Topic, "0+")
