"""Rows of a member's partitions as record batches, and the positions after them.

A position is the offset after the rows that were handed out: what a commit says is read. It moves
over what gives no row, too (compacted offsets, markers), so that a group comes to the end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import proxy

from pyspark_kafkaproto.arrow import to_record_batches, wanted_columns
from pyspark_kafkaproto.client.group import patience
from pyspark_kafkaproto.client.group.beginning import (
    find_led,
    nothing_committed,
    starting_positions,
    without_policy,
)
from pyspark_kafkaproto.client.group.fetched import BlockRows, Fetched
from pyspark_kafkaproto.client.group.reset import reset_timestamp
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.group.sessions import FetchSessions
from pyspark_kafkaproto.client.group.tail import Tail
from pyspark_kafkaproto.client.group.told import Told
from pyspark_kafkaproto.client.reading.beside import Beside, decoding_threads
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.client.reading.ranges import ReadSettings
from pyspark_kafkaproto.client.weakly import weakly
from pyspark_kafkaproto.cluster import CommittedOffset, Router, TopicPartition
from pyspark_kafkaproto.error_codes import UNSTABLE_OFFSET_COMMIT
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import ConsumerConfig, Deadline
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.records import Columns, Damaged, Decoded

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0  # for leaders of partitions that are not read yet


class Reading:
    """What the partitions of a member give, until others come or some of them go.

    Args:
        assigned: the partitions.
        starts: where to begin, of some of them (see `starting_positions`); the others are read
            once somebody leads them, or with auto.offset.reset=none are an error until somebody
            has committed for them, or sought.

    Attributes:
        positions: the offset after the rows handed out, per partition.
        paused: partitions that nothing is read of for now.
        seen: what positions stand on.
    """

    def __init__(
        self,
        assigned: Collection[TopicPartition],
        starts: Mapping[TopicPartition, CommittedOffset],
        config: ConsumerConfig,
        router: Router,
        schema: pa.Schema,
        seen: Seen,
        sessions: FetchSessions,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.paused: frozenset[TopicPartition] = frozenset()
        self._later = set(assigned)
        self._told = Told(config.client)
        self._has_policy = config.auto_offset_reset != "none"
        self._look_again = Deadline.after(_LOOK_AGAIN_S if self._has_policy else 0)
        # For each of their leaders: they are connected to one after the other, and who hangs there
        # is to leave the next one its time. `starting_positions` has waited for the first time.
        self._patience = patience.Patience(2 * patience.FIRST_S, config.client.request_timeout_s)
        self._config = config
        self._router = router
        self._schema = schema
        self._wanted = wanted_columns(schema) | Columns.OFFSET  # for positions between batches
        self.seen = seen
        self._sessions = sessions
        self._beside = Beside(decoding_threads(None))
        self._begin_at(starts)
        self._tail = self._new_tail()
        self._fetched = Fetched(self._beside)
        self._is_moved = False  # by others than rows, so that what was fetched is not read on
        self._before: dict[TopicPartition, int] = {}  # of positions moved by what is on its way

    def next_batch(self, deadline: Deadline) -> pa.RecordBatch | None:
        """Rows of one partition, in the order of their offsets; None where none came in time.

        Raises:
            CorruptRecords: at the position; again at the next call.
            BrokerError: an offset is not there, or nothing was committed, and auto.offset.reset is
                none; or a partition may not be read. Again once the others have nothing more, or
                after a while.
        """
        if self.seen.unsure:
            self._begin_again()
        if self._is_moved:
            self._read_anew()
        try:
            batch = self._fetched.next_batch(self.paused)
            if batch is None:
                if self._told.is_long_ago:
                    self._tell_again()
                if self._has_policy:
                    self._begin_later()
                else:
                    self._insist_on_starts()
                if not self._may_ask(deadline):
                    return None
                self._fetched.add(map(self._rows_of, self._tail.next_blocks(deadline)))
                batch = self._fetched.next_batch(self.paused)
        except BaseException:
            # What was fetched and not handed out is fetched again.
            self._told.note_raised(self._tail.refused)
            self._read_anew()
            raise
        if batch is None and self._told.partitions and not self._tail.unheard:  # polls may be short
            self._tell_again()
        return batch

    def _may_ask(self, deadline: Deadline) -> bool:
        """Whether somebody is to be asked for more; waits for that, up to `deadline`."""
        if self._tail.is_idle:
            time.sleep(deadline.remaining_s)
            return False
        return self._told.wait_to_ask(deadline)

    def _tell_again(self) -> None:
        """Ask for all once more: what was an error may be none by now."""
        self._told.partitions.clear()
        self._read_anew()

    def seek(self, partition: TopicPartition, at: CommittedOffset) -> None:
        """Go on at another offset: what was fetched of the partition is not handed out."""
        self._is_moved = True  # first: an interrupt leaves no position of which nothing is read
        self.seen.epochs.pop(partition, None)  # of the offset before, as all that was known of it
        self.seen.astray.discard(partition)
        self.seen.outdated.discard(partition)
        self._told.partitions.discard(partition)
        self._before.pop(partition, None)
        self.seen.sought.add(partition)
        self.seen.unsure.discard(partition)
        self._begin_foreign({partition: at})

    def note_arrived(self) -> None:
        """Who reads has the last batch."""
        self._before.clear()

    def take_back(self) -> None:
        """What has been given since `note_arrived` is on its way no more: its rows come again."""
        self.positions |= self._before
        self._is_moved = True

    def pause(self, partitions: frozenset[TopicPartition]) -> None:
        """Give no rows of these, and of all others, until it is said anew.

        What was fetched of them, or is under way, is kept.
        """
        was_moved, self._is_moved = self._is_moved, True  # where it is interrupted halfway
        self.paused = partitions
        self._tail.hold(partitions)
        self._fetched.drop(self.seen.outdated)  # a reset comes before what was fetched of the past
        # Only so is an error told again: else what is under way would never come to who pauses, and
        # resumes, before each poll.
        self._is_moved = was_moved or (bool(self._told.partitions) and self._is_all_told)

    @property
    def standing(self) -> dict[TopicPartition, CommittedOffset]:
        """Positions with the leader epochs of the records before them."""
        return {
            item: CommittedOffset(offset, leader_epoch=self.seen.epoch_before(item, offset))
            for item, offset in self.positions.items()
        }

    @property
    def committable(self) -> dict[TopicPartition, CommittedOffset]:
        """The same but for those that are an error: whoever began there would not notice."""
        astray = self.seen.astray
        return {item: at for item, at in self.standing.items() if item not in astray}

    def close(self) -> None:
        """Let go of what is under way."""
        self._let_go()
        self._beside.close()

    def _let_go(self) -> None:
        self._fetched.clear()
        self._tail.close()

    def _begin_foreign(self, starts: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Begin at offsets that are not from this reading: see `Seen.foreign`."""
        self.seen.foreign |= starts.keys()
        self._begin_at(starts)

    def _begin_at(self, starts: Mapping[TopicPartition, CommittedOffset]) -> None:
        begun, offsets = starts.keys(), {item: start.offset for item, start in starts.items()}
        self.seen.note_committed(starts)
        # In one step, which no Ctrl-C can part: a partition that has begun would begin once more.
        self.positions |= offsets
        self._later -= begun

    def _begin_again(self) -> None:
        """Begin again, as for the first time, with partitions of which nothing was read yet."""
        unsure = self.seen.unsure & self.positions.keys()
        names = ", ".join(map(str, sorted(unsure)))
        _log.info("%s: the topic is another one than was named first, begun with again", names)
        self._is_moved = True  # first: whoever is interrupted here comes back
        self._later |= unsure
        self._look_again = Deadline.after(0)
        self.seen.astray -= unsure
        self.seen.outdated -= unsure
        self.seen.epochs = {at: known for at, known in self.seen.epochs.items() if at not in unsure}
        self.positions = {at: pos for at, pos in self.positions.items() if at not in unsure}
        self.seen.unsure.clear()

    def _begin_later(self) -> None:
        """Begin with partitions that nobody led before, or who was not reached, if that is over."""
        if not self._later or not self._look_again.has_passed:
            return
        began = time.monotonic()
        self._look_again = Deadline.after(_LOOK_AGAIN_S)
        try:
            led = find_led(self._router, self._later, self._look_again)
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            # The partitions that are read meet it too, and tell of it where it lasts.
            _log.debug("leaders of %s were not looked up: %s", self._later, error)
            return
        patience_s = self._patience.begin()
        starts = self._starts_of(led, patience_s) if led else None
        took_s = time.monotonic() - began
        if starts is not None and starts.keys() < led:
            self._patience.was_in_vain(patience.rest_after(took_s))
        if self._patience.is_long:  # the next one is not
            took_s = min(took_s, patience.SHORT_S)
        rest_s = patience.rest_after(took_s)
        self._look_again = Deadline.after(max(_LOOK_AGAIN_S, rest_s))
        if starts:
            self._begin_foreign(starts)
            self._read_anew()

    def _insist_on_starts(self) -> None:
        """Without a policy somebody has to commit for a partition, or to seek, before it is read.

        Raises:
            BrokerError: nobody has; again once the other partitions have nothing more.
        """
        asked = self._later - self._told.partitions - self.paused
        if not asked or not self._look_again.has_passed:
            return
        starts = self._starts_of(asked, self._patience.long_s)
        if starts is None:
            self._look_again = Deadline.after(_LOOK_AGAIN_S)
            return
        if starts:
            self._begin_foreign(starts)
            self._read_anew()
        if lacking := asked - starts.keys():
            self._told.partitions |= lacking
            raise without_policy(lacking, nothing_committed(self._config))

    def _starts_of(
        self, partitions: Collection[TopicPartition], patience_s: float
    ) -> dict[TopicPartition, CommittedOffset] | None:
        """See `starting_positions`; None where a transaction is about to commit them."""
        try:
            return starting_positions(
                self._router,
                self._config,
                partitions,
                has_others=bool(self.positions),
                patience_s=patience_s,
                level=logging.DEBUG,  # it was said as they were left out
            )
        except BrokerError as error:
            if error.code != UNSTABLE_OFFSET_COMMIT:
                raise
            _log.info("%s are not read yet, a transaction holds offsets: %s", partitions, error)
            return None

    def _rows_of(self, block: Block) -> BlockRows:
        # Now: when its rows are asked for, the block behind it may have come.
        epoch = self._tail.read_epoch(block.progress.topic_partition)
        # Without `self`, which has it: a member that nobody closes lets go of its sockets at once.
        return BlockRows(block, Reading._decoded(proxy(self), block, epoch))

    def _decoded(self, block: Block, epoch: int) -> Iterator[pa.RecordBatch]:
        item = block.progress.topic_partition
        settings = ReadSettings(fail_on_data_loss=False)
        reading = BlockReading(block, self._config.client, settings, self._wanted, self._beside)
        for found in reading.pieces():
            batches = []
            if not isinstance(found, Damaged) and found.rows:
                # What failed so far is fetched again: the position moves with the rows alone.
                batches = self._batches(found, item)
                for batch, end in _all_but_last(batches, found):
                    self._move(item, end, has_rows=True)
                    yield batch
            self._move(item, reading.position, has_rows=bool(batches))
            if reading.position == block.end:
                self.seen.epochs[item] = (block.end, epoch)
            yield from batches[-1:]

    def _batches(self, found: Decoded, partition: TopicPartition) -> list[pa.RecordBatch]:
        """The rows of a chunk, max.poll.records at a time; their memory is shared."""
        batches = to_record_batches(found, *partition, self._schema)
        most = self._config.max_poll_records
        if most is None:
            return batches
        return [
            batch.slice(start, most) for batch in batches for start in range(0, len(batch), most)
        ]

    def _move(self, partition: TopicPartition, offset: int, *, has_rows: bool = False) -> None:
        # Over what gives no row it stays: an error of others at every poll would hold it up for
        # ever. And so does a reset: what showed that it was not there may not be met again.
        if has_rows:
            self._before.setdefault(partition, self.positions[partition])
        self.positions[partition] = offset
        self.seen.astray.discard(partition)

    def _read_anew(self) -> None:
        self._let_go()
        self._tail, self._is_moved = self._new_tail(), False

    @property
    def _is_all_told(self) -> bool:
        """Whether nothing else is left to read than what an error was told of."""
        return self._told.partitions >= self.positions.keys() - self.paused

    def _new_tail(self) -> Tail:
        if self._is_all_told:
            self._told.partitions.clear()
        left_out = self.positions.keys() & self._told.partitions
        positions = {item: at for item, at in self.positions.items() if item not in left_out}
        reset = weakly(self._reset)
        terms = self._config, self._router, reset, self.seen, self._sessions
        tail = Tail(positions, *terms, left_out)
        tail.hold(self.paused)
        return tail

    def _reset(self, partition: TopicPartition, why: str, offset_at: Callable[[int], int]) -> int:
        """See `Reset`: rows that are read again, or passed over, are said."""
        self.seen.astray.add(partition)
        timestamp = reset_timestamp(self._config)
        if timestamp is None:
            self._told.partitions.add(partition)
            raise without_policy([partition], why)
        end = offset_at(timestamp)
        _log.warning("partition %s: %s; reading goes on at offset %d", partition, why, end)
        self.seen.epochs.pop(partition, None)  # others may come by the offset that this is of
        self.seen.outdated.discard(partition)
        self._move(partition, end)
        return end


def _all_but_last(
    batches: list[pa.RecordBatch], found: Decoded
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches that have others behind them in the same chunk, with the offset after each."""
    rows = 0
    for batch in batches[:-1]:
        rows += batch.num_rows
        last: int = memoryview(found.offsets or b"").cast("B").cast("q")[rows - 1]
        yield batch, last + 1
