"""Produce, API key 0.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ProduceRequest(Request):
    API_KEY = 0
    API_NAME = "Produce"
    VERSIONS = Versions(0, 13)
    FLEXIBLE_FROM = 9

    class Topic(Struct):
        class Partition(Struct):
            index: int = field("int32", "0+")
            records: Buffer | None = field("records", "0+", nullable="0+")

        name: str = field("string", "0-12", ignorable=True)
        topic_id: bytes = field("uuid", "13+", ignorable=True)
        partition_data: tuple[Partition, ...] = array(Partition, "0+")

    transactional_id: str | None = field("string", "3+", default=None, nullable="3+")
    # 0: none, and no answer; 1: leader; -1: all in sync
    acks: int = field("int16", "0+")
    timeout_ms: int = field("int32", "0+")
    topic_data: tuple[Topic, ...] = array(Topic, "0+")


class ProduceResponse(Response):
    API_KEY = 0
    API_NAME = "Produce"
    VERSIONS = Versions(0, 13)
    FLEXIBLE_FROM = 9

    class Topic(Struct):
        class Partition(Struct):
            class RecordError(Struct):
                batch_index: int = field("int32", "8+")
                batch_index_error_message: str | None = field(
                    "string", "8+", default=None, nullable="8+"
                )

            class CurrentLeader(Struct):
                leader_id: int = field("int32", "10+", default=-1)
                leader_epoch: int = field("int32", "10+", default=-1)

            index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            base_offset: int = field("int64", "0+")
            # -1: the records' own times
            log_append_time_ms: int = field("int64", "2+", default=-1, ignorable=True)
            log_start_offset: int = field("int64", "5+", default=-1, ignorable=True)
            record_errors: tuple[RecordError, ...] = array(RecordError, "8+", ignorable=True)
            error_message: str | None = field(
                "string", "8+", default=None, nullable="8+", ignorable=True
            )
            current_leader: CurrentLeader = field(CurrentLeader, "10+", tag=0)

        name: str = field("string", "0-12", ignorable=True)
        topic_id: bytes = field("uuid", "13+", ignorable=True)
        partition_responses: tuple[Partition, ...] = array(Partition, "0+")

    class NodeEndpoint(Struct):
        node_id: int = field("int32", "10+")
        host: str = field("string", "10+")
        port: int = field("int32", "10+")
        rack: str | None = field("string", "10+", default=None, nullable="10+")

    responses: tuple[Topic, ...] = array(Topic, "0+")
    throttle_time_ms: int = field("int32", "1+", default=0, ignorable=True)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "10+", tag=0)
