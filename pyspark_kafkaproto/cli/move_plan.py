"""What an assignment of replicas asks to be done, given where they are.

Asks brokers where things are, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cli.assignment_file import Assigned, Assignment
from pyspark_kafkaproto.cli.values import existing_topics
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica
from pyspark_kafkaproto.cluster.admin.reassignments import replicas_before


@dataclass(frozen=True, slots=True)
class Plan:
    """Where replicas are now, which partitions are to be elsewhere, and which replicas' folders.

    `left` are the folders that replicas are to leave for others of their brokers.
    """

    before: Assignment
    moves: Assignment
    folders: Mapping[Replica, str]
    left: Mapping[Replica, str]

    @property
    def partitions(self) -> set[TopicPartition]:
        """All that something is to be done about."""
        return {*self.moves, *(TopicPartition(item.topic, item.partition) for item in self.folders)}

    @property
    def way_back(self) -> Assigned:
        """What has all where it is now, the folders included that replicas leave."""
        replicas = {item: self.before[item] for item in self.partitions}
        return Assigned(replicas, dict(self.left))


def planned(cluster: KafkaCluster, wanted: Assigned) -> Plan:
    """What of `wanted` is another place, or is not settled yet."""
    topics = {item.topic for item in wanted.replicas}
    topology = existing_topics(cluster, topics)
    moving = cluster.list_reassignments(wanted.replicas)
    before = replicas_before(topology, moving, wanted.replicas)
    moves = {
        item: replicas
        for item, replicas in wanted.replicas.items()
        if before[item] != replicas or item in moving
    }
    now = _folders_now(cluster, wanted.folders)
    folders = {item: path for item, path in wanted.folders.items() if now.get(item) != path}
    left = {
        item: now[item]
        for item in folders
        if item in now and item.broker in before[TopicPartition(item.topic, item.partition)]
    }
    return Plan(before, moves, folders, left)


def under_way(cluster: KafkaCluster, plan: Plan) -> set[TopicPartition]:
    """The partitions that are not where they are to be yet."""
    moving = set(cluster.list_reassignments(plan.moves))
    # Folders are asked about once replicas are at their brokers.
    now = plan.folders if moving else _folders_now(cluster, plan.folders)
    coming = (item for item, path in plan.folders.items() if now.get(item) != path)
    return moving | {TopicPartition(item.topic, item.partition) for item in coming}


def _folders_now(cluster: KafkaCluster, replicas: Collection[Replica]) -> dict[Replica, str]:
    """Where what the brokers of `replicas` have as a whole is."""
    if not replicas:
        return {}
    found = cluster.describe_log_dirs({item.broker for item in replicas})
    return {
        Replica(broker, *partition): path
        for broker, own in found.items()
        for path, folder in own.items()
        for partition, log in folder.replicas.items()
        if not log.is_future
    }
