"""Where replicas could be: an assignment that is even, keeps racks apart, and moves little. Pure.

Brokers' loads are evened out one replica at a time, each along the cheapest way from a broker that
has too many to one that has too few: a way may lead over others, which hand on what they got, and
costs what has to leave the broker where it is now. Leaders are chosen in the same manner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology
from pyspark_kafkaproto.errors import ConfigError

Assignment = dict[TopicPartition, tuple[int, ...]]
_Unit = tuple[TopicPartition, int]  # a replica: its slot; a leader: 0
_Came = Mapping[int, tuple[int, _Unit] | None]  # how a broker was reached


def propose_assignment(
    topology: Topology, topics: Collection[str], brokers: Collection[int] | None = None
) -> Assignment:
    """Where the partitions of `topics` could be; those that can stay as they are, are left out.

    Each keeps its number of replicas. Replicas of a partition are in as many racks as can be, if
    all of `brokers` tell their rack. Over all of `topics` together the brokers have within one as
    many replicas, and as many preferred leaders, as each other, as far as racks, and partitions
    with more replicas than others, leave it to be. What can stay stays.

    Args:
        topology: what there is; of a partition that is being moved all replicas count.
        topics: which.
        brokers: ids of those to use; None: all there are.

    Raises:
        BrokerError: there is no such topic, or no such broker.
        ConfigError: a partition has more replicas than there are brokers to use.
    """
    chosen = sorted(topology.brokers if brokers is None else set(brokers))
    racks = {broker: topology.broker(broker).rack for broker in chosen}
    present = {
        item: topology.partition(item).replicas for item in sorted(topology.partitions_of(topics))
    }
    for partition, replicas in present.items():
        if len(replicas) > len(chosen):
            text = f"{partition} has {len(replicas)} replicas: expected as many brokers, or more"
            raise ConfigError("brokers", chosen, text)
    placed = _Placement(present, _racks_or_none(racks)).found()
    return {item: replicas for item, replicas in placed.items() if replicas != present[item]}


def _racks_or_none(racks: Mapping[int, str | None]) -> dict[int, str]:
    """Each broker's rack; where one does not tell it, each is as good as a rack of its own."""
    if None in racks.values():
        return {broker: str(broker) for broker in racks}
    return {broker: str(rack) for broker, rack in racks.items()}


@dataclass(frozen=True, slots=True)
class _Share:
    """How many replicas of a partition a rack may have: `most`, and so many racks that much."""

    most: int
    racks: int

    @classmethod
    def of(cls, replicas: int, sizes: Collection[int]) -> _Share:
        """As even as racks with so many brokers let it be."""
        most = next(n for n in range(1, replicas + 1) if _room(sizes, n) >= replicas)
        return cls(most, replicas - _room(sizes, most - 1))

    def fits(self, counts: Mapping[str, int], rack: str) -> bool:
        """Whether one more may come to `rack`, where `counts` are there."""
        after = counts.get(rack, 0) + 1
        full = sum(count == self.most for count in counts.values())
        return after < self.most or (after == self.most and full < self.racks)


def _room(sizes: Collection[int], most: int) -> int:
    return sum(min(size, most) for size in sizes)


