"""ShareFetch, API key 78.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.cursor import Buffer
from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ShareFetchRequest(Request):
    API_KEY = 78
    API_NAME = "ShareFetch"
    VERSIONS = Versions(1, 2)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: int = field("int64", "0+")
                last_offset: int = field("int64", "0+")
                acknowledge_types: tuple[int, ...] = array("int8", "0+")

            partition_index: int = field("int32", "0+")
            acknowledgement_batches: tuple[AcknowledgementBatch, ...] = array(
                AcknowledgementBatch, "0+"
            )

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class ForgottenTopic(Struct):
        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[int, ...] = array("int32", "0+")

    group_id: str | None = field("string", "0+", default=None, nullable="0+")
    member_id: str | None = field("string", "0+", nullable="0+")
    share_session_epoch: int = field("int32", "0+")
    max_wait_ms: int = field("int32", "0+")
    min_bytes: int = field("int32", "0+")
    max_bytes: int = field("int32", "0+", default=2147483647)
    max_records: int = field("int32", "1+")
    batch_size: int = field("int32", "1+")
    share_acquire_mode: int = field("int8", "2+", default=0, ignorable=True)
    is_renew_ack: bool = field("bool", "2+", default=False)
    topics: tuple[Topic, ...] = array(Topic, "0+")
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "0+")


class ShareFetchResponse(Response):
    API_KEY = 78
    API_NAME = "ShareFetch"
    VERSIONS = Versions(1, 2)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: int = field("int32", "0+")
                leader_epoch: int = field("int32", "0+")

            class AcquiredRecords(Struct):
                first_offset: int = field("int64", "0+")
                last_offset: int = field("int64", "0+")
                delivery_count: int = field("int16", "0+")

            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")
            acknowledge_error_code: int = field("int16", "0+")
            acknowledge_error_message: str | None = field(
                "string", "0+", default=None, nullable="0+"
            )
            current_leader: CurrentLeader = field(CurrentLeader, "0+")
            records: Buffer = field("records", "0+")
            acquired_records: tuple[AcquiredRecords, ...] = array(AcquiredRecords, "0+")

        topic_id: bytes = field("uuid", "0+")
        partitions: tuple[Partition, ...] = array(Partition, "0+")

    class NodeEndpoint(Struct):
        node_id: int = field("int32", "0+")
        host: str = field("string", "0+")
        port: int = field("int32", "0+")
        rack: str | None = field("string", "0+", default=None, nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    acquisition_lock_timeout_ms: int = field("int32", "1+")
    responses: tuple[Topic, ...] = array(Topic, "0+")
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "0+")
