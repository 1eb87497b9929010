"""StreamsGroupHeartbeat, API key 88.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class KeyValue(Struct):
    key: str = field("string", "0+")
    value: str = field("string", "0+")


class TopicInfo(Struct):
    name: str = field("string", "0+")
    partitions: int = field("int32", "0+")
    replication_factor: int = field("int16", "0+")
    topic_configs: tuple[KeyValue, ...] = array(KeyValue, "0+")


class TaskIds(Struct):
    subtopology_id: str = field("string", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class Endpoint(Struct):
    host: str = field("string", "0+")
    port: int = field("uint16", "0+")


class TaskOffset(Struct):
    subtopology_id: str = field("string", "0+")
    partition: int = field("int32", "0+")
    offset: int = field("int64", "0+")


class Status(Struct):
    status_code: int = field("int8", "0+")
    status_detail: str = field("string", "0+")


class TopicPartition(Struct):
    topic: str = field("string", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class StreamsGroupHeartbeatRequest(Request):
    API_KEY = 88
    API_NAME = "StreamsGroupHeartbeat"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: tuple[int, ...] = array("int16", "0+")
                source_topic_regex: tuple[int, ...] = array("int16", "0+")
                repartition_source_topics: tuple[int, ...] = array("int16", "0+")

            subtopology_id: str = field("string", "0+")
            source_topics: tuple[str, ...] = array("string", "0+")
            source_topic_regex: tuple[str, ...] = array("string", "0+")
            state_changelog_topics: tuple[TopicInfo, ...] = array(TopicInfo, "0+")
            repartition_sink_topics: tuple[str, ...] = array("string", "0+")
            repartition_source_topics: tuple[TopicInfo, ...] = array(TopicInfo, "0+")
            copartition_groups: tuple[CopartitionGroup, ...] = array(CopartitionGroup, "0+")

        epoch: int = field("int32", "0+")
        subtopologies: tuple[Subtopology, ...] = array(Subtopology, "0+")

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0+")
    member_epoch: int = field("int32", "0+")
    endpoint_information_epoch: int = field("int32", "0+")
    instance_id: str | None = field("string", "0+", default=None, nullable="0+")
    rack_id: str | None = field("string", "0+", default=None, nullable="0+")
    rebalance_timeout_ms: int = field("int32", "0+", default=-1)
    topology: Topology | None = field(Topology, "0+", default=None, nullable="0+")
    active_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    standby_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    warmup_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    process_id: str | None = field("string", "0+", default=None, nullable="0+")
    user_endpoint: Endpoint | None = field(Endpoint, "0+", default=None, nullable="0+")
    client_tags: tuple[KeyValue, ...] | None = array(KeyValue, "0+", default=None, nullable="0+")
    task_offsets: tuple[TaskOffset, ...] | None = array(
        TaskOffset, "0+", default=None, nullable="0+"
    )
    task_end_offsets: tuple[TaskOffset, ...] | None = array(
        TaskOffset, "0+", default=None, nullable="0+"
    )
    shutdown_application: bool = field("bool", "0+", default=False)


class StreamsGroupHeartbeatResponse(Response):
    API_KEY = 88
    API_NAME = "StreamsGroupHeartbeat"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class EndpointPartitions(Struct):
        user_endpoint: Endpoint = field(Endpoint, "0+")
        active_partitions: tuple[TopicPartition, ...] = array(TopicPartition, "0+")
        standby_partitions: tuple[TopicPartition, ...] = array(TopicPartition, "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
    member_id: str = field("string", "0+")
    member_epoch: int = field("int32", "0+")
    heartbeat_interval_ms: int = field("int32", "0+")
    acceptable_recovery_lag_legacy: int = field("int32", "0")
    task_offset_interval_ms: int = field("int32", "0+")
    acceptable_recovery_lag: int = field("int64", "1+", default=-1, ignorable=True)
    status: tuple[Status, ...] | None = array(Status, "0+", nullable="0+")
    active_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    standby_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    warmup_tasks: tuple[TaskIds, ...] | None = array(TaskIds, "0+", default=None, nullable="0+")
    topology_description_required: bool = field("bool", "1+", default=False)
    endpoint_information_epoch: int = field("int32", "0+")
    partitions_by_user_endpoint: tuple[EndpointPartitions, ...] | None = array(
        EndpointPartitions, "0+", default=None, nullable="0+"
    )
