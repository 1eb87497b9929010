"""Plain records that come few at a time, until it is worth while to make columns of them.

Making columns and finding partitions costs the same for one record as for hundreds. Whoever sends
seldom waits for nothing: records are gathered where another `send` came just before. Knows nothing
of topics and brokers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.client.writing.plain import ProducerRecord, cannot_be, to_arrow
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_S = 0.01  # between two calls, and from the first record to the columns
_MOST_BYTES = 1 << 16
_RECORD_BYTES = 64  # of a record beside its key and value: small ones are to end, too


class Gathering:
    """Records that were taken and are not columns yet.

    Args:
        linger_s: how long rows may wait for others; with 0 nothing is gathered.
        batch_bytes: what fills a batch, which has to be seen to at once.
    """

    def __init__(self, linger_s: float, batch_bytes: int) -> None:
        self._most_s = min(linger_s, _MOST_S)
        self._most_bytes = min(batch_bytes, _MOST_BYTES)
        self._records: list[ProducerRecord] = []
        self._times_ms: list[int] = []
        self._bytes = 0
        self._since = self._last_at = float("-inf")

    def add(self, records: Iterable[Any]) -> bool:
        """Take records; whether columns are to be made of all that are here.

        Raises:
            ConfigError: one is no ProducerRecord, or a part of it nothing that has bytes.
        """
        now = time.monotonic()
        is_seldom = now - self._last_at >= self._most_s
        self._last_at = now
        if not self._records:
            self._since = now
        before = len(self._records)
        for record in records:
            self._bytes += _size(record)
            self._records.append(record)
        time_ms = time.time_ns() // 1_000_000
        self._times_ms += [time_ms] * (len(self._records) - before)
        return is_seldom or self._bytes >= self._most_bytes or now - self._since >= self._most_s

    def take(self) -> pa.RecordBatch | None:
        """What was gathered, as `to_arrow` makes it; None for nothing.

        Raises:
            ConfigError: see there.
        """
        if not self._records:
            return None
        records, times_ms = self._records, self._times_ms
        self._records, self._times_ms, self._bytes = [], [], 0
        return to_arrow(records, times_ms)

    def start_over(self) -> None:
        """Forget what was gathered, and that there was anything: the next is looked at at once."""
        self._records, self._times_ms, self._bytes = [], [], 0
        self._last_at = float("-inf")


def _size(record: Any) -> int:
    """About the memory of a record, if it is one."""
    if not isinstance(record, ProducerRecord):
        kind = type(record).__name__
        raise ConfigError("records", kind, "expected ProducerRecord(value, key=…)")
    size = _RECORD_BYTES
    try:
        if record.value is not None:
            size += len(record.value)
        if record.key is not None:
            size += len(record.key)
        for key, value in record.headers:
            size += len(key) + (0 if value is None else len(value))
    except (TypeError, ValueError) as error:
        raise cannot_be(record, error) from error
    return size
