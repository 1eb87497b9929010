"""AddOffsetsToTxn, API key 25.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class AddOffsetsToTxnRequest(Request):
    API_KEY = 25
    API_NAME = "AddOffsetsToTxn"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 3

    transactional_id: str = field("string", "0+")
    producer_id: int = field("int64", "0+")
    producer_epoch: int = field("int16", "0+")
    group_id: str = field("string", "0+")


class AddOffsetsToTxnResponse(Response):
    API_KEY = 25
    API_NAME = "AddOffsetsToTxn"
    VERSIONS = Versions(0, 4)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
