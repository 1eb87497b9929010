"""The five settings of Kafka's throttle (KIP-73, KIP-113): whose they are, read, and changed.

What a throttle makes of them `throttles` says. Each change goes as far as it can: what is refused
is told at the end, or what was done before it is taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark_kafkaproto.cluster.configs import (
    Change,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    alter_configs,
    describe_configs,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import Topology
from pyspark_kafkaproto.errors import KafkaProtoError, joined

LEADERS, FOLLOWERS = "leader.replication.throttled", "follower.replication.throttled"
FOLDERS = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = (f"{LEADERS}.rate", f"{FOLLOWERS}.rate")
REPLICAS = (f"{LEADERS}.replicas", f"{FOLLOWERS}.replicas")
_FIVE = (*RATES, FOLDERS, *REPLICAS)
ALL = "*"  # in place of a list
_OWN_SOURCES = ("topic", "dynamic broker")

Settings = dict[ConfigResource, dict[str, str]]
# By topic and setting: `0:1`, a partition with the id of a broker.
Replicas = Mapping[ConfigResource, Mapping[str, Sequence[str]]]


def own_settings(router: Router, resources: Collection[ConfigResource]) -> Settings:
    """Those of the five that are set for each of `resources` itself."""
    return _of_the_five(describe_configs(router, resources, _FIVE))


def _readable(
    router: Router, resources: Collection[ConfigResource], refusals: Refusals
) -> Settings:
    """The same of those that may be read; the others are noted in `refusals`."""
    try:
        return own_settings(router, resources)
    except KafkaProtoError as error:
        refusals.note(error)
        return _of_the_five(error.usable or {})


def _of_the_five(found: Mapping[ConfigResource, Mapping[str, ConfigEntry]]) -> Settings:
    return {
        resource: {
            name: entry.value or ""
            for name, entry in entries.items()
            if name in _FIVE and entry.source in _OWN_SOURCES
        }
        for resource, entries in found.items()
    }


def topics_of(topology: Topology) -> set[ConfigResource]:
    """Those that are there."""
    return {ConfigResource("topic", name) for name in topology.topics if topology.has(name)}


def brokers_of(topology: Topology, brokers: Iterable[int]) -> set[ConfigResource]:
    """Those that are there: one that is away gives and takes nothing."""
    there = topology.brokers.keys() & set(brokers)
    return {ConfigResource("broker", str(broker)) for broker in there}


def entries_of(settings: Mapping[str, str], name: str) -> list[str]:
    """What the list of this name has."""
    return [entry for entry in settings.get(name, "").split(",") if entry]


def names_any(found: Settings, replicas: Replicas) -> bool:
    """Whether one of `replicas` is named."""
    return any(
        entry in entries_of(found.get(topic, {}), name)
        for topic, own in replicas.items()
        for name, entries in own.items()
        for entry in entries
    )


def lists_changed(replicas: Replicas, change: Change) -> dict[ConfigResource, list[ConfigChange]]:
    """What adds these to what topics name, or takes them from it."""
    return {
        topic: [ConfigChange(name, ",".join(entries), change) for name, entries in own.items()]
        for topic, own in replicas.items()
    }


def set_or_take_back(
    router: Router, changes: Mapping[ConfigResource, Sequence[ConfigChange]], before: Settings
) -> None:
    """Make `changes`; what was set is made what it was `before` where some of it is refused.

    So is what may have been set: whoever did not answer may have done it.
    """
    try:
        alter_configs(router, changes)
    except KafkaProtoError as error:
        done = {
            resource: [
                put_back(item.name, before[resource].get(item.name)) for item in changes[resource]
            ]
            for resource in changes.keys() - set(error.refused or ())
        }
        try:
            alter_configs(router, done)
        except KafkaProtoError as second:
            text = f"and what was set, or may have been, could not be taken back: {second}"
            error.add_line(text)
        error.usable = None
        raise


def put_back(name: str, before: str | None) -> ConfigChange:
    """What makes a setting what it was."""
    if before is None:
        return ConfigChange(name, None, Change.DELETE)
    return ConfigChange(name, before)


def remove_throttles(router: Router, topology: Topology) -> dict[ConfigResource, tuple[str, ...]]:
    """Take the five settings from all brokers and topics of `topology`.

    Returns:
        Those that were set, by who had them.

    Raises:
        BrokerError: a broker or topic refuses to tell or to change, or a broker that has replicas
            is away, and may keep its rates; names them all, and `usable` has what would be
            returned of the others.
    """
    refusals = Refusals()
    ids = {*topology.brokers}.union(
        *(each.replicas for topic in topology.topics.values() for each in topic.partitions.values())
    )
    # Who is away is asked for, too, so that it is told of: its rates are there when it comes back.
    brokers = {ConfigResource("broker", str(broker)) for broker in ids}
    settings = _readable(router, topics_of(topology) | brokers, refusals)
    found = {resource: tuple(sorted(own)) for resource, own in settings.items() if own}
    changes = {
        resource: [ConfigChange(name, None, Change.DELETE) for name in names]
        for resource, names in found.items()
    }
    try:
        alter_configs(router, changes)
    except KafkaProtoError as error:
        refusals.note(error)
        found = {resource: found[resource] for resource in error.usable or ()}
    refusals.tell(usable=found)
    return found


def still_named(
    router: Router,
    topics: Collection[ConfigResource],
    taken: Replicas,
    refusals: Refusals,
) -> Settings:
    """What is set for those of `topics` that may be read, once `taken` is known to be taken."""

    def ask() -> tuple[Settings, Refusals]:
        met = Refusals()
        return _readable(router, topics, met), met

    # A broker may not have heard yet of what the controller has just done.
    found, met = router.believed(ask, lambda answer: not names_any(answer[0], taken))
    refusals.add(met)
    return found


class Refusals:
    """What was refused in several steps, each of which goes on with the rest."""

    def __init__(self) -> None:
        self._errors: list[KafkaProtoError] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what a step is refused, for the end."""
        try:
            yield
        except KafkaProtoError as error:
            self.note(error)

    def note(self, error: KafkaProtoError) -> None:
        """Keep it for the end."""
        self._errors.append(error)

    def add(self, others: Refusals) -> None:
        """Keep those of `others`, too."""
        self._errors += others._errors

    def tell(self, usable: object) -> None:
        """Raise the first, which names all others too; `usable` is what was done all the same."""
        if self._errors:
            error = joined(self._errors)
            error.usable = usable
            raise error
