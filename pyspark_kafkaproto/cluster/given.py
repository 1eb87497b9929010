"""What callers give, as this room works with it: sets, partitions, offsets, times, ids, words."""

from __future__ import annotations

import operator
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pyspark_kafkaproto.cluster.groups.committed import CommittedOffset
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.topology import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.secret import HIDDEN

LAST_OFFSET = _LAST_PRODUCER = _LAST_TIMESTAMP = 2**63 - 1
_LONGEST_S = 2**63 / 1000  # int64, milliseconds
_EPOCH = datetime.fromtimestamp(0, UTC)
_LAST_LEVEL = 2**15 - 1
LAST_PARTITION = _LAST_EPOCH = _LAST_BROKER = 2**31 - 1

_T = TypeVar("_T")

Offset = int | CommittedOffset
# A key's type is taken as it is: one Mapping would refuse what both of these take.
Offsets = Mapping[TopicPartition, Offset] | Mapping[tuple[str, int], Offset]


def checked_each(
    option: str, items: Iterable[_T], kind: type[_T], example: str, *, is_secret: bool = False
) -> list[_T]:
    """The items of a set of `kind`, such as `example`; `is_secret`: what else it is, is not shown.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(items, (str, kind)) or not isinstance(items, Iterable):
        raise ConfigError(option, HIDDEN if is_secret else items, f"expected a set of {example}")
    checked = list(items)
    for item in checked:
        if not isinstance(item, kind):
            raise ConfigError(option, HIDDEN if is_secret else item, f"expected {example}")
    return checked


def check_map(option: str, given: object, what: str, *, is_secret: bool = False) -> None:
    """Refuse what is no dict; `what` is in it: the offset of each partition, ….

    Raises:
        ConfigError: it is none.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(option, HIDDEN if is_secret else given, f"expected {what}, in a dict")


def checked_partitions(partitions: Collection[tuple[str, int]]) -> list[TopicPartition]:
    """Each once, in the order given; plain tuples will do.

    Raises:
        ConfigError: one is no topic with the number of a partition.
    """
    _check_many(partitions)
    return list(dict.fromkeys(map(checked_partition, partitions)))


def by_partition(
    values: Mapping[TopicPartition, _T] | Mapping[tuple[str, int], _T],
) -> dict[TopicPartition, _T]:
    """`values`, the keys of which may be plain tuples; ConfigError as for `checked_partitions`."""
    check_map("partitions", values, "something for each of them")
    return {checked_partition(item): value for item, value in values.items()}


def checked_offsets(offsets: Offsets) -> dict[TopicPartition, CommittedOffset]:
    """What can be committed.

    Raises:
        ConfigError: such an offset, text, or partition, there cannot be.
    """
    check_map("offsets", offsets, "the offset of each partition")
    checked = {}
    for item, given in offsets.items():
        partition = checked_partition(item)
        committed = given if isinstance(given, CommittedOffset) else CommittedOffset(given)
        offset = checked_offset(f"offset of {partition}", committed.offset)
        text: object = committed.metadata
        if not isinstance(text, str):
            raise ConfigError(f"metadata of {partition}", text, "expected text")
        epoch = within(committed.leader_epoch, _LAST_EPOCH, least=-1)
        if epoch is None:
            allowed = "expected a whole number from 0 on, or -1 where it is not known"
            raise ConfigError(f"leader epoch of {partition}", committed.leader_epoch, allowed)
        checked[partition] = CommittedOffset(offset, text, epoch)
    return checked


def checked_offset(option: str, offset: int) -> int:
    """An offset that a record can have.

    Raises:
        ConfigError: it is below 0, or no whole number.
    """
    whole = within(offset, LAST_OFFSET)
    if whole is None:
        raise ConfigError(option, offset, "expected a whole number from 0 on")
    return whole


def checked_timestamp(timestamp: int) -> int:
    """A time in ms since 1970; below 0 a broker takes it for a question of another kind.

    Raises:
        ConfigError: it is below 0, later than Kafka can say (in ns, say), or no whole number.
    """
    whole = within(timestamp, _LAST_TIMESTAMP)
    if whole is None:
        allowed = f"expected milliseconds since 1970, a whole number from 0 to {_LAST_TIMESTAMP}"
        raise ConfigError("timestamp", timestamp, allowed)
    return whole


