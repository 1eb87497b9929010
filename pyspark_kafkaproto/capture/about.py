"""What a message is about, in few words: topics, partitions, offsets, groups, errors.

Found by the names of fields, which are alike in all of Kafka's messages, so that a new API is
understood as it appears. What to look at in a class is worked out once.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from pyspark_kafkaproto.capture.message import Message
from pyspark_kafkaproto.errors import error_code
from pyspark_kafkaproto.wire.declaration import NO_ID, Struct

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
_WORDS = {
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
_QUIET = {"", None, 0, (), -1}
_WORDS_MAX = 6
_ALWAYS = {"acks"}  # 0 and -1 say something here


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


def about(message: Message) -> About:
    """What `message` is about; nothing where its body cannot be read."""
    found = About({}, [], [])
    body = message.body()
    if body is not None:
        _Visit(message.topic_names, found).struct(body, "")
    return found


def id_text(topic_id: bytes) -> str:
    """A topic's id as Kafka's tools print it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


class _Plan(NamedTuple):
    """What to look at in one class."""

    topics: tuple[str, ...]
    topic_arrays: tuple[str, ...]
    partition: str
    partitions: str
    offset: str
    records: str
    errors: tuple[str, ...]
    words: tuple[str, ...]
    inner: tuple[tuple[str, bool], ...]


@cache
def _plan(cls: type[Struct]) -> _Plan:
    fields = cls.FIELDS
    inner = [
        (name, f.is_array)
        for name, f in fields.items()
        if not isinstance(f.kind, str) and _says_something(f.kind)
    ]
    plain = {name: f for name, f in fields.items() if isinstance(f.kind, str)}
    single = [name for name, f in plain.items() if not f.is_array]
    arrays = [name for name, f in plain.items() if f.is_array]
    is_topic = "Topic" in cls.__qualname__.rpartition(".")[2]
    own = "Partition" in cls.__qualname__.rpartition(".")[2]
    return _Plan(
        topics=tuple(n for n in single if n in _TOPIC_FIELDS or (is_topic and n == "name")),
        topic_arrays=tuple(n for n in arrays if n in _TOPIC_ARRAYS),
        partition=next((n for n in single if n in _PARTITION_FIELDS or (own and n == "index")), ""),
        partitions=next((n for n in arrays if n in _PARTITION_ARRAYS), ""),
        offset=next((n for n in _OFFSET_FIELDS if n in single), ""),
        records=next((n for n, f in plain.items() if f.kind == "records"), ""),
        errors=tuple(n for n in single if n.endswith("error_code")),
        words=tuple(n for n in plain if n in _WORDS),
        inner=tuple(inner),
    )


def _says_something(cls: type[Struct]) -> bool:
    """Whether there is anything to look at in a class, or in what stands in it."""
    return any(_plan(cls))


class _Visit:
    """One walk over a message."""

    def __init__(self, names: Mapping[bytes, str], found: About) -> None:
        self._names = names
        self._found = found

    def struct(self, struct: Struct, topic: str) -> None:
        """A structure, and all in it; `topic` is the one it stands in."""
        plan = _plan(type(struct))
        if plan.topics:
            topic = self._topic(struct, plan) or topic
        for name in plan.topic_arrays:
            for each in getattr(struct, name) or ():
                self._parts(each)
        error = self._errors(struct, plan, topic) if plan.errors else 0
        if plan.partition or plan.partitions:
            self._partition(struct, plan, topic, error)
        if plan.words and len(self._found.words) < _WORDS_MAX:
            self._words(struct, plan)
        for name, is_array in plan.inner:
            value = getattr(struct, name)
            if is_array:
                for element in value or ():
                    self.struct(element, topic)
            elif value is not None:
                self.struct(value, topic)

    def _topic(self, struct: Struct, plan: _Plan) -> str:
        topic = ""
        for name in plan.topics:
            value = getattr(struct, name)
            if isinstance(value, bytes):
                if not topic and value != NO_ID:
                    topic = self._names.get(value) or id_text(value)
            elif value:
                topic = value
        if topic:
            self._parts(topic)
        return topic

    def _parts(self, topic: str) -> list[Part]:
        return self._found.topics.setdefault(topic, [])

    def _partition(self, struct: Struct, plan: _Plan, topic: str, error: int) -> None:
        if not topic:
            return
        parts = self._parts(topic)
        if plan.partitions:
            parts.extend(Part(each) for each in getattr(struct, plan.partitions) or ())
            return
        offset = getattr(struct, plan.offset) if plan.offset else None
        records = getattr(struct, plan.records) if plan.records else None
        size = None if records is None else len(records)
        parts.append(Part(getattr(struct, plan.partition), offset, size, error))

    def _errors(self, struct: Struct, plan: _Plan, topic: str) -> int:
        first = 0
        for name in plan.errors:
            code = getattr(struct, name)
            if code:
                first = first or code
                partition = getattr(struct, plan.partition) if plan.partition else ""
                subject = f"{topic}-{partition}" if topic and plan.partition else topic
                text = getattr(struct, "error_message", None) or ""
                self._found.errors.append((code, subject, text))
        return first

    def _words(self, struct: Struct, plan: _Plan) -> None:
        for name in plan.words:
            value = getattr(struct, name)
            if name in _ALWAYS or value not in _QUIET:
                self._found.words.append(f"{_WORDS[name]}={_word(value)}")


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def text_of(found: About, parts_max: int = 4) -> str:
    """A line's end: `orders[0@17 2.1 kB, 1@3] group=g NOT_COORDINATOR(16)`."""
    words = [_topic_text(name, parts, parts_max) for name, parts in list(found.topics.items())[:3]]
    if len(found.topics) > 3:
        words.append(f"and {len(found.topics) - 3} more topics")
    words += found.words[:_WORDS_MAX]
    for code, subject, text in found.errors[:3]:
        named = f"{error_code(code).name}({code})"
        words.append(" ".join(part for part in (named, subject and f"for {subject}", text) if part))
    if len(found.errors) > 3:
        words.append(f"and {len(found.errors) - 3} more errors")
    return " ".join(words)


def _topic_text(name: str, parts: list[Part], parts_max: int) -> str:
    if not parts:
        return name
    shown = [_part_text(part) for part in parts[:parts_max]]
    if len(parts) > parts_max:
        shown.append(f"… {len(parts)} partitions")
    return f"{name}[{', '.join(shown)}]"


def _part_text(part: Part) -> str:
    text = str(part.partition)
    if part.offset is not None:
        text += f"@{part.offset}"
    return text + (f" {size_text(part.record_bytes)}" if part.record_bytes else "")


def size_text(size_bytes: int) -> str:
    """A size for people: 17 B, 2.1 kB, 3.4 MB."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.1f} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"
