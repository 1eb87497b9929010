"""Record batches as RecordOracle.java takes and gives them, and random ones to compare."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from pyspark_kafkaproto.records import NewRecord, layout
from tests.differential.java_process import JavaProcess
from tests.golden.decoded_rows import Row

NOW_MS = 1_600_000_000_123
NO_TIME = -1
_DAY_MS = 86_400_000
# 25 days and more need a varlong that Java and we must cut alike.
_TIMES = (NOW_MS, NOW_MS - 1, NOW_MS + 30 * _DAY_MS, 0, 1, 2**50)
_TEXTS = (None, b"", b"a", b"\0\xff" * 3, bytes(63), bytes(64), b"kafka " * 1000)
_HEADER_KEYS = ("", "h", "h", "trace-id", "ß€")


@dataclass(frozen=True)
class Batch:
    """What a batch holds; `records` have their offsets as deltas to `base_offset`."""

    records: tuple[NewRecord, ...]
    magic: int = layout.MAGIC_V2
    codec: int = 0
    base_offset: int = 0
    log_append_time: int = NO_TIME
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    leader_epoch: int = -1
    delete_horizon: int = NO_TIME

    @property
    def is_stamped(self) -> bool:
        """Whether the broker's time stands for all records."""
        return self.log_append_time != NO_TIME

    @property
    def timestamp_type(self) -> int:
        """Kafka's number for whose time it is; magic 0 has none."""
        return -1 if self.magic == 0 else int(self.is_stamped)

    @property
    def rows(self) -> list[Row]:
        """The records as they should be read."""
        return [self._row(record) for record in self.records]

    def _row(self, record: NewRecord) -> Row:
        time_ms = self.log_append_time if self.is_stamped else record.timestamp_ms
        return Row(
            self.base_offset + record.offset_delta,
            NO_TIME if self.magic == 0 else time_ms,
            self.timestamp_type,
            record.key,
            record.value,
            tuple(record.headers),
        )

    def task(self) -> dict[str, Any]:
        """What Java is told to write."""
        return {
            "magic": self.magic,
            "codec": self.codec,
            "timestampType": self.timestamp_type,
            "baseOffset": self.base_offset,
            "logAppendTime": self.log_append_time,
            "producerId": self.producer_id,
            "producerEpoch": self.producer_epoch,
            "baseSequence": self.base_sequence,
            "isTransactional": self.is_transactional,
            "isControl": False,
            "leaderEpoch": self.leader_epoch,
            "deleteHorizon": self.delete_horizon,
            "records": [self._record_task(record) for record in self.records],
        }

    def _record_task(self, record: NewRecord) -> dict[str, Any]:
        return {
            "offset": self.base_offset + record.offset_delta,
            "timestamp": NO_TIME if self.magic == 0 else record.timestamp_ms,
            "key": _hex(record.key),
            "value": _hex(record.value),
            "headers": [[_hex(key), _hex(value)] for key, value in record.headers],
        }


@dataclass
class RecordOracle:
    """Kafka's MemoryRecords in one release."""

    process: JavaProcess
    _done: int = field(default=0, init=False)

    def read(self, block: bytes) -> list[dict[str, Any]]:
        """The whole batches of a block, CRCs checked; `rows` are theirs."""
        batches = json.loads(self._ask(b"\0" + block))
        for batch in batches:
            batch["rows"] = [_row(record, batch["timestampType"]) for record in batch["records"]]
        return batches

    def write(self, task: dict[str, Any]) -> bytes:
        """One batch, or a message set of an old magic."""
        return self._ask(b"\1" + json.dumps(task).encode())

    def _ask(self, frame: bytes) -> bytes:
        answer = self.process.ask(frame)
        assert answer[0] == self._done, f"Java says {answer[1:].decode()}"
        return answer[1:]


def random_records(
    random: Random, *, has_headers: bool = True, has_holes: bool = True
) -> tuple[NewRecord, ...]:
    """Up to 40 records whose first, and sometimes every, offset delta follows its index."""
    delta = -1
    records = []
    for _ in range(random.choice((1, 2, 3, 10, 40))):
        delta += random.choice((1, 1, 1, 7, 300)) if has_holes and records else 1
        records.append(_random_record(random, delta, has_headers=has_headers))
    return tuple(records)


def _random_record(random: Random, delta: int, *, has_headers: bool) -> NewRecord:
    headers = ()
    if has_headers and random.random() < 0.5:
        headers = tuple(
            (random.choice(_HEADER_KEYS).encode(), random.choice(_TEXTS[:5]))
            for _ in range(random.randint(1, 4))
        )
    key, value = random.choice(_TEXTS), random.choice(_TEXTS)
    return NewRecord(value, key, random.choice(_TIMES), headers, delta)


def with_deltas_by_index(batch: Batch) -> Batch:
    """The same records one offset after the other, as producers number them."""
    records = (record._replace(offset_delta=n) for n, record in enumerate(batch.records))
    return replace(batch, records=tuple(records))


def all_rows(batches: Iterable[dict[str, Any]]) -> list[Row]:
    """The rows of several batches that Java read."""
    return [row for batch in batches for row in batch["rows"]]


def _row(record: dict[str, Any], timestamp_type: int) -> Row:
    headers = tuple((_bytes(key), _bytes(value)) for key, value in record["headers"])
    return Row(
        record["offset"],
        record["timestamp"],
        timestamp_type,
        _bytes(record["key"]),
        _bytes(record["value"]),
        headers,
    )


def _hex(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
