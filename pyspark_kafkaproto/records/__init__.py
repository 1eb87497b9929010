"""The data plane: bytes of record batches to column buffers, and back.

One implementation is chosen at import: the native kernel, or the reference in plain Python where
the kernel was not built or `KAFKAPROTO_PURE=1` asks for it. They answer alike, byte for byte.
This room must not know pyarrow, sockets, topics or messages.
Protocol: https://kafka.apache.org/documentation/#recordbatch (KIP-98).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pyspark_kafkaproto.records import reference, reference_write
from pyspark_kafkaproto.records.batch import base_offset, read_header
from pyspark_kafkaproto.records.columns import (
    BinaryColumn,
    Columns,
    Decoded,
    HeadersColumn,
    Skimmed,
)
from pyspark_kafkaproto.records.damage import Damaged, damaged_at
from pyspark_kafkaproto.records.encoding import NewRecord, encode_batch
from pyspark_kafkaproto.records.layout import (
    DEFAULT_BATCH_LIMIT_BYTES,
    DEFAULT_CHUNK_BYTES,
)
from pyspark_kafkaproto.records.reference_write import BatchBuilder
from pyspark_kafkaproto.records.transactions import AbortedTransactions
from pyspark_kafkaproto.records.writing import (
    BinaryInput,
    HeadersInput,
    TimestampInput,
    WriteColumns,
    restamped,
)

if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Buffer  # for the type checker alone: not a dependency

    from pyspark_kafkaproto.records._block import Source

__all__ = [
    "DEFAULT_BATCH_LIMIT_BYTES",
    "DEFAULT_CHUNK_BYTES",
    "IMPLEMENTATION",
    "WHY_PURE",
    "AbortedTransactions",
    "BatchBuilder",
    "BinaryColumn",
    "BinaryInput",
    "Columns",
    "Damaged",
    "Decoded",
    "HeadersColumn",
    "HeadersInput",
    "NewRecord",
    "Skimmed",
    "TimestampInput",
    "WriteColumns",
    "base_offset",
    "damaged_at",
    "decode",
    "encode_batch",
    "group_rows",
    "partition_keys",
    "read_header",
    "restamped",
    "skim",
]


def _choose() -> tuple[ModuleType, ModuleType, str]:
    """The decoder, the encoder, and why they are not the kernel's."""
    if os.environ.get("KAFKAPROTO_PURE") == "1":
        return reference, reference_write, "KAFKAPROTO_PURE is 1"
    try:  # one by one by their names: else Python takes one that is missing for one of a circle
        kernel = import_module("pyspark_kafkaproto.records._kernel")
        kernel_write = import_module("pyspark_kafkaproto.records._kernel_write")
    except ImportError as error:
        is_built = any(Path(__file__).parent.glob("_kernel*.so"))
        return reference, reference_write, str(error) if is_built else "it was not built"
    return kernel, kernel_write, ""


_chosen, _chosen_write, WHY_PURE = _choose()

IMPLEMENTATION: Final[Literal["kernel", "pure"]] = "pure" if _chosen is reference else "kernel"


