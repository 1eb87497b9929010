"""How far groups are behind: one row per partition, as Kafka's own tool shows it.

A few requests for any number of groups: where they are coordinated, what they have committed and
who reads (each 100 groups per request), and once per partition where its records end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.cluster.groups.committed import CommittedOffset, fetch_offsets
from pyspark_kafkaproto.cluster.groups.described import SHARE, DescribedGroup, Member
from pyspark_kafkaproto.cluster.groups.members import (
    find_groups,
    find_listed,
    list_groups,
    no_such_group,
)
from pyspark_kafkaproto.cluster.groups.share_offsets import ShareOffset, fetch_share_offsets
from pyspark_kafkaproto.cluster.offsets import list_led_ends
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology
from pyspark_kafkaproto.error_codes import LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import UnsupportedVersion

# States of a group that may have members; brokers before 2.6 do not tell: "".
_WITH_MEMBERS = frozenset(
    {
        *("", "Stable", "PreparingRebalance", "CompletingRebalance"),
        *("Assigning", "Reconciling", "NotReady"),
    }
)
_WITHOUT_END = (LEADER_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION)


class Lag(NamedTuple):
    """A partition as a group sees it.

    `offset` is None where nothing is committed, `log_size` (the offset after the last record) where
    the partition is gone or has no leader, `lag` where either is; `owner` is the member's id.

    A share group's `offset` is its start offset, before which all is done. Records behind it may be
    done, too, so its `lag` is the brokers' own count (None where they do not tell, as before Kafka
    4.2). Neither is told of a partition without a leader. Any of its members read a partition: none
    is its `owner`.
    """

    group: str
    topic: str
    partition: int
    offset: int | None
    log_size: int | None
    lag: int | None
    owner: str | None
    client_id: str | None
    host: str | None


def lag_of(
    router: Router, groups: Collection[str] | None, topics: Collection[str] | None
) -> list[Lag]:
    """The lag of `groups` (None: all) on `topics`, sorted.

    Rows are the partitions that a group has committed for or reads; with `topics`, every partition
    of these topics, and no others.

    Raises:
        BrokerError: a group that is named is not there and has committed nothing, or a topic is
            not there.
    """
    found = _find(router, groups)
    owners = {group: item.owners for group, item in found.described.items() if item is not None}
    # As Kafka's tool does: an open transaction of one group must not hold up the table.
    committed = fetch_offsets(router, found.committing, require_stable=False)
    for group in found.committing if topics is None else ():
        if not committed[group] and group in found.described and found.described[group] is None:
            raise no_such_group(router, group)
    try:
        shared = fetch_share_offsets(router, found.sharing, waits_for_leaders=False)
    except UnsupportedVersion:
        if groups is not None:
            raise
        shared = {}  # Kafka 4.0 lists share groups of a try-out, and tells no offsets
    by_group: Collection[Collection[TopicPartition]]
    by_group = (*committed.values(), *shared.values(), *owners.values())
    seen = {item for own in by_group for item in own}
    topology = router.described({item.topic for item in seen} | set(topics or ()))
    wanted = None if topics is None else topology.partitions_of(topics)
    latest = _ends(router, topology, seen if wanted is None else wanted)
    places = _counted(committed, latest) | _told(shared)
    return [
        row
        for group, own in sorted(places.items())
        for row in _rows(group, own, owners.get(group, {}), latest, wanted)
    ]


def lag_text(rows: Iterable[Lag]) -> str:
    """Group · Topic · Partition · Offset · LogSize · Lag, and Owner where somebody reads."""
    rows = list(rows)
    width = 7 if any(row.owner for row in rows) else 6
    header = ("Group", "Topic", "Partition", "Offset", "LogSize", "Lag", "Owner")
    cells = [["-" if cell in {None, ""} else str(cell) for cell in row[:width]] for row in rows]
    table = [list(header[:width]), *cells]
    widths = [max(len(row[at]) for row in table) for at in range(width)]
    return "\n".join(
        "  ".join(cell.ljust(most) for cell, most in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


class _Found(NamedTuple):
    """The names of groups that commit offsets and of share groups; those that have members."""

    committing: set[str]
    sharing: set[str]
    described: Mapping[str, DescribedGroup | None]


def _find(router: Router, groups: Collection[str] | None) -> _Found:
    if groups is not None:
        described = find_groups(router, groups)
        sharing = {group for group, item in described.items() if item and item.type == SHARE}
        return _Found(set(groups) - sharing, sharing, described)
    listed = [item for item in list_groups(router) if item.reads_topics]
    committing = [item for item in listed if item.type != SHARE]
    return _Found(
        {item.group for item in committing},
        {item.group for item in listed if item.type == SHARE},
        find_listed(router, [item for item in committing if item.state in _WITH_MEMBERS]),
    )


class _Place(NamedTuple):
    """Where a group is in a partition, and by how much it is behind."""

    offset: int | None
    lag: int | None


_NOWHERE = _Place(None, None)


def _counted(
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    latest: Mapping[TopicPartition, int],
) -> dict[str, dict[TopicPartition, _Place]]:
    def place(item: TopicPartition, offset: int) -> _Place:
        return _Place(offset, latest[item] - offset if item in latest else None)

    return {
        group: {item: place(item, at.offset) for item, at in own.items()}
        for group, own in committed.items()
    }


def _told(
    shared: Mapping[str, Mapping[TopicPartition, ShareOffset | None]],
) -> dict[str, dict[TopicPartition, _Place]]:
    return {
        group: {
            item: _NOWHERE if start is None else _Place(start.offset, start.lag)
            for item, start in own.items()
        }
        for group, own in shared.items()
    }


def _ends(
    router: Router, topology: Topology, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Where records end; without those that are gone, and those without a leader.

    Also those that are so only as they are asked.
    """
    reachable = set()
    for item in partitions:
        place = topology.find(item)
        if place is not None and place.leader_id in topology.brokers:
            reachable.add(item)
    return list_led_ends(router, reachable, passed_over=_WITHOUT_END)


def _owner(member: Member | None) -> tuple[str | None, str | None, str | None]:
    if member is None:
        return None, None, None
    return member.member_id, member.client_id, member.host


def _rows(
    group: str,
    places: Mapping[TopicPartition, _Place],
    owners: Mapping[TopicPartition, Member],
    latest: Mapping[TopicPartition, int],
    wanted: Collection[TopicPartition] | None,
) -> Iterable[Lag]:
    for item in sorted({*places, *owners} if wanted is None else wanted):
        offset, lag = places.get(item, _NOWHERE)
        yield Lag(group, *item, offset, latest.get(item), lag, *_owner(owners.get(item)))
