"""Plain records that come few at a time, until it is worth while to make columns of them.

Making columns and finding partitions costs the same for one record as for hundreds. Whoever sends
seldom waits for nothing: records are gathered where another `send` came just before. Knows nothing
of topics and brokers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark_kafkaproto.client.writing.plain import ProducerRecord, cannot_be, to_arrow
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_S = 0.01  # between two calls, and from the first record to the columns
_MOST_BYTES = 1 << 16
_RECORD_BYTES = 64  # of a record beside its key and value: small ones are to end, too
# Contents that their user may change after a call.
_CHANGING: Final[tuple[type, ...]] = (bytearray, memoryview)


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

    def add(self, records: Sequence[Any]) -> bool:
        """Take records as they are now; whether columns are to be made of all that are here.

        None at all is a look at what waits, and no sign that others follow.

        Raises:
            ConfigError: one is no ProducerRecord, or a part of it nothing that has bytes.
        """
        now = time.monotonic()
        is_seldom = now - self._last_at >= self._most_s
        if records:
            self._last_at = now
        if not self._records:
            self._since = now
        for record in records:
            own, size = _owned(record)
            self._records.append(own)
            self._bytes += size
        self._times_ms += [time.time_ns() // 1_000_000] * len(records)
        is_long = now - self._since >= self._most_s
        return not self._records or is_seldom or is_long or self._bytes >= self._most_bytes

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


def _owned(record: Any) -> tuple[ProducerRecord, int]:
    """A record that nobody changes any more, and about its memory; if it is one."""
    if not isinstance(record, ProducerRecord):
        kind = type(record).__name__
        raise ConfigError("records", kind, "expected ProducerRecord(value, key=…), in a list")
    value, key, headers = record.value, record.key, record.headers
    try:
        # An empty tuple, which nobody changes, is what most have.
        if type(value) in _CHANGING or type(key) in _CHANGING or headers != ():
            headers = [_header(given) for given in headers]
            value, key = _fixed(value), _fixed(key)
            record = record._replace(value=value, key=key, headers=headers)
        size = _RECORD_BYTES + _length(value) + _length(key)
        for name, content in headers:
            size += _length(name) + _length(content)
    except (TypeError, ValueError) as error:
        raise cannot_be(record, error) from error
    return record, size


def _header(given: Any) -> tuple[Any, Any]:
    """A header that nobody changes any more. Two letters are none: a dict would give such."""
    if isinstance(given, str):
        raise TypeError(f"a header is a pair (key, value), not {given!r}; of a dict give items()")
    name, content = given
    return _fixed(name), _fixed(content)


def _fixed(content: Any) -> Any:
    return bytes(content) if type(content) in _CHANGING else content


def _length(content: Any) -> int:
    return 0 if content is None else len(content)
