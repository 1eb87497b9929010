"""How fast are record batches decoded and encoded, without network, Kafka or Spark?

    python bench/records.py                 two tables, in about four minutes
    python bench/records.py --json out.json also the figures, for programs

Per workload (size of a value, codec, size of a batch): million records per second and MB of
uncompressed values per second, on one core. The rivals are the codecs of aiokafka and kafka-python,
where they are installed (extra `bench`). They take and give Python objects, ours Arrow columns:
that is the difference in design that this shows. Everybody checks and makes CRCs; a record has a
key, a value, a timestamp and no headers. Rounds are interleaved, so that a machine that is busy is
busy for all; a figure is the median of its rounds, in CPU time of this process.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pyarrow as pa

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.records import (
    Columns,
    NewRecord,
    encode_batch,
    reference,
    reference_write,
)
from pyspark_kafkaproto.records.compression import NAMES

PLAIN_COLUMNS = Columns.ALL & ~Columns.HEADERS
WORDS = [f"word{number:03d}" for number in range(300)]

# What a contestant does with what it was given; it says how many records it has seen.
Task = Callable[[], int]


class CodecMissing(Exception):
    """A rival lacks the library of a codec."""


class Contestant(NamedTuple):
    """Prepares to read a block, or to write records: neither is timed."""

    reader: Callable[[bytes], Task]
    writer: Callable[[Workload, list[NewRecord]], Task]


class Workload(NamedTuple):
    """A kind of topic: `value_bytes` a record, `batch_bytes` of records a batch."""

    value_bytes: int
    codec: int
    batch_bytes: int

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.value_bytes} B {NAMES[self.codec]}, {self.batch_bytes >> 10} kB batches"

    @property
    def records_per_batch(self) -> int:
        """As many as fit."""
        return max(1, self.batch_bytes // (self.value_bytes + 10))


def workloads() -> list[Workload]:
    """Batches as producers make them by default (16 kB), and as busy ones do (1 MB)."""
    return [
        Workload(value_bytes, codec, batch_bytes)
        for value_bytes in (100, 10_000)
        for batch_bytes in (16 << 10, 1 << 20)
        for codec in NAMES
    ]


def records_of(workload: Workload, total_bytes: int) -> list[NewRecord]:
    """Records of about `total_bytes` together, enough for whole batches."""
    rng = random.Random(1)
    per_batch = workload.records_per_batch
    batches = max(1, total_bytes // (per_batch * (workload.value_bytes + 10)))
    return [_record(rng, workload.value_bytes, number) for number in range(batches * per_batch)]


def block_of(workload: Workload, records: list[NewRecord]) -> bytes:
    """The records as batches end to end, as a broker sends them."""
    per_batch = workload.records_per_batch
    return b"".join(
        encode_batch(records[first : first + per_batch], base_offset=first, codec=workload.codec)
        for first in range(0, len(records), per_batch)
    )


def _record(rng: random.Random, value_bytes: int, number: int) -> NewRecord:
    """An event as JSON, which compresses about as events do."""
    text = f'{{"id":{number},"user":{rng.randrange(10**6)},"text":"'
    while len(text) < value_bytes - 2:
        text += rng.choice(WORDS) + " "
    value = text[: value_bytes - 2] + '"}'
    return NewRecord(value.encode(), b"%d" % (number % 1000), 1_700_000_000_000 + number)


# --- contestants


def columns_reader(implementation) -> Callable[[bytes], Task]:
    """Ours, in chunks as a task does it."""

    def read(block: bytes) -> int:
        rows = pos = start = 0
        while pos < len(block):
            decoded = implementation.decode(
                block, pos=pos, start=start, stop=2**62, wanted=PLAIN_COLUMNS
            )
            rows, pos, start = rows + decoded.rows, decoded.pos, decoded.next_offset
        return rows

    return lambda block: lambda: read(block)


def columns_writer(implementation) -> Callable[[Workload, list[NewRecord]], Task]:
    """Ours, from an Arrow batch as Spark hands it over."""

    def prepare(workload: Workload, records: list[NewRecord]) -> Task:
        times = [record.timestamp_ms * 1000 for record in records]
        batch = pa.RecordBatch.from_pydict({
            "value": pa.array([record.value for record in records]),
            "key": pa.array([record.key for record in records]),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
        })  # fmt: skip

        def write() -> int:
            columns = write_columns(batch, timestamp_column="at")
            builder = implementation.BatchBuilder(
                codec=workload.codec, limit_bytes=workload.batch_bytes
            )
            position = rows = 0
            while position < columns.rows:
                position = builder.append(columns, None, position, 0)
                rows += builder.rows
                builder.finish()
            return rows

        return write

    return prepare


def objects_reader(memory_records, unsupported: type[Exception]) -> Callable[[bytes], Task]:
    """A rival with kafka-python's interface."""

    def read(block: bytes) -> int:
        try:
            return count(block)
        except unsupported as error:
            raise CodecMissing from error

    def count(block: bytes) -> int:
        records = memory_records(block)
        rows = 0
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise ValueError("wrong CRC")
            for record in batch:
                _ = record.offset, record.timestamp, record.key, record.value
                rows += 1
        return rows

    return lambda block: lambda: read(block)


