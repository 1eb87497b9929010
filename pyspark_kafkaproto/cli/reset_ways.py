"""The ways in which `kafkaproto groups reset` moves: one option for each, of which one is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from pyspark_kafkaproto.cli.moments import parse_span, parse_time
from pyspark_kafkaproto.cli.offset_plan import OffsetPlan, plan_in
from pyspark_kafkaproto.cli.values import parse_topic_offsets
from pyspark_kafkaproto.cluster import (
    BackBy,
    ResetTo,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    ToTime,
)

Way = ResetTo | OffsetPlan

_OPTIONS = (
    click.option("--to-earliest", is_flag=True, help="To the first record that is there."),
    click.option("--to-latest", is_flag=True, help="Behind the last record."),
    click.option(
        "--to-time",
        metavar="TIME",
        help="To the first record of TIME or later; without a zone local time.",
    ),
    click.option(
        "--back-by", metavar="SPAN", help="To the first record of the last 90s, 10m, 2h, 7d."
    ),
    click.option("--shift", type=int, metavar="COUNT", help="So many on, or back: --shift=-100."),
    click.option(
        "--to",
        metavar="TOPIC:PARTITION=OFFSET",
        multiple=True,
        help="To this offset, of this partition alone.",
    ),
    click.option(
        "--from-file",
        type=click.Path(dir_okay=False, allow_dash=True),
        metavar="FILE",
        help="To the offsets of a CSV file, as --export and Kafka's own tool print it; - is "
        "standard input.",
    ),
)
_READ: Mapping[str, Callable[[Any], Way]] = {
    "to_earliest": lambda _: ToEarliest(),
    "to_latest": lambda _: ToLatest(),
    "to_time": lambda text: ToTime(parse_time("--to-time", text)),
    "back_by": lambda text: BackBy(parse_span("--back-by", text)),
    "shift": ShiftBy,
    "to": lambda texts: ToOffsets(parse_topic_offsets("--to", texts)),
    "from_file": plan_in,
}


def way_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command` an option for each way."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def the_way(ways: Mapping[str, object], *, has_topics: bool) -> Way:
    """The one way that was given.

    Raises:
        UsageError: none was, or several; or it names its partitions, and so do other options.
    """
    # By identity: --shift=0 is given, though 0 equals False.
    given = [
        name
        for name, value in ways.items()
        if value is not None and value is not False and value != ()
    ]
    if len(given) != 1:
        raise click.UsageError(f"give one of {', '.join(map(_option, _READ))}")
    (name,) = given
    if has_topics and name in {"to", "from_file"}:
        text = f"{_option(name)} names its partitions: --topic does not go with it"
        raise click.UsageError(text)
    return _READ[name](ways[name])


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
