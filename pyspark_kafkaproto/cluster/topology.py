"""What a cluster looks like: brokers, topics, partitions, as a Metadata answer gave them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from pyspark_kafkaproto.cluster.names import TOPIC_NAMES
from pyspark_kafkaproto.error_codes import (
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    LISTENER_NOT_FOUND,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import Endpoint
from pyspark_kafkaproto.wire.declaration import NO_ID
from pyspark_kafkaproto.wire.ids import id_of, id_text


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    """Partitions under their topics, sorted: requests name each topic once."""
    grouped = groupby(sorted(partitions), key=lambda item: item.topic)
    return [(topic, list(own)) for topic, own in grouped]


def numbers_by_topic(
    partitions: Iterable[TopicPartition],
) -> list[tuple[str, tuple[int, ...]]]:
    """The same with the partitions' numbers alone."""
    return [(topic, tuple(item.partition for item in own)) for topic, own in by_topic(partitions)]


class Leader(NamedTuple):
    """The broker that leads a partition, and in which epoch."""

    node_id: int
    endpoint: Endpoint
    epoch: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One node of the cluster at its advertised address."""

    node_id: int
    endpoint: Endpoint
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's place in the cluster; `leader_id` is -1 where there is none."""

    error_code: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions by number; `topic_id` is None where the broker gave none."""

    name: str
    error_code: int
    topic_id: bytes | None
    is_internal: bool
    partitions: Mapping[int, Partition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topology:
    """Brokers by id and topics by name.

    Attributes:
        controller_id: whom clients may send what is the controller's; under KRaft any broker.
    """

    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]

    def broker(self, node_id: int) -> Broker:
        """The broker of that number; BrokerError if there is none at the moment."""
        if node_id not in self.brokers:
            known = ", ".join(map(str, sorted(self.brokers)))
            text = f"the cluster has the brokers {known} at the moment"
            subject = f"broker {node_id}"
            raise while_news_travels(BrokerError(REPLICA_NOT_AVAILABLE, "Metadata", subject, text))
        return self.brokers[node_id]

    def leader(self, partition: TopicPartition) -> Leader:
        """The leader of `partition`.

        Raises:
            BrokerError: the topic's or partition's own error, or no leader at the moment.
        """
        found = self.partition(partition)
        broker = self.brokers.get(found.leader_id)
        if broker is None:
            code = found.error_code or LEADER_NOT_AVAILABLE
            raise BrokerError(code, "Metadata", f"partition {partition}", _why_no_leader(found))
        return Leader(broker.node_id, broker.endpoint, found.leader_epoch)

    def partition(self, partition: TopicPartition) -> Partition:
        """The partition's place; BrokerError if the topic has an error or no such partition."""
        topic = self.topic(partition.topic)
        found = topic.partitions.get(partition.partition)
        if found is None:
            raise _unknown(
                f"partition {partition}", f"the topic has the partitions {sorted(topic.partitions)}"
            )
        return found

    def has_lost(self, partition: TopicPartition, topic_id: bytes | None) -> bool:
        """Whether another topic has the name of this one by now, and no such partition.

        Of no topic partitions are taken away: of the same one a broker that lacks it is behind.

        Args:
            partition: which there was.
            topic_id: of its topic; None where that is not known.
        """
        found = self.topics.get(partition.topic)
        if found is None or not topic_id or found.topic_id in {None, topic_id}:
            return False
        return self.has(partition.topic) and self.find(partition) is None

    def find(self, partition: TopicPartition) -> Partition | None:
        """The partition; None where there is none, or it may not be seen."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.partitions.get(partition.partition)

    def partitions_of(self, topics: Iterable[str]) -> set[TopicPartition]:
        """All partitions of `topics`; BrokerError as for `topic`."""
        return {
            TopicPartition(name, number)
            for name in topics
            for number in self.topic(name).partitions
        }

    @property
    def topic_ids(self) -> dict[str, bytes]:
        """The ids of the topics that may be seen; brokers before Kafka 2.8 know none."""
        return {
            name: topic.topic_id
            for name, topic in self.topics.items()
            if not topic.error_code and topic.topic_id is not None
        }

    def has(self, name: str) -> bool:
        """Whether there is a topic called `name`, one that may not be seen included."""
        topic = self.topics.get(name)
        return topic is not None and topic.error_code != UNKNOWN_TOPIC_OR_PARTITION

    def topic(self, name: str) -> Topic:
        """The topic called `name`; BrokerError if the broker gave an error for it."""
        topic = self.topics.get(name)
        if topic is None or topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
            raise _unknown(f"topic {name!r}", _NO_SUCH_TOPIC)
        if topic.error_code:
            advice = _TOPIC_ADVICE.get(topic.error_code, "")
            raise BrokerError(topic.error_code, "Metadata", f"topic {name!r}", advice)
        return topic


def made_again(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """The topics that are others by now, by their ids, in the order of `now`.

    What is known of one side alone says nothing.
    """
    return [name for name, found in now.items() if found != before.get(name, found)]


def topic_id_text(topic_id: bytes) -> str:
    """A topic's id as Kafka's tools print it."""
    return id_text(topic_id)


def topic_id_of(text: str) -> bytes | None:
    """The id that `topic_id_text` shows so; None where it is none."""
    return id_of(text)


def _unknown(subject: str, advice: str) -> BrokerError:
    return while_news_travels(BrokerError(UNKNOWN_TOPIC_OR_PARTITION, "Metadata", subject, advice))


def while_news_travels(error: BrokerError) -> BrokerError:
    """`error`; one that knows no such thing is worth a retry only while news of it may travel."""
    if error.code in _UNKNOWN:
        error.patience_s = _NEWS_TRAVELS_S
    return error


# A topic just created is known to every broker well within this time.
_NEWS_TRAVELS_S = 1.0
_UNKNOWN = {UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE}


_NO_SUCH_TOPIC = (
    "there is no such topic, or this user may not see it (nothing here creates one): "
    "check its name, or create it first"
)
_TOPIC_ADVICE = {
    INVALID_TOPIC_EXCEPTION: TOPIC_NAMES,
}


def replicas_text(partition: Partition) -> str:
    """Where the partition's replicas are, and in which state."""
    return (
        f"replicas {list(partition.replicas)}, in sync {list(partition.isr)}, "
        f"offline {list(partition.offline_replicas)}"
    )


def _why_no_leader(partition: Partition) -> str:
    where = replicas_text(partition)
    if partition.error_code == LISTENER_NOT_FOUND:
        return f"its leader has no listener like the one that the broker was reached at; {where}"
    return f"no leader; {where}: one is elected when a replica that is in sync comes back"


def read_topology(answer: MetadataResponse) -> Topology:
    """A Metadata answer as a Topology."""
    brokers = {
        broker.node_id: Broker(broker.node_id, Endpoint(broker.host, broker.port), broker.rack)
        for broker in answer.brokers
    }
    topics = {topic.name: _read_topic(topic) for topic in answer.topics if topic.name is not None}
    return Topology(answer.cluster_id, answer.controller_id, brokers, topics)


def _read_topic(topic: MetadataResponse.Topic) -> Topic:
    partitions = {
        partition.partition_index: Partition(
            partition.error_code,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in topic.partitions
    }
    topic_id = None if topic.topic_id == NO_ID else topic.topic_id
    return Topic(topic.name or "", topic.error_code, topic_id, topic.is_internal, partitions)
