"""The offsets of a stream as the engine logs them, `{"topic":{"0":23}}`: the next to read. Pure.

It is the JSON of Spark's own connector, so that a checkpoint of one is a checkpoint of the other.
The engine compares offsets as text, so topics and partitions always come in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError

StreamOffsets = dict[str, dict[str, int]]

_EXAMPLE = '{"topicA":{"0":23,"1":42}}'
_MOST_OFFSET = 2**63 - 1
_MOST_PARTITION = 2**31 - 1


def to_json(offsets: Mapping[TopicPartition, int]) -> StreamOffsets:
    """The engine's form: topics by name, partitions by number."""
    found: StreamOffsets = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(offsets: Any) -> dict[TopicPartition, int]:
    """The reverse of `to_json`.

    Raises:
        ConfigError: it is something else, as in the checkpoint of another source.
    """
    found = {}
    if not isinstance(offsets, Mapping):
        raise _not_ours(offsets)
    for topic, numbers in offsets.items():
        if not isinstance(numbers, Mapping):
            raise _not_ours(offsets)
        for number, offset in numbers.items():
            if not (_is_partition(number) and _is_offset(offset)):
                raise _not_ours(offsets)
            found[TopicPartition(topic, int(number))] = offset
    return found


def _is_partition(text: str) -> bool:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_PARTITION))
    return is_number and int(text) <= _MOST_PARTITION


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

    def to_json(self, offsets: dict[TopicPartition, int]) -> StreamOffsets:
        """As the function; neither side is to be changed afterwards."""
        if offsets is not self._offsets and offsets != self._offsets:
            self._json, self._offsets = to_json(offsets), offsets
        return self._json

    def from_json(self, offsets: Any) -> dict[TopicPartition, int]:
        """As the function; neither side is to be changed afterwards."""
        if offsets != self._json:
            self._offsets = from_json(offsets)
            self._json = offsets
        return self._offsets
