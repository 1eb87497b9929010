"""How a message is declared: a class whose fields name their type and the versions that have it.

    class ListGroupsRequest(Request):
        API_KEY = 16
        API_NAME = "ListGroups"
        VERSIONS = Versions(0, 5)
        FLEXIBLE_FROM = 3

        states_filter: tuple[str, ...] = array("string", "4+")

Such classes are frozen and slotted, compare by value, and are built by keyword; what is not named
has its default. They look like dataclasses to a type checker and are none: importing that module
and building the classes of two APIs with it takes longer than an executor may spend before its
first Fetch.

This file knows no bytes: what a declaration means on the wire is said in wire/schema.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, dataclass_transform

from pyspark_kafkaproto.wire.ids import id_text

if TYPE_CHECKING:
    from typing import Self

_NO_LIMIT = 0x7FFF

NO_ID = bytes(16)
"""The id of nothing: what a uuid field holds when no topic or directory is meant."""

_ZERO: dict[str, Any] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": b"",
    "float64": 0.0,
    "uuid": NO_ID,
}


class Versions(NamedTuple):
    """Versions from `min` to `max`, both included, as Kafka writes them; `in` asks for one."""

    min: int
    max: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """The versions that a definition writes as `3`, `0-8` or `9+`."""
        if text.endswith("+"):
            return cls(int(text[:-1]), _NO_LIMIT)
        start, _, end = text.partition("-")
        return cls(int(start), int(end or start))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.min <= version <= self.max

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"


Kind: TypeAlias = "str | type[Struct]"


class Field:
    """What a declaration says about one field.

    Attributes:
        kind: a type's name in the protocol guide, or the class of a structure.
        is_array: whether it holds a sequence of `kind`.
        versions: the versions that have the field.
        nullable: the versions that allow null; None where none does.
        tag: its number among the tagged fields of a flexible version, None for a plain field.
        default: its value where it is not named, or a version lacks it.
        ignorable: whether a version that lacks it may drop a value that is not the default.
        secret: whether its value stays out of a repr.
    """

    __slots__ = (
        "default",
        "ignorable",
        "is_array",
        "kind",
        "nullable",
        "secret",
        "tag",
        "versions",
    )

    def __init__(self, kind: Kind, versions: str, *, is_array: bool, **facts: Any) -> None:
        self.kind = kind
        self.is_array = is_array
        self.versions = Versions.parse(versions)
        nullable = facts["nullable"]
        self.nullable = None if nullable is None else Versions.parse(nullable)
        self.tag: int | None = facts["tag"]
        self.default = facts["default"]
        self.ignorable: bool = facts["ignorable"]
        self.secret: bool = facts["secret"]

    def is_nullable(self, version: int) -> bool:
        """Whether null may stand in this field in `version`."""
        return self.nullable is not None and version in self.nullable


_UNNAMED: Any = object()
UNKNOWN = "unknown_tagged_fields"


def field(
    kind: Kind,
    versions: str,
    *,
    default: Any = _UNNAMED,
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
    secret: bool = False,
) -> Any:
    """Declare a field that holds one value; `Field` says what the arguments mean."""
    if default is _UNNAMED:
        default = _zero(kind, is_nullable=nullable is not None)
    facts = {"tag": tag, "ignorable": ignorable, "secret": secret}
    return Field(kind, versions, is_array=False, default=default, nullable=nullable, **facts)


def _zero(kind: Kind, *, is_nullable: bool) -> Any:
    """The default where a definition names none."""
    if not isinstance(kind, str):
        return kind()
    return None if kind == "records" and is_nullable else _ZERO.get(kind, 0)


def array(
    kind: Kind,
    versions: str,
    *,
    default: Any = (),
    nullable: str | None = None,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a field that holds a tuple of values; `Field` says what the arguments mean."""
    facts = {"tag": tag, "ignorable": ignorable, "secret": False}
    return Field(kind, versions, is_array=True, default=default, nullable=nullable, **facts)


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _StructType(type):
    """Turns the fields of a class body into slots and keeps what was declared.

    Attributes:
        FIELDS: name to declaration, in the order of the definition, which is the order on the wire.
        NAMES: the same names, then `unknown_tagged_fields`.
        SETTERS: what writes each of NAMES into a new instance, past its frozen surface.
        BLANK: name, setter and default of each of NAMES.
    """

    FIELDS: dict[str, Field]
    NAMES: tuple[str, ...]
    SETTERS: tuple[Callable[[Any, Any], None], ...]
    BLANK: tuple[tuple[str, Callable[[Any, Any], None], Any], ...]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _StructType:
        fields = {key: value for key, value in body.items() if isinstance(value, Field)}
        rest = {key: value for key, value in body.items() if key not in fields}
        cls = super().__new__(mcs, name, bases, {**rest, "__slots__": tuple(fields)})
        fields.pop(UNKNOWN, None)
        cls.FIELDS = fields
        cls.NAMES = (*fields, UNKNOWN)
        cls.SETTERS = tuple(getattr(cls, slot).__set__ for slot in cls.NAMES)
        defaults = [field.default for field in fields.values()]
        cls.BLANK = tuple(zip(cls.NAMES, cls.SETTERS, [*defaults, ()], strict=True))
        return cls


