"""Decoding that remembers where everything stood: a tree of fields with their byte ranges.

For showing messages, not for using them. It walks the very codecs that wire/schema.py compiles
from the declarations, so there is no second opinion on what a version looks like: what it reads
is what `decode` reads, and what it refuses is refused in the same words. Damaged bytes give the
tree up to the field that cannot be read, and the reason at its root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire import types
from pyspark_kafkaproto.wire.cursor import Buffer, Cursor
from pyspark_kafkaproto.wire.declaration import UNKNOWN, Message, Struct
from pyspark_kafkaproto.wire.path import inside, within
from pyspark_kafkaproto.wire.schema import NullableStruct, StructCodec, codec_of, field_codec


class Node:
    """A field and the bytes it came from.

    Attributes:
        name: the field's name; `[3]` for an element of an array.
        start, stop: its bytes, half-open; both -1 when it has none of its own there.
        value: what was read; None for null, for a structure, and where reading failed.
        children: the fields of a structure, the elements of an array.
        is_null: whether null was read.
        is_secret: whether value and bytes must not be shown.
        kind: the type's name in the declaration (`int32`, `uuid`, `records`), "" for a structure.
        problem: why reading ended inside it.
    """

    __slots__ = (
        "children",
        "is_null",
        "is_secret",
        "kind",
        "name",
        "problem",
        "start",
        "stop",
        "value",
    )

    def __init__(self, name: str, start: int = -1, stop: int = -1, value: Any = None) -> None:
        self.name = name
        self.start = start
        self.stop = stop
        self.value = value
        self.children: list[Node] = []
        self.is_null = False
        self.is_secret = False
        self.kind = ""
        self.problem = ""

    def add(self, name: str, start: int = -1, stop: int = -1, value: Any = None) -> Node:
        """A new last child."""
        child = Node(name, start, stop, value)
        self.children.append(child)
        return child

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in their order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def __repr__(self) -> str:
        shown = "<hidden>" if self.is_secret else repr(self.value)
        return f"Node({self.name}, {self.start}:{self.stop}, {shown}, {len(self.children)} below)"


def trace(cls: type[Message], data: Buffer, version: int, pos: int = 0) -> Node:
    """The tree of the message that fills `data` from `pos` on, named after the class.

    Raises:
        LocalProtocolError: the class has no such version.
    """
    view = memoryview(data).cast("B")[pos:]
    root = Node(cls.__name__, pos, pos + len(view))
    cursor = Cursor(view)
    codec = codec_of(cls, version)
    try:
        _Tracer(cursor, pos).fields(codec, root)
        cursor.finish()
    except RemoteProtocolError as error:
        root.problem = str(within(error, cls.title(version)))
        if cursor.left:
            root.add("unread", pos + cursor.pos, root.stop, bytes(view[cursor.pos :]))
    return root


class _Traced(NamedTuple):
    """One declared field of one structure in one version."""

    name: str
    kind: str
    is_secret: bool
    codec: types.Codec


@cache
def _plan(
    cls: type[Struct], version: int, *, flexible: bool
) -> tuple[list[_Traced], dict[int, _Traced]]:
    """The fields in their order, and those with tags."""
    plain: list[_Traced] = []
    tagged: dict[int, _Traced] = {}
    for name, field in cls.FIELDS.items():
        if version not in field.versions:
            continue
        kind = field.kind if isinstance(field.kind, str) else ""
        codec = field_codec(field, version, flexible=flexible)
        traced = _Traced(name, kind, field.secret, codec)
        if field.tag is None:
            plain.append(traced)
        else:
            tagged[field.tag] = traced
    return plain, tagged


class _Tracer:
    """Reads with one cursor, whose position 0 is `base` in the frame."""

    def __init__(self, cursor: Cursor, base: int) -> None:
        self._cursor = cursor
        self._base = base
        self._readers: dict[type, Callable[[Any, Node], None]] = {
            StructCodec: self.fields,
            NullableStruct: self._nullable,
            types.Array: self._elements,
        }

    def fields(self, codec: StructCodec, parent: Node) -> None:
        """The fields of a structure, below its node."""
        cls, version, flexible = codec.layout
        plain, tagged = _plan(cls, version, flexible=flexible)
        for traced in plain:
            self._field(traced, parent)
        if flexible:
            self._tags(tagged, parent)

    def _field(self, traced: _Traced, parent: Node) -> None:
        node = parent.add(traced.name)
        node.kind = traced.kind
        node.is_secret = traced.is_secret
        try:
            self._value(traced.codec, node)
        except RemoteProtocolError as error:
            raise inside(error, traced.name) from None

    def _value(self, codec: types.Codec, node: Node) -> None:
        node.start = node.stop = self._base + self._cursor.pos
        read = self._readers.get(type(codec))
        try:
            if read is not None:
                read(codec, node)
            else:
                node.value = codec.read(self._cursor)
                node.is_null = node.value is None
        except RemoteProtocolError as error:
            node.problem = error.reason
            raise
        finally:
            node.stop = self._base + self._cursor.pos

    def _nullable(self, codec: NullableStruct, node: Node) -> None:
        if codec.read_flag(self._cursor):
            self.fields(codec.codec, node)
        else:
            node.is_null = True

    def _elements(self, codec: types.Array, node: Node) -> None:
        count = codec.read_count(self._cursor)
        node.is_null = count == types.NULL
        for index in range(count):
            name = f"[{index}]"
            element = node.add(name)
            element.kind = node.kind
            element.is_secret = node.is_secret
            try:
                self._value(codec.element, element)
            except RemoteProtocolError as error:
                raise inside(error, name) from None

    def _tags(self, tagged: dict[int, _Traced], parent: Node) -> None:
        cursor = self._cursor
        try:
            count = cursor.unsigned_varint()
            if not count:
                return
            node = parent.add("tagged_fields", self._base + cursor.pos)
            last = -1
            for _ in range(count):
                last = self._tag(tagged, node, last)
        except RemoteProtocolError as error:
            raise inside(error, "tagged_fields") from None
        node.stop = self._base + cursor.pos

    def _tag(self, tagged: dict[int, _Traced], parent: Node, last: int) -> int:
        cursor = self._cursor
        tag = cursor.unsigned_varint()
        if tag <= last:
            raise RemoteProtocolError(f"tag {tag} after tag {last}: tags must ascend")
        size = cursor.unsigned_varint()
        start = self._base + cursor.pos
        body = cursor.take(size)
        if tag not in tagged:
            parent.add(f"{UNKNOWN}[{tag}]", start, start + size, bytes(body)).kind = "bytes"
            return tag
        inner = Cursor(body)
        _Tracer(inner, start)._field(tagged[tag], parent)  # noqa: SLF001  another of this class
        inner.finish()
        return tag
