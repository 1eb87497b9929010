"""What a message can be about, and where a class of messages says so.

Found by the names of fields, which are alike in all of Kafka's messages, so that a new API is
understood as it appears. What to look at in a class is worked out once.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from pyspark_kafkaproto.wire.declaration import Struct

_TOPIC_FIELDS = {"topic", "topic_name", "topic_id"}
_TOPIC_ARRAYS = {"topics", "topic_names", "subscribed_topic_names"}
_PARTITION_FIELDS = {"partition", "partition_index", "partition_id", "partitions"}
_PARTITION_ARRAYS = {"partitions", "partition_indexes"}
# The first of these that a structure has is the offset it is about.
_OFFSET_FIELDS = (
    "fetch_offset",
    "offset",
    "committed_offset",
    "base_offset",
    "end_offset",
    "start_offset",
    "high_watermark",
)
WORDS = {
    "group_id": "group",
    "group_ids": "group",
    "transactional_id": "transaction",
    "coordinator_keys": "key",
    "key": "key",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "epoch",
    "member_epoch": "epoch",
    "protocol_name": "protocol",
    "host": "host",
    "port": "port",
    "mechanism": "mechanism",
    "mechanisms": "mechanisms",
    "acks": "acks",
    "resource_name": "resource",
    "client_software_name": "software",
    "client_software_version": "version",
    "throttle_time_ms": "throttled_ms",
    "producer_id": "producer",
}
# Values that say nothing, and fields in which even they do.
QUIET = frozenset({"", None, 0, (), -1})
ALWAYS = frozenset({"acks"})
# Structures that are met after so many words add none.
WORDS_MAX = 6


class Part(NamedTuple):
    """A partition as a message speaks of it; None where it does not say.

    partition: -1 where only the topic is named. record_bytes: of the record batches with it.
    """

    partition: int
    offset: int | None = None
    record_bytes: int | None = None
    error: int = 0


class About(NamedTuple):
    """What a message is about.

    topics: name, or id where the capture has no name, to its partitions.
    errors: codes that are not 0, each with what it is about and the broker's text.
    words: `group=g`, in the order of the fields.
    """

    topics: dict[str, list[Part]]
    errors: list[tuple[int, str, str]]
    words: list[str]


def word(name: str, value: Any) -> str:
    """What a field named in WORDS says."""
    shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
    return f"{WORDS[name]}={shown}"


class Inner(NamedTuple):
    """A field that holds a structure, or many."""

    name: str
    is_array: bool


class Plan(NamedTuple):
    """What to look at in one class: names of fields; "" where it has none.

    inner: structures in it that say something.
    text: of the broker, beside an error.
    """

    topics: tuple[str, ...]
    topic_arrays: tuple[str, ...]
    partition: str
    partitions: str
    offset: str
    records: str
    errors: tuple[str, ...]
    words: tuple[str, ...]
    text: str
    inner: tuple[Inner, ...]

    @property
    def says_something(self) -> bool:
        """Whether there is anything to look at; an offset says nothing by itself."""
        return any(self._replace(offset="", records="", text=""))


@cache
def plan_of(cls: type[Struct]) -> Plan:
    """What to look at in a class."""
    fields = cls.FIELDS
    inner = [
        Inner(name, f.is_array)
        for name, f in fields.items()
        if not isinstance(f.kind, str) and plan_of(f.kind).says_something
    ]
    plain = {name: f for name, f in fields.items() if isinstance(f.kind, str)}
    single = [name for name, f in plain.items() if not f.is_array]
    arrays = [name for name, f in plain.items() if f.is_array]
    is_topic = "Topic" in cls.__qualname__.rpartition(".")[2]
    is_partition = "Partition" in cls.__qualname__.rpartition(".")[2]
    return Plan(
        topics=tuple(n for n in single if n in _TOPIC_FIELDS or (is_topic and n == "name")),
        topic_arrays=tuple(n for n in arrays if n in _TOPIC_ARRAYS),
        partition=next(
            (n for n in single if n in _PARTITION_FIELDS or (is_partition and n == "index")), ""
        ),
        partitions=next((n for n in arrays if n in _PARTITION_ARRAYS), ""),
        offset=next((n for n in _OFFSET_FIELDS if n in single), ""),
        records=next((n for n, f in plain.items() if f.kind == "records"), ""),
        errors=tuple(n for n in single if n.endswith("error_code")),
        words=tuple(n for n in plain if n in WORDS),
        text="error_message" if "error_message" in plain else "",
        inner=tuple(inner),
    )
