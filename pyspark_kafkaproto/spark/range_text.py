"""Offset ranges as the text of the option `offsetRanges`, both ways. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.spark.starts import is_number, load_json

_EXAMPLE = '[["topicA", 0, 23, 50], ["topicA", 1, null, null]]: topic, partition, start, stop'


def ranges_json(ranges: Iterable[OffsetRange]) -> str:
    """`ranges` as the option `offsetRanges` takes them; null is an open bound."""
    return json.dumps([[*item.topic_partition, item.start, item.stop] for item in ranges])


def parse_ranges(option: str, text: str) -> tuple[OffsetRange, ...]:
    """The ranges, sorted; several of one partition may not overlap.

    Raises:
        ConfigError: the text is not such a list, a range ends before it starts, or two overlap.
    """
    loaded = load_json(option, text, "[", f"JSON like {_EXAMPLE}")
    if not isinstance(loaded, list):
        raise ConfigError(option, text, f"expected JSON like {_EXAMPLE}")
    ranges = sorted(
        (_range(option, text, item) for item in loaded),
        key=lambda item: (item.topic_partition, -1 if item.start is None else item.start),
    )
    for one, other in pairwise(ranges):
        if one.topic_partition == other.topic_partition and not _is_before(one, other):
            why = f"{one}, {other}: ranges of a partition may not overlap"
            raise ConfigError(option, text, why)
    return tuple(ranges)


def _range(option: str, text: str, item: object) -> OffsetRange:
    match item:
        case [str(topic), int(partition), int() | None as start, int() | None as stop] if (
            topic and all(each is None or is_number(each, 0) for each in (partition, start, stop))
        ):
            found = OffsetRange(topic, partition, start, stop)
        case _:
            raise ConfigError(option, text, f"{item!r}: expected {_EXAMPLE}")
    if start is not None and stop is not None and start > stop:
        raise ConfigError(option, text, f"{found}: the range ends before it starts")
    return found


def _is_before(one: OffsetRange, other: OffsetRange) -> bool:
    """Whether `one` ends where `other` starts, or earlier."""
    return one.stop is not None and other.start is not None and one.stop <= other.start
