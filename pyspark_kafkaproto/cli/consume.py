"""`kafkaproto consume`: records of a topic, printed; the way of the data as on an executor."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice

import click
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.moments import TIME_EXAMPLE, parse_time
from pyspark_kafkaproto.cli.record_format import Record, Render, make_render
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import ConfigError, DataLoss

_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_FOLLOW_S = 0.3
_LAST = re.compile(r"last:(\d{1,18})")
# As Spark's option startingOffsets has it, and kcat.
_OTHERS_LAST = re.compile(r"(?:latest-|last-|-(?=\d+$))(\d*).*")
# Longer numbers are times in milliseconds.
_MOST_OFFSET_DIGITS = 12

Offsets = dict[TopicPartition, int]


@click.command()
@connected
@click.argument("topic", metavar="TOPIC[:PARTITION,…]")
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="earliest, latest, an offset, a time (2026-11-21T08:00, -10m), or last:N per partition.  "
    "[default: earliest; with --group: what it has committed]",
)
@click.option(
    "--to", "stop", default="latest", metavar="WHERE", help="latest (as of now), offset, or time."
)
@click.option("-n", "--count", type=click.IntRange(1), help="At most so many records in all.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.option("-g", "--group", help="Start where GROUP has committed, else at the earliest.")
@click.option("--commit", is_flag=True, help="Commit what was printed, for GROUP.")
@click.option("--format", "form", default="json", show_default=True, metavar="json|raw|TEMPLATE")
def consume(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    topic: str,
    start: str | None,
    stop: str,
    count: int | None,
    follow: bool,
    group: str | None,
    commit: bool,
    form: str,
) -> None:
    """Print records of TOPIC, each partition's in their order.

    A template has {topic}, {partition}, {offset}, {timestamp}, {key}, {value}, {headers}.

    \b
    Examples:
      kafkaproto consume orders
      kafkaproto consume orders --from -10m --count 5
      kafkaproto consume orders:0 --from last:10 --format raw
      kafkaproto consume orders --follow --format '{partition}@{offset} {key}: {value}'
      kafkaproto consume orders --group reports --commit | loader
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    render = make_render(form)
    if commit and group is None:
        raise click.UsageError("--commit needs --group: for whom?")
    partitions = find_partitions(cluster, "TOPIC", [topic])
    if group is not None and start is not None:
        raise click.UsageError("--group says where to start: --from does not go with it")
    bounds = _Bounds(cluster, partitions)
    starts = bounds.find("--from", start or "earliest")
    if group is not None:
        starts |= bounds.go_on(group, cluster.get_consumer_offsets(group, partitions))
    stops = bounds.find("--to", stop)
    turned = [item for item in partitions if stops[item] < starts[item]]
    for item in sorted(turned) if stop != "latest" else ():
        where = f"--to is offset {stops[item]}, before the start {starts[item]}"
        click.echo(f"{item}: {where}", err=True)
    printer = _Printer(cluster, starts, render, count)
    try:
        printer.print_until(stops)
        while follow and not printer.is_full:
            time.sleep(_FOLLOW_S)
            printer.print_newer()
    finally:
        sys.stdout.flush()
        if commit and group is not None and printer.moved:
            cluster.set_consumer_offsets(group, printer.moved)


