"""`kafkaproto dissect`: what was said on the wire, from a capture file or a running tcpdump.

Standard output carries the messages alone; notes about the capture, progress and hints go to
standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.table import Table

from pyspark_kafkaproto.capture import Note, open_capture, read_messages
from pyspark_kafkaproto.capture.about import size_text
from pyspark_kafkaproto.capture.page import MESSAGES_MAX, Page
from pyspark_kafkaproto.capture.pcap import PacketReader
from pyspark_kafkaproto.capture.report import (
    as_json,
    detail_lines,
    line,
    note_as_json,
    note_line,
    printed,
)
from pyspark_kafkaproto.capture.selection import Selection, Shown, api_named, duration_ns
from pyspark_kafkaproto.capture.statistics import Statistics

_PROGRESS_MESSAGES = 500


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--port", "ports", type=click.IntRange(1, 65535), multiple=True, metavar="PORT")
@click.option("--detail", is_flag=True, help="Every field with its bytes' positions; records too.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line.")
@click.option("--api", "apis", multiple=True, metavar="NAME", help="Such as Fetch; repeatable.")
@click.option("--topic", "topics", multiple=True, metavar="NAME", help="Name or id; repeatable.")
@click.option("--client", "clients", multiple=True, metavar="ID", help="Client id or address.")
@click.option("--errors", is_flag=True, help="Error codes, and what cannot be read.")
@click.option("--slow", metavar="DURATION", help="Responses that took longer, such as 100ms.")
@click.option("--follow", type=int, metavar="CONNECTION", help="One connection, by its number.")
@click.option("--stats", is_flag=True, help="Counts and latencies in place of messages.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page.")
def dissect(file: str, ports: tuple[int, ...], **options: Any) -> None:
    """Show the Kafka messages of a capture FILE (pcap or pcapng; - for standard input).

    Kafka is recognised on any port; --port looks at those ports alone, which is faster.

    \b
    Examples:
      kafkaproto dissect trace.pcap
      kafkaproto dissect trace.pcap --api Fetch --topic orders --detail
      kafkaproto dissect trace.pcap --errors --json
      kafkaproto dissect trace.pcap --stats --slow 100ms
      kafkaproto dissect trace.pcap --html report.html
      tcpdump -i any -U -w - port 9092 | kafkaproto dissect -
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    selection = Selection(
        apis=[api_named(name) for name in options["apis"]],
        topics=options["topics"],
        clients=options["clients"],
        only_errors=options["errors"],
        slower_than_ns=duration_ns(options["slow"]) if options["slow"] else None,
        connection=options["follow"],
    )
    with ExitStack() as stack:
        stream = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        reader = open_capture(stream, file)
        items = stack.enter_context(_progress(reader, stream, read_messages(reader, ports)))
        _show(_chosen(items, selection, is_json=options["is_json"]), file, options)


def _show(chosen: Iterator[Shown], file: str, options: dict[str, Any]) -> None:
    if options["html"]:
        _write_page(chosen, file, options["html"])
    elif options["stats"]:
        _show_statistics(chosen, is_json=options["is_json"])
    else:
        _show_messages(chosen, detail=options["detail"], is_json=options["is_json"])


def _chosen(items: Iterator[Any], selection: Selection, *, is_json: bool) -> Iterator[Shown]:
    """The selected messages; notes are said on the way, of one connection if it is followed."""
    for item in items:
        if isinstance(item, Note):
            wanted = selection.connection
            if wanted is None or item.peers is None or item.peers.number == wanted:
                text = json.dumps(note_as_json(item)) if is_json else note_line(item)
                click.echo(text, err=True)
        elif shown := selection.choose(item):
            yield shown


def _show_messages(chosen: Iterator[Shown], *, detail: bool, is_json: bool) -> None:
    write = sys.stdout.write
    is_live = not sys.stdin.isatty()
    for message, found in chosen:
        if is_json:
            write(json.dumps(as_json(message, with_fields=detail), ensure_ascii=False) + "\n")
        else:
            write(line(message, found) + "\n")
            if detail:
                write("".join(text + "\n" for text in detail_lines(message)))
        if is_live and sys.stdout.isatty():
            sys.stdout.flush()


def _show_statistics(chosen: Iterator[Shown], *, is_json: bool) -> None:
    statistics = Statistics()
    for message, found in chosen:
        statistics.add(message, found)
    if is_json:
        click.echo(json.dumps(statistics.as_json()))
        return
    console = Console()
    console.print(_api_table(statistics))
    if statistics.topic_bytes:
        table = Table("Topic", "Written", "Read")
        for topic, (written, read) in sorted(statistics.topic_bytes.items()):
            table.add_row(escape(printed(topic)), size_text(written), size_text(read))
        console.print(table)
    if statistics.errors:
        table = Table("API", "Error", "Count")
        for (api, name), count in statistics.errors.most_common():
            table.add_row(api, name, str(count))
        console.print(table)
    if statistics.problems:
        console.print(f"{statistics.problems} messages could not be read: see --errors")


def _api_table(statistics: Statistics) -> Table:
    sizes = ("Requests", "", "Responses", "")
    table = Table("API", *sizes, "p50 ms", "p95", "p99", "max")
    for column in table.columns:
        column.no_wrap = True
        column.justify = "left" if column.header == "API" else "right"
    for api, count in statistics.apis().items():
        latencies = [f"{count.latencies.percentile_ms(p):.3g}" for p in (50, 95, 99, 100)]
        table.add_row(
            api,
            str(count.requests),
            size_text(count.request_bytes),
            str(count.responses),
            size_text(count.response_bytes),
            *(latencies if count.latencies.count else [""] * 4),
        )
    return table


def _write_page(chosen: Iterator[Shown], file: str, path: Path) -> None:
    page = Page(title=file)
    for message, found in chosen:
        page.add(message, found)
    path.write_text(page.html(), encoding="utf-8")
    if page.left_out:
        text = f"{page.left_out} messages after the first {MESSAGES_MAX} are not in the page"
        click.echo(f"{text}: choose with --api, --topic, --client or --follow", err=True)
    click.echo(f"{page.count} messages are in {path}", err=True)


@contextmanager
def _progress(
    reader: PacketReader, stream: BinaryIO, items: Iterator[Any]
) -> Iterator[Iterator[Any]]:
    """A progress bar on standard error, when somebody looks and the messages go elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal or sys.stdout.isatty() or not stream.seekable():
        yield items
        return
    total = Path(str(stream.name)).stat().st_size
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)

        def counted() -> Iterator[Any]:
            for number, item in enumerate(items):
                if number % _PROGRESS_MESSAGES == 0:
                    progress.update(task, completed=reader.source.done_bytes)
                yield item

        yield counted()