class Struct(metaclass=_StructType):
    """A structure of the protocol: frozen, compared by value, built by keyword.

    Attributes:
        unknown_tagged_fields: tags and bytes that this package has no declaration for, ascending.
            They are kept, so that decoding and encoding again gives the same bytes.
    """

    unknown_tagged_fields: tuple[tuple[int, bytes], ...] = array("bytes", "0+")

    def __init__(self, **values: Any) -> None:
        take = values.pop
        for name, assign, default in type(self).BLANK:
            assign(self, take(name, default))
        if values:
            raise TypeError(f"{type(self).__qualname__} has no field {', '.join(values)}")

    @classmethod
    def of(cls, values: Iterable[Any]) -> Self:
        """An instance of all its values, in the order of NAMES: the decoder's way in."""
        made = cls.__new__(cls)
        for assign, value in zip(cls.SETTERS, values, strict=True):
            assign(made, value)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__qualname__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__qualname__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Struct) or type(self) is not type(other):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self._values(),)

    def __repr__(self) -> str:
        shown = [
            f"{name}={_shown(declared, getattr(self, name))}"
            for name, declared in type(self).FIELDS.items()
            if getattr(self, name) != declared.default
        ]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in type(self).NAMES)


def _shown(declared: Field, value: Any) -> str:
    """A value for a repr: no secrets, no payloads, ids as Kafka's tools print them."""
    if declared.secret:
        return "<hidden>"
    if declared.kind in {"bytes", "records"} and value is not None and not declared.is_array:
        return f"<{len(value)} bytes>"
    if declared.kind == "uuid" and isinstance(value, bytes):
        return id_text(value)
    return repr(value)


class Message(Struct):
    """A structure with versions of its own: it stands alone in a frame, or in a bytes field.

    Attributes:
        VERSIONS: the versions that this package reads and writes.
        FLEXIBLE_FROM: the first version with compact sizes and tagged fields; None if none has.
    """

    VERSIONS: ClassVar[Versions]
    FLEXIBLE_FROM: ClassVar[int | None]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether `version` has compact sizes and tagged fields (KIP-482)."""
        return cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM

    @classmethod
    def title(cls, version: int) -> str:
        """What errors call it."""
        return f"{cls.__name__} v{version}"


class Request(Message):
    """What a client sends.

    Attributes:
        API_KEY: the API's number, first in the request's header.
        API_NAME: the API's name in the protocol guide.
    """

    API_KEY: ClassVar[int]
    API_NAME: ClassVar[str]

    @classmethod
    def title(cls, version: int) -> str:
        """What errors call it."""
        return f"{cls.API_NAME} request v{version}"


class Response(Message):
    """What a broker answers; API_KEY and API_NAME are those of the request.

    Attributes:
        HAS_HEADER_TAGS: whether flexible versions have tagged fields in their header. Only the
            response that negotiates versions has none, so that its header can always be read.
    """

    API_KEY: ClassVar[int]
    API_NAME: ClassVar[str]
    HAS_HEADER_TAGS: ClassVar[bool] = True

    @classmethod
    def title(cls, version: int) -> str:
        """What errors call it."""
        return f"{cls.API_NAME} response v{version}"
