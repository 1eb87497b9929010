"""How fast replicas are copied while they move: Kafka's throttle, five settings (KIP-73).

Brokers have a rate for what they give to followers and one for what they take from leaders, which
hold for the replicas that their topics name, and for nothing else; a third one holds for all that
they copy between their own folders (KIP-113). Kafka's own kafka-reassign-partitions sets the same,
so that either takes back what the other has set.

Several may move replicas at once, and the settings are common to all of them. So each one's
replicas are added to what a topic names, and taken from it again, by whoever keeps the settings;
and a rate stays for as long as anybody moves something.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.admin.log_dirs import describe_log_dirs
from pyspark_kafkaproto.cluster.admin.reassignments import list_reassignments, replicas_before
from pyspark_kafkaproto.cluster.configs import (
    Change,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    alter_configs,
    describe_configs,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology, by_topic
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError

LEADERS, FOLLOWERS = "leader.replication.throttled", "follower.replication.throttled"
FOLDERS = "replica.alter.log.dirs.io.max.bytes.per.second"
_RATES = (f"{LEADERS}.rate", f"{FOLLOWERS}.rate")
_REPLICAS = (f"{LEADERS}.replicas", f"{FOLLOWERS}.replicas")
_FIVE = (*_RATES, FOLDERS, *_REPLICAS)
_ALL = "*"  # in place of a list
_OWN_SOURCES = ("topic", "dynamic broker")

_Settings = dict[ConfigResource, dict[str, str]]
# By topic and setting: `0:1`, a partition with the id of a broker.
_Replicas = Mapping[ConfigResource, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Rate:
    """A broker's rate that was set.

    Attributes:
        value: what it was set to.
        before: what it was.
        is_standing: whether that was so for good, and not for what somebody else moved.
    """

    value: str
    before: str | None
    is_standing: bool


@dataclass(frozen=True, slots=True)
class Throttle:
    """What was set for a throttle, for `end_throttle`.

    Attributes:
        replicas: by topic and setting, those that it names for this throttle (`0:1`).
        rates: by broker and setting.
    """

    replicas: _Replicas
    rates: Mapping[ConfigResource, Mapping[str, Rate]]

    def __bool__(self) -> bool:
        return bool(self.replicas or self.rates)

    @property
    def is_of_copies(self) -> bool:
        """Whether it bounds what goes from broker to broker."""
        return any(name in _RATES for own in self.rates.values() for name in own)


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
) -> Throttle:
    """Bound how fast what `assignments` move is copied: at each broker, in and out.

    Args:
        router: whom to ask through.
        topology: what there is, of all topics of `assignments`.
        assignments: what is to be reassigned, or is on its way.
        bytes_per_s: of each broker.

    Returns:
        What `end_throttle` takes.

    Raises:
        BrokerError: a setting is refused; those that were made are taken back.
    """
    under_way = list_reassignments(router)
    moves = {}
    for partition, sources in replicas_before(topology, under_way, assignments).items():
        new = tuple(broker for broker in assignments[partition] if broker not in sources)
        if new:
            moves[partition] = _Move(sources, new)
    named = {
        ConfigResource("topic", topic): {
            f"{LEADERS}.replicas": _named((item, moves[item].sources) for item in partitions),
            f"{FOLLOWERS}.replicas": _named((item, moves[item].new) for item in partitions),
        }
        for topic, partitions in by_topic(moves)
    }
    ids = {broker for move in moves.values() for broker in (*move.sources, *move.new)}
    brokers = _present(topology, ids)
    before = _own_settings(router, {*named, *brokers})
    again = {(item.topic, str(item.partition)) for item in under_way}
    replicas = {
        topic: own
        for topic, wanted in named.items()
        if (own := _to_take_back(topic.name, wanted, before[topic], again))
    }
    is_quiet = not under_way and not _names_any(before, replicas)
    value = str(bytes_per_s)
    rates = {
        broker: {name: _rate(value, before[broker].get(name), is_quiet) for name in _RATES}
        for broker in brokers
    }
    added = {
        topic: {
            name: entries for name, entries in wanted.items() if not _names_all(before, topic, name)
        }
        for topic, wanted in named.items()
    }
    _set(router, {topic: own for topic, own in added.items() if own}, rates, before)
    return Throttle(replicas, rates)


def throttle_folders(
    router: Router, topology: Topology, brokers: Collection[int], bytes_per_s: int
) -> Throttle:
    """Bound how fast each of `brokers` copies between its own folders.

    Raises:
        BrokerError: a broker refuses; what was set at others is taken back.
    """
    present = _present(topology, brokers)
    before = _own_settings(router, present)
    copying = _copying(router, present)
    rates = {
        broker: {
            FOLDERS: _rate(str(bytes_per_s), before[broker].get(FOLDERS), broker not in copying)
        }
        for broker in present
    }
    _set(router, {}, rates, before)
    return Throttle({}, rates)


def end_throttle(router: Router, throttle: Throttle) -> set[ConfigResource]:
    """Take back what was set, as far as nobody else is in need of it.

    Topics name the replicas no more that they name for this throttle. While others move something
    rates are what they are. Once nobody does, one that was there for good comes back, and any other
    goes, whoever has set it, unless topics still name replicas: who ends last takes all away. A
    topic whose settings may not be read keeps no rate.

    Returns:
        The brokers that keep a rate for others.

    Raises:
        BrokerError: a broker or topic refuses, or a broker is away, which keeps its rate; names
            them all. What could be done is done, and `usable` has what would be returned.
    """
    # Of a topic that was deleted meanwhile nothing is left to take back.
    there = _topics(router.described({topic.name for topic in throttle.replicas}))
    replicas = {topic: own for topic, own in throttle.replicas.items() if topic in there}
    refusals = _Refusals()
    with refusals.noted():
        alter_configs(router, _lists(replicas, Change.SUBTRACT))
    others = _others(router, throttle)
    topics = set(replicas)
    if throttle.is_of_copies and not any(others.values()):
        topics |= _topics(router.described(None))
    found = _still_named(router, topics, replicas, refusals)
    needed = _needed(throttle, others, is_named=_names_others(found, replicas))
    changes = _emptied(found, replicas) | _rates_back(throttle, needed)
    with refusals.noted():
        alter_configs(router, {resource: own for resource, own in changes.items() if own})
    kept = {broker for broker, _ in needed}
    refusals.tell(usable=kept)
    return kept


class _Refusals:
    """What was refused in several steps, each of which goes on with the rest."""

    def __init__(self) -> None:
        self._errors: list[BrokerError] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note what a step is refused, for the end."""
        try:
            yield
        except BrokerError as error:
            self.note(error)

    def note(self, error: BrokerError) -> None:
        """Keep it for the end."""
        self._errors.append(error)

    def tell(self, usable: object) -> None:
        """Raise the first, which names all others too; `usable` is what was done all the same."""
        if not self._errors:
            return
        first, *others = self._errors
        for error in others:
            first.add_line(str(error))
        first.usable = usable
        raise first


