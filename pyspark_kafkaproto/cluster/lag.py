"""How far groups are behind: one row per partition, as Kafka's own tool shows it.

A few requests for any number of groups: where they are coordinated, what they have committed and
who reads (each 100 groups per request), and once per partition where its records end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from pyspark_kafkaproto.cluster.groups import CommittedOffset, fetch_offsets
from pyspark_kafkaproto.cluster.members import (
    DescribedGroup,
    Member,
    find_groups,
    find_listed,
    list_groups,
    no_such_group,
)
from pyspark_kafkaproto.cluster.offsets import LATEST_TIMESTAMP, list_bounds
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition, Topology

# States of a group that may have members; brokers before 2.6 do not tell: "".
_WITH_MEMBERS = frozenset(
    {"", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)


class Lag(NamedTuple):
    """A partition as a group sees it.

    `offset` is None where nothing is committed, `log_size` (the offset after the last record) where
    the partition is gone or has no leader, `lag` where either is; `owner` is the member's id.
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
    names, described = _find(router, groups)
    owners = {group: item.owners for group, item in described.items() if item is not None}
    # As Kafka's tool does: an open transaction of one group must not hold up the table.
    committed = fetch_offsets(router, names, require_stable=False)
    for group in names if topics is None else ():
        if not committed[group] and group in described and described[group] is None:
            raise no_such_group(group)
    seen = {item for group in names for item in (*committed[group], *owners.get(group, ()))}
    topology = _topology(router, {item.topic for item in seen} | set(topics or ()))
    wanted = None if topics is None else topology.partitions_of(topics)
    latest = _ends(router, topology, seen if wanted is None else wanted)
    return [
        row
        for group in sorted(names)
        for row in _rows(group, committed[group], owners.get(group, {}), latest, wanted)
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


_Groups = Mapping[str, DescribedGroup | None]


def _find(router: Router, groups: Collection[str] | None) -> tuple[set[str], _Groups]:
    """The names of the groups, and those that have members."""
    if groups is not None:
        return set(groups), find_groups(router, groups)
    listed = [item for item in list_groups(router) if item.reads_topics]
    alive = [item for item in listed if item.state in _WITH_MEMBERS]
    return {item.group for item in listed}, find_listed(router, alive)


def _topology(router: Router, topics: Collection[str]) -> Topology:
    deadline = router.deadline()
    return router.retrying("fetch metadata", lambda: router.topology(topics, deadline), deadline)


def _ends(
    router: Router, topology: Topology, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Where records end; without those that are gone, and those without a leader."""
    reachable = set()
    for item in partitions:
        topic = topology.topics.get(item.topic)
        place = None if topic is None else topic.partitions.get(item.partition)
        if place is not None and place.leader_id in topology.brokers:
            reachable.add(item)
    return list_bounds(router, reachable, LATEST_TIMESTAMP)


def _owner(member: Member | None) -> tuple[str | None, str | None, str | None]:
    if member is None:
        return None, None, None
    return member.member_id, member.client_id, member.host


def _rows(
    group: str,
    committed: Mapping[TopicPartition, CommittedOffset],
    owners: Mapping[TopicPartition, Member],
    latest: Mapping[TopicPartition, int],
    wanted: Collection[TopicPartition] | None,
) -> Iterable[Lag]:
    for item in sorted({*committed, *owners} if wanted is None else wanted):
        offset = committed[item].offset if item in committed else None
        end = latest.get(item)
        yield Lag(
            group,
            *item,
            offset,
            end,
            None if offset is None or end is None else end - offset,
            *_owner(owners.get(item)),
        )
