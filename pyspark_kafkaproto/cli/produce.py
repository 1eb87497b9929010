"""`kafkaproto produce`: lines into records, as Kafka's console producer has it.

Standard output carries what was written, by partition; nothing is printed for each record. Lines
are sent as they come, and flushed when none has come for linger.ms: whoever writes to a pipe may
take his time. Ctrl-C or SIGTERM ends the reading alone; a second one ends everything.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from pyspark_kafkaproto.cli.connection import configured
from pyspark_kafkaproto.cli.interrupts import interrupted_code, note, wakes
from pyspark_kafkaproto.cli.output import aside, json_option, show
from pyspark_kafkaproto.cluster.silence import waiting_aloud
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.types import NO_UTF_8

if TYPE_CHECKING:
    from pyspark_kafkaproto.client import ProducerRecord, Written
    from pyspark_kafkaproto.cluster import TopicPartition

_ROWS = 5000  # per Arrow batch
_CHUNK_BYTES = 1 << 20
_SIGNALS = 64  # taken note of at a time
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
@click.option(
    "-k",
    "--key-separator",
    metavar="TEXT",
    help="What stands before it is the key. Taken as it stands: \\t is no tab.",
)
@click.option("-p", "--partition", type=click.IntRange(0, 2**31 - 1), help="For all records.")
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
      kafkaproto produce orders -k $'\\t' < table.tsv      bash's way to write a tab
      echo gone: | kafkaproto produce orders -k : --null-marker ''
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    from pyspark_kafkaproto.client import Producer  # noqa: PLC0415 - pyarrow, for this alone

    if key_separator == "":
        raise ConfigError("--key-separator", key_separator, "expected what stands behind keys")
    common = {
        "partition": partition,
        "headers": [(key, os.fsencode(value)) for key, value in map(_header, headers)],
    }
    written: dict[TopicPartition, Written] = {}
    with ExitStack() as held:
        producer = held.enter_context(Producer(properties, topic=topic))
        producer.config.check_without_transactions()
        with waiting_aloud(lambda: producer.waits_for, aside):
            count = producer.check_topics({topic})[topic]
        # Until here Ctrl-C leaves nothing half done.
        if partition is not None and partition >= count:
            why = f"topic {topic} has no partition {partition}: it has {count}, from 0 on"
            raise ConfigError("--partition", partition, why)
        interrupts = held.enter_context(_heeded())
        arrivals = _arrivals(file, producer.config.linger_s, interrupts)
        beside_bytes = len(os.fsencode(key_separator or "")) + len(b"\r")
        lines = _lines(arrivals, interrupts, producer.config.max_request_size, beside_bytes)
        wrong: _NoRecord | None = None
        with _telling(written, as_json=as_json):
            try:
                for records in _records(lines, key_separator, null_marker, common):
                    producer.send(records)
                    if not records:
                        _merge(written, producer.flush())
            except _NoRecord as error:  # it ends the reading, as Ctrl-C does
                wrong = error
            _merge(written, producer.flush())
    if written or wrong is None:
        show(_shown(written), _HEADINGS, as_json=as_json)
    if wrong is not None:
        raise wrong
    if interrupts.count:
        click.get_current_context().exit(interrupted_code())


@contextmanager
def _telling(written: dict[TopicPartition, Written], *, as_json: bool) -> Iterator[None]:
    """Show what is written all the same where the rest cannot be: who tries again has to know.

    So at a second Ctrl-C, which does not wait for brokers to answer.
    """
    try:
        yield
    except (KafkaProtoError, KeyboardInterrupt) as error:
        _merge(written, getattr(error, "usable", None) or {})
        if written:
            show(_shown(written), _HEADINGS, as_json=as_json)
        if isinstance(error, KeyboardInterrupt):
            aside("what else was read may be written or not: brokers were not waited for")
        raise


class _NoRecord(ConfigError):
    """A line is none, or cannot be read."""


class _Interrupts:
    """Counts signals: the first one ends only a wait, or the next one before it begins.

    Attributes:
        count: how many have come.
        woken: what is written to as soon as one comes. One that comes between a look at the count
            and the wait would not end that.
    """

    def __init__(self) -> None:
        self.count = 0
        self.woken = -1
        self._is_waiting = False

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        del frame
        note(number)
        self.count += 1
        if self._is_waiting or self.count > 1:
            raise KeyboardInterrupt

    def wait(self, descriptor: int, timeout_s: float | None) -> bool:
        """Whether there is something to read; not to be waited for longer.

        Raises:
            KeyboardInterrupt: nothing more is to be read.
        """
        poll = select.poll()
        for each in (descriptor, self.woken):
            poll.register(each, select.POLLIN)
        self._is_waiting = True
        try:
            if self.count:
                raise KeyboardInterrupt
            while True:
                ready = poll.poll(None if timeout_s is None else timeout_s * 1000)
                found = {number for number, _ in ready}
                if self.woken not in found:
                    return descriptor in found
                os.read(self.woken, _SIGNALS)  # ours would have raised: it is another signal
        finally:
            self._is_waiting = False


@contextmanager
def _heeded() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    with wakes(interrupts.note) as (interrupts.woken, _):
        yield interrupts


def _arrivals(file: BinaryIO, quiet_s: float, interrupts: _Interrupts) -> Iterator[bytes]:
    """What comes, as it comes, until the end or Ctrl-C; b"" where nothing came for `quiet_s`.

    Raises:
        _NoRecord: the file cannot be read, or no further; what came before was given.
    """
    try:
        descriptor = file.fileno()
    except OSError:  # standard input that is none
        yield file.read()
        return
    timeout_s: float | None = None
    while True:
        try:
            is_there = interrupts.wait(descriptor, timeout_s)
        except KeyboardInterrupt:
            return
        try:
            chunk = os.read(descriptor, _CHUNK_BYTES) if is_there else b""
        except OSError as error:
            shown = "standard input" if file.name == "<stdin>" else file.name
            why = f"it cannot be read: {error.strerror}; lines that came before are written"
            raise _NoRecord("FILE", shown, why) from error
        if is_there and not chunk:
            return
        yield chunk
        timeout_s = quiet_s if is_there else None


def _lines(
    arrivals: Iterable[bytes], interrupts: _Interrupts, most_bytes: int, beside_bytes: int
) -> Iterator[list[bytes]]:
    """Whole lines, as they come; none where nothing came. At the end, what follows the last one.

    Raises:
        _NoRecord: one has more so far than the `most_bytes` of a record, and `beside_bytes` of a
            line; it may have no end. Those before it were given.
    """
    number = 1  # of the line whose end is waited for
    begun: list[bytes] = []  # its pieces: put together with each one, they were copied each time
    for chunk in arrivals:
        first, *others = chunk.split(b"\n")
        if first:
            begun.append(first)
        if others:
            whole = [b"".join(begun), *others[:-1]]
            number, begun = number + len(whole), others[-1:]
            yield whole
        elif not chunk:
            yield []
        if sum(map(len, begun)) > most_bytes + beside_bytes:
            text = "raise that (and the topic's max.message.bytes), or give shorter lines"
            before = "; those before it are written" if number > 1 else ""
            why = f"line {number} has more bytes: {text}{before}"
            raise _NoRecord("max.request.size", most_bytes, why)
    rest = b"".join(begun)
    if rest and not interrupts.count:  # after Ctrl-C it is the half of one
        yield [rest]


def _merge(written: dict[TopicPartition, Written], more: Mapping[TopicPartition, Written]) -> None:
    for partition, what in more.items():
        if partition in written:
            written[partition].merge(what)
        else:
            written[partition] = what


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError("--header", text, "expected KEY=VALUE")
    try:
        name.encode()
    except UnicodeEncodeError:  # what a shell gave was other bytes; the value may be
        raise ConfigError("--header", text, f"its key {NO_UTF_8}") from None
    return name, value


def _records(
    arrivals: Iterable[list[bytes]],
    separator: str | None,
    null_marker: str | None,
    common: Mapping[str, Any],
) -> Iterator[list[ProducerRecord]]:
    """Records as they come; none where nothing came.

    Raises:
        _NoRecord: a line has no separator; those before it were given.
    """
    from pyspark_kafkaproto.client import ProducerRecord  # noqa: PLC0415 - as above

    # As bytes as they were given: lines may be in any encoding.
    null = None if null_marker is None else os.fsencode(null_marker)
    mark = None if separator is None else os.fsencode(separator)
    number = 0
    for lines in arrivals:
        records = []
        wrong: _NoRecord | None = None
        for raw in lines:
            number += 1
            key, value = None, raw.removesuffix(b"\r")
            if mark is not None:
                key, found, value = value.partition(mark)
                if not found:
                    before = "; those before it are written" if number > 1 else ""
                    text = f"line {number} does not have it{before}"
                    wrong = _NoRecord("--key-separator", separator, text)
                    break
            records.append(
                ProducerRecord(
                    value=None if value == null else value,
                    key=None if key == null else key,
                    **common,
                )
            )
        yield from (records[first : first + _ROWS] for first in range(0, len(records), _ROWS))
        if wrong is not None:
            raise wrong
        if not records:
            yield records


def _shown(written: Mapping[TopicPartition, Written]) -> Iterator[dict[str, object]]:
    for item, what in sorted(written.items()):
        yield {
            "topic": item.topic,
            "partition": item.partition,
            "records": what.records,
            "first_offset": what.first_offset,
            "last_offset": what.last_offset,
        }