def _still_named(
    router: Router,
    topics: Collection[ConfigResource],
    taken: _Replicas,
    refusals: _Refusals,
) -> _Settings:
    """What is set for those of `topics` that may be read, once `taken` is known to be taken."""

    def ask() -> tuple[_Settings, BrokerError | None]:
        try:
            return _own_settings(router, topics), None
        except BrokerError as error:
            return _of_the_five(error.usable or {}), error

    # A broker may not have heard yet of what the controller has just done.
    found, error = router.believed(ask, lambda answer: not _names_any(answer[0], taken))
    if error is not None:
        refusals.note(error)
    return found


def _names_others(found: _Settings, replicas: _Replicas) -> bool:
    """Whether a topic names any but `replicas`."""
    return any(
        set(_entries(own, name)).difference(replicas.get(topic, {}).get(name, ()))
        for topic, own in found.items()
        for name in _REPLICAS
    )


def _needed(
    throttle: Throttle, others: Mapping[tuple[ConfigResource, str], bool], *, is_named: bool
) -> set[tuple[ConfigResource, str]]:
    """The rates that stay: those that bound something, or what topics still name."""
    return {
        (broker, name)
        for broker, own in throttle.rates.items()
        for name, rate in own.items()
        if others[broker, name] or (is_named and name in _RATES and not rate.is_standing)
    }


def _emptied(found: _Settings, replicas: _Replicas) -> dict[ConfigResource, list[ConfigChange]]:
    """Taken from until nothing is left, a list is set all the same: those go."""
    return {
        topic: [
            ConfigChange(name, None, Change.DELETE) for name in own if not found[topic].get(name)
        ]
        for topic, own in replicas.items()
        if topic in found
    }


def _rates_back(
    throttle: Throttle, needed: Collection[tuple[ConfigResource, str]]
) -> dict[ConfigResource, list[ConfigChange]]:
    return {
        broker: [
            _back(name, rate.before if rate.is_standing else None)
            for name, rate in own.items()
            if (broker, name) not in needed
        ]
        for broker, own in throttle.rates.items()
    }


def _lists(replicas: _Replicas, change: Change) -> dict[ConfigResource, list[ConfigChange]]:
    """What adds these to what topics name, or takes them from it."""
    return {
        topic: [ConfigChange(name, ",".join(entries), change) for name, entries in own.items()]
        for topic, own in replicas.items()
    }


def _others(router: Router, throttle: Throttle) -> dict[tuple[ConfigResource, str], bool]:
    """Whether something is being moved that a broker's rate bounds."""
    rates = [(broker, name) for broker, own in throttle.rates.items() for name in own]
    of_folders = {broker for broker, name in rates if name == FOLDERS}
    if of_folders:  # who is away copies nothing
        of_folders &= _present(router.described(()), map(_id, of_folders))
    copying = _copying(router, of_folders)
    is_moving = any(name in _RATES for _, name in rates) and bool(list_reassignments(router))
    return {
        (broker, name): broker in copying if name == FOLDERS else is_moving
        for broker, name in rates
    }


