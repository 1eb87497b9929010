"""`kafkaproto consume`: records of a topic, printed; the way of the data as on an executor."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pyspark_kafkaproto.cli.bounds import Bounds
from pyspark_kafkaproto.cli.connection import connected
from pyspark_kafkaproto.cli.consume_shared import print_shared
from pyspark_kafkaproto.cli.record_format import Render, make_render
from pyspark_kafkaproto.cli.refused import Refused
from pyspark_kafkaproto.cli.values import find_partitions
from pyspark_kafkaproto.client.committed import check_commits
from pyspark_kafkaproto.client.following import Following, Offsets
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.net.retry import is_retriable

_FOLLOW_S = 0.3


@click.command()
@connected
@click.argument("topic", metavar="TOPIC[:PARTITION,…]")
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="earliest, latest, an offset, a time (2026-11-21T08:00, -10m), or last:N per partition.  "
    "[default: earliest]  Not with --group.",
)
@click.option(
    "--to",
    "stop",
    default="latest",
    metavar="WHERE",
    help="latest (as of now), offset, or time.  [default: latest]  Not with --follow.",
)
@click.option(
    "-n", "--count", type=click.IntRange(1, 2**63 - 1), help="At most so many records in all."
)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Go on with what is written, until Ctrl-C; not with partitions that are added.",
)
@click.option(
    "-g",
    "--group",
    metavar="GROUP",
    help="Start where GROUP has committed, else at the earliest.",
)
@click.option("--commit", is_flag=True, help="Commit what was printed, for GROUP.")
@click.option("--share-group", metavar="GROUP", help="As a member of a share group, until Ctrl-C.")
@click.option(
    "--format",
    "form",
    default="json",
    show_default=True,
    metavar="json|raw|TEMPLATE",
    help="A line of JSON, the value alone, or as TEMPLATE says.",
)
def consume(  # noqa: PLR0913, PLR0917 - one for each option
    cluster: KafkaCluster,
    topic: str,
    start: str | None,
    stop: str,
    count: int | None,
    follow: bool,
    group: str | None,
    commit: bool,
    share_group: str | None,
    form: str,
) -> None:
    """Print records of TOPIC, each partition's in their order.

    With --share-group records that this member is given, each accepted once it is printed; what is
    not printed goes back to the group.

    A template has {topic}, {partition}, {offset}, {timestamp}, {key}, {value}, {headers}; in it
    \\t is a tab, \\n a line break and \\0 a zero byte.

    \b
    Examples:
      kafkaproto consume orders
      kafkaproto consume orders --from -10m --count 5
      kafkaproto consume orders:0 --from last:10 --format raw
      kafkaproto consume orders --follow --format '{partition}@{offset} {key}: {value}'
      kafkaproto consume orders --group reports --commit | loader
      kafkaproto consume orders --share-group mails | sender
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    render = make_render(form)
    _check_commits(group, share_group, is_to_commit=commit)
    if share_group is not None:
        if start or stop != "latest" or follow or group or ":" in topic:
            raise click.UsageError("with --share-group the group says what is read, and from where")
        find_partitions(cluster, "TOPIC", [topic])
        print_shared(cluster, topic, share_group, render, count)
        return
    if follow and stop != "latest":
        raise click.UsageError("--follow has no end: --to does not go with it")
    partitions = find_partitions(cluster, "TOPIC", [topic])
    if group is not None and start is not None:
        raise click.UsageError("--group says where to start: --from does not go with it")
    committed: Offsets = {}
    if group is not None:
        committed = _committed(cluster, group, partitions, is_to_commit=commit)
    wanted = _Wanted(start or "earliest", stop, group or "", committed)
    refused = Refused()
    printer = _Printer(cluster, Bounds(cluster, refused), wanted, render, count, follows=follow)
    with _committing(group if commit else None, printer.following):
        missing = printer.print_led(partitions)
        if follow:  # what comes to those that are refused would be missed
            refused.tell()
        if missing and not (refused or printer.is_full):  # else they were waited for, or need not
            click.echo(f"nobody leads {', '.join(map(str, sorted(missing)))}: waiting", err=True)
            missing = printer.print_led(missing, waits=not follow)
        while follow and not printer.is_full:
            time.sleep(_FOLLOW_S)
            printer.print_newer()
            missing = missing and printer.print_led(missing)
            refused.tell()
    refused.tell()


