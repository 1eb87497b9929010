"""DescribeLogDirs, API key 35.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeLogDirsRequest(Request):
    API_KEY = 35
    API_NAME = "DescribeLogDirs"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        topic: str = field("string", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    topics: tuple[Topic, ...] | None = array(Topic, "0+", nullable="0+")


class DescribeLogDirsResponse(Response):
    API_KEY = 35
    API_NAME = "DescribeLogDirs"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 2

    class LogDir(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = field("int32", "0+")
                partition_size: int = field("int64", "0+")
                offset_lag: int = field("int64", "0+")
                is_future_key: bool = field("bool", "0+")

            name: str = field("string", "0+")
            partitions: tuple[Partition, ...] = array(Partition, "0+")

        error_code: int = field("int16", "0+")
        log_dir: str = field("string", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")
        total_bytes: int = field("int64", "4+", default=-1, ignorable=True)
        usable_bytes: int = field("int64", "4+", default=-1, ignorable=True)
        is_cordoned: bool = field("bool", "5+", default=False, ignorable=True)

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "3+", ignorable=True)
    results: tuple[LogDir, ...] = array(LogDir, "0+")