def objects_writer(
    builder_class, unsupported: type[Exception]
) -> Callable[[Workload, list[NewRecord]], Task]:
    """A rival with kafka-python's interface, from a list of Python objects."""

    def prepare(workload: Workload, records: list[NewRecord]) -> Task:
        rows = [(record.timestamp_ms, record.key, record.value) for record in records]

        def write() -> int:
            try:
                return build(workload, rows)
            except (unsupported, AssertionError) as error:  # kafka-python asserts its codecs
                raise CodecMissing from error

        return write

    def build(workload: Workload, rows: list[tuple[int, bytes, bytes]]) -> int:
        settings = (2, workload.codec, 0, -1, -1, -1, workload.batch_bytes)
        builder, offset, seen = builder_class(*settings), 0, 0
        for row in rows:
            if builder.append(offset, *row, []) is None:
                builder.build()
                seen += offset
                builder, offset = builder_class(*settings), 0
                builder.append(offset, *row, [])
            offset += 1
        builder.build()
        return seen + offset

    return prepare


def contestants() -> dict[str, Contestant]:
    """All who can be imported here."""
    found: dict[str, Contestant] = {}
    try:
        from pyspark_kafkaproto.records import _kernel, _kernel_write

        found["kernel"] = Contestant(columns_reader(_kernel), columns_writer(_kernel_write))
    except ImportError:
        print("the kernel was not built")
    found["pure"] = Contestant(columns_reader(reference), columns_writer(reference_write))
    try:
        from aiokafka.errors import UnsupportedCodecError
        from aiokafka.record.default_records import DefaultRecordBatchBuilder
        from aiokafka.record.memory_records import MemoryRecords

        found["aiokafka"] = Contestant(
            objects_reader(MemoryRecords, UnsupportedCodecError),
            objects_writer(DefaultRecordBatchBuilder, UnsupportedCodecError),
        )
    except ImportError:
        print("aiokafka is not installed")
    try:
        from kafka.errors import UnsupportedCodecError as NoCodec
        from kafka.record.default_records import DefaultRecordBatchBuilder as PureBuilder
        from kafka.record.memory_records import MemoryRecords as PureMemoryRecords

        found["kafka-python"] = Contestant(
            objects_reader(PureMemoryRecords, NoCodec), objects_writer(PureBuilder, NoCodec)
        )
    except ImportError:
        print("kafka-python is not installed")
    return found


# --- measuring


def measure(
    direction: str,
    workload: Workload,
    rivals: dict[str, Contestant],
    rounds: int,
    total_bytes: int,
) -> dict[str, float | None]:
    """Million records per second of each contestant; None for one that lacks the codec."""
    spent: dict[str, list[float]] = {name: [] for name in rivals}
    many = records_of(workload, total_bytes)
    few = records_of(workload, total_bytes // 16)  # for those who need a hundred times as long
    tasks, counts = {}, {}
    for name, rival in rivals.items():
        records = many if name == "kernel" else few
        counts[name] = len(records)
        if direction == "decode":
            tasks[name] = rival.reader(block_of(workload, records))
        else:
            tasks[name] = rival.writer(workload, records)
    for _ in range(rounds):
        for name, task in tasks.items():
            try:
                spent[name].append(_time(task, counts[name]))
            except CodecMissing:
                spent[name].clear()
    return {
        name: counts[name] / median(seconds) / 1e6 if seconds else None
        for name, seconds in spent.items()
    }


def _time(task: Task, records: int) -> float:
    began = time.process_time()
    seen = task()
    spent = time.process_time() - began
    if seen != records:
        raise ValueError(f"saw {seen} of {records} records")
    return spent


def line(workload: Workload, rates: dict[str, float | None]) -> str:
    """A row of the table: million records/s, and MB/s of the first contestant."""
    figures = "".join("no codec".rjust(14) if rate is None else f"{rate:>14.3f}"
                      for rate in rates.values())  # fmt: skip
    first = next(iter(rates.values())) or 0.0
    return f"{workload.name:<34}{figures}{first * workload.value_bytes:>14.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--block-mb", type=int, default=4, help="records per round, uncompressed")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    chosen = parser.parse_args()
    rivals = contestants()
    names = list(rivals)
    results = []
    for direction in ("decode", "encode"):
        print(f"{direction + ': million records/s':<34}" + "".join(f"{name:>14}" for name in names)
              + f"{names[0] + ' MB/s':>14}")  # fmt: skip
        for workload in workloads():
            if chosen.only not in workload.name:
                continue
            rates = measure(direction, workload, rivals, chosen.rounds, chosen.block_mb << 20)
            facts = {"direction": direction, "workload": workload.name, **workload._asdict()}
            results.append({**facts, "mrecords_per_s": rates})
            print(line(workload, rates), flush=True)
    if chosen.json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        chosen.json.write_text(json.dumps({**machine, "results": results}, indent=2))


if __name__ == "__main__":
    main()
