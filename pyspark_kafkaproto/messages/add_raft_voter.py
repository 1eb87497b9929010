"""AddRaftVoter, API key 80.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class AddRaftVoterRequest(Request):
    API_KEY = 80
    API_NAME = "AddRaftVoter"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    class Listener(Struct):
        name: str = field("string", "0+")
        host: str = field("string", "0+")
        port: int = field("uint16", "0+")

    cluster_id: str | None = field("string", "0+", nullable="0+")
    timeout_ms: int = field("int32", "0+")
    voter_id: int = field("int32", "0+")
    voter_directory_id: bytes = field("uuid", "0+")
    listeners: tuple[Listener, ...] = array(Listener, "0+")
    ack_when_committed: bool = field("bool", "1+", default=True)


class AddRaftVoterResponse(Response):
    API_KEY = 80
    API_NAME = "AddRaftVoter"
    VERSIONS = Versions(0, 1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+", ignorable=True)
