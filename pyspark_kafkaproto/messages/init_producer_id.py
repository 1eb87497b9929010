"""InitProducerId, API key 22.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Versions, field


class InitProducerIdRequest(Request):
    API_KEY = 22
    API_NAME = "InitProducerId"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 2

    transactional_id: str | None = field("string", "0+", nullable="0+")
    transaction_timeout_ms: int = field("int32", "0+")
    producer_id: int = field("int64", "3+", default=-1)
    producer_epoch: int = field("int16", "3+", default=-1)


class InitProducerIdResponse(Response):
    API_KEY = 22
    API_NAME = "InitProducerId"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = field("int32", "0+", ignorable=True)
    error_code: int = field("int16", "0+")
    producer_id: int = field("int64", "0+", default=-1)
    producer_epoch: int = field("int16", "0+")
