"""A batch that cannot be read, as something to pass over: its bytes, its offsets, the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import batch, layout

if TYPE_CHECKING:
    from typing_extensions import Buffer  # for the type checker alone: not a dependency


class Damaged(NamedTuple):
    """One damaged batch, standing for the offsets [start, stop).

    data: its bytes, a view into the block. reason: what is wrong with it.
    """

    start: int
    stop: int
    data: memoryview
    reason: str


def damaged_at(
    block: Buffer, error: CorruptRecords, *, read_to: int, read_committed: bool
) -> Damaged:
    """The batch that `error` was raised about, if reading can go on behind it.

    A message of magic 0 or 1 has the offset of the last one in it. Whether there are others, and
    where the first one is, stands in what is damaged: it stands for all from `read_to` on.

    Args:
        block: what the batch is in.
        error: names its position.
        read_to: the offset up to which all before it was read.
        read_committed: whether transactions that were aborted are left out.

    Raises:
        CorruptRecords: `error` itself: where the batch ends is not known, or it may be a control
            batch, without which nobody knows which transactions were aborted. Under read_committed
            that is any batch of a producer with an id: the bit that says so may be what is damaged.
    """
    view = batch.byte_view(block, error.pos)
    try:
        header = batch.read_header(view, error.pos, layout.INT32_MAX)
        if header is None or header.is_control:
            raise error
        if read_committed and header.producer_id > layout.NO_PRODUCER_ID:
            raise error
        batch.check_reach(header)
    except CorruptRecords:
        raise error from None
    if not _tells_its_end(view, header):
        raise error
    start = min(header.base_offset, read_to) if header.is_message else header.base_offset
    return Damaged(start, header.last_offset + 1, view[header.pos : header.stop], error.reason)


def _tells_its_end(view: memoryview, header: batch.BatchHeader) -> bool:
    """Whether the last offset that the header claims can be believed.

    The CRC covers it, so with a wrong CRC nothing vouches for it but the batch behind it, which was
    found to begin later, or a count of records that agrees. A compacted batch has neither where the
    block ends with it; to go on from its claim could pass over sound batches.
    """
    if header.last_offset_delta + 1 == header.record_count:
        return True
    try:
        batch.check_crc(header, view[header.pos : header.stop])
    except CorruptRecords:
        return batch.read_header(view, header.stop, layout.INT32_MAX) is not None
    return True
