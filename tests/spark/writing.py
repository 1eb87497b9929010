"""Records as tests want them: any timestamp, header and size, which Kafka's tools cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import Backoff, Deadline, retrying
from pyspark_kafkaproto.records import NewRecord, encode_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

# Records whose timestamps are old would be deleted at the broker's next look.
KEPT = {"retention.ms": "-1"}

_BY_NAME = 12
_ALL_IN_SYNC = -1


def produce(
    servers: str, topic: str, partition: int, records: Sequence[NewRecord], **fields: int
) -> None:
    """Write one batch; `fields` are those of `encode_batch`."""
    asked = ProduceRequest.Topic.Partition(index=partition, records=encode_batch(records, **fields))
    request = ProduceRequest(
        acks=_ALL_IN_SYNC,
        timeout_ms=30_000,
        topic_data=(ProduceRequest.Topic(name=topic, partition_data=(asked,)),),
    )
    item = TopicPartition(topic, partition)
    deadline = Deadline.after(60)
    with KafkaCluster({"bootstrap.servers": servers}) as cluster:

        def attempt() -> None:
            leader = cluster.find_leaders({item})[item]
            connection = cluster._router.connections.get(leader.endpoint, deadline)
            answer = connection.request(request, deadline, _BY_NAME)
            ((found,),) = (each.partition_responses for each in answer.responses)
            if found.error_code:
                raise BrokerError(found.error_code, "Produce", f"partition {item}")

        # A leader of a topic just made may not know it yet.
        retrying("produce", attempt, deadline, Backoff())
