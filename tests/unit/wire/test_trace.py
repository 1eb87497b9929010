"""Decoding with positions: the same values and the same words as decoding without."""

import pytest

from pyspark_kafkaproto.errors import RemoteProtocolError
from pyspark_kafkaproto.messages import request_class, response_class
from pyspark_kafkaproto.messages.api_versions import ApiVersionsResponse
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.messages.fetch import FetchRequest
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from pyspark_kafkaproto.wire.schema import decode, encode
from pyspark_kafkaproto.wire.trace import trace
from tests.examples import first

TOPIC = FetchRequest.Topic(
    topic="orders",
    topic_id=bytes(range(16)),
    partitions=(FetchRequest.Topic.Partition(partition=3, fetch_offset=77),),
)
FETCH = FetchRequest(cluster_id="c", max_wait_ms=500, topics=(TOPIC,), rack_id="r")


def found(root, name):
    return next(node for node in root.walk() if node.name == name)


@pytest.mark.parametrize("version", range(19))
def test_values_stand_where_they_are_said_to(version):
    body = (
        encode(FETCH, version) if version >= 12 else encode(FetchRequest(topics=(TOPIC,)), version)
    )
    root = trace(FetchRequest, b"header" + body, version, 6)
    assert (root.start, root.stop, root.problem) == (6, 6 + len(body), "")
    offset = found(root, "fetch_offset")
    assert offset.value == 77
    assert (b"header" + body)[offset.start : offset.stop] == (77).to_bytes(8)
    name = "topic" if version < 13 else "topic_id"
    topic = found(root, name)
    assert topic.value == getattr(TOPIC, name)
    assert (b"header" + body)[topic.start : topic.stop].endswith(
        b"orders" if version < 13 else TOPIC.topic_id
    )


def test_tagged_fields_have_their_own_bytes():
    body = encode(FETCH, 17)
    cluster = found(trace(FetchRequest, body, 17), "cluster_id")
    assert (cluster.value, body[cluster.start : cluster.stop]) == ("c", b"\x02c")


def test_unknown_tagged_fields_are_shown():
    message = ApiVersionsResponse(unknown_tagged_fields=((77, b"new"),))
    node = found(trace(ApiVersionsResponse, encode(message, 4), 4), "unknown_tagged_fields[77]")
    assert node.value == b"new"


def test_secrets_are_marked_and_stay_out_of_a_repr():
    body = encode(SaslAuthenticateRequest(auth_bytes=b"s3cret"), 1)
    node = found(trace(SaslAuthenticateRequest, body, 1), "auth_bytes")
    assert node.is_secret
    assert "s3cret" not in repr(node)


@pytest.mark.parametrize("api", first(8, APIS), ids=lambda api: api.name)
def test_damage_is_refused_in_the_same_words(api):
    for cls in (request_class(api.key), response_class(api.key)):
        for version in {cls.VERSIONS.min, cls.VERSIONS.max}:
            body = encode(cls(), version)
            assert trace(cls, body, version).problem == ""
            for cut in range(len(body)):
                with pytest.raises(RemoteProtocolError) as caught:
                    decode(cls, body[:cut], version)
                assert trace(cls, body[:cut], version).problem == str(caught.value)


def test_what_was_read_before_the_damage_is_kept():
    body = encode(FETCH, 17)
    root = trace(FetchRequest, body[:30], 17)
    assert (
        root.problem == "Fetch request v17: topics[0].topic_id: 16 bytes are announced, 8 are left"
    )
    assert found(root, "max_wait_ms").value == 500
    assert root.children[-1].name == "unread"
    assert root.children[-1].value == body[22:30]
