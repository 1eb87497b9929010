"""What a broker has given to us, as Arrow batches: rows of acquired offsets and no others.

An answer has whole record batches, of which some offsets may be with other members, or done. Each
Arrow batch here is of one acquired range, so that all its rows were delivered equally often.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from pyspark_kafkaproto.arrow import COLUMN_NAMES, schema_for, to_record_batches, wanted_columns
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import OffsetRange, ReadSettings
from pyspark_kafkaproto.client.share.held import Acquired, Held
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError, CorruptRecords, RemoteProtocolError
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import Columns, Damaged, Decoded, skim

Answered = ShareFetchResponse.Topic.Partition

DELIVERY_COUNT: Final = "deliveryCount"
_COUNT: Final = pa.int32()
# Beyond that a range is no range, but damage: there is memory for each of its offsets.
_MOST_OFFSETS: Final = 2**31 - 1


class Part(NamedTuple):
    """Rows of one acquired range, and where they stand in it."""

    batch: pa.RecordBatch
    held: Held
    first: int
    last: int

    @property
    def acquired(self) -> Acquired:
        """The offsets of the rows, and how often each was delivered."""
        return self.held.acquired._replace(first=self.first, last=self.last)


Parts = Generator[Part, None, None]


class Layout:
    """The columns of batches: those of records, and how often each was delivered.

    Raises:
        ConfigError: a name that is unknown or there twice, or none.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        names = list(columns)
        self.of_records = schema_for([name for name in names if name != DELIVERY_COUNT])
        self.count_at = names.index(DELIVERY_COUNT) if DELIVERY_COUNT in names else None
        if not names or names.count(DELIVERY_COUNT) > 1:
            known = ", ".join((*COLUMN_NAMES, DELIVERY_COUNT))
            raise ConfigError("columns", names, f"expected some of {known}, each at most once")
        self.schema = self.of_records
        if self.count_at is not None:
            self.schema = self.schema.insert(self.count_at, pa.field(DELIVERY_COUNT, _COUNT))
        self.wanted = wanted_columns(self.of_records) | Columns.OFFSET

    def with_count(self, batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
        """`batch` with its delivery count, where that is wanted."""
        if self.count_at is None:
            return batch
        rows = batch.num_rows
        counts = [None, pa.py_buffer(array("i", [count]) * rows)]
        arrays = batch.columns
        arrays.insert(self.count_at, pa.Array.from_buffers(_COUNT, rows, counts, 0))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def helds_of(partition: TopicPartition, topic_id: bytes, data: Answered) -> list[Held]:
    """What an answer says was acquired; neighbours that were delivered equally often are one.

    Raises:
        RemoteProtocolError: ranges that are none, or not in the order of their offsets.
    """
    found: list[Acquired] = []
    for item in data.acquired_records:
        behind = found[-1].last + 1 if found else 0
        if not behind <= item.first_offset <= item.last_offset < item.first_offset + _MOST_OFFSETS:
            text = f"acquired offsets {item.first_offset} to {item.last_offset}, behind {behind}"
            raise RemoteProtocolError(text, where=f"ShareFetch, partition {partition}")
        one = Acquired(partition, item.first_offset, item.last_offset, item.delivery_count)
        if found and found[-1][2:] == (one.first - 1, one.delivery_count):
            found[-1] = found[-1]._replace(last=one.last)
        else:
            found.append(one)
    return [Held(item, topic_id) for item in found]


def parts_of(data: Answered, helds: Sequence[Held], layout: Layout, config: ClientConfig) -> Parts:
    """The rows of what was acquired in one partition, in the order of their offsets.

    Offsets that have no record are noted as gaps. What does not come, for whatever reason, is
    released: nobody else is to wait for its lock.

    Args:
        data: the answer.
        helds: what it says was acquired, of one partition; one at least.
        layout: which columns.
        config: whether to look at checksums.

    Raises:
        CorruptRecords: once the sound rows before are out; names topic, partition, base offset.
    """
    try:
        yield from _sound_parts(memoryview(data.records or b""), helds, layout, config)
    finally:
        for held in helds:
            held.release_coming()


def _sound_parts(
    records: memoryview, helds: Sequence[Held], layout: Layout, config: ClientConfig
) -> Iterator[Part]:
    item, start, _, _ = helds[0].acquired
    stop = helds[-1].acquired.last + 1
    records, damage = _up_to_damage(records)
    end = skim(records).next_offset
    # Of what compaction took after it was given out once brokers send the batch before instead.
    if end is not None and end > start:
        progress = RangeProgress(OffsetRange(*item, start, stop), start, start, stop)
        block = Block(progress, records, ())
        block.ends(end)
        reading = BlockReading(block, config, ReadSettings(), layout.wanted)
        for found in reading.pieces():
            if not isinstance(found, Damaged):  # else it is raised
                yield from _cut(found, helds, start, layout)
                start = reading.position
    if damage is not None:
        raise damage.of(*item)


def _up_to_damage(records: memoryview) -> tuple[memoryview, CorruptRecords | None]:
    """The batches whose headers can be read, and what is wrong with the one behind them."""
    try:
        skim(records)
    except CorruptRecords as error:
        return records[: error.pos], error
    return records, None


def _cut(decoded: Decoded, helds: Sequence[Held], start: int, layout: Layout) -> Iterator[Part]:
    """Of rows that are all there is from `start` to `next_offset` those that were acquired."""
    partition = helds[0].acquired.partition
    offsets = memoryview(decoded.offsets or b"").cast("B").cast("q")
    batches = to_record_batches(decoded, *partition, layout.of_records) if decoded.rows else []
    for held in helds:
        first = max(start, held.acquired.first)
        last = min(decoded.next_offset - 1, held.acquired.last)
        if first > last:
            continue
        begin, end = bisect_left(offsets, first), bisect_right(offsets, last)
        _note_gaps(held, offsets[begin:end], first, last)
        begun = 0
        for batch in batches:
            low, high = max(begin - begun, 0), min(end - begun, batch.num_rows)
            if low < high:
                rows = layout.with_count(batch.slice(low, high - low), held.acquired.delivery_count)
                yield Part(rows, held, offsets[begun + low], offsets[begun + high - 1])
            begun += batch.num_rows


def _note_gaps(held: Held, offsets: Sequence[int], first: int, last: int) -> None:
    """Those from `first` to `last` that are not among `offsets`, which lie in between.

    Goes from gap to gap: what an offset has more than its place in the row is constant between two.
    """
    at, rows = 0, len(offsets)
    expected = first
    while rows - at < last - expected + 1:
        ahead = expected - at
        at = bisect_right(range(rows), ahead, at, key=lambda row: offsets[row] - row)
        expected = ahead + at
        behind = offsets[at] if at < rows else last + 1
        held.note_gaps(expected, behind - 1)
        expected = behind
