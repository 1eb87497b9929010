"""Where reading starts and ends: kinds of limits, and their text as users write it. Pure.

Kafka's -2 and -1 are spoken here and nowhere above: they become `Earliest` and `Latest`. What has
to be asked of a cluster (timestamps, committed offsets) is asked in `resolving`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.given import instant_ms
from pyspark_kafkaproto.errors import ConfigError

_LATEST_OFFSET = -1
_EARLIEST_OFFSET = -2
# Of times each has to be given.
_WHERE_NOBODY_CARES = {
    "startingOffsets": f", with {_EARLIEST_OFFSET} for earliest where you don't care",
    "endingOffsets": f", with {_LATEST_OFFSET} for latest where you don't care",
}

_T = TypeVar("_T")

# Spark's names for offsets, or times, of other partitions than those that are read.
OFFSETS_MISMATCH = "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"
TIMES_MISMATCH = "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED"
# and for starts of other partitions than the ends are of.
ENDS_MISMATCH = "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET"


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first offset that is still there."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The offset after the last record."""


Bound = int | Earliest | Latest


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset, or Earliest or Latest, for each partition."""

    offsets: Mapping[TopicPartition, Bound]


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first record of a time or later: one time for all partitions, or one for each.

    Times are milliseconds since 1970.
    """

    times: int | Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Ago:
    """As Timestamp, so many milliseconds before the moment when the query is planned."""

    ms: int


@dataclass(frozen=True, slots=True)
class Relative:
    """So many offsets after the earliest (a positive number) or before the latest (negative)."""

    distance: int


@dataclass(frozen=True, slots=True)
class Committed:
    """What the group has committed."""


Limit = Earliest | Latest | Specific | Timestamp | Ago | Relative | Committed

_EXAMPLE = '{"topicA":{"0":23,"1":-2},"topicB":{"0":-2}}'
_WORDS = "-10m, 2026-11-01T00:00:00Z, earliest+100, latest-100, committed or"
_STARTS = f"earliest, {_WORDS} {_EXAMPLE}"
_ALL = f"earliest, latest, {_WORDS} {_EXAMPLE}"
_ENDS = f'latest, {_WORDS} {{"topicA":{{"0":23,"1":-1}},"topicB":{{"0":-1}}}}'
_FALLBACKS = "error, earliest, -10m, 2026-11-01T00:00:00Z, earliest+100 or latest-100"
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DIGITS = re.compile(r"[0-9]{1,19}")
_AGO = re.compile(r"-\s*([0-9]{1,12})\s*(ms|s|m|h|d|w)")
_RELATIVE = re.compile(r"(?:earliest\s*\+|latest\s*(-))\s*([0-9]{1,19})")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


def parse_start(option: str, text: str) -> Limit:
    """Any form of limit; but a batch has nothing to read from `latest` on."""
    limit = parse_limit(option, text, _STARTS)
    if isinstance(limit, Latest) or _has(limit, Latest):
        raise ConfigError(option, text, f"a batch cannot start at latest: expected {_STARTS}")
    return limit


def parse_end(option: str, text: str) -> Limit:
    """Any form of limit; but a batch that ends at `earliest` has nothing to read."""
    limit = parse_limit(option, text, _ENDS)
    if isinstance(limit, Earliest) or _has(limit, Earliest):
        raise ConfigError(option, text, f"a batch cannot end at earliest: expected {_ENDS}")
    return limit


def parse_limit(option: str, text: str, words: str = _ALL) -> Limit:
    """Any form of limit, `earliest` and `latest` among them; an error says `words`."""
    limit = _parse_word(option, text)
    if limit is not None:
        return limit
    return Specific(_load_numbers(option, text, _EARLIEST_OFFSET, words, _named))


def parse_fallback(option: str, text: str) -> Limit | None:
    """Where a batch starts when nothing was committed; None for `error`."""
    limit = parse_stream_fallback(option, text)
    if isinstance(limit, Latest):
        raise ConfigError(option, text, f"a batch cannot start at latest: expected {_FALLBACKS}")
    return limit


def parse_stream_fallback(option: str, text: str) -> Limit | None:
    """The same for a stream, which may start at latest, as with Kafka's auto.offset.reset."""
    if text.strip().lower() == "error":
        return None
    limit = _parse_word(option, text)
    if limit is None or isinstance(limit, Committed):
        raise ConfigError(option, text, f"expected {_FALLBACKS}; of a stream, latest")
    return limit


def parse_instant(option: str, text: str) -> Timestamp:
    """Milliseconds since 1970, as Spark's `startingTimestamp` takes them."""
    digits = text.strip()
    if not re.fullmatch(r"\+?[0-9]{1,19}", digits) or int(digits) >= 2**63:
        raise ConfigError(option, text, "expected milliseconds since 1970, 0 or more")
    return Timestamp(int(digits))


def parse_partition_times(option: str, text: str) -> Timestamp:
    """`{"topicA":{"0":1000,"1":2000}}`: milliseconds since 1970 per partition."""
    example = '{"topicA":{"0":1000,"1":2000},"topicB":{"0":2000}}, milliseconds since 1970'
    return Timestamp(_load_numbers(option, text, 0, example, lambda number: number))


