"""CreateTopics, API key 19.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class CreateTopicsRequest(Request):
    API_KEY = 19
    API_NAME = "CreateTopics"
    VERSIONS = Versions(0, 7)
    FLEXIBLE_FROM = 5

    class Topic(Struct):
        class Assignment(Struct):
            partition_index: int = field("int32", "0+")
            broker_ids: tuple[int, ...] = array("int32", "0+")

        class Config(Struct):
            name: str = field("string", "0+")
            value: str | None = field("string", "0+", nullable="0+")

        name: str = field("string", "0+")
        num_partitions: int = field("int32", "0+")
        replication_factor: int = field("int16", "0+")
        assignments: tuple[Assignment, ...] = array(Assignment, "0+")
        configs: tuple[Config, ...] = array(Config, "0+")

    topics: tuple[Topic, ...] = array(Topic, "0+")
    timeout_ms: int = field("int32", "0+", default=60000)
    validate_only: bool = field("bool", "1+", default=False)


class CreateTopicsResponse(Response):
    API_KEY = 19
    API_NAME = "CreateTopics"
    VERSIONS = Versions(0, 7)
    FLEXIBLE_FROM = 5

    class Topic(Struct):
        class Config(Struct):
            name: str = field("string", "5+")
            value: str | None = field("string", "5+", nullable="5+")
            read_only: bool = field("bool", "5+")
            config_source: int = field("int8", "5+", default=-1, ignorable=True)
            is_sensitive: bool = field("bool", "5+")

        name: str = field("string", "0+")
        topic_id: bytes = field("uuid", "7+", ignorable=True)
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "1+", nullable="0+", ignorable=True)
        topic_config_error_code: int = field("int16", "5+", tag=0, ignorable=True)
        num_partitions: int = field("int32", "5+", default=-1, ignorable=True)
        replication_factor: int = field("int16", "5+", default=-1, ignorable=True)
        configs: tuple[Config, ...] | None = array(Config, "5+", nullable="5+", ignorable=True)

    throttle_time_ms: int = field("int32", "2+", ignorable=True)
    topics: tuple[Topic, ...] = array(Topic, "0+")