def remove_throttles(router: Router, topology: Topology) -> dict[ConfigResource, tuple[str, ...]]:
    """Take the five settings from all brokers and topics of `topology`.

    Returns:
        Those that were set, by who had them.

    Raises:
        BrokerError: a broker or topic refuses; `usable` has what would be returned of the others.
    """
    resources = _topics(topology) | _present(topology, topology.brokers)
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


def _topics(topology: Topology) -> set[ConfigResource]:
    return {ConfigResource("topic", name) for name in topology.topics if topology.has(name)}


def _id(broker: ConfigResource) -> int:
    return int(broker.name)


def _present(topology: Topology, brokers: Iterable[int]) -> set[ConfigResource]:
    """Those that are there: one that is away gives and takes nothing."""
    there = topology.brokers.keys() & set(brokers)
    return {ConfigResource("broker", str(broker)) for broker in there}


def _copying(router: Router, brokers: Collection[ConfigResource]) -> set[ConfigResource]:
    """Those that copy a replica from one of their folders to another."""
    if not brokers:
        return set()
    found = describe_log_dirs(router, set(map(_id, brokers)))
    return {
        ConfigResource("broker", str(broker))
        for broker, folders in found.items()
        if any(log.is_future for folder in folders.values() for log in folder.replicas.values())
    }


def _rate(value: str, before: str | None, is_quiet: bool) -> Rate:
    """One that was as wanted is of an earlier run, and to go as well.

    is_quiet: nothing was being moved, and no earlier run of this one had named its replicas.
    """
    return Rate(value, before, is_quiet and before not in (None, value))


def _named(replicas: Iterable[tuple[TopicPartition, Collection[int]]]) -> list[str]:
    """`0:1`, `0:2`: partitions' numbers with the ids of brokers."""
    return [
        f"{partition.partition}:{broker}"
        for partition, brokers in replicas
        for broker in sorted(brokers)
    ]


def _entries(settings: Mapping[str, str], name: str) -> list[str]:
    return [entry for entry in settings.get(name, "").split(",") if entry]


def _names_any(found: _Settings, replicas: _Replicas) -> bool:
    return any(
        entry in _entries(found.get(topic, {}), name)
        for topic, own in replicas.items()
        for name, entries in own.items()
        for entry in entries
    )


def _names_all(before: _Settings, topic: ConfigResource, name: str) -> bool:
    return before[topic].get(name) == _ALL


def _to_take_back(
    topic: str,
    wanted: Mapping[str, list[str]],
    before: Mapping[str, str],
    again: set[tuple[str, str]],
) -> dict[str, list[str]]:
    """Of what is named, what is named for this throttle alone, or for an earlier run of it.

    That is what was not named before; but where a partition was being moved already, or just this
    was named, an earlier run has named it.
    """
    found = {}
    for name, entries in wanted.items():
        old = _entries(before, name)
        if old == [_ALL]:
            continue
        is_same = set(old) == set(entries)
        own = [
            entry
            for entry in entries
            if entry not in old or is_same or (topic, entry.partition(":")[0]) in again
        ]
        if own:
            found[name] = own
    return found


def _set(
    router: Router,
    replicas: Mapping[ConfigResource, Mapping[str, list[str]]],
    rates: Mapping[ConfigResource, Mapping[str, Rate]],
    before: _Settings,
) -> None:
    """Set what a throttle takes; what was set is taken back where some of it is refused."""
    changes = _lists(replicas, Change.APPEND)
    for broker, own in rates.items():
        changes[broker] = [ConfigChange(name, rate.value) for name, rate in own.items()]
    try:
        alter_configs(router, changes)
    except KafkaProtoError as error:
        done = {
            resource: [
                _back(item.name, before[resource].get(item.name)) for item in changes[resource]
            ]
            for resource in error.usable or ()
        }
        try:
            alter_configs(router, done)
        except KafkaProtoError as second:
            error.add_line(f"and what was set before that could not be taken back: {second}")
        error.usable = None
        raise


def _back(name: str, before: str | None) -> ConfigChange:
    """What makes a setting what it was."""
    if before is None:
        return ConfigChange(name, None, Change.DELETE)
    return ConfigChange(name, before)


def _own_settings(router: Router, resources: Collection[ConfigResource]) -> _Settings:
    """Those of the five that are set for each of `resources` itself."""
    return _of_the_five(describe_configs(router, resources, _FIVE))


def _of_the_five(found: Mapping[ConfigResource, Mapping[str, ConfigEntry]]) -> _Settings:
    return {
        resource: {
            name: entry.value or ""
            for name, entry in entries.items()
            if name in _FIVE and entry.source in _OWN_SOURCES
        }
        for resource, entries in found.items()
    }
