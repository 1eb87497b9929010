"""What a declared class can do: frozen, by keyword, compared by value, discreet."""

import copy
import pickle

import pytest

from pyspark_kafkaproto.messages.metadata import MetadataRequest, MetadataResponse
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from pyspark_kafkaproto.wire.declaration import NO_ID, Versions


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("0-8", [0, 8], [-1, 9]), ("9+", [9, 20_000], [8])],
)
def test_versions_as_a_definition_writes_them(text, inside, outside):
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_versions_read_like_kafkas():
    assert str(Versions(0, 13)) == "0-13"
    assert str(Versions(4, 4)) == "4"
    assert (Versions(0, 13).min, Versions(0, 13).max) == (0, 13)


def test_what_is_not_named_has_its_default():
    request = MetadataRequest()
    assert request.topics == ()
    assert request.allow_auto_topic_creation is True
    assert MetadataRequest.Topic().topic_id == NO_ID
    assert MetadataResponse.Topic.Partition().leader_epoch == -1


def test_an_unknown_name_is_refused():
    with pytest.raises(TypeError, match="MetadataRequest has no field topic"):
        MetadataRequest(topic="orders")


def test_frozen_and_slotted():
    request = MetadataRequest()
    with pytest.raises(AttributeError, match="MetadataRequest is frozen: topics"):
        request.topics = None
    with pytest.raises(AttributeError, match="MetadataRequest is frozen: topics"):
        del request.topics
    assert not hasattr(request, "__dict__")


def test_compared_by_value_and_type():
    one, same = MetadataRequest.Topic(name="a"), MetadataRequest.Topic(name="a")
    assert one == same
    assert hash(one) == hash(same)
    assert one != MetadataRequest.Topic(name="b")
    assert one != MetadataResponse.Topic(name="a")
    assert one != "a"


def test_pickles_and_copies():
    request = MetadataRequest(topics=(MetadataRequest.Topic(name="a"),))
    assert pickle.loads(pickle.dumps(request)) == request
    assert copy.deepcopy(request) == request


def test_a_repr_shows_what_differs_from_the_default():
    topic = MetadataRequest.Topic(name="a", topic_id=bytes(range(16)))
    assert repr(MetadataRequest()) == "MetadataRequest()"
    assert repr(topic) == "MetadataRequest.Topic(topic_id=AAECAwQFBgcICQoLDA0ODw, name='a')"


def test_a_repr_shows_no_secret_and_no_payload():
    assert repr(SaslAuthenticateRequest(auth_bytes=b"hunter2")) == (
        "SaslAuthenticateRequest(auth_bytes=<hidden>)"
    )
    partition = ProduceRequest.Topic.Partition(records=b"x" * 1000)
    assert repr(partition) == "ProduceRequest.Topic.Partition(records=<1000 bytes>)"


def test_titles_that_errors_use():
    assert MetadataRequest.title(9) == "Metadata request v9"
    assert MetadataResponse.title(9) == "Metadata response v9"
