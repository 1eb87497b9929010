"""What is wrong with topics and partitions, as the cluster itself tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark_kafkaproto.cluster.topology import (
    Partition,
    Topic,
    TopicPartition,
    Topology,
    replicas_text,
)
from pyspark_kafkaproto.error_codes import error_code


class Problem(NamedTuple):
    """Something that is not as it should be: with what, what it is, what it means or needs."""

    subject: str
    what: str
    meaning: str


def find_problems(topology: Topology) -> list[Problem]:
    """Topics with errors; partitions without a leader, or without all replicas in sync."""
    return [
        problem
        for _, topic in sorted(topology.topics.items())
        for problem in _of_topic(topic, topology)
    ]


def _of_topic(topic: Topic, topology: Topology) -> Iterator[Problem]:
    if topic.error_code:
        row = error_code(topic.error_code)
        yield Problem(f"topic {topic.name!r}", row.name, "its partitions cannot be seen")
    for number, partition in sorted(topic.partitions.items()):
        found = _of_partition(partition, topology)
        if found is not None:
            subject = f"partition {TopicPartition(topic.name, number)}"
            yield Problem(subject, found[0], f"{replicas_text(partition)}: {found[1]}")


def _of_partition(partition: Partition, topology: Topology) -> tuple[str, str] | None:
    if partition.leader_id not in topology.brokers:
        return "no leader", "neither read nor written until a replica that is in sync comes back"
    if not partition.isr:
        return "no replica in sync", "nothing that is written is safe, acks=all is refused"
    if partition.offline_replicas:
        return "replicas offline", "bring these brokers or their disks back"
    if len(partition.isr) < len(partition.replicas):
        return "too few replicas in sync", "the others are behind, or still catching up"
    return None
