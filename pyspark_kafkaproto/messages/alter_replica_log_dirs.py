"""AlterReplicaLogDirs, API key 34.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AlterReplicaLogDirsRequest(Request):
    API_KEY = 34
    API_NAME = "AlterReplicaLogDirs"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class Dir(Struct):
        class Topic(Struct):
            name: str = field("string", "0+")
            partitions: tuple[int, ...] = array("int32", "0+")

        path: str = field("string", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")

    dirs: tuple[Dir, ...] = array(Dir, "0+")


class AlterReplicaLogDirsResponse(Response):
    API_KEY = 34
    API_NAME = "AlterReplicaLogDirs"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 2

    class Topic(Struct):
        class Partition(Struct):
            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")

        topic_name: str = field("string", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Topic, ...] = array(Topic, "0+")
