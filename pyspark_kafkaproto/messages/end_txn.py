"""EndTxn, API key 26.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class EndTxnRequest(Request):
    API_KEY = 26
    API_NAME = "EndTxn"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    transactional_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    committed: bool = field("bool", "0+")


class EndTxnResponse(Response):
    API_KEY = 26
    API_NAME = "EndTxn"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    producer_id: int = field("int64", "5+", default=-1, ignorable=True)
    # what the next transaction uses (KIP-890); -1: as before
    producer_epoch: int = field("int16", "5+", default=-1, ignorable=True)
