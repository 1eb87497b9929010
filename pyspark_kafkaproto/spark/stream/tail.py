"""What a stream's process on the driver knows of its partitions: which there are, where they end.

It lives as long as the query, so it keeps connections and what it learned. Topics are looked up
again at most once a second; offsets are asked for at each call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.client.reading.probe import probe_bytes_per_offset
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, Topology
from pyspark_kafkaproto.cluster.cut_offs import CutOffs
from pyspark_kafkaproto.cluster.recent import with_latest
from pyspark_kafkaproto.cluster.topology import made_again
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, DataLoss, KafkaProtoError, UnsupportedVersion
from pyspark_kafkaproto.spark.options import ReadOptions
from pyspark_kafkaproto.spark.planning import (
    describe_selection,
    is_gone,
    make_task,
    matches,
    select_partitions,
)
from pyspark_kafkaproto.spark.stream.offsets import Lineage

_log = logging.getLogger(__name__)

_TOPOLOGY_AGE_S = 1.0
# So many topics, or partitions, that are gone are known, if they come again: they may come and go
# for years.
_MOST_GONE = 10_000

Offsets = dict[TopicPartition, int]
_T = TypeVar("_T")


class Tail:
    """The partitions of one stream and their ends.

    Attributes:
        has_other_logs: whether the query goes on over logs that took the place of those that it has
            read; back to False once that is logged.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.cluster = KafkaCluster(options.driver)
        self._options = options
        self._topology: Topology | None = None
        self._selected: tuple[Topology, list[TopicPartition]] | None = None
        self._looked_up_at = 0.0
        self._topic_ids: dict[str, bytes] = {}
        self._epochs: dict[TopicPartition, int] = {}  # of the leaders that told ends
        self._noted: Mapping[TopicPartition, int] = self._epochs  # what came into those last
        self._cut_offs = CutOffs(self.cluster)
        self._says_probed = False
        self.has_other_logs = False

    def close(self) -> None:
        """Close all connections."""
        self.cluster.close()

    @property
    def lineage(self) -> Lineage:
        """Which logs were seen, and by whom their ends were told last."""
        return Lineage(self._topic_ids, self._epochs)

    def recall(self, lineage: Lineage, read: Offsets) -> None:
        """Look whether logs are those that an earlier run has read, if they may be others.

        Args:
            lineage: those of that run.
            read: how far it has read those whose epochs are known.

        Raises:
            DataLoss: a topic was made again since, or a log cut off, and that is to fail the query.
        """
        if made_again(lineage.ids, self._topic_ids):
            self._topology = None  # what was seen is not what was read: it is looked at again
        self._topic_ids = self._topic_ids | dict(lineage.ids)
        if lineage.ids:
            self.topology()
        others = made_again(lineage.ids, self._topic_ids)
        epochs = {item: one for item, one in lineage.epochs.items() if item.topic not in others}
        self._cut_offs.recall(epochs)
        unsure = [item for item, epoch in epochs.items() if self._epochs.get(item) != epoch]
        if unsure:
            # Who leads in an epoch before those has been away: what was read came later.
            there = self.cluster.believed(
                lambda: self._of_those_there(unsure, self.latest),
                lambda told: not any(-1 < self._epochs[item] < epochs[item] for item in told),
            )
            self.report_cut_off({item: read[item] for item in there})

    def topology(self, *, must_exist: bool = False) -> Topology:
        """The topics, not older than a second.

        Raises:
            BrokerError: with `must_exist`, a topic that is named is not there. That is for the
                start of a query: later it is a loss of data, and failOnDataLoss has its say.
            DataLoss: a topic was deleted and made again since it was first seen, and that is to
                fail the query.
        """
        now = time.monotonic()
        is_old = now - self._looked_up_at >= _TOPOLOGY_AGE_S
        if self._topology is None or is_old or must_exist:
            self._topology, self._looked_up_at = self._describe(must_exist=must_exist), now
        return self._topology

    def topology_with(self, partitions: Collection[TopicPartition]) -> Topology:
        """As `topology`; other brokers are asked, too, before one of these counts as deleted.

        A batch that an earlier run has logged may have topics that the options do not name any
        more. They are there all the same.
        """
        for _ in self.cluster.opinions():
            found = self._with_others(self.topology(), partitions)
            gone = [item for item in partitions if is_gone(found, item)]
            if not gone:
                break
            self._check_seen(gone)
            self._topology = None
        return found

    def _with_others(self, found: Topology, partitions: Collection[TopicPartition]) -> Topology:
        """`found` with the topics of `partitions` that were not asked for; by pattern all were."""
        others = {item.topic for item in partitions} - found.topics.keys()
        if not others or self._options.subscribe_pattern is not None:
            return found
        return replace(found, topics={**found.topics, **self.cluster.describe(others).topics})

    def partitions(self, *, must_exist: bool = False) -> list[TopicPartition]:
        """Those that are there now; BrokerError as for `topology`."""
        topology = self.topology(must_exist=must_exist)
        if must_exist:
            return select_partitions(topology, self._options, must_exist=True)
        if self._selected is None or self._selected[0] is not topology:
            found = select_partitions(topology, self._options, must_exist=False)
            self._selected = (topology, found)
        return self._selected[1]

    def ends(self, known: Offsets) -> Offsets:
        """Where each partition ends now: `known` itself if that is there still.

        Under read_committed that is where the first open transaction begins, but not before
        `known`.

        Args:
            known: offsets that were there already; where one is not there now, all is asked again.
        """
        for is_last in self.cluster.opinions():
            try:
                found = self.latest(self.partitions())
                if found != known:
                    found = found | self.held_back(known, found)
            except BrokerError as error:
                # Deleted since the topics were looked up: they are looked up again.
                if error.code != UNKNOWN_TOPIC_OR_PARTITION or is_last:
                    raise
            else:
                if found == known:
                    return known
                if all(found.get(item, -1) >= at for item, at in known.items()):
                    break
                self._check_seen(known.keys() - found.keys())
            self._topology = None
        return found

    def refuse_missing(self, at: Offsets) -> None:
        """Look whether what is named is there, where a query goes on: options may have changed.

        Of what it has read losses tell; what it has not would be left out without a word.

        Args:
            at: where the query is.

        Raises:
            BrokerError: a topic or partition is not there, and losses are to fail the query.
        """
        missing = self._missing(at)
        if missing and self._options.settings.fail_on_data_loss:
            # As at a start. A broker that has been away may not know yet what was just created.
            self.cluster.doubting(
                UNKNOWN_TOPIC_OR_PARTITION, lambda: self.partitions(must_exist=True)
            )
        elif missing:
            _log.warning(
                "%s is not there, though %s names it: the query goes on without it, and reads it "
                "from its first record once it is there; failOnDataLoss is false",
                ", ".join(missing),
                "assign" if self._options.subscribe is None else "subscribe",
            )

    def _missing(self, at: Offsets) -> list[str]:
        """The topics or partitions that are named and neither there nor read before."""
        topology = self.topology()
        named = [item for item in self._options.assign or () if item not in at]
        read = {item.topic for item in at}
        topics = [name for name in self._options.subscribe or () if name not in read]
        return [str(item) for item in named if is_gone(topology, item)] + [
            name for name in topics if not topology.has(name)
        ]

    def _check_seen(self, missing: Collection[TopicPartition]) -> None:
        """Refuse to take for deleted what this user may not see.

        Where all topics are asked for, brokers leave those out. One that is seen again later would
        count as added, and be read from its beginning once more.

        Raises:
            BrokerError: names a topic, and the right that is missing.
        """
        pattern = self._options.subscribe_pattern
        if pattern is None:
            return  # by name brokers say so themselves
        names = {item.topic for item in missing if pattern.search(item.topic)}
        if not names:
            return
        found = self.cluster.describe(names)
        for name in sorted(names):
            if found.has(name):
                found.topic(name)

    def report_cut_off(self, at: Offsets) -> None:
        """Fail or warn where a log was cut off below what was read: it may have grown since.

        Args:
            at: where the query is, no further than the ends that were told before the last ones.

        Raises:
            DataLoss: there is such a log, and that is to fail the query.
        """
        for item, end in self._cut_offs.find(at).items():
            self.has_other_logs = True
            fail_or_warn(
                self._options,
                "PARTITION_OFFSET_CHANGED",
                f"Partition {item} was cut off at offset {end} since the query began (an unclean "
                f"election): records that were read, up to {at[item]}, are gone, and others are "
                "there now.",
            )

    def held_back(self, known: Offsets, found: Offsets) -> Offsets:
        """Those of `known` that are there, though an open transaction lies before them.

        An earlier run has read them that was read_uncommitted. A stream that went back to the last
        stable offset would read them again.
        """
        before = [item for item, at in known.items() if found.get(item, at) < at]
        if not before or not self._options.driver.is_read_committed:
            return {}
        ends = self.cluster.get_high_watermarks(before)
        return {item: known[item] for item in before if ends[item] >= known[item]}

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Where each of these ends now; under read_committed, the last stable offset."""
        if not partitions:
            return {}
        found = self.cluster.get_latest_leader_offsets(partitions)
        told = self.cluster.end_epochs  # no news now may be news here: others ask the cluster, too
        if told is not self._noted:
            self._epochs, self._noted = with_latest(told, self._epochs, _MOST_GONE), told
        return found

    def beginnings(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset of each that is still there."""
        return self.cluster.get_earliest_leader_offsets(partitions) if partitions else {}

    def beginnings_of_added(self, added: Collection[TopicPartition]) -> Offsets:
        """The same of partitions that were added; what is gone before it was read is a loss.

        Raises:
            DataLoss: one is gone, and that is to fail the query.
        """
        found = self._of_those_there(added, self.beginnings)
        if missing := sorted(set(added) - found.keys()):
            fail_or_warn(
                self._options,
                "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
                f"Cannot find initial offsets for partitions {', '.join(map(str, missing))}. They "
                "may have been deleted.",
            )
        return found

    def _of_those_there(
        self,
        partitions: Collection[TopicPartition],
        ask: Callable[[Collection[TopicPartition]], dict[TopicPartition, _T]],
    ) -> dict[TopicPartition, _T]:
        """What `ask` gives for those that are there."""

        def look() -> dict[TopicPartition, _T]:
            topology = self.topology_with(partitions)
            there = [item for item in partitions if not is_gone(topology, item)]
            try:
                return ask(there)
            except BrokerError:
                self._topology = None  # deleted since the topics were looked up, perhaps
                raise

        return self.cluster.doubting(UNKNOWN_TOPIC_OR_PARTITION, look) if partitions else {}

    def behind_losses(self, starts: Mapping[TopicPartition, int]) -> Offsets:
        """`starts`, or the first offset there is where a query that bears losses is before it."""
        moved = dict(starts)
        if not self._options.settings.fail_on_data_loss:
            try:
                first = self.beginnings(starts)
            except BrokerError as error:
                if error.code != UNKNOWN_TOPIC_OR_PARTITION:  # deleted: the next look says so
                    raise
                first = {}
            moved |= {item: at for item, at in first.items() if at > starts[item]}
        return moved

    def bytes_per_offset(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """About how many bytes of the log each offset takes; 0 where nothing is known of it.

        Args:
            starts: the partitions, and where the stream is in each. Of what is gone its batch
                tells.
        """
        means = self._of_those_there(
            starts, lambda there: self._means({item: starts[item] for item in there})
        )
        return {item: means.get(item, 0.0) for item in starts}

    def _means(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        try:
            sizes = self.cluster.get_log_sizes(starts)
        except (BrokerError, UnsupportedVersion) as error:
            if isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return self._probed(starts, error)
        earliest = self.beginnings(starts)
        latest = self.cluster.get_latest_leader_offsets(starts)  # no batch ends there
        return {item: sizes[item] / max(1, latest[item] - earliest[item]) for item in starts}

    def _probed(
        self, starts: Mapping[TopicPartition, int], refused: KafkaProtoError
    ) -> dict[TopicPartition, float]:
        """The same by a look at the next batches, where brokers do not say how large logs are."""
        if not self._says_probed:
            self._says_probed = True
            _log.warning(
                "maxBytesPerTrigger goes by the size of the batches that come next, not by that of "
                "the whole log: %s",
                refused,
            )
        ranges = [OffsetRange(*item, start, start + 1) for item, start in starts.items()]
        task = make_task(self.topology(), ranges)
        found = probe_bytes_per_offset(task, self._options.client)
        others = sum(found.values()) / max(1, len(found))
        return {item: found.get(item, others) for item in starts}

    def _describe(self, *, must_exist: bool) -> Topology:
        """The topics as they are now.

        One with another id is another topic: its offsets mean other records. That is a loss, if
        all brokers that are asked name another.
        """

        def ask() -> tuple[Topology, dict[str, bytes]]:
            found = describe_selection(self.cluster, self._options, must_exist=must_exist)
            return found, self._ids(found)

        before = self._topic_ids
        found, ids = self.cluster.believed(ask, lambda told: not made_again(before, told[1]))
        lost = made_again(before, ids)
        self._topic_ids = with_latest(ids, before, _MOST_GONE)
        for name in lost:
            self.has_other_logs = True
            fail_or_warn(
                self._options,
                "PARTITIONS_DELETED",
                f"Topic {name} was deleted and created again since the query began, or "
                "kafka.bootstrap.servers names another cluster.",
            )
        return found

    def _ids(self, found: Topology) -> dict[str, bytes]:
        """The ids of the topics that the query reads; with a pattern `found` has all there are."""
        pattern = self._options.subscribe_pattern
        ids = found.topic_ids
        if pattern is None:
            return ids
        return {name: ids[name] for name in ids if matches(pattern, found.topics[name])}


def fail_or_warn(options: ReadOptions, condition: str, text: str) -> None:
    """Fail the query with Spark's condition, or warn, as failOnDataLoss says."""
    if options.settings.fail_on_data_loss:
        raise DataLoss(condition, text)
    _log.warning(
        "[KAFKA_DATA_LOSS.%s] %s The query goes on: failOnDataLoss is false.", condition, text
    )
