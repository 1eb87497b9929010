"""`kafkaproto dissect`: what was said on the wire, from capture files or a running tcpdump.

Standard output carries the messages alone; notes about the capture, progress and hints go to
standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from pyspark_kafkaproto.capture import Note, open_capture, read_messages
from pyspark_kafkaproto.capture.about import size_text
from pyspark_kafkaproto.capture.merged import MergedReader
from pyspark_kafkaproto.capture.message import Message
from pyspark_kafkaproto.capture.packets import PacketReader
from pyspark_kafkaproto.capture.page import MESSAGES_MAX, Page
from pyspark_kafkaproto.capture.report import (
    as_json,
    detail_lines,
    line,
    note_as_json,
    note_line,
)
from pyspark_kafkaproto.capture.selection import Selection, Shown
from pyspark_kafkaproto.capture.statistics import ApiCount, Statistics
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.cli.files import cannot_read, cannot_write, check_writable
from pyspark_kafkaproto.cli.interrupts import interrupted_code
from pyspark_kafkaproto.cli.moments import parse_span
from pyspark_kafkaproto.cli.output import json_text, table_text
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.wire.printable import counted

_PROGRESS_MESSAGES = 500
# Notes that wait for a message of their connection to be shown.
_NOTES_MAX = 1000
# Ways of showing that have no meaning together.
_EXCLUDING = (("html", "json"), ("html", "stats"), ("html", "detail"), ("stats", "detail"))


@click.command()
@click.argument(
    "files",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    nargs=-1,
    required=True,
    metavar="FILE…",
)
@click.option(
    "--port",
    "ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    metavar="PORT",
    help="Of brokers; repeatable.",
)
@click.option("--detail", is_flag=True, help="Every field with its bytes' positions; records too.")
@click.option("--json", is_flag=True, help="One JSON object a line.")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Such as Fetch; repeatable.")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Name or id; repeatable.")
@click.option("--client", "clients", multiple=True, metavar="ID", help="Client id or address.")
@click.option("--errors", is_flag=True, help="Error codes, and what cannot be read.")
@click.option("--slow", metavar="SPAN", help="Responses that took longer, such as 100ms.")
@click.option("--follow", type=int, metavar="CONNECTION", help="One connection, by its number.")
@click.option("--stats", is_flag=True, help="Counts and latencies in place of messages.")
@click.option("--html", metavar="FILE", help="Write a page; - for standard output.")
@click.pass_context
def dissect(
    ctx: click.Context, /, files: tuple[str, ...], ports: tuple[int, ...], **options: Any
) -> None:
    """Show the Kafka messages of a capture FILE (pcap or pcapng; - for standard input).

    Several are merged by time: each process of a Spark job writes a file of its own.

    Kafka is recognised on any port; --port looks at those ports alone, which is faster. Ctrl-C
    shows the statistics, or writes the page, of what was read so far.

    \b
    Examples:
      kafkaproto dissect trace.pcap
      kafkaproto dissect trace.pcap --api Fetch --topic orders --detail
      kafkaproto dissect trace.pcap --errors --json
      kafkaproto dissect trace.pcap --stats --slow 100ms
      kafkaproto dissect trace.pcap --html report.html
      kafkaproto dissect frames/*.pcapng --stats
      tcpdump -i any -U -w - port 9092 | kafkaproto dissect -
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    _check_output(files, options)
    selection = Selection(
        apis=[_api_named(name) for name in options["apis"]],
        topics=options["topics"],
        clients=options["clients"],
        only_errors=options["errors"],
        slower_than_ns=_slower_than_ns(options["slow"]) if options["slow"] else None,
        connection=options["follow"],
    )
    with ExitStack() as stack:
        streams = {
            file: sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
            for file in files
        }
        readers = {
            file: open_capture(_named(stream, file), file) for file, stream in streams.items()
        }
        reader = MergedReader(readers) if len(readers) > 1 else readers[files[0]]
        messages = read_messages(reader, ports)
        items = stack.enter_context(_progress(reader, list(streams.values()), messages))
        chosen = _Chosen(selection, is_json=options["json"])
        # A name that is no text could not be written into a page. Not by click.format_filename: in
        # click 8.1.0 it leaves such names as they are.
        title = ", ".join(os.fsencode(name).decode("utf-8", "replace") for name in files)
        is_interrupted = _show(chosen.of(items), title, options)
    if is_interrupted:
        ctx.exit(interrupted_code())


class _Named:
    """A stream whose errors name its file."""

    def __init__(self, stream: BinaryIO, file: str) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._file = file

    def read(self, size: int) -> bytes:
        """What comes next, up to `size` bytes."""
        try:
            data: bytes = self._read(size)
        except OSError as error:
            raise cannot_read("FILE", self._file, error) from error
        return data


def _named(stream: BinaryIO, file: str) -> BinaryIO:
    return cast("BinaryIO", _Named(stream, file))  # all that a capture is asked for


def _api_named(text: str) -> str:
    """The API's name however it is capitalised, or by its number."""
    for api in APIS:
        if text.lower() == api.name.lower() or text == str(api.key):
            return api.name
    from difflib import get_close_matches  # noqa: PLC0415  for an error alone

    near = get_close_matches(text, [api.name for api in APIS], 3, 0.4)
    expected = f"did you mean {' or '.join(near)}?" if near else "expected a name such as Fetch"
    raise ConfigError("--api", text, expected)


def _slower_than_ns(text: str) -> int:
    return round(parse_span("--slow", text) * 1e9)


def _check_output(files: Collection[str], options: dict[str, Any]) -> None:
    """Refuse, before anything is read, what cannot be shown."""
    for one, other in _EXCLUDING:
        if options[one] and options[other]:
            raise click.UsageError(f"--{one} and --{other} exclude each other")
    page = options["html"]
    if page is None or page == "-":
        return
    path = Path(page)
    if not page or path.is_dir():
        raise ConfigError("--html", page, "expected a file")
    if path.exists() and any(path.samefile(file) for file in files if file != "-"):
        raise ConfigError("--html", page, "it is the capture itself, which would be lost")
    check_writable("--html", path)


def _show(chosen: Iterator[Shown], title: str, options: dict[str, Any]) -> bool:
    """Show it in the way that is asked for; whether Ctrl-C ended the reading."""
    if options["html"]:
        return _write_page(chosen, title, options["html"])
    if options["stats"]:
        return _show_statistics(chosen, is_json=options["json"])
    _show_messages(chosen, detail=options["detail"], is_json=options["json"])
    return False


class _Chosen:
    """The selected messages; notes are said on the way, of connections that the filters want."""

    def __init__(self, selection: Selection, *, is_json: bool) -> None:
        self._selection = selection
        self._is_json = is_json
        self._shown: set[int] = set()  # connections of which a message was
        self._waiting: deque[Note] = deque(maxlen=_NOTES_MAX)

    def of(self, items: Iterator[Any]) -> Iterator[Shown]:
        """The messages of `items` that are wanted."""
        count = 0
        for item in items:
            if isinstance(item, Note):
                self._take(item)
                continue
            count += 1
            if shown := self._selection.choose(item):
                self._let_through(item.peers.number)
                yield shown
        if not self._shown:
            none = f"none of {counted(count, 'message')} is what the filters want"
            self._say(Note(0, None, none if count else "no Kafka message was found"))

    def _take(self, note: Note) -> None:
        wanted = note.peers is None or self._selection.wants_connection(note.peers)
        if wanted or (note.peers and wanted is None and note.peers.number in self._shown):
            self._say(note)
        elif wanted is None:
            self._waiting.append(note)

    def _let_through(self, connection: int) -> None:
        """A message of it is shown: so are its notes."""
        if connection in self._shown:
            return
        self._shown.add(connection)
        for note in list(self._waiting):
            if note.peers and note.peers.number == connection:
                self._waiting.remove(note)
                self._say(note)

    def _say(self, note: Note) -> None:
        if self._is_json:
            click.echo(json.dumps(note_as_json(note)), err=True)
        else:
            click.echo(note_line(note) if note.time_ns else note.text, err=True)


def _collect(chosen: Iterator[Shown], add: Callable[[Message, About], None]) -> bool:
    """Add all messages; whether Ctrl-C came first, so that what there is can be shown."""
    try:
        for message, found in chosen:
            add(message, found)
    except KeyboardInterrupt:
        click.echo(err=True)
        return True
    return False


def _show_messages(chosen: Iterator[Shown], *, detail: bool, is_json: bool) -> None:
    write = sys.stdout.write
    is_live = sys.stdout.isatty() and not sys.stdin.isatty()
    for message, found in chosen:
        if is_json:
            write(json_text(as_json(message, with_fields=detail)) + "\n")
        else:
            write(line(message, found) + "\n")
            if detail:
                write("".join(text + "\n" for text in detail_lines(message)))
        if is_live:
            sys.stdout.flush()


def _show_statistics(chosen: Iterator[Shown], *, is_json: bool) -> bool:
    statistics = Statistics()
    is_interrupted = _collect(chosen, statistics.add)
    if is_json:
        click.echo(json.dumps(statistics.as_json()))
        return is_interrupted
    click.echo("\n".join(_tables(statistics)), nl=False)
    if statistics.problems:
        click.echo(f"{counted(statistics.problems, 'message')} could not be read: see --errors")
    return is_interrupted


def _tables(statistics: Statistics) -> Iterator[str]:
    """By API; then by topic and by error, where there are any."""
    heads = ("API", "Requests", "Sent", "Responses", "Received", "p50 ms", "p95", "p99", "max")
    rows = [_api_cells(api, count) for api, count in statistics.apis().items()]
    yield _table(heads, rows)
    if statistics.topic_bytes:
        topics = sorted(statistics.topic_bytes.items())
        rows = [(topic, *map(size_text, sizes)) for topic, sizes in topics]
        yield _table(("Topic", "Written", "Read"), rows)
    if statistics.errors:
        errors = statistics.errors.most_common()
        yield _table(("API", "Error", "Count"), [(*of, count) for of, count in errors])


def _api_cells(api: str, count: ApiCount) -> tuple[object, ...]:
    latencies = [f"{count.latencies.percentile_ms(p):.3g}" for p in (50, 95, 99, 100)]
    return (
        api,
        count.requests,
        size_text(count.request_bytes),
        count.responses,
        size_text(count.response_bytes),
        *(latencies if count.latencies.count else [None] * 4),
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [dict(zip(heads, row, strict=True)) for row in rows]
    return table_text(cells, {head: head for head in heads})


def _write_page(chosen: Iterator[Shown], title: str, name: str) -> bool:
    page = Page(title)
    is_interrupted = _collect(chosen, page.add)
    if name == "-":
        click.echo(page.html(), nl=False)
    else:
        try:
            Path(name).write_text(page.html(), encoding="utf-8")
        except OSError as error:
            _remove(Path(name))
            raise cannot_write("--html", Path(name), error) from error
    if page.left_out:
        text = f"{counted(page.left_out, 'message')} after the first {MESSAGES_MAX} left out"
        click.echo(f"{text}: choose with --api, --topic, --client or --follow", err=True)
    where = "on standard output" if name == "-" else f"in {name}"
    click.echo(f"{counted(page.count, 'message')} {where}", err=True)
    return is_interrupted


def _remove(page: Path) -> None:
    """Half a page shows nothing. Devices and links to elsewhere stay."""
    with suppress(OSError):
        if S_ISREG(page.lstat().st_mode):
            page.unlink()


@contextmanager
def _progress(
    reader: PacketReader, streams: Sequence[BinaryIO], items: Iterator[Any]
) -> Iterator[Iterator[Any]]:
    """A progress bar on standard error, when somebody looks and the messages go elsewhere."""
    console = Console(stderr=True)
    if (
        not console.is_terminal
        or sys.stdout.isatty()
        or not all(stream.seekable() for stream in streams)
    ):
        yield items
        return
    # Standard input has no name that is a file's.
    total = sum(os.fstat(stream.fileno()).st_size for stream in streams)
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # Notes share the terminal with the bar; messages go where standard output leads.
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    with bar as progress:
        task = progress.add_task("", total=total)

        def passing() -> Iterator[Any]:
            for number, item in enumerate(items):
                if number % _PROGRESS_MESSAGES == 0:
                    progress.update(task, completed=reader.done_bytes)
                yield item

        yield passing()
