"""`kafkaproto produce`: lines into records, as Kafka's console producer has it.

Standard output carries what was written, by partition; nothing is printed for each record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from pyspark_kafkaproto.cli.connection import configured, json_option
from pyspark_kafkaproto.cli.output import show
from pyspark_kafkaproto.errors import ConfigError

if TYPE_CHECKING:
    from pyspark_kafkaproto.client import ProducerRecord, Written
    from pyspark_kafkaproto.cluster import TopicPartition

_ROWS = 5000  # per Arrow batch
_HEADINGS = {
    "topic": "topic",
    "partition": "partition",
    "records": "records",
    "first_offset": "first offset",
    "last_offset": "last offset",
}


@click.command()
@configured
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("-k", "--key-separator", metavar="TEXT", help="What stands before it is the key.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="For all records.")
@click.option("-H", "--header", "headers", metavar="KEY=VALUE", multiple=True, help="For all.")
@click.option("--null-marker", metavar="TEXT", help="A key or value of exactly this is null.")
@json_option
def produce(
    properties: Mapping[str, str],
    topic: str,
    file: BinaryIO,
    key_separator: str | None,
    partition: int | None,
    headers: tuple[str, ...],
    null_marker: str | None,
    as_json: bool,
) -> None:
    """Write each line of FILE (or of standard input) as a record to TOPIC, which must exist.

    \b
    Examples:
      kafkaproto produce orders lines.txt
      kafkaproto produce orders -k : -X compression.type=zstd < pairs.txt
      echo gone: | kafkaproto produce orders -k : --null-marker ''
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    from pyspark_kafkaproto.client import Producer  # noqa: PLC0415 - pyarrow, for this alone

    common = {
        "partition": partition,
        "headers": [(key, value.encode()) for key, value in map(_header, headers)],
    }
    records = _records(file, key_separator, null_marker, common)
    with Producer(properties, topic=topic) as producer:
        producer.check_topics({topic})
        while rows := list(islice(records, _ROWS)):
            producer.send(rows)
        written = producer.flush()
    show(_shown(written), _HEADINGS, as_json=as_json)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError("--header", text, "expected KEY=VALUE")
    return name, value


def _records(
    file: BinaryIO, separator: str | None, null_marker: str | None, common: Mapping[str, Any]
) -> Iterator[ProducerRecord]:
    from pyspark_kafkaproto.client import ProducerRecord  # noqa: PLC0415 - as above

    null = None if null_marker is None else null_marker.encode()
    mark = None if separator is None else separator.encode()
    for number, raw in enumerate(file, 1):
        key, value = None, raw.removesuffix(b"\n").removesuffix(b"\r")
        if mark is not None:
            key, found, value = value.partition(mark)
            if not found:
                raise ConfigError("--key-separator", separator, f"line {number} does not have it")
        yield ProducerRecord(
            value=None if value == null else value, key=None if key == null else key, **common
        )


def _shown(written: Mapping[TopicPartition, Written]) -> Iterator[dict[str, object]]:
    for item, what in sorted(written.items()):
        yield {
            "topic": item.topic,
            "partition": item.partition,
            "records": what.records,
            "first_offset": what.first_offset,
            "last_offset": what.last_offset,
        }
