"""DeleteGroups, API key 42.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DeleteGroupsRequest(Request):
    API_KEY = 42
    API_NAME = "DeleteGroups"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    groups_names: tuple[str, ...] = array("string", "0+")


class DeleteGroupsResponse(Response):
    API_KEY = 42
    API_NAME = "DeleteGroups"
    VERSIONS = Versions(0, 3)
    FLEXIBLE_FROM = 2

    class Group(Struct):
        group_id: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field(
            "string", "3+", default=None, nullable="3+", ignorable=True
        )

    throttle_time_ms: int = field("int32", "0+")
    results: tuple[Group, ...] = array(Group, "0+")
