"""Buffers of int32, in which rows are numbered and placed, for Python to look at. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def int32s(buffer: Any) -> memoryview:
    """The numbers in a buffer."""
    return memoryview(buffer).cast("B").cast("i")


def int32s_of(numbers: pa.Array) -> memoryview:
    """The values of an int32 array without nulls."""
    return int32s(numbers.buffers()[1])[numbers.offset : numbers.offset + len(numbers)]
