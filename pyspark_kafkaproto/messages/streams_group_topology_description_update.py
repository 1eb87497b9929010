"""StreamsGroupTopologyDescriptionUpdate, API key 93.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class TopologyDescriptionNode(Struct):
    name: str = field("string", "0+")
    node_type: int = field("int8", "0+")
    source_topics: tuple[str, ...] = array("string", "0+")
    sink_topic: str | None = field("string", "0+", default=None, nullable="0+")
    stores: tuple[str, ...] = array("string", "0+")
    successors: tuple[str, ...] = array("string", "0+")


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: str = field("string", "0+")
    nodes: tuple[TopologyDescriptionNode, ...] = array(TopologyDescriptionNode, "0+")


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field(TopologyDescriptionNode, "0+")
    processor: TopologyDescriptionNode = field(TopologyDescriptionNode, "0+")


class TopologyDescription(Struct):
    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = array(
        TopologyDescriptionSubtopology, "0+"
    )
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = array(
        TopologyDescriptionGlobalStore, "0+"
    )


class StreamsGroupTopologyDescriptionUpdateRequest(Request):
    API_KEY = 93
    API_NAME = "StreamsGroupTopologyDescriptionUpdate"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    group_id: str = field("string", "0+")
    member_id: str = field("string", "0+")
    topology_epoch: int = field("int32", "0+")
    topology_description: TopologyDescription = field(TopologyDescription, "0+")


class StreamsGroupTopologyDescriptionUpdateResponse(Response):
    API_KEY = 93
    API_NAME = "StreamsGroupTopologyDescriptionUpdate"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", default=None, nullable="0+")