class _Placement:
    """The replicas of each partition, each in a slot.

    Args:
        present: where they are.
        racks: of the brokers to use.
    """

    def __init__(
        self, present: Mapping[TopicPartition, tuple[int, ...]], racks: Mapping[int, str]
    ) -> None:
        self._present = present
        self._racks = racks
        sizes = Counter(racks.values()).values()
        factors = {len(replicas) for replicas in present.values()} - {0}
        self._shares = {factor: _Share.of(factor, sizes) for factor in factors}
        self._slots: dict[TopicPartition, list[int | None]] = {}

    def found(self) -> Assignment:
        """The replicas of each partition, its preferred leader first."""
        for partition, replicas in self._present.items():
            slots: list[int | None] = []
            for broker in replicas:  # the first ones stay rather than others of their rack
                stays = broker in self._racks and self._may_take(slots, partition, broker)
                slots.append(broker if stays else None)
            self._slots[partition] = slots
        self._fill()
        self._spread()
        replicas_of = {item: self._ordered(item) for item in self._present}
        leaders = self._leaders(replicas_of)
        return {item: _led_by(leaders.get(item), own) for item, own in replicas_of.items()}

    def _may_take(
        self, slots: Iterable[int | None], partition: TopicPartition, broker: int
    ) -> bool:
        """Whether a partition with these replicas may have one more at `broker`."""
        return bool(self._free(slots, partition, (broker,)))

    def _free(
        self, slots: Iterable[int | None], partition: TopicPartition, brokers: Collection[int]
    ) -> list[int]:
        """Those of `brokers` where a partition with these replicas may have one more."""
        taken = [item for item in slots if item is not None]
        counts = Counter(self._racks[item] for item in taken)
        share = self._shares[len(self._present[partition])]
        fits = {rack: share.fits(counts, rack) for rack in {self._racks[item] for item in brokers}}
        return [item for item in brokers if item not in taken and fits[self._racks[item]]]

    def _fill(self) -> None:
        """Put what cannot stay where the fewest are.

        Where that is equal: where the fewest of this topic are, and then those that share the
        fewest partitions with the others, so that not one broker alone stands in for another.
        """
        loads: Counter[int] = Counter()
        of_topic: Counter[tuple[str, int]] = Counter()
        shared: Counter[tuple[int, int]] = Counter()

        def note(partition: TopicPartition, new: int, others: Iterable[int | None]) -> None:
            loads[new] += 1
            of_topic[partition.topic, new] += 1
            for other in others:
                if other is not None:
                    shared[new, other] += 1
                    shared[other, new] += 1

        for partition, slots in self._slots.items():
            for slot, broker in enumerate(slots):
                if broker is not None:
                    note(partition, broker, slots[:slot])
        for partition, slots in self._slots.items():
            for slot in [slot for slot, broker in enumerate(slots) if broker is None]:
                new = min(
                    self._free(slots, partition, self._racks),
                    key=lambda at: (
                        loads[at],
                        of_topic[partition.topic, at],
                        sum(shared[at, other] for other in slots if other is not None),
                        at,
                    ),
                )
                note(partition, new, slots)
                slots[slot] = new

    def _spread(self) -> None:
        """Even out how many replicas each broker has."""
        units = {
            (partition, slot): broker
            for partition, slots in self._slots.items()
            for slot, broker in enumerate(slots)
            if broker is not None
        }

        def may_go(unit: _Unit, brokers: Collection[int]) -> list[int]:
            partition, slot = unit
            slots = self._slots[partition]
            new = [broker for broker in brokers if broker not in slots]
            return self._free((*slots[:slot], *slots[slot + 1 :]), partition, new)

        def moved(unit: _Unit, broker: int) -> None:
            self._slots[unit[0]][unit[1]] = broker

        homes = {unit: self._present[unit[0]] for unit in units}
        _Evening(self._racks, units, homes, may_go, moved).done()

    def _ordered(self, partition: TopicPartition) -> tuple[int, ...]:
        """What stays in its order, what is new in the places of what goes."""
        present, found = self._present[partition], self._slots[partition]
        new = iter(broker for broker in found if broker is not None and broker not in present)
        return tuple(broker if broker in found else next(new) for broker in present)

    def _leaders(
        self, replicas_of: Mapping[TopicPartition, tuple[int, ...]]
    ) -> dict[TopicPartition, int]:
        """The preferred leader of each, evened out."""
        led: Counter[int] = Counter()
        leaders: dict[TopicPartition, int] = {}
        homes = {(item, 0): own[:1] for item, own in self._present.items() if own}
        # Those that keep theirs come first: the others are chosen beside them.
        stays = {item for item, _ in homes if replicas_of[item][:1] == self._present[item][:1]}
        for partition in sorted((item for item, _ in homes), key=lambda item: item not in stays):
            own = replicas_of[partition]
            leader = own[0] if partition in stays else min(own, key=lambda at: led[at])
            leaders[partition] = leader
            led[leader] += 1

        def may_go(unit: _Unit, brokers: Collection[int]) -> list[int]:
            own, leader = replicas_of[unit[0]], leaders[unit[0]]
            return [broker for broker in own if broker != leader and broker in brokers]

        def moved(unit: _Unit, broker: int) -> None:
            leaders[unit[0]] = broker

        units = {(item, 0): leader for item, leader in leaders.items()}
        _Evening(self._racks, units, homes, may_go, moved).done()
        return leaders


