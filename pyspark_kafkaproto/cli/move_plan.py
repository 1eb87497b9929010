"""What an assignment of replicas asks to be done, given where they are.

Asks brokers where things are, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cli.assignment_file import Assigned, Assignment
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica
from pyspark_kafkaproto.cluster.admin.reassignments import replicas_before


@dataclass(frozen=True, slots=True)
class Plan:
    """Where replicas are now, which partitions are to be elsewhere, and which replicas' folders."""

    before: Assignment
    moves: Assignment
    folders: Mapping[Replica, str]

    @property
    def partitions(self) -> set[TopicPartition]:
        """All that something is to be done about."""
        return {*self.moves, *(TopicPartition(item.topic, item.partition) for item in self.folders)}


def planned(cluster: KafkaCluster, wanted: Assigned) -> Plan:
    """What of `wanted` is another place, or is not settled yet."""
    topology = cluster.describe({item.topic for item in wanted.replicas}, must_exist=True)
    moving = cluster.list_reassignments(wanted.replicas)
    before = replicas_before(topology, moving, wanted.replicas)
    moves = {
        item: replicas
        for item, replicas in wanted.replicas.items()
        if before[item] != replicas or item in moving
    }
    return Plan(before, moves, _not_there(cluster, wanted.folders))


def under_way(cluster: KafkaCluster, plan: Plan) -> set[TopicPartition]:
    """The partitions that are not where they are to be yet."""
    moving = set(cluster.list_reassignments(plan.moves))
    # Folders are asked about once replicas are at their brokers.
    coming = {} if moving else _not_there(cluster, plan.folders)
    return moving | {TopicPartition(item.topic, item.partition) for item in coming}


def _not_there(cluster: KafkaCluster, folders: Mapping[Replica, str]) -> dict[Replica, str]:
    """Those replicas that are not, or not as a whole, in the folders named."""
    if not folders:
        return {}
    found = cluster.describe_log_dirs({item.broker for item in folders})
    there = {
        (Replica(broker, *partition), path)
        for broker, own in found.items()
        for path, folder in own.items()
        for partition, log in folder.replicas.items()
        if not log.is_future
    }
    return {item: path for item, path in folders.items() if (item, path) not in there}
