"""ListTransactions, API key 66.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class ListTransactionsRequest(Request):
    API_KEY = 66
    API_NAME = "ListTransactions"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    state_filters: tuple[str, ...] = array("string", "0+")
    producer_id_filters: tuple[int, ...] = array("int64", "0+")
    duration_filter: int = field("int64", "1+", default=-1)
    transactional_id_pattern: str | None = field("string", "2+", default=None, nullable="2+")


class ListTransactionsResponse(Response):
    API_KEY = 66
    API_NAME = "ListTransactions"
    VERSIONS = Versions(0, 2)
    FLEXIBLE_FROM = 0

    class TransactionState(Struct):
        transactional_id: str = field("string", "0+")
        producer_id: int = field("int64", "0+")
        transaction_state: str = field("string", "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    unknown_state_filters: tuple[str, ...] = array("string", "0+")
    transaction_states: tuple[TransactionState, ...] = array(TransactionState, "0+")
