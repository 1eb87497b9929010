"""What an assignment of replicas asks to be done, given where they are.

Asks brokers where things are, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import click

from pyspark_kafkaproto.cli.assignment_file import Assigned, Assignment
from pyspark_kafkaproto.cli.values import existing_topics
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.admin import Replica
from pyspark_kafkaproto.cluster.admin.reassignments import replicas_before
from pyspark_kafkaproto.errors import UnsupportedVersion

_Places = set[tuple[Replica, str]]


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
    there, copies = _in_folders(cluster, wanted.folders)
    folders = _not_there(wanted.folders, there, copies)
    left = {
        item: path
        for item, path in there
        if item in folders and item.broker in before[TopicPartition(item.topic, item.partition)]
    }
    return Plan(before, moves, folders, left)


def check_brokers(cluster: KafkaCluster, plan: Plan) -> None:
    """Refuse brokers that there are not: controllers begin the moves of all other partitions.

    One that is away is a broker, too. Before Kafka 4.0 none is told of that is away: all is left
    to the controller there.

    Raises:
        click.ClickException: there are none of such ids.
    """
    wanted = {broker for replicas in plan.moves.values() for broker in replicas}
    if wanted <= cluster.describe(()).brokers.keys():
        return
    try:
        # One that was registered just now is news to some brokers.
        known = cluster.believed(cluster.registered_brokers, wanted.issubset)
    except UnsupportedVersion:
        return
    if missing := wanted - known:
        raise click.ClickException(
            f"there is no broker {_ids(missing)}: the cluster has the brokers {_ids(known)}"
        )


def _ids(brokers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))


class UnderWay(NamedTuple):
    """The partitions that are not where they are to be yet.

    `stray` are replicas that are not in the folders named, where none is being copied any more.
    """

    partitions: set[TopicPartition]
    stray: Mapping[Replica, str]


def under_way(cluster: KafkaCluster, plan: Plan) -> UnderWay:
    """What is not where it is to be yet."""
    moving = set(cluster.list_reassignments(plan.moves))
    # Folders are asked about once replicas are at their brokers.
    if moving:
        return UnderWay(moving, {})
    there, copies = _in_folders(cluster, plan.folders)
    coming = _not_there(plan.folders, there, copies)
    stray = {} if coming.items() & copies else dict(coming.items() - there)
    return UnderWay({TopicPartition(item.topic, item.partition) for item in coming}, stray)


def _not_there(
    folders: Mapping[Replica, str], there: _Places, copies: _Places
) -> dict[Replica, str]:
    """Those replicas that are not, or not as a whole, in the folders named, or about to leave."""
    # A copy on its way takes the place of what is there. To be there is to drop it.
    leaving = {item for item, _ in copies}
    return {
        item: path for item, path in folders.items() if item in leaving or (item, path) not in there
    }


def _in_folders(cluster: KafkaCluster, replicas: Collection[Replica]) -> tuple[_Places, _Places]:
    """What the brokers of `replicas` have, with its folder: as a whole, and as copies."""
    there: _Places = set()
    copies: _Places = set()
    found = cluster.describe_log_dirs({item.broker for item in replicas}) if replicas else {}
    for broker, own in found.items():
        for path, folder in own.items():
            for partition, log in folder.replicas.items():
                (copies if log.is_future else there).add((Replica(broker, *partition), path))
    return there, copies
