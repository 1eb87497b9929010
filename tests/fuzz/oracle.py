"""What has to be true of the data plane for any bytes: one law, asked of both implementations.

Same columns or the same refusal from kernel and reference; never another exception; nothing over
the limit on a batch; no more than a second of the kernel's time per megabyte.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.records import Columns, _kernel, reference

LIMIT_BYTES = 64 << 10  # of one batch, decompressed
SECONDS_PER_MB = 1.0
# What reading a limit's worth of records takes counts too; a slow machine is no find.
FLOOR_BYTES = 2 * LIMIT_BYTES


def assert_alike(block: bytes, **options: Any) -> None:
    """Decode and skim `block` with both implementations."""
    began = time.process_time()
    native = outcome(_kernel, block, **options)
    spent_s = time.process_time() - began
    allowed_s = SECONDS_PER_MB * (FLOOR_BYTES + len(block)) / 1e6
    assert spent_s < allowed_s, f"{spent_s} s for {len(block)} bytes"
    pure = outcome(reference, block, **options)
    assert native == pure, f"kernel: {native}\nreference: {pure}"
    native, pure = skimmed(_kernel, block), skimmed(reference, block)
    assert native == pure, f"skim, kernel: {native}\nreference: {pure}"


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
