"""What a message is about is the same told quickly and by its body, of every class and version."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.capture import about as about_module
from pyspark_kafkaproto.capture.about import about, way_of
from pyspark_kafkaproto.capture.message import REQUEST, RESPONSE, Message, Peers
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.wire import quick
from pyspark_kafkaproto.wire.declaration import Request, Response
from pyspark_kafkaproto.wire.frame import encode_request, encode_response
from pyspark_kafkaproto.wire.schema import encode
from tests.property.messages import (
    CLASSES,
    carried,
    draw_damaged,
    sized,
    some_of,
    structs,
    untagged,
    versions_of,
)

some_classes = some_of([cls for cls in CLASSES if issubclass(cls, Request | Response)])
ID = bytes(range(16))


def message_of(payload, cls, version):
    return Message(
        1,
        0,
        Peers(1, "here:50000", "there:9092"),
        REQUEST if issubclass(cls, Request) else RESPONSE,
        payload=payload,
        size_bytes=len(payload),
        api_key=cls.API_KEY,
        version=version,
        topic_names={ID: "orders"},
    )


def payload_of(message, version, client_id="me"):
    if isinstance(message, Request):
        return encode_request(message, version, 5, client_id)[4:]
    return encode_response(message, version, 5)[4:]


@pytest.fixture(autouse=True)
def hot(monkeypatch):
    """Quick from the second message on."""
    monkeypatch.setattr(about_module, "_ways", {})
    monkeypatch.setattr(quick, "_OFTEN", 1)


def quickly(payload, cls, version):
    """None where it leaves the message to its body."""
    about(message_of(payload, cls, version))
    return told_quickly(message_of(payload, cls, version))


def told_quickly(message):
    found, way = About({}, [], []), way_of(message)
    values = way.quickly(message)
    if values is None:
        return None
    way.walk(values, message.topic_names, found)
    return found


def facts(found):
    """All that is shown of it; the order of topics, too."""
    return found and (list(found.topics.items()), found.errors, found.words)


def slowly(payload, cls, version):
    """None where the body cannot be read."""
    message = message_of(payload, cls, version)
    return None if message.body() is None else about(message)


@some_classes
@sized(3)
@given(st.data())
def test_every_message_without_tagged_fields_is_told_quickly(cls, data):
    drawn = untagged(data.draw(structs(cls)))
    for version in versions_of(cls):
        payload = payload_of(carried(drawn, version, flexible=cls.is_flexible(version)), version)
        told = quickly(payload, cls, version)
        assert facts(told) == facts(slowly(payload, cls, version))
        assert told is not None


@some_classes
@sized(5)
@given(st.data())
def test_of_damaged_ones_it_tells_nothing_else(cls, data):
    version, damaged = draw_damaged(cls, data)
    whole = payload_of(cls(), version)
    payload = whole[: len(whole) - len(encode(cls(), version))] + damaged
    told = quickly(payload, cls, version)
    assert facts(told) in (None, facts(slowly(payload, cls, version)))


def test_topics_have_their_names():
    topic = FetchResponse.Topic(
        topic_id=ID, partitions=(FetchResponse.Topic.Partition(high_watermark=9, records=b"abc"),)
    )
    payload = payload_of(FetchResponse(responses=(topic, FetchResponse.Topic())), 17)
    assert quickly(payload, FetchResponse, 17).topics == {"orders": [(0, 9, 3, 0)]}


def test_errors_say_what_they_are_about_and_what_the_broker_says():
    topic = MetadataResponse.Topic(error_code=3, name="orders")
    payload = payload_of(MetadataResponse(topics=(topic,)), 12)
    assert quickly(payload, MetadataResponse, 12).errors == [(3, "orders", "")]


@pytest.mark.parametrize(
    "payload",
    [
        payload_of(HeartbeatRequest(group_id="g"), 4)[:-1],
        payload_of(HeartbeatRequest(group_id="g"), 4) + b"\0",
        payload_of(HeartbeatRequest(group_id="g"), 4)[:9],
        payload_of(HeartbeatRequest(group_id="g"), 4, None).replace(b"\xff\xff", b"\xff\xfe"),
        payload_of(HeartbeatRequest(group_id="g", member_id="xx"), 4).replace(b"xx", b"\xff\xff"),
    ],
    ids=[
        "cut",
        "longer",
        "cut in its header",
        "a client id of a size below null",
        "no text in a field that says nothing",
    ],
)
def test_what_cannot_be_read_is_left_to_the_body(payload):
    assert quickly(payload, HeartbeatRequest, 4) is None
    assert slowly(payload, HeartbeatRequest, 4) is None


def test_a_structure_that_is_neither_there_nor_null_is_left_to_the_body():
    payload = payload_of(ConsumerGroupHeartbeatResponse(), 1)
    assert payload[-2:] == b"\xff\x00"  # null, and no tagged fields
    damaged = payload[:-2] + b"\x02\x01\x00\x00"
    assert quickly(damaged, ConsumerGroupHeartbeatResponse, 1) is None
    assert slowly(damaged, ConsumerGroupHeartbeatResponse, 1) is None


def test_tagged_fields_of_a_header_are_left_to_the_body():
    payload = payload_of(HeartbeatResponse(error_code=27), 4)
    tagged = payload[:4] + b"\x01\x64\x00" + payload[5:]
    assert quickly(tagged, HeartbeatResponse, 4) is None
    assert slowly(tagged, HeartbeatResponse, 4) == quickly(payload, HeartbeatResponse, 4)


def test_a_body_that_was_read_tells_itself():
    payload = payload_of(HeartbeatRequest(group_id="g"), 4)
    message = message_of(payload, HeartbeatRequest, 4)
    quickly(payload, HeartbeatRequest, 4)
    message.body()
    assert told_quickly(message) is None
