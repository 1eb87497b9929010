"""What has to be true of the data plane for any bytes: one law, asked of both implementations.

Same columns or the same refusal from kernel and reference; never another exception; nothing over
the limit on a batch; no more than a second of the kernel's time per megabyte.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, Decoded, _kernel, layout, reference
from pyspark_kafkaproto.records.columns import Skimmed

LIMIT_BYTES = 64 << 10  # of one batch, decompressed
SECONDS_PER_MB = 1.0
# What reading a limit's worth of records takes counts too; a slow machine is no find.
FLOOR_BYTES = 2 * LIMIT_BYTES


def assert_alike(block: bytes, **options: Any) -> None:
    """Decode and skim `block` with both implementations."""
    began = time.process_time()
    native = outcome(_kernel, block, **options)
    spent_s = time.process_time() - began
    assert spent_s < allowed_s(len(block)), f"{spent_s} s for {len(block)} bytes"
    pure = outcome(reference, block, **options)
    assert native == pure, f"kernel: {native}\nreference: {pure}"
    native, pure = skimmed(_kernel, block), skimmed(reference, block)
    assert native == pure, f"skim, kernel: {native}\nreference: {pure}"
    if isinstance(native, Skimmed) and native.batches:
        assert_same_end(block, native)


def allowed_s(size_bytes: int) -> float:
    """How long the kernel may take for so many bytes."""
    return SECONDS_PER_MB * (FLOOR_BYTES + size_bytes) / 1e6


def assert_same_end(block: bytes, skimmed: Skimmed) -> None:
    """What the headers say is where reading all of it ends: the next Fetch begins there.

    But for one form, which no Fetch answer has: the wrapper at offset 0 that a producer sends.
    """
    try:
        decoded = _kernel.decode(
            block, start=0, stop=2**63 - 1, wanted=Columns.OFFSET, check_crcs=False,
            batch_limit_bytes=LIMIT_BYTES,
        )  # fmt: skip
    except CorruptRecords:
        return
    assert (decoded.pos, decoded.batches) == (skimmed.pos, skimmed.batches)
    if not is_as_sent(block):
        assert decoded.next_offset == skimmed.next_offset
    assert decoded.next_offset >= skimmed.next_offset


def is_as_sent(block: bytes) -> bool:
    """Whether the block is of messages that begin at 0: a wrapper there may hold several."""
    return block[layout.MAGIC_POS] < layout.MAGIC_V2 and not any(block[:8])


def outcome(module: Any, block: bytes, **options: Any) -> tuple[Any, ...]:
    """Everything that `decode` says, in a form that can be compared."""
    try:
        decoded = module.decode(block, batch_limit_bytes=LIMIT_BYTES, **options)
    except CorruptRecords as error:
        # A codec's library may name the same damage differently the next time.
        return str(error).partition("cannot be decompressed")[:2], error.pos, error.base_offset
    assert decoded.max_batch_bytes <= LIMIT_BYTES + len(block)
    count = decoded.rows
    return (
        count, decoded.pos, decoded.next_offset, decoded.passed_over, decoded.batches,
        decoded.decompressed_bytes, decoded.max_batch_bytes, repr(decoded.aborted),
        *(content(getattr(decoded, name)) for name in ("offsets", "timestamps", "timestamp_types")),
        binary(decoded.key, count), binary(decoded.value, count), headers(decoded.headers, count),
    )  # fmt: skip


def assert_columns(decoded: Decoded, wanted: int, block_bytes: int) -> None:
    """The columns fit each other, and are no larger than what they were made of allows."""
    rows, total = decoded.rows, 0
    for column, name, width in _PLAIN:
        if wanted & column:
            held = len(content(getattr(decoded, name)) or b"")
            assert held == rows * width, f"{name}: {held} bytes for {rows} rows"
            total += held
    for column, name in ((Columns.KEY, "key"), (Columns.VALUE, "value")):
        if wanted & column:
            total += binary_bytes(getattr(decoded, name), rows)
    if wanted & Columns.HEADERS:
        found = decoded.headers
        total += offsets_bytes(found.offsets, rows, found.pairs)
        total += binary_bytes(found.keys, found.pairs) + binary_bytes(found.values, found.pairs)
    # A row of the least record, of seven bytes, has 36 in columns; a header of two bytes has 8.
    assert total <= 8 * (decoded.decompressed_bytes + block_bytes) + 64, f"{total} bytes"


_PLAIN = (
    (Columns.OFFSET, "offsets", 8),
    (Columns.TIMESTAMP, "timestamps", 8),
    (Columns.TIMESTAMP_TYPE, "timestamp_types", 4),
)


def binary_bytes(column: Any, rows: int) -> int:
    """The size of a column of byte strings, which is looked through."""
    data = content(column.data) or b""
    bitmap = content(column.validity)
    assert bitmap is None or len(bitmap) == (rows + 7) // 8
    return offsets_bytes(column.offsets, rows, len(data)) + len(data) + len(bitmap or b"")


def offsets_bytes(buffer: Any, rows: int, end: int) -> int:
    """The size of offsets, which rise from 0 to `end`."""
    offsets = memoryview(buffer).cast("B").cast("i").tolist()
    assert len(offsets) == rows + 1
    assert (offsets[0], offsets[-1]) == (0, end)
    assert offsets == sorted(offsets)
    return 4 * len(offsets)


def content(buffer: Any) -> bytes | None:
    return None if buffer is None else bytes(memoryview(buffer).cast("B"))


def binary(column: Any, rows: int) -> tuple[Any, ...] | None:
    if column is None:
        return None
    return content(column.offsets), content(column.data), validity(column.validity, rows)


def headers(column: Any, rows: int) -> tuple[Any, ...] | None:
    if column is None:
        return None
    return (
        content(column.offsets),
        validity(column.validity, rows),
        column.pairs,
        binary(column.keys, column.pairs),
        binary(column.values, column.pairs),
    )


def validity(bitmap: Any, rows: int) -> int | None:
    """The bits of the rows; what stands behind them means nothing."""
    if bitmap is None:
        return None
    return int.from_bytes(content(bitmap) or b"", "little") & ((1 << rows) - 1)


def skimmed(module: Any, block: bytes) -> Any:
    try:
        return module.skim(block)
    except CorruptRecords as error:
        return str(error), error.pos, error.base_offset


def options_of(choice: bytes) -> dict[str, Any]:
    """How to decode, as three bytes choose it."""
    bits, start, stop = choice
    return {
        "check_crcs": bool(bits & 1),
        "aborted": [(1, 0), (2, 30)] if bits & 2 else [],
        "chunk_bytes": 1 << 7 if bits & 4 else 1 << 20,
        "wanted": Columns.ALL if bits & 8 else Columns(bits >> 2 & 63),
        "start": start,
        "stop": 2**62 if stop == 0xFF else stop,
    }
