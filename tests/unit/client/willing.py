"""Brokers that are willing to coordinate transactions: what their coordinators answer."""

from __future__ import annotations

from itertools import zip_longest

from pyspark_kafkaproto.messages import add_offsets_to_txn, add_partitions_to_txn, txn_offset_commit
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.end_txn import EndTxnResponse
from tests.fake_broker import api_versions

_COORDINATION = {
    "InitProducerId": 5,
    "AddPartitionsToTxn": 5,
    "AddOffsetsToTxn": 4,
    "TxnOffsetCommit": 5,
    "EndTxn": 5,
}


def be_willing(brokers, level=2):
    """Let transactions of this version be begun, written in and ended."""
    for api, most in _COORDINATION.items():
        brokers.versions[api] = (0, most)
    brokers.on("ApiVersions", versions(brokers, level))
    brokers.on("AddPartitionsToTxn", added())
    brokers.on("AddOffsetsToTxn", add_offsets_to_txn.AddOffsetsToTxnResponse())
    brokers.on("TxnOffsetCommit", offsets_committed)
    brokers.on("EndTxn", EndTxnResponse() if level == 1 else next_epoch)


def versions(brokers, level):
    """ApiVersions of a cluster whose transactions are of this version."""

    def answer(call):
        feature = ApiVersionsResponse.FinalizedFeature(
            name="transaction.version", max_version_level=level, min_version_level=0
        )
        return ApiVersionsResponse(
            api_keys=api_versions(brokers, call).api_keys,
            finalized_features=(feature,),
            finalized_features_epoch=0,
        )

    return answer


def added(*codes):
    """Answers AddPartitionsToTxn with a code for each partition of a topic; what is left has 0."""
    result = add_partitions_to_txn.PartitionResult

    def answer(call):
        topics = (
            add_partitions_to_txn.TopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    result(partition_index=n, partition_error_code=code)
                    for n, code in zip_longest(topic.partitions, codes, fillvalue=0)
                ),
            )
            for topic in call.request.v3_and_below_topics
        )
        return add_partitions_to_txn.AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=tuple(topics)
        )

    return answer


def offsets_committed(call):
    """The answer to TxnOffsetCommit of a broker that is willing."""
    part = txn_offset_commit.TxnOffsetCommitResponse.Topic
    topics = (
        part(
            name=topic.name,
            partitions=tuple(
                part.Partition(partition_index=item.partition_index) for item in topic.partitions
            ),
        )
        for topic in call.request.topics
    )
    return txn_offset_commit.TxnOffsetCommitResponse(topics=tuple(topics))


def next_epoch(call):
    """The answer to EndTxn, from version 2 of transactions on."""
    return EndTxnResponse(
        producer_id=call.request.producer_id, producer_epoch=call.request.producer_epoch + 1
    )
