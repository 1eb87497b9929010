"""How fast replicas are copied while they move: Kafka's throttle, which is four settings (KIP-73).

Brokers have a rate for what they give to followers and one for what they take from leaders, which
hold for the replicas that their topics name, and for nothing else. Kafka's own
kafka-reassign-partitions sets the same, so that either takes back what the other has set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.admin.reassignments import list_reassignments, replicas_before
from pyspark_kafkaproto.cluster.configs import (
    Change,
    ConfigChange,
    ConfigResource,
    alter_configs,
    describe_configs,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology, by_topic
from pyspark_kafkaproto.errors import KafkaProtoError

LEADERS, FOLLOWERS = "leader.replication.throttled", "follower.replication.throttled"
_RATES = (f"{LEADERS}.rate", f"{FOLLOWERS}.rate")
_REPLICAS = (f"{LEADERS}.replicas", f"{FOLLOWERS}.replicas")
_ALL = "*"
_OWN_SOURCES = ("topic", "dynamic broker")

Undo = dict[ConfigResource, list[ConfigChange]]
_Settings = dict[ConfigResource, dict[str, str]]


@dataclass(frozen=True, slots=True)
class _Move:
    """The brokers that have a partition, and those that are to copy it."""

    sources: tuple[int, ...]
    new: tuple[int, ...]


def throttle_reassignment(
    router: Router,
    topology: Topology,
    assignments: Mapping[TopicPartition, Sequence[int]],
    bytes_per_s: int,
) -> Undo:
    """Bound how fast what `assignments` move is copied: at each broker, in and out.

    Args:
        router: whom to ask through.
        topology: what there is, of all topics of `assignments`.
        assignments: what is to be reassigned, or is on its way.
        bytes_per_s: of each broker.

    Returns:
        What `alter_configs` takes to have the settings as they were before.

    Raises:
        BrokerError: a setting is refused; those that were made are taken back.
    """
    under_way = list_reassignments(router, set(assignments))
    moves = {}
    for partition, sources in replicas_before(topology, under_way, assignments).items():
        new = (broker for broker in assignments[partition] if broker not in sources)
        moves[partition] = _Move(sources, tuple(new))
    wanted = _settings(topology, moves, bytes_per_s)
    before = _own_settings(router, wanted)
    wanted = _with_others(wanted, before)
    undo = _undo(wanted, before)
    changes = {
        resource: [ConfigChange(name, value) for name, value in settings.items()]
        for resource, settings in wanted.items()
    }
    try:
        alter_configs(router, changes)
    except KafkaProtoError as error:
        done = {resource: undo[resource] for resource in error.usable or ()}
        try:
            alter_configs(router, done)
        except KafkaProtoError as second:
            error.add_line(f"and what was set before that could not be taken back: {second}")
        error.usable = None
        raise
    return undo


def remove_throttles(router: Router, topology: Topology) -> dict[ConfigResource, tuple[str, ...]]:
    """Take the four settings from all brokers and topics of `topology`.

    Returns:
        Those that were set, by who had them.

    Raises:
        BrokerError: a broker or topic refuses; `usable` has what would be returned of the others.
    """
    resources = {ConfigResource("topic", name) for name in topology.topics}
    resources |= {ConfigResource("broker", str(node_id)) for node_id in topology.brokers}
    found = {
        resource: tuple(sorted(own))
        for resource, own in _own_settings(router, resources).items()
        if own
    }
    changes = {
        resource: [ConfigChange(name, None, Change.DELETE) for name in names]
        for resource, names in found.items()
    }
    try:
        alter_configs(router, changes)
    except KafkaProtoError as error:
        if error.usable is not None:
            error.usable = {resource: found[resource] for resource in error.usable}
        raise
    return found


def _settings(
    topology: Topology, moves: Mapping[TopicPartition, _Move], bytes_per_s: int
) -> _Settings:
    """What has to be set for a throttle."""
    moving = {partition: move for partition, move in moves.items() if move.new}
    wanted: _Settings = {}
    for topic, partitions in by_topic(moving):
        wanted[ConfigResource("topic", topic)] = {
            f"{LEADERS}.replicas": _named((item, moving[item].sources) for item in partitions),
            f"{FOLLOWERS}.replicas": _named((item, moving[item].new) for item in partitions),
        }
    brokers = {broker for move in moving.values() for broker in (*move.sources, *move.new)}
    # One that is away gives and takes nothing.
    for broker in sorted(brokers & topology.brokers.keys()):
        resource = ConfigResource("broker", str(broker))
        wanted[resource] = dict.fromkeys(_RATES, str(bytes_per_s))
    return wanted


def _named(replicas: Iterable[tuple[TopicPartition, Collection[int]]]) -> str:
    """`0:1,0:2`: partitions' numbers with the ids of brokers."""
    return ",".join(
        f"{partition.partition}:{broker}"
        for partition, brokers in replicas
        for broker in sorted(brokers)
    )


def _with_others(wanted: _Settings, before: _Settings) -> _Settings:
    """`wanted`, where the replicas that a topic names already stay named: others may be moving."""
    found: _Settings = {}
    for resource, settings in wanted.items():
        own = dict(settings)
        for name in own.keys() & set(_REPLICAS):
            named = before[resource].get(name, "")
            if named == _ALL:
                del own[name]
            elif named:
                own[name] = ",".join(dict.fromkeys([*named.split(","), *own[name].split(",")]))
        if own:
            found[resource] = own
    return found


def _undo(wanted: _Settings, before: _Settings) -> Undo:
    """The settings as they were; one that was as wanted is of an earlier run, and to go as well."""
    return {
        resource: [
            ConfigChange(name, None, Change.DELETE)
            if before[resource].get(name, value) == value
            else ConfigChange(name, before[resource][name])
            for name, value in settings.items()
        ]
        for resource, settings in wanted.items()
    }


def _own_settings(router: Router, resources: Collection[ConfigResource]) -> _Settings:
    """Those of the four that are set for each of `resources` itself."""
    return {
        resource: {
            name: entry.value or ""
            for name, entry in entries.items()
            if name in (*_RATES, *_REPLICAS) and entry.source in _OWN_SOURCES
        }
        for resource, entries in describe_configs(router, resources).items()
    }
