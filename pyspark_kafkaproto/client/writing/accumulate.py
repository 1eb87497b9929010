"""Rows into record batches, one open batch per partition; full ones go to the sender.

What `linger.ms` means here: an open batch waits at most so long for more rows. Nobody looks at a
clock while no rows come: whoever has sent all of them says so (`finish_all`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark_kafkaproto.client.writing.batches import Batch, Rows, Span
from pyspark_kafkaproto.client.writing.compressing import Compressing, Full
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sending import Sender
from pyspark_kafkaproto.errors import InvalidRecord
from pyspark_kafkaproto.net import ProducerConfig
from pyspark_kafkaproto.records import BatchBuilder, WriteColumns

# Called with a row of the Arrow batch that can never be written, and why.
RefuseRow = Callable[[int, str], None]

_BATCH_HEADER_BYTES = 61
_SPARE_BUILDERS = 16  # kept with their memory: more would be all the partitions there are


def batch_limit_bytes(config: ProducerConfig) -> int:
    """The size that batches are filled to."""
    return max(_BATCH_HEADER_BYTES, min(config.batch_size, config.max_request_size))


class Accumulator:
    """The open batches of one producer.

    Args:
        config: of the producer.
        sender: takes what is finished.
        relieve: called between the answers that are waited for: appends the dead letters of what
            brokers refuse, where there are many; None where such records fail the write.
        compressing: compresses in other threads what it takes.
    """

    def __init__(
        self,
        config: ProducerConfig,
        sender: Sender,
        relieve: Callable[[], None] | None,
        compressing: Compressing,
    ) -> None:
        self._config = config
        self._sender = sender
        self._relieve = relieve
        self._compressing = compressing
        self._is_relieving = False
        self._open: dict[PartitionQueue, None] = {}  # the oldest first
        self._open_bytes = 0
        self._spare: list[BatchBuilder] = []
        self.limit_bytes = batch_limit_bytes(config)

    def append(
        self,
        queue: PartitionQueue,
        columns: WriteColumns,
        rows: Rows,
        indices: memoryview | None,
        refuse: RefuseRow,
    ) -> None:
        """Append rows `indices` (None: all) of one Arrow batch, in their order.

        Waits where more is held than buffer.memory until brokers have taken it.
        """
        now_ms = time.time_ns() // 1_000_000
        stop = columns.rows if indices is None else len(indices)
        start = 0
        while start < stop:
            builder = queue.builder or self._begin(queue)
            before, size_before = builder.rows, builder.size_bytes
            reached, invalid = _append(builder, columns, indices, start, now_ms)
            appended = builder.rows - before
            if appended:
                queue.spans.append(Span(rows, indices, start, start + appended))
            self._open_bytes += builder.size_bytes - size_before
            start = reached
            if builder.rows == 1 and builder.size_bytes > self._config.max_request_size:
                reason = self._too_large(builder.size_bytes)
                self._discard(queue)  # first: the refusal may finish what is open
                refuse(_row(indices, start - appended), reason)
            elif invalid is None and start < stop:
                self._finish(queue)
                self._keep_within_memory()
            if invalid is not None:
                refuse(invalid.row, invalid.reason)
                start += 1
        self._keep_within_memory()

    def finish_overdue(self) -> None:
        """Finish the batches that have waited for linger.ms, and offer what is compressed."""
        now = time.monotonic()
        is_overdue = False
        for queue in list(self._open):
            if now - queue.opened_at < self._config.linger_s:
                break
            is_overdue = True
            self._finish(queue)
        self._offer_compressed(wait=is_overdue)

    def finish_all(self) -> None:
        """Finish every open batch: no more rows come, or they have to be written now."""
        self._finish_open()
        self._offer_compressed(wait=True)

    def _finish_open(self) -> None:
        for queue in list(self._open):
            self._finish(queue)

    @property
    def is_empty(self) -> bool:
        """Whether there are no open batches, nor any that are being compressed."""
        return not self._open and self._compressing.is_empty

    def drain(self, most_bytes: int = 0) -> None:
        """Wait until no more than `most_bytes` are on their way to brokers."""
        if self._relieve is None:
            self._sender.drain(most_bytes)
            return
        while True:  # a look at the brokers at a time
            self._sender.drain(max(most_bytes, self._sender.held_bytes - 1))
            self._is_relieving = True
            try:
                self._relieve()
            finally:
                self._is_relieving = False
            if self._sender.held_bytes <= most_bytes:
                return

    def _begin(self, queue: PartitionQueue) -> BatchBuilder:
        if self._spare and queue.limit_bytes == self.limit_bytes:
            builder = self._spare.pop()
        else:
            builder = BatchBuilder(
                codec=self._config.codec, level=self._config.level, limit_bytes=queue.limit_bytes
            )
        queue.builder = builder
        queue.opened_at = time.monotonic()
        self._open[queue] = None
        self._open_bytes += builder.size_bytes
        return builder

    def _finish(self, queue: PartitionQueue) -> None:
        builder, spans = queue.builder, queue.spans
        size_bytes = 0 if builder is None else builder.size_bytes
        self._close(queue, size_bytes)
        if builder is None or not builder.rows:
            return
        full = Full(queue, builder, spans)
        if self._compressing.takes(builder):
            self._compressing.add(full)
            self._offer_compressed(wait=False)
        else:
            self._offer(full)

    def _offer_compressed(self, *, wait: bool) -> None:
        """Offer what other threads have compressed, of all that is there if `wait` says so."""
        for full in self._compressing.take(wait=wait):
            self._offer(full)

    def _offer(self, full: Full) -> None:
        """Number and seal a batch, and give it to the sender."""
        queue, builder, spans = full
        data, records, sequence = queue.sequences.seal(builder)
        if len(self._spare) < _SPARE_BUILDERS and queue.limit_bytes == self.limit_bytes:
            self._spare.append(builder)
        self._sender.offer(queue, Batch(data, records, queue.next_order(), sequence, spans))
        if self._sender.offered_bytes >= self._config.max_request_size:
            self._sender.pump()

    def _discard(self, queue: PartitionQueue) -> None:
        """Forget an open batch."""
        assert queue.builder is not None  # noqa: S101 - it has just been filled
        self._close(queue, queue.builder.size_bytes)

    def _close(self, queue: PartitionQueue, size_bytes: int) -> None:
        queue.builder = None
        queue.spans = []
        self._open.pop(queue, None)
        self._open_bytes -= size_bytes

    def _keep_within_memory(self) -> None:
        """Half of buffer.memory is for open batches, half for what is on its way.

        What is appended while it is waited for here is waited for there.
        """
        half = self._config.buffer_memory // 2
        if self._open_bytes + self._compressing.held_bytes > half:
            self._finish_open()
        if self._sender.held_bytes > half and not self._is_relieving:
            self.drain(half)

    def _too_large(self, size_bytes: int) -> str:
        name = self._config.client.named("max.request.size")
        return (
            f"it takes {size_bytes} bytes, {name} is {self._config.max_request_size}: "
            "raise that (and the topic's max.message.bytes), or make it smaller"
        )


def _append(
    builder: BatchBuilder,
    columns: WriteColumns,
    indices: memoryview | None,
    start: int,
    now_ms: int,
) -> tuple[int, InvalidRecord | None]:
    """How far the rows went in, and the error of the row there."""
    try:
        return builder.append(columns, indices, start, now_ms), None
    except InvalidRecord as error:
        return error.position, error


def _row(indices: memoryview | None, position: int) -> int:
    return position if indices is None else indices[position]