class _Wanted(NamedTuple):
    """What is to be printed: from where to where, and of a group what it has not seen."""

    start: str
    stop: str
    group: str
    committed: Offsets

    def span(self, bounds: Bounds) -> tuple[Offsets, Offsets]:
        """From where to where that is; what is read of no partition is told."""
        starts = bounds.find("--from", self.start) | bounds.go_on(self.group, self.committed)
        stops = bounds.find("--to", self.stop)
        turned = [item for item in starts if stops[item] < starts[item]]
        for item in sorted(turned) if self.stop != "latest" else ():
            where = f"--to is offset {stops[item]}, before the start {starts[item]}"
            click.echo(f"{item}: {where}", err=True)
        return starts, stops


@contextmanager
def _committing(group: str | None, following: Following) -> Iterator[None]:
    """Commit for `group`, if there is one, what was printed inside, whatever ends that.

    What ended it is told first where the commit fails, too.
    """
    ended: KafkaProtoError | None = None
    try:
        yield
    except KafkaProtoError as error:
        ended = error
        raise
    finally:
        sys.stdout.flush()
        if group is not None:
            try:
                following.commit_for(group)
            except KeyboardInterrupt:
                click.echo("what was printed may not be committed", err=True)
                raise
            except KafkaProtoError as error:
                if ended is None:
                    raise
                ended.add_line(f"what was printed is not committed: {error}")


def _check_commits(group: str | None, share_group: str | None, *, is_to_commit: bool) -> None:
    """Whether it is known for whom, and whether somebody can see what is done with by it."""
    if is_to_commit and group is None:
        raise click.UsageError("--commit needs --group: for whom?")
    if (is_to_commit or share_group is not None) and sys.__stdout__ is None:
        text = "standard output is closed: what nobody sees is not to be committed or accepted"
        raise click.UsageError(text)


def _committed(
    cluster: KafkaCluster, group: str, partitions: Collection[TopicPartition], *, is_to_commit: bool
) -> Offsets:
    """What `group` has committed.

    Raises:
        ConfigError: it is a share group, which never has: all would be printed, and none committed.
        BrokerError: it has members, so that all would be printed, and the commit be refused.
    """
    committed = cluster.get_consumer_offsets(group, partitions)
    if is_to_commit or not committed:
        check_commits(cluster, "--group", group, from_outside=is_to_commit)
    return committed


class _Printer:
    """Prints what is wanted of partitions, up to a count.

    Attributes:
        following: how far it has come.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        bounds: Bounds,
        wanted: _Wanted,
        render: Render,
        count: int | None,
        *,
        follows: bool,
    ) -> None:
        self.following = Following(cluster, {})
        self._follows = follows
        self._bounds = bounds
        self._wanted = wanted
        self._render = render
        self._left = count

    @property
    def is_full(self) -> bool:
        """Whether as many as were asked for have been printed."""
        return self._left == 0

    def print_led(
        self, partitions: set[TopicPartition], *, waits: bool = False
    ) -> set[TopicPartition]:
        """What there is of those that somebody leads, or comes to lead in time where it waits.

        Returns:
            The others.
        """
        led = self._bounds.ask(partitions, waits=waits)
        starts, stops = self._wanted.span(self._bounds)
        self.following.begin(starts)
        self._print_until(stops)
        return partitions - led

    def print_newer(self) -> None:
        """What has come since."""
        self._print_until(self.following.newer_ends())

    def _print_until(self, stops: Offsets) -> None:
        """Everything from where it is to `stops`, or what is left of the count."""
        total = self.following.count_until(stops)
        most = total if self._left is None else min(total, self._left)
        with self._outlasting(), _progress(most) as advance:
            for record in islice(self.following.records_until(stops), self._left):
                sys.stdout.buffer.write(self._render(record))
                self.following.note_read(record)
                if self._left is not None:
                    self._left -= 1
                advance()
        sys.stdout.buffer.flush()

    @contextmanager
    def _outlasting(self) -> Iterator[None]:
        """Where it follows, a failure to read is told, and what is left is read later."""
        try:
            yield
        except KafkaProtoError as error:
            if not (self._follows and is_retriable(error)):
                raise
            click.echo(f"{error}\ntried again as long as it is followed", err=True)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error, where somebody sees it and the records go elsewhere."""
    if total == 0 or sys.stdout.isatty() or not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn("records"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
