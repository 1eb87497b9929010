"""AddPartitionsToTxn, API key 24.

Written by tools/generate_messages.py from the definitions in Kafka's client jars.
"""

from __future__ import annotations

from pyspark_kafkaproto.wire.declaration import Request, Response, Struct, Versions, array, field


class Topic(Struct):
    name: str = field("string", "0+")
    partitions: tuple[int, ...] = array("int32", "0+")


class PartitionResult(Struct):
    partition_index: int = field("int32", "0+")
    partition_error_code: int = field("int16", "0+")


class TopicResult(Struct):
    name: str = field("string", "0+")
    results_by_partition: tuple[PartitionResult, ...] = array(PartitionResult, "0+")


class AddPartitionsToTxnRequest(Request):
    API_KEY = 24
    API_NAME = "AddPartitionsToTxn"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    class Transaction(Struct):
        transactional_id: str = field("string", "4+")
        producer_id: int = field("int64", "4+")
        producer_epoch: int = field("int16", "4+")
        verify_only: bool = field("bool", "4+", default=False)
        topics: tuple[Topic, ...] = array(Topic, "4+")

    transactions: tuple[Transaction, ...] = array(Transaction, "4+")
    v3_and_below_transactional_id: str = field("string", "0-3")
    v3_and_below_producer_id: int = field("int64", "0-3")
    v3_and_below_producer_epoch: int = field("int16", "0-3")
    v3_and_below_topics: tuple[Topic, ...] = array(Topic, "0-3")


class AddPartitionsToTxnResponse(Response):
    API_KEY = 24
    API_NAME = "AddPartitionsToTxn"
    VERSIONS = Versions(0, 5)
    FLEXIBLE_FROM = 3

    class TransactionResult(Struct):
        transactional_id: str = field("string", "4+")
        topic_results: tuple[TopicResult, ...] = array(TopicResult, "4+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "4+", ignorable=True)
    results_by_transaction: tuple[TransactionResult, ...] = array(TransactionResult, "4+")
    results_by_topic_v3_and_below: tuple[TopicResult, ...] = array(TopicResult, "0-3")
