"""ShareAcknowledge, API key 79.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ShareAcknowledgeRequest(Request):
    API_KEY = 79
    API_NAME = "ShareAcknowledge"
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

    group_id: str | None = field("string", "0+", default=None, nullable="0+")
    member_id: str | None = field("string", "0+", nullable="0+")
    share_session_epoch: int = field("int32", "0+")
    is_renew_ack: bool = field("bool", "2+", default=False)
    topics: tuple[Topic, ...] = array(Topic, "0+")


class ShareAcknowledgeResponse(Response):
    API_KEY = 79
    API_NAME = "ShareAcknowledge"
    VERSIONS = Versions(1, 2)
    FLEXIBLE_FROM = 0

    class Topic(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: int = field("int32", "0+")
                leader_epoch: int = field("int32", "0+")

            partition_index: int = field("int32", "0+")
            error_code: int = field("int16", "0+")
            error_message: str | None = field("string", "0+", default=None, nullable="0+")
            current_leader: CurrentLeader = field(CurrentLeader, "0+")

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
    acquisition_lock_timeout_ms: int = field("int32", "2+", ignorable=True)
    responses: tuple[Topic, ...] = array(Topic, "0+")
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "0+")
