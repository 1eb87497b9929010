"""The record batches in record_batches/, and what their writers put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / "record_batches"
NAMES = sorted(path.stem for path in FOLDER.glob("*.bin"))

CREATE_TIME = 0
LOG_APPEND_TIME = 1
_FIRST_COMPACTED_MS = 1_600_000_000_000
_HEADERS = ((b"h1", b"one"), (b"h1", b"two"), (b"empty", b""), (b"none", None))


class Row(NamedTuple):
    """One record as it should be read; magic 0 has no time: -1."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def read_bytes(name: str) -> bytes:
    """The `records` field as it stood on the wire."""
    return (FOLDER / f"{name}.bin").read_bytes()


def magic_of(name: str) -> int:
    """0, 1 or 2."""
    return int(name.partition("-magic")[2][0])


def known_rows(name: str) -> list[Row]:
    """What is in the file of that name, up to the piece of a batch that may end it."""
    rows = _compacted(name) if name.endswith("-compacted") else _written(name)
    if magic_of(name) == 0:
        return [row._replace(timestamp_ms=-1) for row in rows]
    return rows


def _written(name: str) -> list[Row]:
    known = json.loads((FOLDER / "known.json").read_text(encoding="utf-8"))["records"]
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
    stamp = json.loads((FOLDER / "log_append_times.json").read_text(encoding="utf-8"))
    stamped = {"timestamp_ms": stamp[_codec_of(name)], "timestamp_type": LOG_APPEND_TIME}
    return [row._replace(**stamped) for row in rows]


def _compacted(name: str) -> list[Row]:
    """Keys a d a c b a, a e c e a f, z in three batches, once all but the last are compacted.

    The broker leaves out of an answer what has no more room in it.
    """
    kept = {1: b"d", 4: b"b", 8: b"c", 9: b"e", 10: b"a", 11: b"f"}
    if name == "kafka-fetch-v3-magic1-none-compacted":
        del kept[11]
    return [
        Row(offset, _FIRST_COMPACTED_MS + offset, CREATE_TIME, key, key + b"%d" % offset, ())
        for offset, key in kept.items()
    ]


def _codec_of(name: str) -> str:
    return name.partition("-magic")[2].split("-")[1]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
