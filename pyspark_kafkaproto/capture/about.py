"""What a message is about, in few words: topics, partitions, offsets, groups, errors."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_kafkaproto.capture.message import Message
from pyspark_kafkaproto.capture.quick_about import tell_quickly
from pyspark_kafkaproto.capture.subjects import (
    ALWAYS,
    QUIET,
    WORDS_MAX,
    About,
    Part,
    Plan,
    id_text,
    plan_of,
    word,
)
from pyspark_kafkaproto.errors import error_code
from pyspark_kafkaproto.wire.declaration import NO_ID, Struct


def about(message: Message) -> About:
    """What `message` is about; nothing where its body cannot be read."""
    found = tell_quickly(message)
    if found is None:
        found = About({}, [], [])
        body = message.body()
        if body is not None:
            _Visit(message.topic_names, found).struct(body, "")
    return found


class _Visit:
    """One walk over a message."""

    def __init__(self, names: Mapping[bytes, str], found: About) -> None:
        self._names = names
        self._found = found

    def struct(self, struct: Struct, topic: str) -> None:
        """A structure, and all in it; `topic` is the one it stands in."""
        plan = plan_of(type(struct))
        if plan.topics:
            topic = self._topic(struct, plan) or topic
        for name in plan.topic_arrays:
            for each in getattr(struct, name) or ():
                self._parts(each)
        error = self._errors(struct, plan, topic) if plan.errors else 0
        if plan.partition or plan.partitions:
            self._partition(struct, plan, topic, error)
        if plan.words and len(self._found.words) < WORDS_MAX:
            self._words(struct, plan)
        for name, is_array in plan.inner:
            value = getattr(struct, name)
            if is_array:
                for element in value or ():
                    self.struct(element, topic)
            elif value is not None:
                self.struct(value, topic)

    def _topic(self, struct: Struct, plan: Plan) -> str:
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

    def _partition(self, struct: Struct, plan: Plan, topic: str, error: int) -> None:
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

    def _errors(self, struct: Struct, plan: Plan, topic: str) -> int:
        first = 0
        for name in plan.errors:
            code = getattr(struct, name)
            if code:
                first = first or code
                partition = getattr(struct, plan.partition) if plan.partition else ""
                subject = f"{topic}-{partition}" if topic and plan.partition else topic
                text = (getattr(struct, plan.text) if plan.text else "") or ""
                self._found.errors.append((code, subject, text))
        return first

    def _words(self, struct: Struct, plan: Plan) -> None:
        for name in plan.words:
            value = getattr(struct, name)
            if name in ALWAYS or value not in QUIET:
                self._found.words.append(word(name, value))


def text_of(found: About, parts_max: int = 4) -> str:
    """A line's end: `orders[0@17 2.1 kB, 1@3] group=g NOT_COORDINATOR(16)`."""
    words = [_topic_text(name, parts, parts_max) for name, parts in list(found.topics.items())[:3]]
    if len(found.topics) > 3:
        words.append(f"and {len(found.topics) - 3} more topics")
    words += found.words[:WORDS_MAX]
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
