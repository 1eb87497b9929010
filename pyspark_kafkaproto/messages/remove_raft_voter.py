"""RemoveRaftVoter, API key 81.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class RemoveRaftVoterRequest(Request):
    API_KEY = 81
    API_NAME = "RemoveRaftVoter"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    cluster_id: str | None = field("string", "0+", nullable="0+")
    voter_id: int = field("int32", "0+")
    voter_directory_id: bytes = field("uuid", "0+")


class RemoveRaftVoterResponse(Response):
    API_KEY = 81
    API_NAME = "RemoveRaftVoter"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+", ignorable=True)
