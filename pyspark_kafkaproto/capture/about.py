"""What a message is about, in few words: topics, partitions, offsets, groups, errors.

Few of its fields say that. Those of frequent messages are read alone, by a quick reader
(wire/quick.py), in a third of the time; what is unusual is read whole, and its fields are picked.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark_kafkaproto.capture.message import REQUEST, Message
from pyspark_kafkaproto.capture.subjects import WORDS_MAX, About, Part
from pyspark_kafkaproto.capture.walk import walk_of, wanted
from pyspark_kafkaproto.error_codes import error_code
from pyspark_kafkaproto.errors import LocalProtocolError
from pyspark_kafkaproto.wire.declaration import Message as Declared
from pyspark_kafkaproto.wire.frame import has_header_tags, quick_body_position
from pyspark_kafkaproto.wire.quick import UNEXPECTED, Often, Unusual, picked, quick_reader


def about(message: Message) -> About:
    """What `message` is about; nothing where its body cannot be read."""
    found = About({}, [], [])
    way = way_of(message)
    if way is None:
        message.body()  # which says why it cannot be read
        return found
    values = way.quickly(message)
    if values is None:
        values = way.slowly(message)
    if values is not None:
        way.walk(values, message.topic_names, found)
    return found


class Way:
    """From messages of one class and version to what they are about.

    Attributes:
        walk: over what `quickly` or `slowly` gives.
    """

    def __init__(self, cls: type[Declared], version: int, *, is_request: bool) -> None:
        self.walk = walk_of(cls, version)
        self._wanted = partial(wanted, version=version)
        self._is_request = is_request
        self._has_tags = has_header_tags(cls, version)
        flexible = cls.is_flexible(version)
        self._often = Often(
            lambda: quick_reader(cls, version, flexible=flexible, wanted=self._wanted)
        )

    def quickly(self, message: Message) -> Any:
        """The fields that matter, if the message is usual and its body was not read."""
        if message.is_read:
            return None
        read = self._often.made
        if read is None:
            self._often.miss()
            return None
        data = memoryview(message.payload)
        stop = len(data)
        try:
            pos = quick_body_position(data, is_request=self._is_request, has_tags=self._has_tags)
            values, pos = read(data, pos, stop)
            if pos != stop:
                raise Unusual
        except UNEXPECTED:
            self._often.surprise()
            return None
        return values

    def slowly(self, message: Message) -> Any:
        """The same of its body; None where that cannot be read."""
        body = message.body()
        return None if body is None else picked(body, self._wanted)


_ways: dict[tuple[str, int | None, int], Way] = {}


def way_of(message: Message) -> Way | None:
    """None where nobody knows the class of its body, or not in its version."""
    key = message.kind, message.api_key, message.read_version
    way = _ways.get(key)
    if way is None:
        try:
            cls = message.body_class()
        except LocalProtocolError:  # which `body` says
            return None
        # Two threads may both make it: they are alike, and either may stay.
        way = _ways[key] = Way(cls, message.read_version, is_request=message.kind == REQUEST)
    return way


_MOST_PARTS = 4


def text_of(found: About) -> str:
    """A line's end: `orders[0@17 2.1 kB, 1@3] group=g NOT_COORDINATOR(16)`."""
    words = [_topic_text(name, parts) for name, parts in list(found.topics.items())[:3]]
    if len(found.topics) > 3:
        words.append(f"and {len(found.topics) - 3} more topics")
    words += found.words[:WORDS_MAX]
    for code, subject, text in found.errors[:3]:
        named = f"{error_code(code).name}({code})"
        words.append(" ".join(part for part in (named, subject and f"for {subject}", text) if part))
    if len(found.errors) > 3:
        words.append(f"and {len(found.errors) - 3} more errors")
    return " ".join(words)


def _topic_text(name: str, parts: list[Part]) -> str:
    if not parts:
        return name
    shown = [_part_text(part) for part in parts[:_MOST_PARTS]]
    if len(parts) > _MOST_PARTS:
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