def parse_partitions(option: str, text: str) -> list[TopicPartition]:
    """`{"topicA":[0,1],"topicB":[2]}`, as the option `assign` takes it; each one counts once."""
    example = '{"topicA":[0,1],"topicB":[2]}'
    topics = _load_topics(option, text, example)
    partitions = []
    for topic, numbers in topics.items():
        if not isinstance(numbers, list) or not all(is_number(item, 0) for item in numbers):
            raise ConfigError(option, text, f"expected partition numbers, like {example}")
        partitions += [TopicPartition(topic, number) for number in numbers]
    return list(dict.fromkeys(partitions))


def check_named(
    option: str,
    named: Collection[TopicPartition],
    partitions: Collection[TopicPartition],
    condition: str,
) -> None:
    """Spark wants all partitions that are read named, and none besides.

    Raises:
        ConfigError: names were given for other partitions than those that are read.
    """
    if set(named) != set(partitions):
        raise ConfigError(
            option,
            sorted(map(str, named)),
            "all partitions that are read must be named, and no others"
            f"{_WHERE_NOBODY_CARES.get(option, '')}; read are {sorted(map(str, partitions))}",
            condition,
        )


def is_number(item: object, least: int) -> bool:
    """Whether something out of JSON is a whole number that Kafka can take."""
    return isinstance(item, int) and not isinstance(item, bool) and least <= item < 2**63


def _parse_word(option: str, text: str) -> Limit | None:
    """A limit that is not JSON; None for anything else."""
    word = text.strip().lower()
    words: dict[str, Limit] = {
        "earliest": Earliest(),
        "latest": Latest(),
        "committed": Committed(),
    }
    if word in words:
        return words[word]
    if ago := _AGO.fullmatch(word):
        return Ago(int(ago[1]) * _UNIT_MS[ago[2]])
    if relative := _RELATIVE.fullmatch(word):
        distance = int(relative[2])
        return Relative(-distance if relative[1] else distance) if distance else _end_of(word)
    if _INSTANT.fullmatch(word):
        return Timestamp(_instant_ms(option, text.strip()))
    return None


def _end_of(word: str) -> Limit:
    """`earliest+0` and `latest-0`."""
    return Earliest() if word.startswith("earliest") else Latest()


def _instant_ms(option: str, text: str) -> int:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ConfigError(
            option, text, "expected an instant with its zone: 2026-11-01T00:00:00Z or …+01:00"
        )
    time_ms = instant_ms(instant)
    if time_ms < 0:
        raise ConfigError(option, text, "expected an instant since 1970")
    return time_ms


def _load_numbers(
    option: str, text: str, least: int, example: str, convert: Callable[[int], _T]
) -> dict[TopicPartition, _T]:
    """`{"topicA":{"0":23}}` as a number for each partition."""
    loaded: dict[TopicPartition, _T] = {}
    for topic, numbers in _load_topics(option, text, example).items():
        if not isinstance(numbers, dict):
            raise ConfigError(option, text, f"expected numbers per partition, like {example}")
        for partition, number in numbers.items():
            if not (_is_partition(partition) and is_number(number, least)):
                raise ConfigError(
                    option,
                    text,
                    f"topic {topic!r}, partition {partition!r}, {number!r}: expected numbers "
                    f"from {least} on, like {example}",
                )
            item = TopicPartition(topic, int(partition))
            if item in loaded:
                raise ConfigError(option, text, f"{item} is there twice: name it once")
            loaded[item] = convert(number)
    return loaded


def read_digits(text: str) -> int | None:
    """The whole number; None for anything else, and for more digits than an int64 has."""
    return int(text) if _DIGITS.fullmatch(text) else None


def _is_partition(text: str) -> bool:
    number = read_digits(text)
    return number is not None and number < 2**31


def load_json(option: str, text: str, begin: str, example: str) -> object:
    """What is in the JSON; None where the text does not even begin with `begin`.

    Raises:
        ConfigError: it begins like that and is no JSON; says where it breaks. Or a name is there
            twice, of which Python, like Spark's own, would keep the last.
    """

    def each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(option, text, f"{twice!r} is there twice: name it once")
        return found

    try:
        return json.loads(text, object_pairs_hook=each_once)
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, too
        if text.lstrip().startswith(begin):
            raise ConfigError(option, text, f"no JSON ({error}); expected {example}") from None
    return None


def _load_topics(option: str, text: str, example: str) -> dict[str, object]:
    loaded = load_json(option, text, "{", example)
    if not isinstance(loaded, dict):
        # An example that does not begin with JSON begins with the words that are taken.
        kind = "JSON" if example.startswith("{") else "JSON or a word"
        raise ConfigError(option, text, f"expected {kind}, like {example}")
    return loaded


def _named(offset: int) -> Bound:
    if offset == _LATEST_OFFSET:
        return Latest()
    return Earliest() if offset == _EARLIEST_OFFSET else offset


def _has(limit: Limit, kind: type[Earliest | Latest]) -> bool:
    return isinstance(limit, Specific) and any(
        isinstance(item, kind) for item in limit.offsets.values()
    )
