"""Plans of offsets as CSV, in the two formats of Kafka's own kafka-consumer-groups.

`topic,partition,offset` for one group, which the command line names; with the group in front of
each line where the plan is for many. A heading there is not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping
from io import StringIO
from typing import NamedTuple

import click

from pyspark_kafkaproto.cli.files import cannot_read, shown_name
from pyspark_kafkaproto.cli.values import is_id, is_offset
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

_OPTION = "--from-file"
_FORM, _WITH_GROUP = "TOPIC,PARTITION,OFFSET", "GROUP,TOPIC,PARTITION,OFFSET"
_PLAIN = re.compile(r"[\w.-]+")
_EXPECTED = f"expected lines of {_FORM}, or all of {_WITH_GROUP}"

Offsets = dict[TopicPartition, int]


class OffsetPlan(NamedTuple):
    """What a file says.

    Attributes:
        file: what it is called.
        by_group: the offsets of each group; of None alone where the file names no groups.
    """

    file: str
    by_group: dict[str | None, Offsets]

    def of(self, names: Collection[str]) -> dict[str, Offsets]:
        """The offsets of each group of `names`; if there are none, of each group of the file.

        Raises:
            ConfigError: the file says nothing of one of them.
            UsageError: the file names no groups, and not just one is named.
        """
        if None in self.by_group:
            if len(set(names)) != 1:
                raise click.UsageError(f"{self.file} names no groups: name the one that it is for")
            return dict.fromkeys(names, self.by_group[None])
        there = {group: own for group, own in self.by_group.items() if group is not None}
        if missing := sorted(set(names) - there.keys()):
            raise ConfigError(_OPTION, self.file, f"it says nothing of group {', '.join(missing)}")
        return {name: there[name] for name in names or there}


def plan_text(offsets: Mapping[str, Mapping[TopicPartition, int]], *, is_many: bool) -> str:
    """The file's text: with the groups' names where `is_many`."""
    lines: list[str] = []
    for group, own in offsets.items():
        start = f"{_cell(group)}," if is_many else ""
        lines += [
            f"{start}{_cell(item.topic)},{item.partition},{offset}\n"
            for item, offset in sorted(own.items())
        ]
    return "".join(lines)


def _cell(name: str) -> str:
    """As it is where that is safe: Python's own writer leaves blanks and carriage returns so."""
    return name if _PLAIN.fullmatch(name) else '"{}"'.format(name.replace('"', '""'))


def plan_in(file: str) -> OffsetPlan:
    """What a file says; `-` is standard input.

    Raises:
        ConfigError: it cannot be read, or is no such file; names the line.
    """
    try:
        with click.open_file(file, "rb") as opened:
            text = opened.read().decode("utf-8-sig")
    except OSError as error:
        raise cannot_read(_OPTION, file, error) from None
    except UnicodeDecodeError:
        raise ConfigError(_OPTION, shown_name(file), f"it is no UTF-8: {_EXPECTED}") from None
    return read_plan(shown_name(file), text)


def read_plan(name: str, text: str) -> OffsetPlan:
    """What the file called `name` says.

    Raises:
        ConfigError: it is no such file, or names a partition twice; says in which line.
    """
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    plan: dict[str | None, Offsets] = {}
    width = 0
    try:
        for cells in filter(None, lines):
            width = width or len(cells)
            _note(plan, cells, width)
    except (ValueError, csv.Error) as error:
        raise ConfigError(_OPTION, name, f"line {lines.line_num}: {error}") from None
    if not plan:
        raise ConfigError(_OPTION, name, f"it has no offsets: {_EXPECTED}")
    return OffsetPlan(name, plan)


def _note(plan: dict[str | None, Offsets], cells: list[str], width: int) -> None:
    """Add a line to `plan`; ValueError says what is wrong with it."""
    *groups, topic, number, offset = cells if len(cells) in (3, 4) else [*cells, "", "", ""]
    if len(cells) != width or not (topic and is_id(number) and is_offset(offset)):
        raise ValueError(f"{','.join(cells)!r}: {_EXPECTED}")
    own = plan.setdefault(groups[0] if groups else None, {})
    item = TopicPartition(topic, int(number))
    if item in own:
        of_whom = f" of group {groups[0]}" if groups else ""
        raise ValueError(f"{item}{of_whom} is there twice")
    own[item] = int(offset)