def decode(  # noqa: PLR0913 - one call from the client; all but the first are keywords
    block: Buffer,
    *,
    pos: int = 0,
    start: int,
    stop: int,
    wanted: Columns,
    aborted: AbortedTransactions | Sequence[tuple[int, int]] = (),
    check_crcs: bool = True,
    batch_limit_bytes: int = DEFAULT_BATCH_LIMIT_BYTES,
    chunk_bytes: int = DEFAULT_CHUNK_BYTES,
    arrived: int | None = None,
    more: Callable[[], int] | None = None,
    source: Source | None = None,
) -> Decoded:
    """Decode whole batches of one partition, from `pos` on, into columns.

    Ends where the block ends or cuts a batch, where `stop` is reached, or after the batch with
    which the records of this call pass `chunk_bytes`. Of a block that is still being received,
    batches are decoded as they come, while the processor has them at hand. To go on in the same
    block, call again with what the last call returned:

        decoded = decode(block, start=start, stop=stop, wanted=wanted, aborted=pairs)
        decoded = decode(block, pos=decoded.pos, start=decoded.next_offset, stop=stop,
                         wanted=wanted, aborted=decoded.aborted)

    Control batches, and batches of aborted transactions, give no rows.

    Args:
        block: record batches end to end, as in a Fetch response; the columns hold copies.
        pos: byte position of the first batch.
        start: the first offset wanted. A block's first batches may begin before it.
        stop: the first offset not wanted.
        wanted: what to build.
        aborted: for read_committed, on the first call the response's (producer id, first offset)
            pairs in any order, and `Decoded.aborted` on later ones: pairs given again would hide
            what the same producers committed since. Empty for read_uncommitted.
        check_crcs: whether to compute each batch's CRC-32C.
        batch_limit_bytes: the most that the records of one batch may have, decompressed.
        chunk_bytes: see above; a whole batch is always read, so memory follows the larger of both.
        arrived: how many bytes of `block` are there; None for all.
        more: called where those end; waits for more bytes and returns how many are there then, the
            same number if no more will come. What it raises is passed on, and nothing was consumed.
        source: asked before `more`, by the kernel alone: gives more bytes without a step in Python.

    Raises:
        CorruptRecords: a batch that is damaged, unknown or over the limit. `pos` of the error is
            the batch's: block[:pos] is sound, and nothing of this call was consumed.
        ValueError: `pos` is not in what is there of the block, or `more` says what cannot be.
    """
    decoded: Decoded = _chosen.decode(
        block,
        pos=pos,
        start=start,
        stop=stop,
        wanted=wanted,
        aborted=aborted,
        check_crcs=check_crcs,
        batch_limit_bytes=batch_limit_bytes,
        chunk_bytes=chunk_bytes,
        arrived=arrived,
        more=more,
        source=source,
    )
    return decoded


def skim(block: Buffer, pos: int = 0) -> Skimmed:
    """What the headers of a block's batches say; nothing is decompressed, no CRC computed.

    `decode` ends at the same offset, with one exception: a compressed message of magic 0 or 1 with
    offset 0, as producers send it. It may hold several messages, but its header says only one. In a
    Fetch response such a message has the offset of the last one in it, so the two agree.

    Args:
        block: record batches end to end, as in a Fetch response.
        pos: byte position of the first batch.

    Raises:
        CorruptRecords: a header that no batch has, or offsets that step back.
        ValueError: `pos` is not in the block.
    """
    skimmed: Skimmed = _chosen.skim(block, pos)
    return skimmed


if not TYPE_CHECKING:  # a type checker takes the reference's, which has the documentation
    BatchBuilder = _chosen_write.BatchBuilder


def partition_keys(
    columns: WriteColumns, partitions: int, partitioner: Literal["murmur2", "consistent_random"]
) -> Buffer:
    """The partition of each row's key, as int32; -1 where the partitioner leaves it to the caller.

    Args:
        columns: the rows; only their keys are looked at.
        partitions: how many the topic has.
        partitioner: `murmur2`, the Java client's for rows with a key (librdkafka's
            `murmur2_random`), or `consistent_random`, librdkafka's own default, for which an
            empty key is none.

    Raises:
        LocalProtocolError: no partitions, another partitioner, offsets that point outside the data.
    """
    placed: Buffer = _chosen_write.partition_keys(columns, partitions, partitioner)
    return placed


def group_rows(partition_of_row: Buffer, partitions: int) -> tuple[Buffer, Buffer]:
    """Rows by partition: their numbers, int32, and where each partition's begin, int32.

    The rows of partition p are indices[starts[p]:starts[p + 1]], in their own order.

    Args:
        partition_of_row: int32, one per row.
        partitions: how many there are; `starts` has one number more.

    Raises:
        LocalProtocolError: no partitions, or a row that is in none of them.
    """
    grouped: tuple[Buffer, Buffer] = _chosen_write.group_rows(partition_of_row, partitions)
    return grouped
