"""DescribeTransactions, API key 65.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class DescribeTransactionsRequest(Request):
    API_KEY = 65
    API_NAME = "DescribeTransactions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    transactional_ids: tuple[str, ...] = array("string", "0+")


class DescribeTransactionsResponse(Response):
    API_KEY = 65
    API_NAME = "DescribeTransactions"
    VERSIONS = Versions(0, 0)
    FLEXIBLE_FROM = 0

    class TransactionState(Struct):
        class Topic(Struct):
            topic: str = field("string", "0+")
            partitions: tuple[int, ...] = array("int32", "0+")

        error_code: int = field("int16", "0+")
        transactional_id: str = field("string", "0+")
        transaction_state: str = field("string", "0+")
        transaction_timeout_ms: int = field("int32", "0+")
        transaction_start_time_ms: int = field("int64", "0+")
        producer_id: int = field("int64", "0+")
        producer_epoch: int = field("int16", "0+")
        topics: tuple[Topic, ...] = array(Topic, "0+")

    throttle_time_ms: int = field("int32", "0+")
    transaction_states: tuple[TransactionState, ...] = array(TransactionState, "0+")
