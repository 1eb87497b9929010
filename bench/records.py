"""How fast is a block of record batches decoded, without network, Kafka or Spark?

    python bench/records.py                 a table, in about two minutes
    python bench/records.py --json out.json also the figures, for programs

Per workload (size of a value, codec, size of a batch): million records per second and MB of
decompressed records per second, on one core. The rivals are the codecs of aiokafka and
kafka-python, where they are installed (extra `bench`). They make a Python object per record, ours
make columns: that is the difference in design that this shows. Everybody checks CRCs and takes key,
value, offset and timestamp of each record. Rounds are interleaved, so that a machine that is busy
is busy for all; a figure is the median of its rounds, in CPU time of this process.
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

from pyspark_kafkaproto.records import Columns, NewRecord, encode_batch, reference
from pyspark_kafkaproto.records.compression import NAMES

PLAIN_COLUMNS = Columns.ALL & ~Columns.HEADERS
WORDS = [f"word{number:03d}" for number in range(300)]

# A contestant reads a block and says how many records it has seen.
Reader = Callable[[bytes], int]


class CodecMissing(Exception):
    """A rival lacks the library of a codec."""


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


def block_of(workload: Workload, block_bytes: int) -> tuple[bytes, int]:
    """A block of about `block_bytes` of records, and their number."""
    rng = random.Random(1)
    per_batch = workload.records_per_batch
    batches = max(1, block_bytes // (per_batch * (workload.value_bytes + 10)))
    block = b"".join(
        encode_batch(
            [_record(rng, workload.value_bytes, first + index) for index in range(per_batch)],
            base_offset=first,
            codec=workload.codec,
        )
        for first in range(0, batches * per_batch, per_batch)
    )
    return block, batches * per_batch


def _record(rng: random.Random, value_bytes: int, number: int) -> NewRecord:
    """An event as JSON, which compresses about as events do."""
    text = f'{{"id":{number},"user":{rng.randrange(10**6)},"text":"'
    while len(text) < value_bytes - 2:
        text += rng.choice(WORDS) + " "
    value = text[: value_bytes - 2] + '"}'
    return NewRecord(value.encode(), b"%d" % (number % 1000), 1_700_000_000_000 + number)


# --- contestants


def columns_reader(implementation) -> Reader:
    """Ours, in chunks as a task does it."""

    def read(block: bytes) -> int:
        rows = pos = start = 0
        while pos < len(block):
            decoded = implementation.decode(
                block, pos=pos, start=start, stop=2**62, wanted=PLAIN_COLUMNS
            )
            rows, pos, start = rows + decoded.rows, decoded.pos, decoded.next_offset
        return rows

    return read


def objects_reader(memory_records, unsupported: type[Exception]) -> Reader:
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

    return read


def contestants() -> dict[str, Reader]:
    """All who can be imported here."""
    found: dict[str, Reader] = {}
    try:
        from pyspark_kafkaproto.records import _kernel

        found["kernel"] = columns_reader(_kernel)
    except ImportError:
        print("the kernel was not built")
    found["pure"] = columns_reader(reference)
    try:
        from aiokafka.errors import UnsupportedCodecError
        from aiokafka.record.memory_records import MemoryRecords

        found["aiokafka"] = objects_reader(MemoryRecords, UnsupportedCodecError)
    except ImportError:
        print("aiokafka is not installed")
    try:
        from kafka.errors import UnsupportedCodecError as NoCodec
        from kafka.record.memory_records import MemoryRecords as PureMemoryRecords

        found["kafka-python"] = objects_reader(PureMemoryRecords, NoCodec)
    except ImportError:
        print("kafka-python is not installed")
    return found


# --- measuring


def measure(
    workload: Workload, readers: dict[str, Reader], rounds: int, block_bytes: int
) -> dict[str, float | None]:
    """Million records per second of each contestant; None for one that lacks the codec."""
    spent: dict[str, list[float]] = {name: [] for name in readers}
    blocks = {
        name: block_of(workload, block_bytes if name == "kernel" else block_bytes // 16)
        for name in readers
    }
    for _ in range(rounds):
        for name, read in readers.items():
            try:
                spent[name].append(_time(read, *blocks[name]))
            except CodecMissing:
                spent[name].clear()
    return {
        name: blocks[name][1] / median(seconds) / 1e6 if seconds else None
        for name, seconds in spent.items()
    }


def _time(read: Reader, block: bytes, records: int) -> float:
    began = time.process_time()
    seen = read(block)
    spent = time.process_time() - began
    if seen != records:
        raise ValueError(f"read {seen} of {records} records")
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
    parser.add_argument("--block-mb", type=int, default=4, help="records per block, decompressed")
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    chosen = parser.parse_args()
    readers = contestants()
    names = list(readers)
    print(f"{'million records/s':<34}" + "".join(f"{name:>14}" for name in names)
          + f"{names[0] + ' MB/s':>14}")  # fmt: skip
    results = []
    for workload in workloads():
        if chosen.only not in workload.name:
            continue
        rates = measure(workload, readers, chosen.rounds, chosen.block_mb << 20)
        results.append({"workload": workload.name, **workload._asdict(), "mrecords_per_s": rates})
        print(line(workload, rates), flush=True)
    if chosen.json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        chosen.json.write_text(json.dumps({**machine, "results": results}, indent=2))


if __name__ == "__main__":
    main()
