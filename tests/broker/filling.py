"""Topics with something in them: real records, or partitions filled to a given end.

That is fast: the same batch of empty records again and again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from pyspark_kafkaproto.cluster import KafkaCluster, NewTopic, TopicPartition
from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import Deadline, retrying
from pyspark_kafkaproto.records import NewRecord, encode_batch

_BATCH = 9000
_NOW_MS = int(time.time() * 1000)  # old ones would fall to the retention time
_BY_NAME = 12  # the last version of Produce that names topics


def make_keyed_topic(broker: KafkaTools, kafka: KafkaCluster, name: str, records: int) -> str:
    """A topic with `k0:v0`, `k1:v1`, … over two partitions; its name."""
    kafka.create_topics([NewTopic(name, 2, 1)])
    broker.produce(name, [f"k{n}:v{n}" for n in range(records)], key_separator=":")
    return name


def fill(kafka: KafkaCluster, counts: Mapping[TopicPartition, int]) -> None:
    """Write so many records to each partition; waits for leaders that are just being made."""
    for partition, count in counts.items():
        for size in [_BATCH] * (count // _BATCH) + [count % _BATCH] * bool(count % _BATCH):
            deadline = Deadline.after(60)
            write = partial(_write, kafka, partition, size, deadline)
            retrying(f"fill {partition}", write, deadline, kafka.config.backoff)


def _write(kafka: KafkaCluster, partition: TopicPartition, size: int, deadline: Deadline) -> None:
    leader = kafka.find_leaders([partition])[partition]
    connection = kafka._router.connect(leader.endpoint, deadline)
    answer = connection.request(_request(partition, size), deadline, _BY_NAME)
    ((said,),) = (topic.partition_responses for topic in answer.responses)
    if said.error_code:
        raise BrokerError(said.error_code, "Produce", f"partition {partition}")


def _request(partition: TopicPartition, size: int) -> ProduceRequest:
    topic = ProduceRequest.Topic
    data = topic.Partition(index=partition.partition, records=_batch(size))
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=(topic(name=partition.topic, partition_data=(data,)),),
    )


_batches: dict[int, bytes] = {}


def _batch(size: int) -> bytes:
    if size not in _batches:
        _batches[size] = encode_batch([NewRecord(b"", timestamp_ms=_NOW_MS)] * size)
    return _batches[size]
