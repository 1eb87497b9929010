"""The record batches in record_batches/, and what their writers put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden.decoded_rows import Row

FOLDER = Path(__file__).resolve().parent / "record_batches"
NAMES = sorted(path.stem for path in FOLDER.glob("*.bin"))

NO_TIMESTAMP_TYPE = -1
CREATE_TIME = 0
LOG_APPEND_TIME = 1
_FIRST_COMPACTED_MS = 1_600_000_000_000
_HEADERS = ((b"h1", b"one"), (b"h1", b"two"), (b"empty", b""), (b"none", None))


def read_bytes(name: str) -> bytes:
    """The `records` field as it stood on the wire."""
    return (FOLDER / f"{name}.bin").read_bytes()


def magic_of(name: str) -> int:
    """0, 1 or 2."""
    return int(name.partition("-magic")[2][0])


def known_rows(name: str) -> list[Row]:
    """What is in the file of that name, up to the piece of a batch that may end it."""
    rows = _compacted() if "-compacted" in name else _written(name)
    if magic_of(name) == 0:
        rows = [row._replace(timestamp_ms=-1, timestamp_type=NO_TIMESTAMP_TYPE) for row in rows]
    first = 6 if name.endswith("-from-6") else 0
    last = _read_json("last_offsets").get(name, len(rows) - 1)
    return [row for row in rows if first <= row.offset <= last]


def _written(name: str) -> list[Row]:
    known = _read_json("known")["records"]
    is_stamped = name.endswith("-log-append-time")
    # What the old client sent stands in the log twice, what Java's sent once.
    times = 1 if is_stamped or not name.startswith("kafka-fetch") else 2
    rows = [
        Row(
            offset,
            record["timestamp_ms"],
            CREATE_TIME,
            _bytes(record["key"]),
            _bytes(record["value"]),
            _HEADERS if magic_of(name) == 2 and offset else (),
        )
        for offset, record in enumerate(known * times)
    ]
    if not is_stamped:
        return rows
    codec = name.partition("-magic")[2].split("-")[1]
    time_ms = _read_json("log_append_times")[codec]
    return [row._replace(timestamp_ms=time_ms, timestamp_type=LOG_APPEND_TIME) for row in rows]


def _compacted() -> list[Row]:
    """Keys a d a c b a, a e c e a f in two batches, once the log is compacted."""
    kept = {1: b"d", 4: b"b", 8: b"c", 9: b"e", 10: b"a", 11: b"f"}
    return [
        Row(offset, _FIRST_COMPACTED_MS + offset, CREATE_TIME, key, key + b"%d" % offset, ())
        for offset, key in kept.items()
    ]


def _read_json(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
