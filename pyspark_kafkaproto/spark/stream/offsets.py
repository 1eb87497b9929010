"""The offsets of a stream as the engine logs them, `{"topic":{"0":23}}`: the next to read. Pure.

It is the JSON of Spark's own connector, so that a checkpoint of one is a checkpoint of the other.
The engine compares offsets as text, so topics and partitions always come in the same order.

Where the user wants it, a member without partitions follows for each topic, with its id and the
leader epoch of each partition: `"topic:GGNldeu3TVSDSvTJBIoPTA:7,7,8":{}`. No topic has such a name,
and Spark's own connector reads nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.topology import topic_id_of, topic_id_text
from pyspark_kafkaproto.errors import ConfigError

StreamOffsets = dict[str, dict[str, int]]

_EXAMPLE = '{"topicA":{"0":23,"1":42}}'
_MOST_OFFSET = 2**63 - 1
_MOST_NUMBER = 2**31 - 1
_MARK = ":"
_UNKNOWN = "-"


class Lineage(NamedTuple):
    """Which logs offsets are of; what is not known, as by old brokers, is left out.

    Attributes:
        ids: of topics. One that was deleted and made again has another.
        epochs: of the leaders that told where partitions end, or that they go so far.
    """

    ids: Mapping[str, bytes]
    epochs: Mapping[TopicPartition, int]


def to_json(offsets: Mapping[TopicPartition, int], lineage: Lineage | None = None) -> StreamOffsets:
    """The engine's form: topics by name, partitions by number.

    Args:
        offsets: the next to read.
        lineage: what is to be logged beside them, as far as it is of these partitions.
    """
    found: StreamOffsets = {}
    partitions = sorted(offsets)
    for partition in partitions:
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    marks = () if lineage is None else _marks(partitions, lineage)
    return found | {mark: {} for mark in marks}


def _marks(partitions: list[TopicPartition], lineage: Lineage) -> Iterator[str]:
    for topic, own in groupby(partitions, key=lambda item: item.topic):
        topic_id = lineage.ids.get(topic)
        epochs = [lineage.epochs.get(item, -1) for item in own]
        parts = [topic, "" if topic_id is None else topic_id_text(topic_id)]
        if max(epochs) > -1:
            parts.append(",".join(_UNKNOWN if one < 0 else str(one) for one in epochs))
        if any(parts[1:]):
            yield _MARK.join(parts)


def from_json(offsets: Any) -> dict[TopicPartition, int]:
    """The reverse of `to_json`.

    Raises:
        ConfigError: it is something else, as in the checkpoint of another source.
    """
    found = {}
    if not isinstance(offsets, Mapping):
        raise _not_ours(offsets)
    for topic, numbers in offsets.items():
        if not isinstance(numbers, Mapping) or (_MARK in topic and numbers):
            raise _not_ours(offsets)
        for number, offset in numbers.items():
            if not (_is_number(number) and _is_offset(offset)):
                raise _not_ours(offsets)
            found[TopicPartition(topic, int(number))] = offset
    return found


def lineage_in(offsets: StreamOffsets) -> Lineage:
    """What stands beside offsets that `from_json` takes."""
    ids: dict[str, bytes] = {}
    epochs: dict[TopicPartition, int] = {}
    for name in offsets:
        topic, _, mark = name.partition(_MARK)
        text, _, numbers = mark.partition(_MARK)
        if (topic_id := topic_id_of(text)) is not None:
            ids[topic] = topic_id
        partitions = sorted(map(int, offsets.get(topic, ())))
        told = numbers.split(",")
        if len(told) == len(partitions):
            pairs = zip(partitions, told, strict=True)
            epochs |= {TopicPartition(topic, at): int(one) for at, one in pairs if _is_number(one)}
    return Lineage(ids, epochs)


def recalled(
    logged: Iterable[StreamOffsets],
) -> tuple[Lineage, dict[TopicPartition, int]]:
    """What the last of these say that say something of a log, and where it is read to by that.

    Args:
        logged: offsets that `from_json` takes, earlier ones first.

    Returns:
        Which logs they are of, and of those whose epoch is known the next offset to read.
    """
    ids: dict[str, bytes] = {}
    epochs: dict[TopicPartition, int] = {}
    read: dict[TopicPartition, int] = {}
    for one in logged:
        offsets, lineage = from_json(one), lineage_in(one)
        ids |= lineage.ids
        epochs |= lineage.epochs
        read |= {item: offsets[item] for item in lineage.epochs}
    return Lineage(ids, epochs), read


def _is_number(text: str) -> bool:
    """Whether it is that of a partition, or of an epoch."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_NUMBER))
    return is_number and int(text) <= _MOST_NUMBER


def _is_offset(value: Any) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number and 0 <= value <= _MOST_OFFSET


def _not_ours(offsets: Any) -> ConfigError:
    return ConfigError(
        "checkpointLocation",
        offsets,
        f"its offsets are not those of a Kafka source, like {_EXAMPLE}: is it another query's?",
    )


class Spoken:
    """The same in both directions, for a stream and its engine.

    What was said last is kept: while a stream is idle, it is said again and again.
    """

    def __init__(self) -> None:
        self._json: StreamOffsets = {}
        self._offsets: dict[TopicPartition, int] = {}

    def to_json(
        self, offsets: dict[TopicPartition, int], lineage: Lineage | None = None
    ) -> StreamOffsets:
        """As the function; neither side is to be changed afterwards."""
        if offsets is not self._offsets and offsets != self._offsets:
            self._json, self._offsets = to_json(offsets, lineage), offsets
        return self._json

    def from_json(self, offsets: Any) -> dict[TopicPartition, int]:
        """As the function; neither side is to be changed afterwards."""
        if offsets != self._json:
            self._offsets = from_json(offsets)
            self._json = offsets
        return self._offsets
