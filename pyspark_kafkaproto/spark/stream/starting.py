"""Where a query without a checkpoint starts, and where it started when only batch 0 is logged.

The engine logs where batches end, never where the first one starts: after a restart over batch 0
it asks for the start once more, which may have moved on since.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.options import Chosen, ReadOptions
from pyspark_kafkaproto.spark.resolving import resolve_starts
from pyspark_kafkaproto.spark.starts import Committed, Earliest, Latest, Specific, Timestamp
from pyspark_kafkaproto.spark.stream.tail import Offsets, Tail, fail_or_warn

_log = logging.getLogger(__name__)

_Offsets = Mapping[TopicPartition, int]
_T = TypeVar("_T")


def resolve_stream_start(
    tail: Tail,
    options: ReadOptions,
    snapshot: _Offsets | None,
    among: Collection[TopicPartition] | None = None,
) -> Offsets:
    """The offset that each partition starts at.

    Args:
        tail: the partitions.
        options: says where.
        snapshot: where a run under Trigger.AvailableNow ends. The engine has it taken before it
            asks for the start: what comes in between is not part of the run, though the start may
            lie behind it.
        among: the partitions that count, where an earlier run has logged which they are. Those
            that were deleted since have no start.

    Raises:
        BrokerError: a topic or partition that is named is not there, without `among`.
        ConfigError: a start that cannot be resolved, or lies beyond the end of the log.
    """
    partitions = tail.partitions(must_exist=among is None)
    if snapshot is not None:
        partitions = [item for item in partitions if item in snapshot]
    if among is not None:
        partitions = [item for item in partitions if item in among]
        options = replace(options, start=_named_among(options.start, partitions))
    bounds = resolve_starts(tail.cluster, options, partitions)
    earliest = tail.beginnings([item for item, at in bounds.items() if isinstance(at, Earliest)])
    rest = [item for item in bounds if item not in earliest]
    numbers = {item: at for item in rest if isinstance(at := bounds[item], int)}

    def ask() -> Offsets:
        found = tail.latest(rest) if snapshot is None else _ends_with(tail, snapshot, numbers)
        return found | tail.held_back(numbers, found)

    # A broker that was away names an old end for a moment.
    ends = tail.cluster.believed(
        ask, lambda found: all(at <= found[item] for item, at in numbers.items())
    )
    _check_inside(tail, options, numbers, ends)
    return earliest | {item: min(numbers.get(item, ends[item]), ends[item]) for item in rest}


def _ends_with(tail: Tail, snapshot: _Offsets, starts: _Offsets) -> Offsets:
    """The snapshot, asked for again where starts lie beyond it: they were found out after it.

    A group that is at work may have committed what was written since.
    """
    beyond = [item for item, at in starts.items() if at > snapshot[item]]
    return dict(snapshot) | tail.latest(beyond)


def _named_among(start: Chosen, partitions: Collection[TopicPartition]) -> Chosen:
    """The start without what it says of partitions that are gone by now."""
    match start.limit:
        case Specific(offsets):
            return replace(start, limit=Specific(_among(offsets, partitions)))
        case Timestamp(dict() as times):
            return replace(start, limit=Timestamp(_among(times, partitions)))
        case _:
            return start


def _among(
    values: Mapping[TopicPartition, _T], partitions: Collection[TopicPartition]
) -> dict[TopicPartition, _T]:
    return {item: values[item] for item in partitions if item in values}


def start_of_logged_batch_0(
    options: ReadOptions, first: _Offsets, end: _Offsets, *, is_logged_empty: bool
) -> Offsets:
    """Where batch 0 starts that an earlier run has logged and not finished.

    This source logs an empty batch 0, at the start: so what is resolved now lies there or beyond.
    Trigger.Once, PySpark before 4.2, or Spark's own connector, may have logged records too.
    Partitions that were added since are not part of the batch.

    Args:
        options: of the stream.
        first: where the start lies now.
        end: where the batch ends.
        is_logged_empty: whether this engine has it logged empty: one that ends where the start lies
            is. Else all that was in it may be deleted.

    Raises:
        DataLoss: it may have records of partitions that have no start any more, or for the moment,
            and that is to fail the query: it is not asked for them again once it is done.
    """
    _refuse_without_start(options, first, end)
    starts = {
        item: min(_said(options, item, offset, first.get(item, offset)), offset)
        for item, offset in end.items()
    }
    moved = {item for item, offset in end.items() if first.get(item, 0) > offset > 0}
    # What comes next is looked at by the batch that reads it, and lost there if it is gone.
    unsure = {
        item
        for item, at in starts.items()
        if at > 0 and _moves(options, item)
        if at < end[item] or not (is_logged_empty or _is_latest(options, item))
    }
    if moved or unsure:
        _log.warning(
            "batch 0 was logged by an earlier run and not finished, and a checkpoint does not say "
            "where it starts: it is read from where the start lies now, but not beyond its end. "
            "This source logs it empty from PySpark 4.2 on; if that has not, Trigger.Once or "
            'format("kafka") has logged it, what it was to read before %s is not read',
            ", ".join(f"{item} at {starts[item]}" for item in sorted(moved | unsure)),
        )
    return starts


def _refuse_without_start(options: ReadOptions, first: _Offsets, end: _Offsets) -> None:
    wanted = (item for item, at in end.items() if at > 0 and not _is_latest(options, item))
    if missing := sorted(item for item in wanted if item not in first):
        fail_or_warn(
            options,
            "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
            f"Cannot find initial offsets for partitions {', '.join(map(str, missing))}. They may "
            "have been deleted.",
        )


def _said(options: ReadOptions, partition: TopicPartition, end: int, found: int) -> int:
    """Where a partition starts that ends there: as `found`, but not before what was given.

    A broker that was away for a while may find it at an old end.
    """
    limit = options.start.limit
    named = limit.offsets.get(partition) if isinstance(limit, Specific) else limit
    if isinstance(named, Latest):
        return end
    return max(named, found) if isinstance(named, int) else found


def _moves(options: ReadOptions, partition: TopicPartition) -> bool:
    """Whether the start of a partition may be another offset when it is resolved again."""
    limit = options.start.limit
    return not (isinstance(limit, Specific) and isinstance(limit.offsets.get(partition), int))


def _is_latest(options: ReadOptions, partition: TopicPartition) -> bool:
    """Whether a partition is to start at its end: then batch 0 has nothing of it."""
    limit = options.start.limit
    named = limit.offsets.get(partition) if isinstance(limit, Specific) else limit
    return isinstance(named, Latest)


def _check_inside(tail: Tail, options: ReadOptions, starts: _Offsets, ends: _Offsets) -> None:
    """Refuse offsets that somebody has named and that are not reached yet, or start at the end."""
    if not isinstance(options.start.limit, Specific | Committed):
        return
    beyond = {item: at for item, at in sorted(starts.items()) if at > ends[item]}
    if not beyond:
        return
    earliest = tail.beginnings(beyond)
    there = ", ".join(f"{item} holds {earliest[item]} to {ends[item]}" for item in beyond)
    if options.settings.fail_on_data_loss:
        raise ConfigError(
            options.start.option,
            {str(item): at for item, at in beyond.items()},
            f"these offsets lie beyond the end of the log ({there}); give offsets that are there, "
            "or set failOnDataLoss to false to start at the end",
            "KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED",  # as Spark's own has it
        )
    _log.warning(
        "option %s lies beyond the end of the log (%s): the query starts at the end",
        options.start.option,
        there,
    )
