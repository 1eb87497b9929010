"""Offset-range jobs: what a group has not seen yet, and the commit of exactly what was read.

    ranges = plan_ranges(cluster, {"orders"}, "report", max_records=1_000_000)
    with committing(cluster, "report", ranges):
        frame = spark.read.format("kafkaproto")….option("offsetRanges", ranges_json(ranges)).load()
        frame.write.parquet(…)

A job that fails commits nothing, and plans the same ranges again. No member joins the group.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark_kafkaproto.client.reading.ranges import OffsetRange
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.given import checked_each, whole
from pyspark_kafkaproto.cluster.groups.described import STAYS
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.topology import made_again, numbers_by_topic
from pyspark_kafkaproto.error_codes import GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP
from pyspark_kafkaproto.errors import BrokerError, ConfigError

_RANGE = 'OffsetRange("orders", 0, 23, 50)'


def plan_ranges(
    cluster: KafkaCluster,
    topics: Collection[str],
    group: str,
    *,
    max_records: int | None = None,
    fallback: str = "earliest",
) -> list[OffsetRange]:
    """Per partition what lies between the group's committed offset and the latest one, sorted.

    Under read_committed the latest one is where the first open transaction begins; where the group
    has read beyond that, there is nothing to read until it has ended.

    Args:
        cluster: whom to ask.
        topics: names; all of their partitions are planned, those without news too.
        group: the consumer group.
        max_records: the offsets of all ranges together are no more than this; each partition has
            its share, in proportion to what it has.
        fallback: `earliest` or `latest`, where the group has committed nothing.

    Raises:
        ConfigError: what the group has committed is not in the topic (any more); or it is a share
            group, to which nothing can be committed.
        BrokerError: a topic does not exist or may not be seen.
    """
    if fallback not in {"earliest", "latest"}:
        raise ConfigError("fallback", fallback, "expected earliest or latest")
    most = None if max_records is None else whole(max_records)
    if max_records is not None and (most is None or most < 1):
        raise ConfigError("max_records", max_records, "expected a whole number, 1 or more, or None")
    check_set("topics", topics)
    partitions = cluster.get_partitions(set(topics))
    committed = cluster.get_consumer_offsets(group, partitions)
    if not committed:
        check_commits(cluster, "group", group)
    earliest = cluster.get_earliest_leader_offsets(partitions)
    latest = cluster.believed(
        lambda: _ends_for(cluster, committed, partitions),
        lambda latest: all(committed[item] <= latest[item] for item in committed),
    )
    outside = {
        item: (offset, earliest[item], latest[item])
        for item, offset in sorted(committed.items())
        if not earliest[item] <= offset <= latest[item]
    }
    if outside:
        raise _not_there(group, outside)
    first: Mapping[TopicPartition, int] = earliest if fallback == "earliest" else latest
    starts = {**first, **committed}
    ranges = [OffsetRange(*item, starts[item], latest[item]) for item in sorted(partitions)]
    return ranges if most is None else cap_ranges(ranges, most)


def _ends_for(
    cluster: KafkaCluster,
    committed: Mapping[TopicPartition, int],
    partitions: Collection[TopicPartition],
) -> dict[TopicPartition, int]:
    """Where each partition ends; where the group is, if that is behind an open transaction.

    A run, or a member, that was read_uncommitted has read there: nothing is gone, and going back to
    where the transaction begins would read it again.
    """
    ends = cluster.get_latest_leader_offsets(partitions)
    beyond = {item for item, offset in committed.items() if offset > ends[item]}
    if not beyond or not cluster.config.is_read_committed:
        return ends
    written = cluster.get_high_watermarks(beyond)
    return ends | {item: committed[item] for item in beyond if committed[item] <= written[item]}


def check_commits(
    cluster: KafkaCluster, option: str, group: str, *, from_outside: bool = False
) -> None:
    """Refuse a share group, which looks as if it had committed nothing yet, and never will.

    Args:
        cluster: whose group it is.
        option: by which it was given.
        group: its name.
        from_outside: refuse one with members, too: nobody commits for these.

    Raises:
        ConfigError: it is a share group; names the `option`.
        BrokerError: it has members, who are named.
    """
    try:
        found = cluster.describe_groups({group})[group]
    except BrokerError as error:
        if error.code == GROUP_ID_NOT_FOUND:
            return
        raise
    if found.type == "share":
        why = "it is a share group, to which nothing is committed: give the name of another group"
        raise ConfigError(option, group, why)
    if from_outside and found.members:
        names = ", ".join(f"{item.client_id} at {item.host}" for item in found.members[:5])
        why = f"it has members ({len(found.members)}: {names}), who alone commit: stop them first; "
        why += STAYS
        raise BrokerError(NON_EMPTY_GROUP, "OffsetCommit", f"group {group!r}", why)


def cap_ranges(ranges: Sequence[OffsetRange], max_records: int) -> list[OffsetRange]:
    """The first `max_records` offsets of `ranges`, which are closed, in proportion to their sizes.

    No range is left out; one whose share is nothing ends where it starts.
    """
    counts = [_closed(item)[1] - _closed(item)[0] for item in ranges]
    total = sum(counts)
    if total <= max_records:
        return list(ranges)
    shares = [count * max_records // total for count in counts]
    # What rounding left over goes to those that lost most by it.
    by_loss = sorted(range(len(ranges)), key=lambda at: -(counts[at] * max_records % total))
    for at in by_loss[: max_records - sum(shares)]:
        shares[at] += 1
    return [
        replace(item, stop=_closed(item)[0] + share)
        for item, share in zip(ranges, shares, strict=True)
    ]


def commit_ranges(cluster: KafkaCluster, group: str, ranges: Iterable[OffsetRange]) -> None:
    """Commit the ends of `ranges`: what the next `plan_ranges` goes on from.

    Raises:
        ConfigError: a range is open, or none, or a partition has several.
        BrokerError: the commit was refused (the group has members, a topic is gone).
    """
    planned = checked_each("ranges", ranges, OffsetRange, _RANGE)
    cluster.set_consumer_offsets(group, _ends(planned))


@contextmanager
def committing(cluster: KafkaCluster, group: str, ranges: Iterable[OffsetRange]) -> Iterator[None]:
    """Commit `ranges` when the block inside succeeds, and nothing when it raises.

    Nor where the group has committed something else meanwhile: another run has read there, and this
    commit might take the group back to where the next one reads again what that one has read. So
    `ranges` begin where the group is, or behind that. Nor where a topic was made again: what was
    read of the old one says nothing of where the next run goes on in the new one.

    Raises:
        ConfigError: before the block: a range is open, or none, or a partition has several; or it
            is a share group, or is beyond the start of a range. After the block: it has moved
            meanwhile, or a topic was made again.
        BrokerError: before the block: the group has members. After the block: the commit was
            refused.
    """
    planned = checked_each("ranges", ranges, OffsetRange, _RANGE)
    ends = _ends(planned)
    check_commits(cluster, "group", group, from_outside=True)
    topics = {item.topic for item in ends}
    ids = cluster.describe(topics).topic_ids
    before = cluster.get_consumer_offsets(group, set(ends))
    for item in planned:
        if before.get(item.topic_partition, -1) > _closed(item)[0]:
            raise _read_since(group, item, before[item.topic_partition])
    yield
    ids_now = cluster.believed(
        lambda: cluster.describe(topics).topic_ids, lambda found: not made_again(ids, found)
    )
    if again := made_again(ids, ids_now):
        raise _of_the_old_one(group, sorted(again))
    now = cluster.get_consumer_offsets(group, set(ends))
    for partition in sorted(ends):
        if now.get(partition) != before.get(partition):
            raise _moved(group, partition, before.get(partition), now.get(partition))
    cluster.set_consumer_offsets(group, ends)


def _ends(ranges: Sequence[OffsetRange]) -> dict[TopicPartition, int]:
    ends = {item.topic_partition: _closed(item)[1] for item in ranges}
    if len(ends) < len(ranges):
        shown = ", ".join(map(str, sorted(map(str, ranges))))
        raise ConfigError("ranges", shown, "a group has one offset per partition: give one range")
    return ends


def _closed(item: OffsetRange) -> tuple[int, int]:
    if item.start is None or item.stop is None:
        raise ConfigError("ranges", str(item), "expected offsets, not an open bound")
    return item.start, item.stop


def _read_since(group: str, item: OffsetRange, offset: int) -> ConfigError:
    return ConfigError(
        "group",
        group,
        f"it has committed offset {offset} of {item.topic_partition}, and {item} begins before: "
        "another run of a job, or a member, has read there since this was planned, or its offsets "
        "were set. Nothing was done here: plan it anew. To read again what was read, first reset "
        "the group (kafkaproto groups reset)",
    )


def _of_the_old_one(group: str, topics: Sequence[str]) -> ConfigError:
    return ConfigError(
        "group",
        group,
        f"topic {', '.join(map(repr, topics))} was deleted and made again since this began, and "
        "the offsets that were read are of the old one. Nothing is committed here; what was "
        "written here is of the old one, or of both: look at it, and plan anew",
    )


def _moved(group: str, item: TopicPartition, before: int | None, now: int | None) -> ConfigError:
    shown = ["nothing" if offset is None else f"offset {offset}" for offset in (before, now)]
    return ConfigError(
        "group",
        group,
        f"it had committed {shown[0]} of {item} when this began, and {shown[1]} by now: another "
        "run of a job, or a member, reads for it, or its offsets were set or deleted, or have "
        "expired. Nothing is committed here, and what was written here may be there twice. Give "
        "each job a group of its own, and run it once at a time",
    )


def _not_there(group: str, outside: Mapping[TopicPartition, tuple[int, int, int]]) -> ConfigError:
    """Says how to go on in those partitions alone: what others have was read already."""
    shown = ", ".join(
        f"offset {offset} of {item}, which holds {first} to {end}"
        for item, (offset, first, end) in outside.items()
    )
    places = " ".join(
        f"--topic {topic}:{','.join(map(str, numbers))}"
        for topic, numbers in numbers_by_topic(outside)
    )
    return ConfigError(
        "group",
        group,
        f"it has committed {shown}: records are gone, or the topic was created anew. To go on with "
        f"what is there: kafkaproto groups reset {shlex.quote(group)} --to-earliest {places} "
        "(without numbers where the topic was created anew)",
    )
