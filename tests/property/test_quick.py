"""A quick reader gives what the codec gives, or leaves the message to it; never anything else."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.messages.fetch import FetchRequest, FetchResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.wire import quick as quick_module
from pyspark_kafkaproto.wire import schema
from pyspark_kafkaproto.wire.cursor import Cursor
from pyspark_kafkaproto.wire.quick import UNEXPECTED, quick_reader
from pyspark_kafkaproto.wire.schema import codec_of, decode, encode
from tests.property.messages import (
    carried,
    draw_damaged,
    sized,
    some_classes,
    structs,
    untagged,
    versions_of,
)


@cache
def quick(cls, version):
    return quick_reader(cls, version, flexible=cls.is_flexible(version))


def quickly(cls, version, body):
    """(message, position), or None where the codec is to read."""
    try:
        return quick(cls, version)(memoryview(body), 0, len(body))
    except UNEXPECTED:
        return None


def slowly(cls, version, body):
    """The same by the codec; None for an error."""
    cursor = Cursor(body)
    try:
        return codec_of(cls, version).read(cursor), cursor.pos
    except RemoteProtocolError:
        return None


@some_classes
@sized(3)
@given(st.data())
def test_it_reads_every_message_without_tagged_fields(cls, data):
    drawn = untagged(data.draw(structs(cls)))
    for version in versions_of(cls):
        message = carried(drawn, version, flexible=cls.is_flexible(version))
        body = encode(message, version)
        assert quickly(cls, version, body) == (message, len(body))


@some_classes
@sized(5)
@given(st.data())
def test_what_it_reads_of_damaged_bytes_is_what_the_codec_reads(cls, data):
    version, damaged = draw_damaged(cls, data)
    if (found := quickly(cls, version, damaged)) is None:
        return
    expected = slowly(cls, version, damaged)
    assert expected is not None
    # Compared as bytes: damage can make a number that is not equal to itself.
    assert (encode(found[0], version), found[1]) == (encode(expected[0], version), expected[1])


@some_classes
@sized(3)
@given(st.data())
def test_the_front_of_a_message_is_enough_for_a_field(cls, data):
    drawn = untagged(data.draw(structs(cls)))
    plain = [name for name, field in cls.FIELDS.items() if isinstance(field.kind, str)]
    for version in versions_of(cls) if plain else ():
        name = data.draw(st.sampled_from(plain))
        flexible = cls.is_flexible(version)
        message = carried(drawn, version, flexible=flexible)
        body = encode(message, version)
        read = quick_reader(
            cls, version, flexible=flexible, wanted=lambda _, name=name: (name,), is_front=True
        )
        (value,), pos = read(memoryview(body), 0, len(body))
        assert value == getattr(message, name)
        cut, _ = read(memoryview(body[:pos]), 0, pos)
        assert cut == (value,)


@pytest.fixture
def hot(monkeypatch):
    """A codec of its own for each test, hot after three messages."""
    monkeypatch.setattr(schema, "_codecs", {})
    monkeypatch.setattr(quick_module, "_OFTEN", 3)
    monkeypatch.setattr(quick_module, "_SURPRISES_MAX", 2)
    made = []
    monkeypatch.setattr(
        schema, "quick_reader", lambda *of, **more: made.append(of) or quick_reader(*of, **more)
    )
    return made


REQUEST = FetchRequest(max_wait_ms=5, rack_id="here")
TAGGED = FetchRequest(cluster_id="a")


def test_text_that_nobody_asks_for_has_to_be_text_all_the_same():
    body = encode(REQUEST, 17)
    read = quick_reader(FetchRequest, 17, flexible=True, wanted=lambda _: ("max_wait_ms",))
    assert read(memoryview(body), 0, len(body)) == ((5,), len(body))
    damaged = body.replace(b"here", b"\xff" * 4)
    assert slowly(FetchRequest, 17, damaged) is None
    with pytest.raises(UNEXPECTED):
        read(memoryview(damaged), 0, len(damaged))


def test_sizes_of_more_than_one_byte_are_read():
    partition = FetchResponse.Topic.Partition(records=b"r" * 20_000)
    topics = [FetchResponse.Topic(topic="t" * 127, partitions=(partition,) * 200)]
    topics += [FetchResponse.Topic(topic="t" * size) for size in (125, 126, 128, 300)]
    message = FetchResponse(responses=tuple(topics))
    for version in (11, 12):
        body = encode(message, version)
        assert quickly(FetchResponse, version, body) == (message, len(body))


FETCH = FetchRequest(
    topics=(FetchRequest.Topic(partitions=(FetchRequest.Topic.Partition(),)),), rack_id="here"
)
FETCHED = ("max_wait_ms", "session_epoch", "rack_id")


@pytest.mark.parametrize(
    ("message", "version", "names"),
    [(FETCH, 11, FETCHED), (FETCH, 17, FETCHED), (MetadataRequest(topics=()), 8, ("topics",))],
)
def test_what_is_cut_is_left_to_the_codec_whatever_is_asked_for(message, version, names):
    cls, body = type(message), encode(message, version)
    for name in names:
        read = quick_reader(
            cls,
            version,
            flexible=cls.is_flexible(version),
            wanted=lambda struct, name=name: (name,) if struct is cls else (),
        )
        assert read(memoryview(body), 0, len(body))[1] == len(body)
        for stop in range(len(body)):
            with pytest.raises(UNEXPECTED):
                read(memoryview(body[:stop]), 0, stop)


def test_a_message_that_is_read_often_gets_one_reader(hot):
    body = encode(REQUEST, 17)
    for _ in range(2):
        assert decode(FetchRequest, body, 17) == REQUEST
    assert hot == []
    for _ in range(9):
        assert decode(FetchRequest, body, 17) == REQUEST
    assert hot == [(FetchRequest, 17)]


def test_a_message_of_many_elements_counts_for_as_many(hot):
    """One of 5,000 partitions takes as long as a thousand small ones, and comes as seldom."""
    topic = FetchRequest.Topic(partitions=(FetchRequest.Topic.Partition(),))
    large = FetchRequest(topics=(topic,))
    for _ in range(2):
        assert decode(FetchRequest, encode(large, 17), 17) == large
    assert hot == [(FetchRequest, 17)]


def test_one_that_surprises_it_is_read_all_the_same(hot):
    body, tagged = encode(REQUEST, 17), encode(TAGGED, 17)
    for _ in range(9):
        assert decode(FetchRequest, body, 17) == REQUEST
        assert decode(FetchRequest, tagged, 17) == TAGGED
        with pytest.raises(RemoteProtocolError, match="rack_id"):
            decode(FetchRequest, body[:-3], 17)
        with pytest.raises(RemoteProtocolError, match="1 bytes are left over"):
            decode(FetchRequest, body + b"\0", 17)
    assert hot == [(FetchRequest, 17)]


def test_a_reader_that_was_surprised_too_often_rests_and_is_tried_again(hot):
    often = quick_module.Often(list)
    for _ in range(2):
        for _ in range(3):
            assert often.made is None
            often.miss()
        often.surprise()
        assert often.made == []
        often.surprise()
    often.made = None  # as another thread may do
    often.surprise()
    assert often.made is None


def test_what_is_kept_is_made_once(hot):
    codec = schema.codec_of(FetchRequest, 17)
    body, tagged = encode(REQUEST, 17), encode(TAGGED, 17)
    for _ in range(20):
        for each in [body] * 3 + [tagged] * 3:
            codec.read_message(Cursor(each))
    assert hot == [(FetchRequest, 17)]


def test_text_that_is_too_long_is_left_to_the_codec(hot):
    longest = FetchRequest(rack_id="x" * 32_767)
    body = encode(longest, 17)
    start = body.index(b"\x80\x80\x02")
    longer = body[:start] + b"\x81\x80\x02x" + body[start + 3 :]
    for _ in range(9):
        assert decode(FetchRequest, body, 17) == longest
        with pytest.raises(RemoteProtocolError, match="rack_id: 32768 bytes of text"):
            decode(FetchRequest, longer, 17)


def test_records_stay_a_slice_of_the_frame(hot):
    partition = FetchResponse.Topic.Partition(records=b"x" * 300)
    said = FetchResponse(responses=(FetchResponse.Topic(partitions=(partition,)),))
    body = bytearray(encode(said, 17))
    for _ in range(5):
        (topic,) = decode(FetchResponse, body, 17).responses
        assert topic.partitions[0].records.obj is body
    assert hot == [(FetchResponse, 17)]


def test_a_reader_that_another_thread_gives_up_is_still_used(monkeypatch):
    """It may go between the question whether it is there and its use."""
    body = encode(REQUEST, 17)
    kept = [None, quick(FetchRequest, 17)]
    monkeypatch.setattr(
        quick_module.Often,
        "made",
        property(lambda _: kept.pop() if kept else None, lambda _, __: None),
    )
    codec = schema.StructCodec(FetchRequest, 17, flexible=True)
    assert codec.read_message(Cursor(body)) == REQUEST
    assert kept == [None]