def _led_by(leader: int | None, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """The same, with the leader in front."""
    if leader is None:
        return replicas
    return (leader, *(broker for broker in replicas if broker != leader))


class _Evening:
    """Units at brokers, evened out by moving as few as can be from where they are at home.

    Args:
        brokers: all of them.
        units: the broker of each.
        homes: the brokers at which each would be no news.
        may_go: those of some brokers to which a unit may move, as all others stand at the moment.
        moved: is told of each move.
    """

    def __init__(
        self,
        brokers: Iterable[int],
        units: Mapping[_Unit, int],
        homes: Mapping[_Unit, tuple[int, ...]],
        may_go: Callable[[_Unit, Collection[int]], list[int]],
        moved: Callable[[_Unit, int], None],
    ) -> None:
        self._at: dict[int, dict[_Unit, None]] = {broker: {} for broker in brokers}
        self._place = dict(units)
        for unit, broker in units.items():
            self._at[broker][unit] = None
        self._homes = homes
        self._may_go = may_go
        self._moved = moved

    def done(self) -> None:
        """Even out, as far as it goes."""
        # Once one cannot be relieved it never can: whoever it could hand on to would have been
        # relieved of less than it, and so have handed on before.
        left = set(self._at)
        while left:
            fullest = max(sorted(left), key=lambda broker: len(self._at[broker]))
            if not self._relieved(fullest):
                left.remove(fullest)
        for unit in self._place:
            self._go_home(unit)

    def _relieved(self, broker: int) -> bool:
        """Whether one unit less could be brought about, without making another as full."""
        enough = len(self._at[broker]) - 2
        if all(len(units) > enough for units in self._at.values()):
            return False
        way = self._cheapest_way(broker, enough)
        for unit, to in way:
            self._move(unit, to)
        return bool(way)

    def _cheapest_way(self, start: int, enough: int) -> list[tuple[_Unit, int]]:
        """The moves by which `start` has one less, and one of those with `enough` has one more.

        What is not at home moves for nothing. So brokers are reached first as far as that goes;
        then by one move from home, and so on.
        """
        came: dict[int, tuple[int, _Unit] | None] = {start: None}  # from which, by which unit
        front = [start]
        while front:
            for sources, is_home in ((front, False), (list(came), True)):
                found: list[int] = []
                for unit, source, to in self._moves(sources, came, is_home=is_home):
                    came[to] = source, unit
                    if len(self._at[to]) <= enough:
                        return list(_way(to, came))
                    found.append(to)
                if found:
                    break
            front = found
        return []

    def _moves(
        self, sources: Iterable[int], came: _Came, *, is_home: bool
    ) -> Iterator[tuple[_Unit, int, int]]:
        """Each unit that may move to a broker not reached yet: it, from where and to where.

        The emptiest brokers first: it ends the search where that is one with enough room.
        """
        new = [broker for broker in self._at if broker not in came]
        for source in sources:
            for unit in self._at[source] if new else ():
                if (source in self._homes[unit]) is is_home and not _is_used(unit, source, came):
                    places = self._may_go(unit, new)
                    for to in sorted(places, key=lambda at: len(self._at[at])):
                        yield unit, source, to
                    if places:
                        new = [broker for broker in new if broker not in came]

    def _go_home(self, unit: _Unit) -> None:
        """Back to where it would be no news, if that is as even."""
        here = self._place[unit]
        if here in self._homes[unit]:
            return
        homes = [
            home
            for home in self._homes[unit]
            if home in self._at and len(self._at[home]) < len(self._at[here])
        ]
        for home in self._may_go(unit, homes)[:1]:
            self._move(unit, home)

    def _move(self, unit: _Unit, to: int) -> None:
        del self._at[self._place[unit]][unit]
        self._at[to][unit] = None
        self._place[unit] = to
        self._moved(unit, to)


def _is_used(unit: _Unit, source: int, came: _Came) -> bool:
    """Whether its partition moves on this way already: each move is judged as if alone."""
    return any(other[0] == unit[0] for other, _ in _way(source, came))


def _way(to: int, came: _Came) -> Iterator[tuple[_Unit, int]]:
    """The moves to a broker, the last one first."""
    while (step := came[to]) is not None:
        source, unit = step
        yield unit, to
        to = source
