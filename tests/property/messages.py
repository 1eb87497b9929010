"""Messages of every class, drawn from the declarations: a new one is tested as it appears."""

from functools import cache

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pyspark_kafkaproto.messages import consumer_protocol, request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.wire.schema import encode
from tests.examples import first

CLASSES = [
    *(request_class(api.key) for api in APIS),
    *(response_class(api.key) for api in APIS),
    consumer_protocol.ConsumerProtocolAssignment,
    consumer_protocol.ConsumerProtocolSubscription,
]

NUMBERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    "uint16": (0, 2**16 - 1),
}
KINDS = {
    **{kind: st.integers(*bounds) for kind, bounds in NUMBERS.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=3),
    "bytes": st.binary(max_size=3),
    "records": st.binary(max_size=200),
    "uuid": st.binary(min_size=16, max_size=16),
}
EMPTY = {"string": "", "bytes": b"", "records": b""}
# Well above every tag that is declared.
UNKNOWN_TAGS = st.dictionaries(st.integers(100, 2**32 - 1), st.binary(max_size=3), max_size=2).map(
    lambda tags: tuple(sorted(tags.items()))
)


def sized(examples):
    """How many inputs a test draws; a busy machine is no reason to fail."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, suppress_health_check=slow)


@cache
def structs(cls):
    """Instances of a class, without a thought for what one version can carry."""
    fields = {name: values(field) for name, field in cls.FIELDS.items()}
    return st.builds(cls, **fields, unknown_tagged_fields=UNKNOWN_TAGS)


def values(field):
    one = KINDS[field.kind] if isinstance(field.kind, str) else structs(field.kind)
    some = st.lists(one, max_size=2).map(tuple) if field.is_array else one
    return some if field.nullable is None else st.none() | some


def carried(struct, version, *, flexible):
    """The same, with only what `version` has."""
    cls = type(struct)
    kept = {
        name: carried_value(field, getattr(struct, name), version, flexible=flexible)
        for name, field in cls.FIELDS.items()
        if version in field.versions
    }
    return cls(**kept, unknown_tagged_fields=struct.unknown_tagged_fields if flexible else ())


def carried_value(field, value, version, *, flexible):
    if value is None:
        return None if field.is_nullable(version) else something(field)
    if isinstance(field.kind, str):
        return value
    if field.is_array:
        return tuple(carried(item, version, flexible=flexible) for item in value)
    return carried(value, version, flexible=flexible)


def something(field):
    """A value that is not null."""
    if field.is_array:
        return ()
    return EMPTY[field.kind] if isinstance(field.kind, str) else field.kind()


def versions_of(cls):
    return range(cls.VERSIONS.min, cls.VERSIONS.max + 1)


def untagged(struct):
    """The same without tagged fields, which a quick reader leaves to the codec."""
    kept = {}
    for name, field in type(struct).FIELDS.items():
        value = getattr(struct, name)
        if field.tag is not None:
            value = field.default
        elif not isinstance(field.kind, str) and value is not None:
            value = tuple(map(untagged, value)) if field.is_array else untagged(value)
        kept[name] = value
    return type(struct)(**kept)


def draw_damaged(cls, data):
    """(version, bytes): a message of the class with a few of its bytes replaced."""
    version = data.draw(st.sampled_from(versions_of(cls)))
    message = carried(data.draw(structs(cls)), version, flexible=cls.is_flexible(version))
    body = encode(message, version)
    start = data.draw(st.integers(0, len(body)))
    stop = data.draw(st.integers(start, min(len(body), start + 4)))
    return version, body[:start] + data.draw(st.binary(max_size=4)) + body[stop:]


def some_of(classes):
    """Plain pytest draws for some of them, tests/run.sh for all."""
    some = classes[::20]
    values = first(len(some), dict.fromkeys([*some, *classes]))
    return pytest.mark.parametrize("cls", values, ids=lambda cls: cls.__name__)


some_classes = some_of(CLASSES)
