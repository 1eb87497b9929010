"""Writes docs/options.md from the option table and the table of client properties.

python tools/generate_options.py            writes the page
python tools/generate_options.py --check    says whether it is what the tables say
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from pyspark_kafkaproto.net import ClientConfig, ProducerConfig
from pyspark_kafkaproto.net.properties import names_of
from pyspark_kafkaproto.spark.option_table import OPTIONS, REFUSED, Option, Use
from pyspark_kafkaproto.spark.starts import Earliest, Latest

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "options.md"

_HEAD = """# Options

Written by `tools/generate_options.py` from `spark/option_table.py` and the properties in
`net/config.py`, `net/security.py` and `net/producer_config.py`: change those.

Names are read in any case, as Spark hands them over. An option that is not known is named in a
warning and has no effect, as with Spark's own connector; one of a write that reads like
`transactionalIdPrefix` is refused. Named is one, too, that has no effect where it is given
(`maxOffsetsPerTrigger` in a batch), or beside the others (`committedFallback` where nothing is
`committed`, `startingOffsets` where `startingTimestamp` comes before it): Spark's own passes over
most of these without a word. A process names each once. Options marked **+** are not in Spark's
own connector. How to move from `format("kafka")`: [migrating.md](migrating.md).
"""
_CLIENT_HEAD = """
## Client properties

Any of Kafka's client properties with `kafka.` in front. These have a meaning here, which is
Kafka's own; the default is the Java client's unless the last column says otherwise. Others are
named once in a warning and have no effect, but for those of `ssl.`, `sasl.` and `security.`, which
are errors: [security.md](security.md) has a recipe for each way to log in.

| property | default | how it differs from the Java client |
|---|---|---|
"""
_PRODUCER_HEAD = """
The same for writes; what they mean here: [writing.md](writing.md). Of those above `client.rack`,
`isolation.level`, `check.crcs`, `fetch.max.bytes` and `max.partition.fetch.bytes` are for reading:
a write names them in a warning, and so does a `Producer`. `compression.….level` counts for the
`compression.type` of its name alone.

| property | default | how it differs from the Java client |
|---|---|---|
"""
_REFUSED_HEAD = """
Refused by name. Spark's own connector refuses them, too, but for `kafka.transactional.id` and, on
writes, `kafka.interceptor.classes`, which it leaves to Java's producer:

| property | in | why, and what instead |
|---|---|---|
"""
_PARTS = (
    ("Reading", Use.READ),
    ("Writing", Use.WRITE),
)
# What differs from the Java client; whatever is not here does not.
_DIFFERS = {
    "capture.to": "it has none; [on the wire](wire.md)",
    "capture.errors": "it has none; [on the wire](wire.md)",
    "retry.backoff.ms": "with the source option transactionalIdPrefix 10: a transaction waits for "
    "the markers of the one before",
    "transactional.id": "refused on the source, see below; a `Producer` takes it",
    "transaction.timeout.ms": "exactly-once writes: as long as brokers allow, by default 15 min",
    "client.id": "the Java client makes one up",
    "fetch.max.bytes": "50 MiB; see [benchmarks.md](benchmarks.md)",
    "max.partition.fetch.bytes": "1 MiB; see [benchmarks.md](benchmarks.md)",
    "receive.message.max.bytes": "it has none; the name is librdkafka's",
    "sasl.login.callback.handler.class": "a Python function, `module:function`",
    "sasl.mechanism": "none is the default; `GSSAPI` is refused",
    "ssl.keystore.type": "the file's content tells; a JKS file is refused, with what converts it",
    "ssl.truststore.location": "without one the system's authorities are trusted",
    "ssl.truststore.type": "the file's content tells; a JKS file is refused, with what converts it",
    "batch.size": "16 KiB; rows come by the thousand",
    "linger.ms": "5; looked at when rows come, and the end of a task waits for nothing",
    "partitioner": "its own are Java classes; the name is librdkafka's",
    "partitioner.ignore.keys": "`true` makes the default partitioner `sticky`",
    "partitioner.class": "refused: a Java class",
    "default.api.timeout.ms": "bounds every operation with all its tries, a task's next records "
    "too",
    "socket.connection.setup.timeout.ms": "also ends the tries to reach a cluster that nobody has "
    "met yet, sooner than default.api.timeout.ms: its address may be wrong",
}


def main() -> int:
    """Run the command line; 1 if `--check` found a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    text = render()
    if not parser.parse_args().check:
        _PAGE.write_text(text, encoding="utf-8")
        return 0
    if _PAGE.exists() and _PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{_PAGE.name} is not what the tables say: run {Path(__file__).name}")
    return 1


def render() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, use in _PARTS:
        rows = [option for option in OPTIONS if option.uses & use]
        if rows:
            parts.append(f"\n## {title}\n\n{_table(rows, use)}")
    parts.append(_CLIENT_HEAD + "".join(map(_property_row, names_of(ClientConfig).values())))
    parts.append(_PRODUCER_HEAD + "".join(map(_property_row, names_of(ProducerConfig).values())))
    refused = (f"| `{row.name}` | {_uses(row.uses)} | {row.instead} |\n" for row in REFUSED)
    parts.append(_REFUSED_HEAD + "".join(refused))
    return "".join(parts)


def _table(rows: Iterable[Option], use: Use) -> str:
    head = "| option | in | default | meaning | how it differs from Spark's own |\n"
    head += "|---|---|---|---|---|\n"
    return head + "".join(
        f"| {_name(row)} | {_uses(row.uses & use)} | {_shown(row.default)} | {_cell(row.meaning)} "
        f"| {_cell(row.differs)} |\n"
        for row in rows
    )


def _name(row: Option) -> str:
    return f"`{row.name}`{' **+**' if row.is_ours else ''}"


def _uses(uses: Use) -> str:
    words = {Use.BATCH: "batch", Use.STREAM: "stream", Use.WRITE: "write"}
    return ", ".join(word for use, word in words.items() if use & uses)


def _shown(default: Any) -> str:
    """A default as users would write it."""
    match default:
        case None | "" | ():
            return ""
        case tuple():
            return f"`{','.join(map(str, default))}`"
        case float():
            return f"`{default:g}s`"
        case bool():
            return f"`{str(default).lower()}`"
        case Enum():
            default = default.value
        case Earliest() | Latest():
            default = type(default).__name__.lower()
    return f"`{default}`"


def _property_row(item: Any) -> str:
    name, default = item.metadata["name"], item.default
    if isinstance(default, float):
        default = round(default * 1000)
    special = {"bootstrap.servers": "required", "acks": "`all`"}
    shown = special.get(name) or _shown(default)
    return f"| `kafka.{name}` | {shown} | {_cell(_DIFFERS.get(name, ''))} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
