"""Records as tests want them: any timestamp, header and size, which Kafka's tools cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import Backoff, Deadline, retrying
from pyspark_kafkaproto.records import NewRecord, encode_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BY_NAME = 12
_ALL_IN_SYNC = -1


def produce(
    servers: str, topic: str, partition: int, records: Sequence[NewRecord], **fields: int
) -> None:
    """Write one batch; `fields` are those of `encode_batch`."""
    produce_batches(servers, topic, {partition: encode_batch(records, **fields)})


def produce_batches(servers: str, topic: str, batches: Mapping[int, bytes]) -> None:
    """Write a batch to each partition, once."""
    left = dict(batches)
    deadline = Deadline.after(60)
    with KafkaCluster({"bootstrap.servers": servers}) as cluster:

        def attempt() -> None:
            leaders = cluster.find_leaders({TopicPartition(topic, number) for number in left})
            for endpoint in {leader.endpoint for leader in leaders.values()}:
                led = [
                    item.partition
                    for item, leader in leaders.items()
                    if leader.endpoint == endpoint
                ]
                connection = cluster._router.connections.get(endpoint, deadline)
                request = _request(topic, {number: left[number] for number in led})
                answer = connection.request(request, deadline, _BY_NAME)
                ((found,),) = ([each.partition_responses] for each in answer.responses)
                for item in found:
                    if not item.error_code:
                        del left[item.index]
                refused = [item for item in found if item.error_code]
                if refused:
                    subject = f"{topic}-{refused[0].index}"
                    raise BrokerError(refused[0].error_code, "Produce", subject)

        # A leader of a topic just made may not know it yet.
        retrying("produce", attempt, deadline, Backoff())
    assert not left


def _request(topic: str, batches: Mapping[int, bytes]) -> ProduceRequest:
    asked = tuple(
        ProduceRequest.Topic.Partition(index=number, records=batch)
        for number, batch in batches.items()
    )
    return ProduceRequest(
        acks=_ALL_IN_SYNC,
        timeout_ms=30_000,
        topic_data=(ProduceRequest.Topic(name=topic, partition_data=asked),),
    )
