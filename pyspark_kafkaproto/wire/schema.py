"""The compiler: what a declaration means on the wire in one version, in both directions.

The codec of a (class, version) is put together on first use and kept. It is a list of steps:
neighbouring numbers of fixed size are one step and one `struct` call, everything else is a step of
its own, and what the version lacks costs nothing but its default. Callers say only which version
they speak; which fields it has is asked here (and by `quick`, `front` and `trace`, which read the
same declarations).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from struct import Struct as Layout
from typing import Any, Protocol, TypeVar, cast

from pyspark_kafkaproto.errors import LocalProtocolError, RemoteProtocolError
from pyspark_kafkaproto.wire import types
from pyspark_kafkaproto.wire.cursor import Buffer, Cursor, Writer
from pyspark_kafkaproto.wire.declaration import UNKNOWN, Field, Kind, Message, Struct
from pyspark_kafkaproto.wire.path import NoUtf8, UnwritableValue, inside, within
from pyspark_kafkaproto.wire.quick import UNEXPECTED, Often, QuickReader, quick_reader

AnyMessage = TypeVar("AnyMessage", bound=Message)


def encode(message: Message, version: int) -> bytes:
    """The body of `message` in `version`, without size and header.

    Raises:
        LocalProtocolError: the class has no such version, or a field holds what it cannot carry.
    """
    writer = Writer()
    write(message, writer, version)
    return writer.getvalue()


def decode(cls: type[AnyMessage], data: Buffer, version: int) -> AnyMessage:
    """The message in `data`, which ends where the message ends.

    `records` fields are slices of `data`, not copies; all else is copied.

    Raises:
        RemoteProtocolError: the bytes are not such a message; names API, version and field.
        LocalProtocolError: the class has no such version.
    """
    return read_last(cls, Cursor(data), version)


def read(cls: type[AnyMessage], cursor: Cursor, version: int) -> AnyMessage:
    """The message at the cursor, which may go on behind it; errors as for `decode`."""
    codec = codec_of(cls, version)
    try:
        return cast("AnyMessage", codec.read_message(cursor))
    except RemoteProtocolError as error:
        raise within(error, cls.title(version)) from None


def read_last(cls: type[AnyMessage], cursor: Cursor, version: int) -> AnyMessage:
    """The message at the cursor, with which the data must end; errors as for `decode`."""
    message = read(cls, cursor, version)
    try:
        cursor.finish()
    except RemoteProtocolError as error:
        raise within(error, cls.title(version)) from None
    return message


def write(message: Message, writer: Writer, version: int) -> None:
    """Write a message behind what `writer` has; errors as for `encode`."""
    codec = codec_of(type(message), version)
    try:
        codec.write(writer, message)
    except UnwritableValue as error:
        raise within(error, message.title(version)) from None


_codecs: dict[tuple[type[Message], int], StructCodec] = {}


def codec_of(cls: type[Message], version: int) -> StructCodec:
    """The codec of a message in a version that the class names in VERSIONS."""
    codec = _codecs.get((cls, version))
    if codec is None:
        if version not in cls.VERSIONS:
            raise LocalProtocolError(f"{cls.title(version)}: known are versions {cls.VERSIONS}")
        codec = StructCodec(cls, version, flexible=cls.is_flexible(version))
        # Two threads may both build it: the codecs are alike, and either may stay.
        _codecs[cls, version] = codec
    return codec


class _Step(Protocol):
    """One field or several neighbours: read in their order, written from their structure."""

    def read(self, cursor: Cursor) -> Iterable[Any]:
        """Their values; those before a failing one come out before the error."""

    def write(self, writer: Writer, struct: Struct) -> None:
        """Write their values; errors carry the name of the failing one."""


class _Absent:
    """Fields that this version has nowhere, or among the tagged ones at the end."""

    def __init__(self, fields: dict[str, Field], version: int) -> None:
        self._defaults = tuple(field.default for field in fields.values())
        self._refused = [
            (name, field.default)
            for name, field in fields.items()
            if version not in field.versions and not field.ignorable
        ]

    def read(self, _cursor: Cursor) -> Iterable[Any]:
        return self._defaults

    def write(self, _writer: Writer, struct: Struct) -> None:
        for name, default in self._refused:
            if getattr(struct, name) != default:
                raise UnwritableValue("this version has no such field", path=name)


class _Numbers:
    """Neighbours of fixed size: one `struct` call for all of them."""

    def __init__(self, fields: dict[str, Field]) -> None:
        kinds = [str(field.kind) for field in fields.values()]
        self._layout = Layout(">" + "".join(types.FIXED[kind] for kind in kinds))
        self._kinds = dict(zip(fields, kinds, strict=True))
        # The last name twice: attrgetter of a single name would give no tuple.
        self._values = attrgetter(*fields, list(fields)[-1])

    def read(self, cursor: Cursor) -> Iterable[Any]:
        try:
            return cursor.unpack(self._layout)
        except RemoteProtocolError:
            # A generator, so that the numbers before the missing one count as read.
            return (types.Fixed(kind).read(cursor) for kind in self._kinds.values())

    def write(self, writer: Writer, struct: Struct) -> None:
        try:
            writer.pack(self._layout, *self._values(struct)[:-1])
        except UnwritableValue:
            for name, kind in self._kinds.items():
                _Single(name, types.Fixed(kind)).write(writer, struct)
            raise


class _Single:
    """A field of variable size."""

    def __init__(self, name: str, codec: types.Codec, *, is_secret: bool = False) -> None:
        self._name = name
        self._value = attrgetter(name)
        self._codec = codec
        self._is_secret = is_secret

    def read(self, cursor: Cursor) -> Iterable[Any]:
        return (self._codec.read(cursor),)

    def write(self, writer: Writer, struct: Struct) -> None:
        try:
            self._codec.write(writer, self._value(struct))
        except NoUtf8 as error:
            told = NoUtf8(f"it {types.NO_UTF_8}") if self._is_secret else error
            raise inside(told, self._name) from None
        except UnwritableValue as error:
            raise inside(error, self._name) from None


class StructCodec:
    """Reads and writes one structure in one version.

    Attributes:
        layout: the class, the version, and whether that has tagged fields.
    """

    def __init__(self, cls: type[Struct], version: int, *, flexible: bool) -> None:
        self._cls = cls
        self.layout = (cls, version, flexible)
        steps = _steps(cls, version, flexible=flexible)
        self._reads = [step.read for step in steps]
        self._writes = [step.write for step in steps]
        self._tags = _TaggedFields(cls, version) if flexible else None
        self._often: Often[QuickReader] | None = None  # of a structure that stands alone

    def read_message(self, cursor: Cursor) -> Struct:
        """The same as `read`, for a structure that stands alone and may come often."""
        often = self._often
        if often is None:
            cls, version, flexible = self.layout
            often = self._often = Often(lambda: quick_reader(cls, version, flexible=flexible))
        quick = often.made
        if quick is None:
            before = cursor.elements
            message = self.read(cursor)
            often.miss(1 + cursor.elements - before)
            return message
        try:
            return cast("Struct", cursor.read_with(quick))
        except UNEXPECTED:
            often.surprise()
            return self.read(cursor)

    def read(self, cursor: Cursor) -> Struct:
        """The structure at the cursor."""
        values: list[Any] = []
        try:
            for read in self._reads:
                values += read(cursor)
        except RemoteProtocolError as error:
            # What is in `values` was read, so the next name is the one that could not be.
            raise inside(error, self._cls.NAMES[len(values)]) from None
        values.append(() if self._tags is None else self._tags.read(cursor, values))
        return self._cls.of(values)

    def write(self, writer: Writer, struct: Any) -> None:
        """Write the structure."""
        if type(struct) is not self._cls:
            given = "None" if struct is None else type(struct).__qualname__
            raise UnwritableValue(f"expected {self._cls.__qualname__}, got {given}")
        for write_step in self._writes:
            write_step(writer, struct)
        if self._tags is not None:
            self._tags.write(writer, struct)
        elif struct.unknown_tagged_fields:
            raise UnwritableValue("this version has no tagged fields", path=UNKNOWN)


class NullableStruct:
    """A structure behind a byte that says whether it is there: 1, or -1 for null.

    Attributes:
        codec: of the structure.
    """

    def __init__(self, codec: StructCodec) -> None:
        self.codec = codec
        self._flag = types.Fixed("int8")

    def read_flag(self, cursor: Cursor) -> bool:
        """Whether the structure follows."""
        flag = self._flag.read(cursor)
        if flag not in {types.NULL, 1}:
            raise RemoteProtocolError(f"{flag} in front of a structure: neither 1 nor -1 (null)")
        return bool(flag == 1)

    def read(self, cursor: Cursor) -> Struct | None:
        """The structure at the cursor."""
        return self.codec.read(cursor) if self.read_flag(cursor) else None

    def write(self, writer: Writer, struct: Any) -> None:
        """Write the structure."""
        self._flag.write(writer, types.NULL if struct is None else 1)
        if struct is not None:
            self.codec.write(writer, struct)


class _TaggedFields:
    """The end of a structure in a flexible version: (tag, size, bytes), tags ascending (KIP-482).

    A tagged field that holds its default is not written.
    """

    def __init__(self, cls: type[Struct], version: int) -> None:
        self._known = {
            field.tag: (index, name, field.default, field_codec(field, version, flexible=True))
            for index, (name, field) in enumerate(cls.FIELDS.items())
            if field.tag is not None and version in field.versions
        }

    def read(self, cursor: Cursor, values: list[Any]) -> tuple[tuple[int, bytes], ...]:
        """Put what is known where it belongs in `values`; the rest comes back as it is."""
        unknown = []
        for tag, body in read_raw_tags(cursor):
            if tag not in self._known:
                unknown.append((tag, bytes(body)))
                continue
            index, name, _, codec = self._known[tag]
            try:
                values[index] = _read_whole(codec, body)
            except RemoteProtocolError as error:
                raise inside(error, name) from None
        return tuple(unknown)

    def write(self, writer: Writer, struct: Struct) -> None:
        """Write what differs from its default, and what was unknown when it was read."""
        bodies = dict(struct.unknown_tagged_fields)
        for tag, (_, name, default, codec) in self._known.items():
            if tag in bodies:
                raise UnwritableValue(f"tag {tag} is {name!r}, not unknown", path=UNKNOWN)
            if getattr(struct, name) != default:
                body = Writer()
                _Single(name, codec).write(body, struct)
                bodies[tag] = body.getvalue()
        writer.unsigned_varint(len(bodies))
        for tag in sorted(bodies):
            writer.unsigned_varint(tag)
            writer.unsigned_varint(len(bodies[tag]))
            writer.put(bodies[tag])


def read_raw_tags(cursor: Cursor) -> Sequence[tuple[int, memoryview]]:
    """Tagged fields as they stand: tag and bytes, tags strictly ascending."""
    try:
        count = cursor.unsigned_varint()
        return list(_raw_tags(cursor, count)) if count else ()
    except RemoteProtocolError as error:
        raise inside(error, "tagged_fields") from None


def _raw_tags(cursor: Cursor, count: int) -> Iterator[tuple[int, memoryview]]:
    last = -1
    for _ in range(count):
        tag = cursor.unsigned_varint()
        if tag <= last:
            raise RemoteProtocolError(f"tag {tag} after tag {last}: tags must ascend")
        yield tag, cursor.take(cursor.unsigned_varint())
        last = tag


def _read_whole(codec: types.Codec, body: memoryview) -> Any:
    cursor = Cursor(body)
    value = codec.read(cursor)
    cursor.finish()
    return value


def _steps(cls: type[Struct], version: int, *, flexible: bool) -> list[_Step]:
    """Group the fields, in their order, into as few steps as can be."""
    steps: list[_Step] = []
    for how, group in groupby(cls.FIELDS.items(), lambda item: _how(item[1], version)):
        fields = dict(group)
        if how is _Absent:
            steps.append(_Absent(fields, version))
        elif how is _Numbers:
            steps.append(_Numbers(fields))
        else:
            steps.extend(
                _Single(
                    name,
                    field_codec(field, version, flexible=flexible),
                    is_secret=field.secret,
                )
                for name, field in fields.items()
            )
    return steps


def _how(field: Field, version: int) -> type[_Step]:
    if version not in field.versions or field.tag is not None:
        return _Absent
    return _Numbers if field.kind in types.FIXED and not field.is_array else _Single


def field_codec(field: Field, version: int, *, flexible: bool) -> types.Codec:
    """The codec of one field's value."""
    nullable = field.is_nullable(version)
    if not field.is_array:
        return _element(field.kind, version, flexible=flexible, nullable=nullable)
    prefix = types.COMPACT if flexible else types.INT
    if field.kind in types.FIXED:
        return types.FixedArray(str(field.kind), prefix, nullable=nullable)
    element = _element(field.kind, version, flexible=flexible, nullable=False)
    return types.Array(element, prefix, nullable=nullable)


def _element(kind: Kind, version: int, *, flexible: bool, nullable: bool) -> types.Codec:
    if not isinstance(kind, str):
        codec = StructCodec(kind, version, flexible=flexible)
        return NullableStruct(codec) if nullable else codec
    if kind == "string":
        return types.Text(types.COMPACT if flexible else types.SHORT, nullable=nullable)
    if kind == "uuid":
        return types.Uuid()
    if kind in types.FIXED:
        return types.Fixed(kind)
    binary = {"bytes": types.Binary, "records": types.Records}[kind]
    return binary(types.COMPACT if flexible else types.INT, nullable=nullable)
