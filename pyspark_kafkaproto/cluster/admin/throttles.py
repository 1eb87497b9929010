"""How fast replicas are copied while they move: Kafka's throttle, five settings (KIP-73).

Brokers have a rate for what they give to followers and one for what they take from leaders, which
hold for the replicas that their topics name, and for nothing else; a third one holds for all that
they copy between their own folders (KIP-113). Kafka's own kafka-reassign-partitions sets the same,
so that either takes back what the other has set.

Several may move replicas at once, and the settings are common to all of them. So each one's
replicas are added to what a topic names, and taken from it again, by whoever keeps the settings;
and a rate stays for as long as anybody moves something. How the settings are read and changed is
`throttle_settings`' business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.admin.log_dirs import describe_log_dirs
from pyspark_kafkaproto.cluster.admin.reassignments import list_reassignments, replicas_before
from pyspark_kafkaproto.cluster.admin.throttle_settings import (
    ALL,
    FOLDERS,
    FOLLOWERS,
    LEADERS,
    RATES,
    REPLICAS,
    Refusals,
    Replicas,
    Settings,
    brokers_of,
    entries_of,
    lists_changed,
    names_any,
    own_settings,
    put_back,
    set_or_take_back,
    still_named,
    topics_of,
)
from pyspark_kafkaproto.cluster.configs import (
    Change,
    ConfigChange,
    ConfigResource,
    alter_configs,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology, by_topic


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

    replicas: Replicas
    rates: Mapping[ConfigResource, Mapping[str, Rate]]

    def __bool__(self) -> bool:
        return bool(self.replicas or self.rates)

    @property
    def is_of_copies(self) -> bool:
        """Whether it bounds what goes from broker to broker."""
        return any(name in RATES for own in self.rates.values() for name in own)


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
    brokers = brokers_of(topology, ids)
    before = own_settings(router, {*named, *brokers})
    again = {(item.topic, str(item.partition)) for item in under_way}
    replicas = {
        topic: own
        for topic, wanted in named.items()
        if (own := _to_take_back(topic.name, wanted, before[topic], again))
    }
    is_quiet = not under_way and not names_any(before, replicas)
    value = str(bytes_per_s)
    rates = {
        broker: {name: _rate(value, before[broker].get(name), is_quiet) for name in RATES}
        for broker in brokers
    }
    added = {
        topic: {
            name: entries for name, entries in wanted.items() if not _names_all(before, topic, name)
        }
        for topic, wanted in named.items()
    }
    changes = lists_changed({topic: own for topic, own in added.items() if own}, Change.APPEND)
    set_or_take_back(router, changes | _set_to(rates), before)
    return Throttle(replicas, rates)


def throttle_folders(
    router: Router, topology: Topology, brokers: Collection[int], bytes_per_s: int
) -> Throttle:
    """Bound how fast each of `brokers` copies between its own folders.

    Raises:
        BrokerError: a broker refuses; what was set at others is taken back.
    """
    present = brokers_of(topology, brokers)
    before = own_settings(router, present)
    copying = _copying(router, present)
    rates = {
        broker: {
            FOLDERS: _rate(str(bytes_per_s), before[broker].get(FOLDERS), broker not in copying)
        }
        for broker in present
    }
    set_or_take_back(router, _set_to(rates), before)
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
    there = topics_of(router.described({topic.name for topic in throttle.replicas}))
    replicas = {topic: own for topic, own in throttle.replicas.items() if topic in there}
    refusals = Refusals()
    with refusals.noted():
        alter_configs(router, lists_changed(replicas, Change.SUBTRACT))
    others = _others(router, throttle)
    topics = set(replicas)
    if throttle.is_of_copies and not any(others.values()):
        topics |= topics_of(router.described(None))
    found = still_named(router, topics, replicas, refusals)
    needed = _needed(throttle, others, is_named=_names_others(found, replicas))
    changes = _emptied(found, replicas) | _rates_back(throttle, needed)
    with refusals.noted():
        alter_configs(router, {resource: own for resource, own in changes.items() if own})
    kept = {broker for broker, _ in needed}
    refusals.tell(usable=kept)
    return kept


def _names_others(found: Settings, replicas: Replicas) -> bool:
    """Whether a topic names any but `replicas`."""
    return any(
        set(entries_of(own, name)).difference(replicas.get(topic, {}).get(name, ()))
        for topic, own in found.items()
        for name in REPLICAS
    )


def _needed(
    throttle: Throttle, others: Mapping[tuple[ConfigResource, str], bool], *, is_named: bool
) -> set[tuple[ConfigResource, str]]:
    """The rates that stay: those that bound something, or what topics still name."""
    return {
        (broker, name)
        for broker, own in throttle.rates.items()
        for name, rate in own.items()
        if others[broker, name] or (is_named and name in RATES and not rate.is_standing)
    }


def _emptied(found: Settings, replicas: Replicas) -> dict[ConfigResource, list[ConfigChange]]:
    """Taken from until nothing is left, a list is set all the same: those go."""
    return {
        topic: [
            ConfigChange(name, None, Change.DELETE) for name in own if not found[topic].get(name)
        ]
        for topic, own in replicas.items()
        if topic in found
    }


def _set_to(
    rates: Mapping[ConfigResource, Mapping[str, Rate]],
) -> dict[ConfigResource, list[ConfigChange]]:
    return {
        broker: [ConfigChange(name, rate.value) for name, rate in own.items()]
        for broker, own in rates.items()
    }


def _rates_back(
    throttle: Throttle, needed: Collection[tuple[ConfigResource, str]]
) -> dict[ConfigResource, list[ConfigChange]]:
    return {
        broker: [
            put_back(name, rate.before if rate.is_standing else None)
            for name, rate in own.items()
            if (broker, name) not in needed
        ]
        for broker, own in throttle.rates.items()
    }


def _others(router: Router, throttle: Throttle) -> dict[tuple[ConfigResource, str], bool]:
    """Whether something is being moved that a broker's rate bounds."""
    rates = [(broker, name) for broker, own in throttle.rates.items() for name in own]
    of_folders = {broker for broker, name in rates if name == FOLDERS}
    if of_folders:  # who is away copies nothing
        of_folders &= brokers_of(router.described(()), map(_id, of_folders))
    copying = _copying(router, of_folders)
    is_moving = any(name in RATES for _, name in rates) and bool(list_reassignments(router))
    return {
        (broker, name): broker in copying if name == FOLDERS else is_moving
        for broker, name in rates
    }


def _id(broker: ConfigResource) -> int:
    return int(broker.name)


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


def _names_all(before: Settings, topic: ConfigResource, name: str) -> bool:
    return before[topic].get(name) == ALL


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
        old = entries_of(before, name)
        if old == [ALL]:
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
