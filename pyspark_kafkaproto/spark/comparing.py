"""Reads the same ranges with this source and with Spark's own connector, and compares.

Both count and hash every row, per partition, in Spark: no row comes to the driver. The open bounds
are closed once, before either reads.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as sf

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.option_table import OPTIONS
from pyspark_kafkaproto.spark.options import ENDS, STARTS, lowered, parse_read_options
from pyspark_kafkaproto.spark.planning import plan_closed_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCES = ("kafkaproto", "kafka")

# What says which ranges are read is replaced by the ranges themselves.
_REPLACED = {
    name.lower()
    for name in ("subscribe", "subscribePattern", "assign", "offsetRanges", *STARTS, *ENDS)
} | {"startingoffsetsbytimestampstrategy", "committedfallback"}
# What Spark's own connector does not know: both would read differently by it.
_OURS = {option.name.lower() for option in OPTIONS if option.is_ours}


@dataclass(frozen=True, slots=True)
class Digest:
    """What a source read of one partition: rows, their first and last offset, their hash."""

    rows: int
    first: int
    last: int
    hash: int


@dataclass(frozen=True, slots=True)
class Side:
    """What a source read in one run, and how long that took, in seconds."""

    source: str
    digests: Mapping[TopicPartition, Digest]
    seconds: float

    @property
    def rows(self) -> int:
        """Of all partitions."""
        return sum(digest.rows for digest in self.digests.values())

    @property
    def rows_per_s(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What both sources read in each of their runs, and the ranges that these are of."""

    ranges: tuple[OffsetRange, ...]
    sides: tuple[Side, ...]

    @property
    def ours(self) -> Side:
        """Our fastest run."""
        return self._fastest(SOURCES[0])

    @property
    def theirs(self) -> Side:
        """The fastest run of Spark's own connector."""
        return self._fastest(SOURCES[1])

    def _runs(self, source: str) -> list[Side]:
        return [side for side in self.sides if side.source == source]

    def _fastest(self, source: str) -> Side:
        runs = self._runs(source)
        return min(runs, key=lambda side: side.seconds, default=Side(source, {}, 0.0))

    def found(self, source: str, item: TopicPartition) -> list[Digest | None]:
        """Each different thing that the source's runs read of a partition; None is no rows."""
        return list(dict.fromkeys(side.digests.get(item) for side in self._runs(source)))

    @property
    def differing(self) -> list[TopicPartition]:
        """Partitions of which not all runs, of the one source or the other, read the same rows."""
        every = {item for side in self.sides for item in side.digests}
        return sorted(
            item for item in every if len({side.digests.get(item) for side in self.sides}) > 1
        )

    @property
    def is_same(self) -> bool:
        """Whether all runs of both read the same rows of every partition."""
        return not self.differing


def compare(
    spark: SparkSession,
    options: Mapping[str, str],
    *,
    runs: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Read what `options` mean with both sources, headers included.

    Args:
        spark: a session that has both sources.
        options: as for `spark.read`; starts and ends may be any that this source knows.
        runs: how often each reads, in turn.
        tell: is told which source reads next, as text.

    Raises:
        ConfigError: an option cannot be used, or nothing is to run.
    """
    if runs < 1:  # two that have read nothing have read the same
        raise ConfigError("runs", runs, "expected 1 or more")
    low = lowered(options)
    read = parse_read_options(low)
    with KafkaCluster(read.driver) as cluster:
        ranges = plan_closed_ranges(cluster, read)
    _check_one_each(ranges)
    kept = {key: text for key, text in low.items() if key not in _REPLACED | _OURS}
    given = kept | {"includeheaders": "true"} | _as_options(ranges)
    sides = []
    for number, source in enumerate(SOURCES * runs if ranges else ()):
        which = f", {number // len(SOURCES) + 1} of {runs}" if runs > 1 else ""
        tell(f"reading with {source}{which}")
        sides.append(_read(spark, source, given))
    return Comparison(tuple(ranges), tuple(sides))


def _check_one_each(ranges: Sequence[OffsetRange]) -> None:
    counts = Counter(item.topic_partition for item in ranges)
    twice = [str(partition) for partition, count in sorted(counts.items()) if count > 1]
    if twice:
        why = "it has several ranges: Spark's own connector reads one of each partition"
        raise ConfigError("offsetRanges", ", ".join(twice), why)


def _read(spark: SparkSession, source: str, options: Mapping[str, str]) -> Side:
    began = time.perf_counter()
    rows = spark.read.format(source).options(**options).load()
    # A sum, not an exclusive or: a row that is there twice more must not cancel out.
    digest = sf.sum(row_hash(rows).cast("decimal(38,0)"))
    found = rows.groupBy("topic", "partition").agg(
        sf.count("*"), sf.min("offset"), sf.max("offset"), digest
    )
    digests = {
        TopicPartition(topic, partition): Digest(count, first, last, int(hashed))
        for topic, partition, count, first, last, hashed in found.collect()
    }
    return Side(source, digests, time.perf_counter() - began)


def row_hash(rows: DataFrame) -> Column:
    """A hash of each row, in which a NULL counts as well.

    Spark's hash passes over NULLs: a key without a value would be like that value without a key,
    no headers like an empty list of them.
    """
    is_null = [sf.col(name).isNull() for name in rows.columns]
    values = sf.transform("headers", lambda header: header["value"].isNull())
    return sf.xxhash64(*rows.columns, *is_null, values)


def _as_options(ranges: Sequence[OffsetRange]) -> dict[str, str]:
    """The options of both sources that mean `ranges`, which are closed, one per partition."""
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int | None]] = {}
    ends: dict[str, dict[str, int | None]] = {}
    for item in ranges:
        assigned.setdefault(item.topic, []).append(item.partition)
        starts.setdefault(item.topic, {})[str(item.partition)] = item.start
        ends.setdefault(item.topic, {})[str(item.partition)] = item.stop
    return {
        "assign": json.dumps(assigned),
        "startingoffsets": json.dumps(starts),
        "endingoffsets": json.dumps(ends),
    }
