"""The front of a message whose records are still coming: what stands before the first of them.

On the way to a field of type `records` lies an array or two, of which the first element is read,
and of each structure the fields before. A front does not judge a message: once all of it has come,
its codec reads the whole and says what is wrong.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from pyspark_kafkaproto.wire import types
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.declaration import Kind, Message, Struct
from pyspark_kafkaproto.wire.schema import field_codec


class Front(NamedTuple):
    """What stands before the first records of a message.

    Attributes:
        message: what was read of it; the records, and all fields behind them, have their defaults.
        pos: where the records begin in the data.
        size: how many bytes of records there are, those still to come included.
    """

    message: Any
    pos: int
    size: int


def read_front(cls: type[Message], cursor: Cursor, version: int) -> Front | None:
    """The front of the message at the cursor; None where the first element has no records.

    Raises:
        RemoteProtocolError: not all of the front is there, or these are not such a message's bytes.
    """
    found = _front_codec(cls, version, cls.is_flexible(version)).read(cursor)
    return found and Front(found[0], cursor.pos, found[1])


class _FrontCodec:
    """Reads the front of one structure in one version."""

    def __init__(self, cls: type[Struct], version: int, *, flexible: bool) -> None:
        self._cls = cls
        self._way = ""  # to the records; none where the structure has none
        self._inner: _FrontCodec | None = None
        self._size = types.COMPACT if flexible else types.INT
        self._before: list[tuple[str, types.Codec]] = []
        for name, field in cls.FIELDS.items():
            if version not in field.versions or field.tag is not None:
                continue
            if _has_records(field.kind):
                self._way = name
                if not isinstance(field.kind, str):
                    self._inner = _front_codec(field.kind, version, flexible)
                break
            self._before.append((name, field_codec(field, version, flexible=flexible)))

    def read(self, cursor: Cursor) -> tuple[Struct, int] | None:
        """The structure as far as it can be had, and the size of its records."""
        values = {name: codec.read(cursor) for name, codec in self._before}
        if not self._way:
            return None
        size = self._size.read(cursor)  # of the array on the way, or of the records
        if size < 1:
            return None
        if self._inner is None:
            return self._cls(**values), size
        found = self._inner.read(cursor)
        return found and (self._cls(**values, **{self._way: (found[0],)}), found[1])


@cache
def _front_codec(cls: type[Struct], version: int, flexible: bool) -> _FrontCodec:
    return _FrontCodec(cls, version, flexible=flexible)


def _has_records(kind: Kind) -> bool:
    if isinstance(kind, str):
        return kind == "records"
    return any(_has_records(field.kind) for field in kind.FIELDS.values())
