"""What a member of a real group is given, with a deadline."""

from __future__ import annotations

from typing import Any

from pyspark_kafkaproto import Consumer
from pyspark_kafkaproto.net import Deadline

_PATIENCE_S = 120.0


def polled_rows(consumer: Consumer, count: int) -> list[tuple[Any, ...]]:
    """So many rows at least, as they come; each has the values of the consumer's columns."""
    rows: list[tuple[Any, ...]] = []
    deadline = Deadline.after(_PATIENCE_S)
    while len(rows) < count:
        deadline.check(f"{len(rows)} rows of {count}")
        batch = consumer.poll(1)
        if batch is not None:
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows
