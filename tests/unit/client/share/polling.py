"""Polls with a deadline."""

from __future__ import annotations

from pyspark_kafkaproto.net import Deadline

PATIENCE_S = 10.0


def next_batch(consumer):
    """The next rows."""
    deadline = Deadline.after(PATIENCE_S)
    while (batch := consumer.poll(0.05)) is None:
        deadline.check("waiting for rows")
    return batch


def rows_of(batch):
    """(partition, offset, delivery count) of each row."""
    names = ("partition", "offset", "deliveryCount")
    return list(zip(*(batch.column(name).to_pylist() for name in names), strict=True))


def poll_rows(consumer, count, then=lambda: None):
    """So many rows at least; `then` is called after each batch."""
    rows = []
    while len(rows) < count:
        rows += rows_of(next_batch(consumer))
        then()
    return rows
