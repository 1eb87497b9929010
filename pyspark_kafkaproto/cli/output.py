"""Tables for people, JSON for programs.

On a terminal a table has lines and colours, and folds what is too wide; in a pipe, and where a
terminal has no room for it, it is plain columns, one line per row, nothing cut. Texts come from
anybody: a name may hold what moves a terminal's cursor, or ends a line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import StringIO
from typing import Any, Literal

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pyspark_kafkaproto.wire.printable import printed

# JSON itself escapes those below the blank alone.
_CONTROLS = re.compile("[\x7f-\x9f]")

Row = Mapping[str, object]

_NARROW = 6  # of a text, which is folded where the numbers beside it are not
_HEADING = 4  # of a heading over numbers, which is folded where they take less
_BETWEEN = 3  # blanks, of one column and the next
_WIDEST = 2  # cells of a letter


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`, for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def show(rows: Iterable[Row], columns: Mapping[str, str], *, as_json: bool) -> None:
    """Print `rows`, as JSON with all their keys, or as a table of `columns` (key to heading)."""
    rows = list(rows)
    if as_json:
        show_json(rows)
    else:
        click.echo(table_text(rows, columns), nl=False)


@contextmanager
def gathered(*, as_json: bool) -> Iterator[list[Row]]:
    """Rows of what is done one after the other: JSON at the end, also where the rest is refused.

    Where nothing is done, and all is refused, the error stands alone, as with every command.
    """
    rows: list[Row] = []
    try:
        yield rows
    except BaseException:
        if as_json and rows:
            show_json(rows)
        raise
    if as_json:
        show_json(rows)


def aside(text: str) -> None:
    """A line for who looks on, beside the result."""
    click.echo(text, err=True)


def tell(rows: Iterable[Row], text: str, *, as_json: bool) -> None:
    """What was done: `rows` as JSON for programs, else `text` on standard error."""
    if as_json:
        show_json(list(rows))
    else:
        aside(text)


def was_seen(*, is_sure: bool, as_json: bool) -> bool:
    """Whether a table that was shown before a question need not be shown once more.

    Who was asked at a terminal has it before his eyes; a file or a program has not got it yet.
    """
    return not is_sure and not as_json and _is_terminal()


def show_json(value: object) -> None:
    """Print `value` as JSON: indented on a terminal, else on one line."""
    click.echo(json_text(value, indent=2 if _is_terminal() else None))


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    """Made once: `json.dumps` makes one for each of a million lines, and takes a third longer."""
    return json.JSONEncoder(indent=indent, ensure_ascii=False)


def json_text(value: object, indent: int | None = None) -> str:
    """JSON with letters as they are, and no control character."""
    text = _encoder(indent).encode(value)
    if text.isascii() and "\x7f" not in text:
        return text
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def table_text(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """The table as `show` prints it."""
    if _is_terminal():
        out = StringIO()
        console = Console(file=out, force_terminal=True, highlight=False)
        table = _table_of(rows, columns, console.width)
        if table is not None:
            console.print(table)
            return _stripped(out.getvalue().splitlines())
    return _stripped(_plain_lines(rows, columns))


def drawn(rows: Sequence[Row], columns: Mapping[str, str], width: int) -> Table | Text:
    """The same for rich to draw again and again, on a terminal of this width."""
    table = _table_of(rows, columns, width)
    return Text(_stripped(_plain_lines(rows, columns))) if table is None else table


def _stripped(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _plain_lines(rows: Sequence[Row], columns: Mapping[str, str]) -> Iterator[str]:
    """The heading and a line for each row; rich takes half a millisecond to lay one out."""
    padded = (
        _padded([heading, *(cell_text(row[key]) for row in rows)], _is_number(rows, key))
        for key, heading in columns.items()
    )
    return map("  ".join, zip(*padded, strict=True))


def _padded(cells: Sequence[str], is_number: bool) -> Sequence[str]:
    widths = list(map(cell_len, cells))
    most = max(widths)
    blanks = [" " * (most - width) for width in widths]
    pairs = zip(blanks, cells, strict=True) if is_number else zip(cells, blanks, strict=True)
    return list(map("".join, pairs))


def _has_room(numbers: Mapping[str, int], columns: Mapping[str, str], width: int) -> bool:
    """Whether a table of this width shows all there is, its numbers whole and all else folded.

    Of one that is wider rich leaves out the columns to the right; in a column of one cell, letters
    that take two. A number that is folded reads as another: 598134567 as 59813456.
    """
    folded = (_WIDEST + _BETWEEN) * len(columns)
    return width > folded and (not numbers or _width_of(numbers, columns) <= width)


def _table_of(rows: Sequence[Row], columns: Mapping[str, str], width: int) -> Table | None:
    """The rows as a table of rich, for a terminal of this width; None where that has no room."""
    numbers = _number_widths(rows, columns)
    if not _has_room(numbers, columns, width):
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    headed = {key: max(cells, cell_len(columns[key])) for key, cells in numbers.items()}
    if _width_of(headed, columns) <= width:
        numbers = headed  # else their headings are folded, too
    for key, heading in columns.items():
        justify: Literal["left", "right"] = "right" if key in numbers else "left"
        table.add_column(heading, justify=justify, overflow="fold", width=numbers.get(key))
    for row in rows:
        table.add_row(*(Text(cell_text(row[key]), _style(row[key])) for key in columns))
    return table


def _number_widths(rows: Sequence[Row], columns: Mapping[str, str]) -> dict[str, int]:
    """The cells that each column of numbers takes at least."""
    return {
        key: max(_HEADING, *(cell_len(cell_text(row[key])) for row in rows))
        for key in columns
        if _is_number(rows, key)
    }


def _width_of(numbers: Mapping[str, int], columns: Mapping[str, str]) -> int:
    """How wide a table is whose `numbers` take so many cells, and whose texts are folded."""
    texts = len(columns) - len(numbers)
    return sum(numbers.values()) + _NARROW * texts + _BETWEEN * len(columns)


def _is_number(rows: Sequence[Row], key: str) -> bool:
    """Whether a column has numbers alone, which stand to the right."""
    numbers = [row[key] for row in rows if row[key] is not None]
    return bool(numbers) and all(type(item) is int for item in numbers)


def cell_text(value: object) -> str:
    """How a table shows a value."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell_text, value)) or "-"
    return printed(str(value))


def _style(value: object) -> str:
    return {"ok": "green", "broken": "bold red", "not reached": "yellow"}.get(str(value), "")


def _is_terminal() -> bool:
    return sys.stdout.isatty()
