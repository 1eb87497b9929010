"""Polls with a deadline, until something is true."""

from __future__ import annotations

from pyspark_kafkaproto.net import Deadline

PATIENCE_S = 10.0


def poll_until(consumer, is_there, what="a condition") -> list[tuple[int, int]]:
    """(partition, offset) of what came until `is_there()`."""
    rows: list[tuple[int, int]] = []
    deadline = Deadline.after(PATIENCE_S)
    while not is_there():
        deadline.check(f"waiting for {what}")
        rows += rows_of(consumer.poll(0.01))
    return rows


def poll_rows(consumer, count) -> list[tuple[int, int]]:
    """(partition, offset) of `count` rows at least."""
    rows: list[tuple[int, int]] = []
    deadline = Deadline.after(PATIENCE_S)
    while len(rows) < count:
        deadline.check(f"waiting for {count} rows; there are {len(rows)}")
        rows += rows_of(consumer.poll(0.05))
    return rows


def rows_until_idle(consumer) -> list[tuple[int, int]]:
    """(partition, offset) of what comes within a moment."""
    rows, end = [], Deadline.after(0.1)
    while not end.has_passed:
        rows += rows_of(consumer.poll(0.01))
    return rows


def poll_together(consumers, rows, is_there, what):
    """Poll them in turn until `is_there()`; `rows` gets (partition, offset) of what comes."""
    deadline = Deadline.after(PATIENCE_S)
    while not is_there():
        deadline.check(f"waiting for {what}")
        for consumer in consumers:
            rows += rows_of(consumer.poll(0.01))


def rows_of(batch) -> list[tuple[int, int]]:
    if batch is None:
        return []
    columns = batch.column("partition").to_pylist(), batch.column("offset").to_pylist()
    return list(zip(*columns, strict=True))


def began(consumer):
    """The partitions of which it has given rows."""
    return {item for item, offset in consumer.positions.items() if offset}
