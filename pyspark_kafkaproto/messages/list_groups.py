"""ListGroups, API key 16.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ListGroupsRequest(Request):
    API_KEY = 16
    API_NAME = "ListGroups"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    states_filter: tuple[str, ...] = array("string", "4+")
    types_filter: tuple[str, ...] = array("string", "5+")


class ListGroupsResponse(Response):
    API_KEY = 16
    API_NAME = "ListGroups"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    class Group(Struct):
        group_id: str = field("string", "0+")
        protocol_type: str = field("string", "0+")
        group_state: str = field("string", "4+", ignorable=True)
        group_type: str = field("string", "5+", ignorable=True)

    throttle_time_ms: int = field("int32", "1+", ignorable=True)
    error_code: int = field("int16", "0+")
    groups: tuple[Group, ...] = array(Group, "0+")
