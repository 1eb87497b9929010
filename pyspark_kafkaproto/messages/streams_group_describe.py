"""StreamsGroupDescribe, API key 89.

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


class Endpoint(Struct):
    host: str = field("string", "0+")
    port: int = field("uint16", "0+")


class TaskOffset(Struct):
    subtopology_id: str = field("string", "0+")
    partition: int = field("int32", "0+")
    offset: int = field("int64", "0+")


class TaskIds(Struct):
    subtopology_id: str = field("string", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class Assignment(Struct):
    active_tasks: tuple[TaskIds, ...] = array(TaskIds, "0+")
    standby_tasks: tuple[TaskIds, ...] = array(TaskIds, "0+")
    warmup_tasks: tuple[TaskIds, ...] = array(TaskIds, "0+")


class TopologyDescriptionNode(Struct):
    name: str = field("string", "1+")
    node_type: int = field("int8", "1+")
    source_topics: tuple[str, ...] = array("string", "1+")
    sink_topic: str | None = field("string", "1+", default=None, nullable="1+")
    stores: tuple[str, ...] = array("string", "1+")
    successors: tuple[str, ...] = array("string", "1+")


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field("string", "1+")
    nodes: tuple[TopologyDescriptionNode, ...] = array(TopologyDescriptionNode, "1+")


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field(TopologyDescriptionNode, "1+")
    processor: TopologyDescriptionNode = field(TopologyDescriptionNode, "1+")


class TopologyDescription(Struct):
    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = array(
        TopologyDescriptionSubtopology, "1+"
    )
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = array(
        TopologyDescriptionGlobalStore, "1+"
    )


class StreamsGroupDescribeRequest(Request):
    API_KEY = 89
    API_NAME = "StreamsGroupDescribe"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    group_ids: tuple[str, ...] = array("string", "0+")
    include_authorized_operations: bool = field("bool", "0+")
    include_topology_description: bool = field("bool", "1+", default=False)


class StreamsGroupDescribeResponse(Response):
    API_KEY = 89
    API_NAME = "StreamsGroupDescribe"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Group(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: str = field("string", "0+")
                source_topics: tuple[str, ...] = array("string", "0+")
                repartition_sink_topics: tuple[str, ...] = array("string", "0+")
                state_changelog_topics: tuple[TopicInfo, ...] = array(TopicInfo, "0+")
                repartition_source_topics: tuple[TopicInfo, ...] = array(TopicInfo, "0+")

            epoch: int = field("int32", "0+")
            subtopologies: tuple[Subtopology, ...] | None = array(
                Subtopology, "0+", default=None, nullable="0+"
            )

        class Member(Struct):
            member_id: str = field("string", "0+")
            member_epoch: int = field("int32", "0+")
            instance_id: str | None = field("string", "0+", default=None, nullable="0+")
            rack_id: str | None = field("string", "0+", default=None, nullable="0+")
            client_id: str = field("string", "0+")
            client_host: str = field("string", "0+")
            topology_epoch: int = field("int32", "0+")
            process_id: str = field("string", "0+")
            user_endpoint: Endpoint | None = field(Endpoint, "0+", default=None, nullable="0+")
            client_tags: tuple[KeyValue, ...] = array(KeyValue, "0+")
            task_offsets: tuple[TaskOffset, ...] = array(TaskOffset, "0+")
            task_end_offsets: tuple[TaskOffset, ...] = array(TaskOffset, "0+")
            assignment: Assignment = field(Assignment, "0+")
            target_assignment: Assignment = field(Assignment, "0+")
            is_classic: bool = field("bool", "0+")

        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", default=None, nullable="0+")
        group_id: str = field("string", "0+")
        group_state: str = field("string", "0+")
        group_epoch: int = field("int32", "0+")
        assignment_epoch: int = field("int32", "0+")
        topology: Topology | None = field(Topology, "0+", default=None, nullable="0+")
        members: tuple[Member, ...] = array(Member, "0+")
        authorized_operations: int = field("int32", "0+", default=-2147483648)
        topology_description: TopologyDescription | None = field(
            TopologyDescription, "1+", default=None, nullable="1+"
        )
        topology_description_status: int = field("int8", "1+", default=0)
        assignor_name: str | None = field(
            "string", "1+", default=None, nullable="1+", ignorable=True
        )

    throttle_time_ms: int = field("int32", "0+")
    groups: tuple[Group, ...] = array(Group, "0+")
