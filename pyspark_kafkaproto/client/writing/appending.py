"""Arrow batches to the open batches of the partitions that their rows go to.

Rows are picked by topic, placed, and appended; the producer numbers them in the order in which they
come. A row that can never be written is refused before anything of it is encoded: it fails the
write, or is appended to the dead letter topic as a letter. Knows nothing of requests and brokers.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import partial

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.client.writing.accumulate import Accumulator
from pyspark_kafkaproto.client.writing.batches import Rows, span_of
from pyspark_kafkaproto.client.writing.coalescing import Part
from pyspark_kafkaproto.client.writing.compressing import Compressing
from pyspark_kafkaproto.client.writing.intake import TIMESTAMP
from pyspark_kafkaproto.client.writing.picking import (
    Picked,
    beyond_micros,
    by_topic,
    is_within,
    own_partitions,
    partition_column,
    rows_but,
    size_bytes_of,
)
from pyspark_kafkaproto.client.writing.plain import record_at, to_arrow
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.refusals import Refusals
from pyspark_kafkaproto.client.writing.sending import Sender
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.client.writing.targets import Target, Targets
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.net import ProducerConfig

_NOWHERE = -1


class Appending:
    """Appends what one producer is given, under one identity.

    Args:
        config: of the producer.
        topic: where rows go; None takes each row's own, from its column `topic`.
        targets: the topics that are written to.
        refusals: what becomes of rows that can never be written.
        sender, compressing: of the producer, for the open batches.
        who: the identity that a partition's first batch begins with.
        first_row: the number of the next row.

    Attributes:
        open_batches: what was appended and is not on its way.
    """

    def __init__(
        self,
        config: ProducerConfig,
        topic: str | None,
        targets: Targets,
        refusals: Refusals,
        sender: Sender,
        compressing: Compressing,
        who: Callable[[], Identity],
        first_row: int,
    ) -> None:
        self._topic = topic
        self._targets = targets
        self._refusals = refusals
        self._who = who
        self._next_row = first_row
        puts_aside = refusals.dead_letter_topic is not None
        relieve = self._append_many_letters if puts_aside else None
        self.open_batches = Accumulator(config, sender, relieve, compressing)

    def append(self, part: Part) -> int:
        """Append the rows of an Arrow batch; to how many partitions they went.

        Raises:
            KafkaProtoError: one can never be written, and such rows fail the write; or a topic
                cannot be looked up.
        """
        batch, timestamp_column = part
        self._targets.refresh()
        whole = Picked(self._topic, batch, Rows(self._next_row), timestamp_column)
        self._next_row += batch.num_rows
        spread = 0
        for picked in self._by_topic(whole):
            target = self._target(picked)
            if target is not None:
                spread += self._append_to(target, picked)
        return spread

    # Letters

    def append_letters(self) -> None:
        """Append the letters that wait, and those that are made meanwhile."""
        while self._refusals.letters:
            self._append_some_letters()

    def _append_many_letters(self) -> None:
        while self._refusals.holds_many:
            self._append_some_letters()

    def _append_some_letters(self) -> None:
        topic = self._refusals.dead_letter_topic
        assert topic is not None  # noqa: S101 - there are letters
        self._targets.find({topic})
        letters = self._refusals.take_letters()
        rows = span_of(row for row, _ in letters).rows
        batch = to_arrow(letter for _, letter in letters)
        self._append_to(self._targets[topic], Picked(topic, batch, rows, TIMESTAMP))

    # Rows to topics

    def _by_topic(self, whole: Picked) -> Iterable[Picked]:
        """The rows of each topic; all topics were looked up then."""
        if self._topic is not None:
            self._targets.find({self._topic})
            return [whole]
        names, parts = by_topic(whole)
        if self._refusals.dead_letter_topic is not None:
            self._targets.find_existing(names)
        elif absent := self._targets.absent(names):
            firsts = [(part.rows.number(0), part.topic) for part in parts if part.topic in absent]
            row, topic = min(firsts)
            raise self._refusals.of_row(absent[str(topic)], row)
        return parts

    def _target(self, picked: Picked) -> Target | None:
        """The topic; None where each row was refused because it cannot be written to."""
        fault = picked.fault
        if picked.topic is not None:
            fault = self._targets.fault(picked.topic)
            if fault is None:
                return self._targets[picked.topic]
        for row in range(picked.batch.num_rows):
            self._refuse(picked, row, _NOWHERE, str(fault))
        return None

    def _refuse(self, picked: Picked, row: int, partition: int, reason: str) -> None:
        record = record_at(picked.batch, row, picked.timestamp_column)
        number = picked.rows.number(row)
        self._refusals.refuse(record, number, picked.topic, partition, reason)
        self._append_many_letters()  # not after all rows: one Arrow batch may have any number

    # Rows to partitions

    def _append_to(self, target: Target, picked: Picked) -> int:
        """To how many partitions the rows went."""
        picked = self._without_bad_partitions(target, self._without_bad_timestamps(picked))
        batch = picked.batch
        if not batch.num_rows:
            return 0
        columns = write_columns(batch, timestamp_column=picked.timestamp_column)
        placed = target.placement.place(
            columns,
            own_partitions(batch),
            size_bytes_of(batch) // batch.num_rows,
            len(target.topic.partitions),
            target.led,
        )
        groups = list(placed)
        for partition, indices in groups:

            def refuse(row: int, reason: str, partition: int = partition) -> None:
                self._refuse(picked, row, partition, reason)

            queue = target.queues.get(partition) or self._queue(target, partition)
            self.open_batches.append(queue, columns, picked.rows, indices, refuse)
        return len(groups)

    def _without_bad_timestamps(self, picked: Picked) -> Picked:
        """The rows but those whose timestamp encoders cannot be given."""
        refused = beyond_micros(picked.batch, picked.timestamp_column)
        for row, reason in refused.items():
            self._refuse(picked, row, _NOWHERE, reason)
        return picked.taken(rows_but(picked.batch.num_rows, refused)) if refused else picked

    def _without_bad_partitions(self, target: Target, picked: Picked) -> Picked:
        """The rows but those that name a partition that the topic does not have."""
        given = partition_column(picked.batch)
        if given is None or is_within(given, len(target.topic.partitions)):
            return picked
        self._targets.find_partitions(target.topic.name, partial(is_within, given))
        count = len(target.topic.partitions)
        if is_within(given, count):
            return picked
        kept = array("i")
        for row, partition in enumerate(given.to_pylist()):
            if partition is None or 0 <= partition < count:
                kept.append(row)
                continue
            reason = (
                f"there is no partition {partition}: the topic has {count}, from 0 on; the column "
                "partition says so, and without it one is chosen by the key"
            )
            self._refuse(picked, row, _NOWHERE, reason)
        return picked.taken(memoryview(kept))

    def _queue(self, target: Target, partition: int) -> PartitionQueue:
        topic = target.topic
        queue = PartitionQueue(
            TopicPartition(topic.name, partition),
            Sequences(self._who()),
            self.open_batches.limit_bytes,
            topic_id=topic.topic_id,
            leader=target.leaders.get(partition),
        )
        target.queues[partition] = queue
        return queue
