"""DeleteTopics, API key 20.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DeleteTopicsRequest(Request):
    API_KEY = 20
    API_NAME = "DeleteTopics"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 4

    class Topic(Struct):
        # null where the topic is asked for by id
        name: str | None = field("string", "6+", default=None, nullable="6+")
        topic_id: bytes = field("uuid", "6+")

    topics: tuple[Topic, ...] = array(Topic, "6+")
    topic_names: tuple[str, ...] = array("string", "0-5", ignorable=True)
    timeout_ms: int = field("int32", "0+")


class DeleteTopicsResponse(Response):
    API_KEY = 20
    API_NAME = "DeleteTopics"
    VERSIONS = Versions(0, 6)
    FLEXIBLE_FROM = 4

    class Topic(Struct):
        name: str | None = field("string", "0+", nullable="6+")
        topic_id: bytes = field("uuid", "6+", ignorable=True)
        error_code: int = field("int16", "0+")
        error_message: str | None = field(
            "string", "5+", default=None, nullable="5+", ignorable=True
        )

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    responses: tuple[Topic, ...] = array(Topic, "0+")
