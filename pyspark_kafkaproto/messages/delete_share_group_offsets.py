"""DeleteShareGroupOffsets, API key 92.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DeleteShareGroupOffsetsRequest(Request):
    API_KEY = 92
    API_NAME = "DeleteShareGroupOffsets"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        topic_name: str = field("string", "0+")

    group_id: str = field("string", "0+")
    topics: tuple[Topic, ...] = array(Topic, "0+")


class DeleteShareGroupOffsetsResponse(Response):
    API_KEY = 92
    API_NAME = "DeleteShareGroupOffsets"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        topic_name: str = field("string", "0+")
        topic_id: bytes = field("uuid", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", default=None, nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    responses: tuple[Topic, ...] = array(Topic, "0+")
