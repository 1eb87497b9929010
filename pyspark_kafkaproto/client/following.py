"""Records of partitions up to where these end, and later what has come since.

Reads ranges, as a task of Spark does, and belongs to no group. Offsets mean the same records all
along, or it is an error: who follows would pass over what is written where a log was cut off, or in
a topic that was made anew.
Here at the edge records become Python objects: they are looked at one by one. When to ask again,
and what is done with a record, is the caller's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.arrow import RECORD_COLUMNS, schema_for
from pyspark_kafkaproto.client.reading.decode import read_batches
from pyspark_kafkaproto.client.reading.loss import WAY_OUT
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.cluster.cut_offs import CutOffs
from pyspark_kafkaproto.cluster.topology import made_again
from pyspark_kafkaproto.errors import BrokerError, DataLoss

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
Record = Mapping[str, Any]


class Following:
    """How far some partitions were read.

    Attributes:
        moved: the next offset of each partition that has moved, for a commit; empty once offsets
            mean other records, as a commit would pass over those.
    """

    def __init__(self, cluster: KafkaCluster, starts: Offsets) -> None:
        self.moved: Offsets = {}
        self._cluster = cluster
        self._positions = dict(starts)
        self._ends: Offsets = {}  # the last ones that were told
        self._cut_offs = CutOffs(cluster)
        self._topic_ids: dict[str, bytes] = {}
        self._leaderless: set[TopicPartition] = set()

    def begin(self, starts: Offsets) -> None:
        """Follow these, too, whose ends were told last."""
        self._positions |= starts
        self._cut_offs.learn()

    def count_until(self, stops: Offsets) -> int:
        """How many offsets there are yet to `stops`: no fewer than records."""
        return sum(item.count or 0 for item in self._ranges(stops))

    def records_until(self, stops: Offsets) -> Iterator[Record]:
        """Everything from where it is to `stops`, each partition's in order.

        Nothing of those that nobody led at the last look, which would be waited for. After a
        failure that may pass (`is_retriable`) it can be called again.
        A record counts as read when `note_read` says so; what gives none (markers, compacted
        offsets) once all have been taken. Timestamps are microseconds.

        Raises:
            DataLoss: offsets mean other records than before.
        """
        self._ends = self._ends | stops
        ranges = self._ranges(stops)
        if not ranges:
            if not self._topic_ids:  # who begins at the end follows this topic, too
                self._check_ids({item.topic for item in stops})
            return
        yield from self._records(ranges)
        ends = {item.topic_partition: item.stop or 0 for item in ranges}
        self._positions |= ends
        self.moved |= ends

    def note_read(self, record: Record) -> None:
        """`record` is done with."""
        item = TopicPartition(record["topic"], record["partition"])
        self._positions[item] = self.moved[item] = record["offset"] + 1

    def commit_for(self, group: str) -> None:
        """Commit `moved` for `group`: by name, so that the topics have to be those that were read.

        Raises:
            DataLoss: one was made again since.
            BrokerError: one is gone, or the commit is refused.
        """
        if self.moved:
            self._check_ids({item.topic for item in self.moved})
            self._cluster.set_consumer_offsets(group, self.moved)

    def newer_ends(self) -> Offsets:
        """Where the partitions end by now; one that nobody leads, where it did.

        Raises:
            DataLoss: before where they ended, and it is believed (see `KafkaCluster.believed`); or
                they did, and have grown since.
        """

        def cut_off(ends: Offsets) -> list[TopicPartition]:
            return sorted(item for item, end in ends.items() if end < self._ends[item])

        ends = self._cluster.believed(self._led_ends, lambda ends: not cut_off(ends))
        for item in cut_off(ends):  # what is written below would be passed over
            why = f"{item} ended at offset {self._ends[item]} and ends at {ends[item]} now"
            raise self._lost(f"{why}: its end was cut off, or the topic was made anew.")
        for item, end in self._cut_offs.find(self._positions).items():
            why = f"{item} was cut off at offset {end} (an unclean election)"
            at = self._positions[item]
            raise self._lost(f"{why}: others are there now than were read, up to {at}.")
        return ends

    def _led_ends(self) -> Offsets:
        """Those that can be told, and of the others what was told last: these are read on later."""
        found = self._cluster.get_latest_leader_offsets(self._ends, waits_for_leaders=False)
        for item in sorted(self._ends.keys() - found.keys() - self._leaderless):
            _log.warning("%s: nobody leads it; it is read on once somebody does", item)
        self._leaderless = self._ends.keys() - found.keys()
        return self._ends | found

    def _ranges(self, stops: Offsets) -> list[OffsetRange]:
        return [
            OffsetRange(*item, self._positions[item], stop)
            for item, stop in sorted(stops.items())
            if self._positions[item] < stop and item not in self._leaderless
        ]

    def _records(self, ranges: list[OffsetRange]) -> Iterator[Record]:
        ids = self._check_ids({item.topic for item in ranges})
        leaders = self._cluster.find_leaders([item.topic_partition for item in ranges])
        task = ReadTask(tuple(ranges), leaders, ids)
        schema = schema_for(RECORD_COLUMNS)
        batches = read_batches(task, self._cluster.config, ReadSettings(), schema)
        try:
            with closing(batches):  # type: ignore[type-var]  # a generator has close()
                for batch in batches:
                    yield from records_of(batch)
        except DataLoss:
            self._look_closer()
            raise

    def _look_closer(self) -> None:
        """After a loss that a reader has met: `moved` counts only where offsets mean what they did.

        Raises:
            DataLoss: they do not, and why.
        """
        moved, self.moved = self.moved, {}
        with suppress(BrokerError):  # of a topic that is gone: the loss says so
            self._check_ids(set(self._topic_ids))
            self.newer_ends()
            self.moved = moved

    def _check_ids(self, topics: set[str]) -> dict[str, bytes]:
        """The topics' ids, which have to be those of before."""

        def ask() -> dict[str, bytes]:
            return self._cluster.describe(topics, must_exist=True).topic_ids

        before = self._topic_ids
        found = self._cluster.believed(ask, lambda found: not made_again(before, found))
        for name in made_again(before, found):
            why = f"topic {name!r} was deleted and made anew while it was being read."
            raise self._lost(why)
        self._topic_ids |= found
        return found

    def _lost(self, why: str) -> DataLoss:
        self.moved = {}
        return DataLoss("COULD_NOT_READ_OFFSET_RANGE", why, WAY_OUT)


def records_of(batch: pa.RecordBatch) -> list[Record]:
    """Rows as records; timestamps are microseconds."""
    # As numbers: a timestamp may lie outside of what Python's dates can hold.
    at = batch.schema.get_field_index("timestamp")
    micros = batch.column(at).cast("int64")
    records: list[Record] = batch.set_column(at, "timestamp", micros).to_pylist()
    return records