def instant_ms(instant: datetime) -> int:
    """The first millisecond since 1970 that is not before `instant`; without a zone that is local.

    A record of the millisecond in which it lies may be older than it. Negative before 1970.
    """
    since = (instant if instant.tzinfo else instant.astimezone()) - _EPOCH
    return -(-since // timedelta(milliseconds=1))  # a float is a millisecond less at times


def ago_ms(duration_s: float) -> int:
    """The time so long ago, in ms since 1970; not before that, as no record is older."""
    return max(int((time.time() - duration_s) * 1000), 0)


def checked_brokers(option: str, brokers: Iterable[int]) -> tuple[int, ...]:
    """Ids of brokers in the order given.

    Raises:
        ConfigError: there is none, one comes twice, or there cannot be such an id.
    """
    ids = _ids(brokers, _LAST_BROKER)
    if not ids or len(set(ids)) < len(ids):
        raise ConfigError(option, brokers, "expected ids of brokers, each once")
    return tuple(ids)


def checked_producer_ids(producer_ids: Iterable[int]) -> tuple[int, ...]:
    """Ids of producers, each once.

    Raises:
        ConfigError: there cannot be such an id.
    """
    ids = _ids(producer_ids, _LAST_PRODUCER)
    if ids is None:
        raise ConfigError("producer_ids", producer_ids, "expected ids of producers")
    return tuple(dict.fromkeys(ids))


def checked_words(option: str, words: Collection[str], known: Collection[str]) -> list[str]:
    """Some of `known`, spelt as there: some brokers mind capitals, and some pass over what is not.

    Raises:
        ConfigError: there is no such word.
    """
    check_set(f"{option}s", words, option)
    spelt = {word.lower(): word for word in known}
    for word in words:
        if not isinstance(word, str) or word.lower() not in spelt:
            raise ConfigError(option, word, f"expected one of {', '.join(known)}")
    return [spelt[word.lower()] for word in words]


def checked_span(option: str, span_s: float) -> float:
    """For how long, in seconds.

    Raises:
        ConfigError: it is below 0, longer than Kafka can say, or no number.
    """
    is_number = isinstance(span_s, (int, float)) and not isinstance(span_s, bool)
    if not is_number or not 0 <= span_s < _LONGEST_S:
        raise ConfigError(option, span_s, "expected seconds, from 0 on")
    return span_s


def checked_levels(levels: Mapping[str, int]) -> dict[str, int]:
    """Levels of features by name.

    Raises:
        ConfigError: there cannot be such a level.
    """
    check_map("levels", levels, "the level of each feature")
    checked = {}
    for name, given in levels.items():
        level = within(given, _LAST_LEVEL)
        if level is None:
            allowed = f"expected a whole number from 0 to {_LAST_LEVEL}"
            raise ConfigError(f"level of {name}", given, allowed)
        checked[name] = level
    return checked


def _check_many(partitions: object) -> None:
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        raise ConfigError("partitions", partitions, "expected a set of them")


def checked_partition(item: tuple[str, int]) -> TopicPartition:
    """One of them; errors as for `checked_partitions`."""
    match item:
        case (str() as topic, given):
            number = within(given, LAST_PARTITION)
            if number is not None:
                return TopicPartition(topic, number)
    raise ConfigError("partition", item, "expected TopicPartition(topic, number)")


def _ids(given: object, last: int) -> list[int] | None:
    """Whole numbers from 0 to `last`; None where it is something else, or has something else."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        return None
    ids = []
    for item in given:
        number = within(item, last)
        if number is None:
            return None
        ids.append(number)
    return ids


def within(number: object, last: int, *, least: int = 0) -> int | None:
    """`number` as an int; None where it is none from `least` to `last`."""
    found = whole(number)
    return found if found is not None and least <= found <= last else None


def whole(number: object) -> int | None:
    """`number` as an int, NumPy's too; None where it is none."""
    if isinstance(number, bool):
        return None
    try:
        return operator.index(number)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        return None