class _Printer:
    """Prints records and remembers how far it has come."""

    def __init__(
        self, cluster: KafkaCluster, starts: Offsets, render: Render, count: int | None
    ) -> None:
        self.moved: Offsets = {}
        self._ends: Offsets = {}  # the last ones that were told
        self._topic_ids: dict[str, bytes | None] = {}
        self._cluster = cluster
        self._positions = dict(starts)
        self._render = render
        self._left = count

    @property
    def is_full(self) -> bool:
        """Whether as many as were asked for have been printed."""
        return self._left == 0

    def print_newer(self) -> None:
        """What has come since partitions ended where they did the last time.

        Raises:
            DataLoss: offsets mean other records than before.
        """

        def cut_off(ends: Offsets) -> list[TopicPartition]:
            return sorted(item for item, end in ends.items() if end < self._ends[item])

        ends = self._cluster.believed(
            lambda: self._cluster.get_latest_leader_offsets(self._ends),
            lambda ends: not cut_off(ends),
        )
        for item in cut_off(ends):  # what is written below would be passed over
            why = f"{item} ended at offset {self._ends[item]} and ends at {ends[item]} now"
            raise self._lost(f"{why}: its end was cut off, or the topic was made anew.")
        self.print_until(ends)

    def print_until(self, stops: Offsets) -> None:
        """Everything from where it is to `stops`, or what is left of the count.

        Raises:
            DataLoss: offsets mean other records than before.
        """
        self._ends = stops
        ranges = [
            OffsetRange(*item, self._positions[item], stop)
            for item, stop in sorted(stops.items())
            if self._positions[item] < stop
        ]
        if not ranges and not self._topic_ids:  # who begins at the end follows this topic, too
            self._ids({item.topic for item in stops})
        if not ranges or self._left == 0:
            return
        total = sum(item.count or 0 for item in ranges)
        with _progress(total if self._left is None else min(total, self._left)) as advance:
            for record in islice(self._records(ranges), self._left):
                self._print(record)
                advance()
        sys.stdout.buffer.flush()
        if self.is_full:
            return
        # Offsets without a record (control batches, compacted ones) are behind us all the same.
        ends = {item.topic_partition: item.stop or 0 for item in ranges}
        self._positions |= ends
        self.moved |= ends

    def _print(self, record: Record) -> None:
        sys.stdout.buffer.write(self._render(record))
        item = TopicPartition(record["topic"], record["partition"])
        self._positions[item] = self.moved[item] = record["offset"] + 1
        if self._left is not None:
            self._left -= 1

    def _ids(self, topics: set[str]) -> dict[str, bytes | None]:
        def ask() -> dict[str, bytes | None]:
            topology = self._cluster.describe(topics, must_exist=True)
            return {name: topology.topic(name).topic_id for name in sorted(topics)}

        def made_anew(found: dict[str, bytes | None]) -> list[str]:
            return [name for name in found if found[name] != self._topic_ids.get(name, found[name])]

        found = self._cluster.believed(ask, lambda found: not made_anew(found))
        for name in made_anew(found):
            why = f"topic {name!r} was deleted and made anew while it was being read."
            raise self._lost(why)
        self._topic_ids |= found
        return found

    def _lost(self, why: str) -> DataLoss:
        self.moved = {}  # committed, they would pass over what is written there now
        return DataLoss("COULD_NOT_READ_OFFSET_RANGE", why)

    def _records(self, ranges: list[OffsetRange]) -> Iterator[Record]:
        ids = self._ids({item.topic for item in ranges})
        leaders = self._cluster.find_leaders([item.topic_partition for item in ranges])
        task = ReadTask(tuple(ranges), leaders, ids)
        schema = schema_for(_COLUMNS)
        batches = read_batches(task, self._cluster.config, ReadSettings(), schema)
        with closing(batches):  # type: ignore[type-var]  # a generator has close()
            for batch in batches:
                # As numbers: a timestamp may lie outside of what Python's dates can hold.
                at = batch.schema.get_field_index("timestamp")
                micros = batch.column(at).cast(pa.int64())
                yield from batch.set_column(at, "timestamp", micros).to_pylist()


class _Bounds:
    """Where partitions begin and end at this moment, and what lies between."""

    def __init__(self, cluster: KafkaCluster, partitions: set[TopicPartition]) -> None:
        self._cluster = cluster
        self._is_stable = cluster.config.is_read_committed
        self._first = cluster.get_earliest_leader_offsets(partitions)
        self._last = cluster.get_latest_leader_offsets(partitions)

    def within(self, offsets: Mapping[TopicPartition, int | None]) -> Offsets:
        """`offsets`, moved to the nearest record that is there; None is behind the last."""
        return {
            item: self._last[item]
            if offset is None
            else min(max(offset, self._first[item]), self._last[item])
            for item, offset in offsets.items()
        }

    def go_on(self, group: str, committed: Offsets) -> Offsets:
        """Where a group goes on: what it has committed, and what is gone meanwhile is told.

        Raises:
            ConfigError: what it has committed lies behind the end.
        """
        for item, offset in sorted(committed.items()):
            first, last = self._first[item], self._last[item]
            if offset < first:
                gone = f"offsets {offset} to {first - 1} are gone"
                click.echo(f"{item}: {gone}, it begins at {first} now", err=True)
            if offset > last and not self._is_stable:  # the last stable offset is no end
                why = f"group {group!r} has committed {offset} for {item}, which ends at {last}: "
                why += "its end was cut off, or the topic was made anew (kafkaproto groups reset)"
                raise ConfigError("--group", group, why)
        return {item: max(offset, self._first[item]) for item, offset in committed.items()}

    def find(self, option: str, where: str) -> Offsets:
        """The offset of each partition that `where` means."""
        if where == "earliest":
            return dict(self._first)
        if where == "latest":
            return dict(self._last)
        if where.isdecimal() and len(where) <= _MOST_OFFSET_DIGITS:
            beyond = [item for item, end in sorted(self._last.items()) if int(where) > end]
            for item in beyond if option == "--from" else ():
                click.echo(f"{item}: it ends at offset {self._last[item]}", err=True)
            return self.within(dict.fromkeys(self._first, int(where)))
        if match := _LAST.fullmatch(where):
            return self.within({item: end - int(match[1]) for item, end in self._last.items()})
        if match := _OTHERS_LAST.fullmatch(where):
            count = match[1] or "N"
            hint = f"last:{count} for the last {'record' if count == '1' else f'{count} records'}"
            other = ", or -10m (ms, s, m, h, d, w) for that long ago" if where[0] == "-" else ""
            raise ConfigError(option, where, f"write {hint} of each partition{other}")
        others = f"earliest, latest, an offset, last:N, {TIME_EXAMPLE}"
        time_ms = parse_time(option, where, others)
        found = self._cluster.get_leader_offsets(self._first.keys(), time_ms)
        none = sorted(item for item, offset in found.items() if offset is None)
        for item in none if option == "--from" else ():
            click.echo(f"{item}: no record is as new as {where}", err=True)
        return self.within(found)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error, where somebody sees it and the records go elsewhere."""
    if sys.stdout.isatty() or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn("records"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
