"""Where a group begins to read next: its offsets moved, while nobody reads with it.

The ways are those of Kafka's own tool. What lies outside of a partition's records is moved to their
nearest end, as there, with a warning where a number was given. A broker takes it for a group
without members alone: as a commit, or for a share group as its start offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_kafkaproto.cluster.asking import nothing_done_yet
from pyspark_kafkaproto.cluster.given import ago_ms, checked_timestamp
from pyspark_kafkaproto.cluster.groups.committed import (
    CommittedOffset,
    GroupPartition,
    commit_offsets,
    fetch_offsets,
)
from pyspark_kafkaproto.cluster.groups.described import DescribedGroup
from pyspark_kafkaproto.cluster.groups.members import check_can_be_moved
from pyspark_kafkaproto.cluster.groups.share_offsets import alter_share_offsets, fetch_share_offsets
from pyspark_kafkaproto.cluster.offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    list_bounds,
    list_offsets_at,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToEarliest:
    """The first record that is still there."""


@dataclass(frozen=True, slots=True)
class ToLatest:
    """Behind the last record."""


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record of `timestamp` (ms since 1970) or later; latest where there is none."""

    timestamp: int


@dataclass(frozen=True, slots=True)
class BackBy:
    """The first record of the last `duration_s` seconds."""

    duration_s: float


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records on from what is committed, or back where `count` is negative."""

    count: int


@dataclass(frozen=True, slots=True)
class ToOffsets:
    """An offset for each partition that is named; the others stay."""

    offsets: Mapping[TopicPartition, int]


ResetTo = ToEarliest | ToLatest | ToTime | BackBy | ShiftBy | ToOffsets


class Moved(NamedTuple):
    """Where the group was before (None: nowhere), and where it is now."""

    before: int | None
    after: int


def reset_offsets(
    router: Router,
    group: str,
    to: ResetTo,
    partitions: Collection[TopicPartition] | None = None,
    *,
    dry_run: bool = False,
) -> dict[TopicPartition, Moved]:
    """Move what `group` has committed.

    Args:
        router: whom to ask.
        group: a group without members; a new one is made by this.
        to: where to.
        partitions: which; None: those that the group has committed for, or that `to` names; of a
            streams group those of repartition topics left out.
        dry_run: whether to only tell what would be.

    Raises:
        BrokerError: the group has members, or a partition was refused; `usable` has those that
            were moved all the same.
        ConfigError: there is nothing to move, or nothing committed to shift.
    """
    with nothing_done_yet():
        found_group = check_can_be_moved(router, group, is_share=False)
        committed = fetch_offsets(router, {group})[group]
        before = {item: found.offset for item, found in committed.items()}
        if partitions is None:
            # What is in repartition topics was read from the sources before: to go on behind it
            # loses that, to go back counts it twice. Kafka's tool moves sources alone, too.
            inner = _repartition_topics(found_group)
            partitions = {item for item in before if item.topic not in inner}
        moved = _planned(router, group, to, partitions, before)
    if not dry_run:
        offsets = {item: CommittedOffset(move.after) for item, move in moved.items()}
        with _telling_moved(moved):
            commit_offsets(router, {group: offsets})
    return moved


def _repartition_topics(group: DescribedGroup | None) -> set[str]:
    """What a streams application writes for itself to read."""
    if group is None or group.topology is None:
        return set()
    return {topic for part in group.topology.subtopologies for topic in part.repartition_sources}


def reset_share_offsets(
    router: Router,
    group: str,
    to: ResetTo,
    partitions: Collection[TopicPartition] | None = None,
    *,
    dry_run: bool = False,
) -> dict[TopicPartition, Moved]:
    """Move where a share group starts; arguments and errors as for `reset_offsets`.

    Without `partitions` those are moved that the group knows of, whether it has begun there or
    not.
    """
    with nothing_done_yet():
        check_can_be_moved(router, group, is_share=True)
        found = fetch_share_offsets(router, {group})[group]
        before = {item: start.offset for item, start in found.items() if start is not None}
        if partitions is None and not isinstance(to, ShiftBy):
            partitions = found
        moved = _planned(router, group, to, partitions, before)
    if not dry_run:
        with _telling_moved(moved):
            alter_share_offsets(router, group, {item: at.after for item, at in moved.items()})
    return moved


def _planned(
    router: Router,
    group: str,
    to: ResetTo,
    partitions: Collection[TopicPartition] | None,
    before: Mapping[TopicPartition, int],
) -> dict[TopicPartition, Moved]:
    chosen = _chosen(group, to, partitions, before)
    wanted = _wanted(router, to, chosen, before)
    first = list_bounds(router, chosen, EARLIEST_TIMESTAMP)
    last = list_bounds(router, chosen, LATEST_TIMESTAMP)
    moved = {}
    for item in sorted(chosen):
        least, most = first[item], last[item]
        found = wanted[item]
        after = min(max(most if found is None else found, least), most)
        if isinstance(to, ShiftBy | ToOffsets) and after != found:
            side = "begin" if after == least else "end"
            _log.warning(
                "%s has no offset %s, its records %s at %d: it goes there", item, found, side, after
            )
        moved[item] = Moved(before.get(item), after)
    return moved


@contextmanager
def _telling_moved(moved: Mapping[TopicPartition, Moved]) -> Iterator[None]:
    """An error's `usable` as what was moved; it comes as partitions, of a group or alone."""
    try:
        yield
    except KafkaProtoError as error:
        done = (
            item.partition if isinstance(item, GroupPartition) else item
            for item in error.usable or ()
        )
        error.usable = {item: moved[item] for item in done}
        raise


def _chosen(
    group: str,
    to: ResetTo,
    partitions: Collection[TopicPartition] | None,
    before: Mapping[TopicPartition, int],
) -> set[TopicPartition]:
    if isinstance(to, ToOffsets):
        return set(to.offsets)
    chosen = set(before if partitions is None else partitions)
    if not chosen:
        raise ConfigError(
            "partitions", None, f"group {group!r} has no offsets: name topics to reset"
        )
    if isinstance(to, ShiftBy) and (missing := chosen - before.keys()):
        names = ", ".join(map(str, sorted(missing)))
        raise ConfigError(
            "shift", to.count, f"group {group!r} has nothing for {names}: no offset to add to"
        )
    return chosen


def _wanted(
    router: Router,
    to: ResetTo,
    chosen: Collection[TopicPartition],
    before: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, int | None]:
    """Where each is to go; None: behind the last record."""
    match to:
        case ToEarliest():
            return dict.fromkeys(chosen, 0)
        case ToLatest():
            return dict.fromkeys(chosen)
        case ToTime(timestamp):
            return list_offsets_at(router, chosen, checked_timestamp(timestamp))
        case BackBy(duration_s):
            return list_offsets_at(router, chosen, checked_timestamp(ago_ms(duration_s)))
        case ShiftBy(count):
            return {item: before[item] + count for item in chosen}
        case ToOffsets(offsets):
            return offsets
