"""Every message in every version: what is written is read, damage is never worse than an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.wire.schema import decode, encode
from tests.examples import marked
from tests.property.messages import (
    CLASSES,
    carried,
    draw_damaged,
    sized,
    some_classes,
    structs,
    versions_of,
)

each_class = pytest.mark.parametrize("cls", marked("long", CLASSES), ids=lambda cls: cls.__name__)


def assert_what_is_written_is_read(cls, data):
    drawn = data.draw(structs(cls))
    for version in versions_of(cls):
        message = carried(drawn, version, flexible=cls.is_flexible(version))
        body = encode(message, version)
        assert decode(cls, body, version) == message
        assert encode(decode(cls, body, version), version) == body


def assert_damage_is_an_error_or_another_message(cls, data):
    version, damaged = draw_damaged(cls, data)
    try:
        other = decode(cls, damaged, version)
    except RemoteProtocolError:
        return
    # Read without an error, so it is a message of this version like any other.
    assert type(decode(cls, encode(other, version), version)) is cls


@some_classes
@sized(3)
@given(st.data())
def test_what_is_written_is_read(cls, data):
    assert_what_is_written_is_read(cls, data)


@some_classes
@sized(3)
@given(st.data())
def test_damage_is_an_error_or_another_message(cls, data):
    assert_damage_is_an_error_or_another_message(cls, data)


@each_class
@sized(100)
@given(st.data())
def test_what_is_written_is_read_at_length(cls, data):
    assert_what_is_written_is_read(cls, data)


@each_class
@sized(100)
@given(st.data())
def test_damage_is_an_error_or_another_message_at_length(cls, data):
    assert_damage_is_an_error_or_another_message(cls, data)


@some_classes
def test_a_message_cut_anywhere_is_an_error(cls):
    for version in {cls.VERSIONS.min, cls.VERSIONS.max}:
        body = encode(cls(), version)
        for stop in range(len(body)):
            with pytest.raises(RemoteProtocolError):
                decode(cls, body[:stop], version)
