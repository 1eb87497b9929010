"""Where reading starts and ends: kinds of limits, and their text as Spark's users write it. Pure.

Kafka's -2 and -1 are spoken here and nowhere above: they become `Earliest` and `Latest`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

_LATEST_OFFSET = -1
_EARLIEST_OFFSET = -2


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first offset that is still there."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The offset after the last record."""


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset, or Earliest or Latest, for each partition."""

    offsets: Mapping[TopicPartition, int | Earliest | Latest]


Limit = Earliest | Latest | Specific

_EXAMPLE = '{"topicA":{"0":23,"1":-2},"topicB":{"0":-2}}'


def parse_start(option: str, text: str) -> Limit:
    """`earliest` or offsets as JSON; a batch has nothing to read from `latest` on."""
    limit = _parse(option, text)
    if isinstance(limit, Latest) or _has(limit, Latest):
        raise ConfigError(
            option, text, f"a batch cannot start at latest: expected earliest or {_EXAMPLE}"
        )
    return limit


def parse_end(option: str, text: str) -> Limit:
    """`latest` or offsets as JSON; a batch that ends at `earliest` has nothing to read."""
    limit = _parse(option, text)
    if isinstance(limit, Earliest) or _has(limit, Earliest):
        raise ConfigError(
            option, text, f"a batch cannot end at earliest: expected latest or {_EXAMPLE}"
        )
    return limit


def parse_partitions(option: str, text: str) -> list[TopicPartition]:
    """`{"topicA":[0,1],"topicB":[2]}`, as the option `assign` takes it."""
    example = '{"topicA":[0,1],"topicB":[2]}'
    topics = _load_topics(option, text, example)
    partitions = []
    for topic, numbers in topics.items():
        if not isinstance(numbers, list) or not all(_is_number(item, 0) for item in numbers):
            raise ConfigError(option, text, f"expected partition numbers, like {example}")
        partitions += [TopicPartition(topic, number) for number in numbers]
    if len(set(partitions)) != len(partitions) or not partitions:
        raise ConfigError(option, text, "expected at least one partition, and each one once")
    return partitions


def limit_of(
    option: str, limit: Limit, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int | Earliest | Latest]:
    """The limit of each partition.

    Raises:
        ConfigError: offsets were given for other partitions than those that are read; Spark wants
            all of them named, and none besides.
    """
    if not isinstance(limit, Specific):
        return dict.fromkeys(partitions, limit)
    if set(limit.offsets) != set(partitions):
        raise ConfigError(
            option,
            sorted(map(str, limit.offsets)),
            "all partitions that are read must be named, and no others, with -1 for latest and -2 "
            f"for earliest where you don't care; read are {sorted(map(str, partitions))}",
        )
    return dict(limit.offsets)


def _parse(option: str, text: str) -> Limit:
    word = text.strip().lower()
    if word == "earliest":
        return Earliest()
    if word == "latest":
        return Latest()
    offsets: dict[TopicPartition, int | Earliest | Latest] = {}
    for topic, numbers in _load_topics(option, text, _EXAMPLE).items():
        if not isinstance(numbers, dict):
            raise ConfigError(option, text, f"expected offsets per partition, like {_EXAMPLE}")
        for number, offset in numbers.items():
            if not number.isdecimal() or not _is_number(offset, _EARLIEST_OFFSET):
                raise ConfigError(
                    option,
                    text,
                    f"topic {topic!r}, partition {number!r}, offset {offset!r}: expected numbers, "
                    f"-1 for latest, -2 for earliest, like {_EXAMPLE}",
                )
            offsets[TopicPartition(topic, int(number))] = _named(offset)
    return Specific(offsets)


def _load_topics(option: str, text: str, example: str) -> dict[str, object]:
    try:
        loaded = json.loads(text)
    except ValueError:
        loaded = None
    if not isinstance(loaded, dict):
        raise ConfigError(option, text, f"expected JSON like {example}")
    return loaded


def _is_number(item: object, least: int) -> bool:
    return isinstance(item, int) and not isinstance(item, bool) and least <= item < 2**63


def _named(offset: int) -> int | Earliest | Latest:
    if offset == _LATEST_OFFSET:
        return Latest()
    return Earliest() if offset == _EARLIEST_OFFSET else offset


def _has(limit: Limit, kind: type[Earliest | Latest]) -> bool:
    return isinstance(limit, Specific) and any(
        isinstance(item, kind) for item in limit.offsets.values()
    )
