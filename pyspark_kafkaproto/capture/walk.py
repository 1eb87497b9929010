"""The walk over a message that finds what it is about: a function for each class and version.

It is made of the plans of subjects.py, a third of a millisecond of work, and walks over tuples of
the fields that those name: `wanted` says which. Where they come from, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any, TypeAlias

from pyspark_kafkaproto.capture.subjects import (
    ALWAYS,
    QUIET,
    WORDS_MAX,
    About,
    Part,
    Plan,
    plan_of,
    word,
)
from pyspark_kafkaproto.wire.declaration import NO_ID, Struct
from pyspark_kafkaproto.wire.ids import id_text

Walk: TypeAlias = Callable[[Any, Mapping[bytes, str], About], None]
"""Called with the tuple of a message, the names of topic ids, and what to add to."""


@cache
def wanted(cls: type[Struct], version: int) -> tuple[str, ...]:
    """The fields of a class that its walk is given, in their order."""
    plan = _plan(cls, version)
    single = [plan.partition, plan.partitions, plan.offset, plan.records, plan.text]
    inner = [each.name for each in plan.inner]
    named = [*plan.topics, *plan.topic_arrays, *plan.errors, *single, *plan.words, *inner]
    return tuple(name for name in dict.fromkeys(named) if name)


def walk_of(cls: type[Struct], version: int) -> Walk:
    """The walk over messages of a class in a version."""
    text = _Text(version)
    text.line(0, "def walk(values, names, found):")
    text.line(1, "topics, errors, words = found")
    text.struct(cls, "values", None, 1)
    code = compile("\n".join(text.lines), f"<about {cls.__qualname__} v{version}>", "exec")
    known: dict[str, Any] = {
        "NO_ID": NO_ID,
        "Part": Part,
        "QUIET": QUIET,
        "id_text": id_text,
        "word": word,
    }
    exec(code, known)  # noqa: S102  made of declarations, never of what was read
    walk: Walk = known["walk"]
    return walk


@cache
def _plan(cls: type[Struct], version: int) -> Plan:
    """What to look at in a version: what it lacks says nothing, but in the place of something."""

    def is_there(name: str) -> bool:
        return version in cls.FIELDS[name].versions

    plan = plan_of(cls)
    return plan._replace(
        offset=plan.offset if plan.partition else "",
        records=plan.records if plan.partition else "",
        text=plan.text if plan.errors else "",
        topics=tuple(filter(is_there, plan.topics)),
        topic_arrays=tuple(filter(is_there, plan.topic_arrays)),
        errors=tuple(filter(is_there, plan.errors)),
        words=tuple(name for name in plan.words if name in ALWAYS or is_there(name)),
        inner=tuple(each for each in plan.inner if not each.is_array or is_there(each.name)),
    )


class _Text:
    """The text of a walk, line by line; the words of what it finds are those of `About`."""

    def __init__(self, version: int) -> None:
        self.lines: list[str] = []
        self._version = version
        self._numbers = count()

    def line(self, depth: int, text: str) -> None:
        """One more."""
        self.lines.append("    " * depth + text)

    def struct(self, cls: type[Struct], value: str, topic: str | None, depth: int) -> None:
        """Walk over a structure; `topic` is the variable of the one it stands in, if any."""
        plan = _plan(cls, self._version)
        number = next(self._numbers)
        held = {name: f"{name}_{number}" for name in wanted(cls, self._version)}
        if held:
            self.line(depth, f"{''.join(f'{each}, ' for each in held.values())}= {value}")
        if plan.topics:
            topic = self._topic(cls, plan, held, topic, depth)
        for name in plan.topic_arrays:
            self.line(depth, f"for each in {held[name]} or (): topics.setdefault(each, [])")
        if plan.errors:
            self._errors(plan, held, topic, depth)
        if topic is not None and (plan.partition or plan.partitions):
            self._partition(plan, held, topic, depth)
        if plan.words:
            self._words(plan, held, depth)
        for name, is_array in plan.inner:
            kind = cls.FIELDS[name].kind
            assert not isinstance(kind, str)  # noqa: S101  inner ones are structures
            inner = f"{name}_{next(self._numbers)}" if is_array else held[name]
            how = f"for {inner} in {held[name]} or ():" if is_array else f"if {inner} is not None:"
            self.line(depth, how)
            self.struct(kind, inner, topic, depth + 1)
            self.line(depth + 1, "pass  # it may say nothing in this version")

    def _topic(
        self, cls: type[Struct], plan: Plan, held: dict[str, str], outer: str | None, depth: int
    ) -> str:
        topic = f"topic_{next(self._numbers)}"
        self.line(depth, f"{topic} = ''")
        for name in plan.topics:
            value = held[name]
            if cls.FIELDS[name].kind == "uuid":
                self.line(depth, f"if not {topic} and {value} != NO_ID:")
                self.line(depth + 1, f"{topic} = names.get({value}) or id_text({value})")
            else:
                self.line(depth, f"if {value}: {topic} = {value}")
        self.line(depth, f"if {topic}: topics.setdefault({topic}, [])")
        if outer is not None:
            self.line(depth, f"else: {topic} = {outer}")
        return topic

    def _errors(self, plan: Plan, held: dict[str, str], topic: str | None, depth: int) -> None:
        subject = topic or "''"
        if plan.partition and topic is not None:
            subject = f"(f'{{{topic}}}-{{{held[plan.partition]}}}' if {topic} else '')"
        text = f"{held[plan.text]} or ''" if plan.text else "''"
        self.line(depth, "error = 0")
        for name in plan.errors:
            self.line(depth, f"if {held[name]}:")
            self.line(depth + 1, f"error = error or {held[name]}")
            self.line(depth + 1, f"errors.append(({held[name]}, {subject}, {text}))")

    def _partition(self, plan: Plan, held: dict[str, str], topic: str, depth: int) -> None:
        self.line(depth, f"if {topic}:")
        parts = f"topics.setdefault({topic}, [])"
        if plan.partitions:
            self.line(depth + 1, f"{parts}.extend(map(Part, {held[plan.partitions]} or ()))")
            return
        offset = held[plan.offset] if plan.offset else "None"
        size = "None"
        if plan.records:
            records = held[plan.records]
            size = f"None if {records} is None else len({records})"
        error = "error" if plan.errors else "0"
        self.line(
            depth + 1, f"{parts}.append(Part({held[plan.partition]}, {offset}, {size}, {error}))"
        )

    def _words(self, plan: Plan, held: dict[str, str], depth: int) -> None:
        self.line(depth, f"if len(words) < {WORDS_MAX}:")
        for name in plan.words:
            unless = "" if name in ALWAYS else f"if {held[name]} not in QUIET: "
            self.line(depth + 1, f"{unless}words.append(word({name!r}, {held[name]}))")
