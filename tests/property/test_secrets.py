"""What hides secrets takes nothing else: every message that has some, in every version.

Which these are comes from the declarations, so a new secret is tested as it appears.
"""

import io
from random import Random

import pytest

from pyspark_kafkaproto.capture.message import SECRET_APIS
from pyspark_kafkaproto.capture.recorder import Address, Recorder
from pyspark_kafkaproto.capture.secrets import Speakers
from pyspark_kafkaproto.messages import request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from pyspark_kafkaproto.wire.declaration import Struct
from pyspark_kafkaproto.wire.frame import (
    SIZE_PREFIX_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.differential.random_messages import random_messages
from tests.examples import first
from tests.unit.capture.talks import metadata_request, metadata_response
from tests.unit.capture.wire import read

_SEED = 20
_MESSAGES = 40


def secret_fields(cls):
    """All fields of a message that are secret, however deep."""
    found = [field for field in cls.FIELDS.values() if field.secret]
    below = [field.kind for field in cls.FIELDS.values() if not isinstance(field.kind, str)]
    return found + [field for kind in below for field in secret_fields(kind)]


CLASSES = [
    cls
    for api in APIS
    for cls in (request_class(api.key), response_class(api.key))
    if secret_fields(cls)
]


def blank(value):
    """As many zeros as it has bytes; null stays null."""
    if value is None:
        return None
    return "\0" * len(value.encode()) if isinstance(value, str) else bytes(len(value))


def blanked(value):
    """The same with its secrets blank."""
    if isinstance(value, tuple):
        return tuple(blanked(item) for item in value)
    if not isinstance(value, Struct):
        return value
    fields = type(value).FIELDS
    changed = {
        name: (blank if field.secret else blanked)(getattr(value, name))
        for name, field in fields.items()
    }
    return type(value)(**changed, unknown_tagged_fields=value.unknown_tagged_fields)


def as_captured(speakers, message, version):
    """What a reader of the capture decodes, after the secrets were hidden."""
    cls = type(message)
    request = request_class(cls.API_KEY)
    if cls is request:
        payload = encode_request(message, version, 7, "client")[SIZE_PREFIX_BYTES:]
        hidden = bytes(speakers.hide_request(payload))
        header, decoded = decode_request(cls, hidden)
        assert (header.correlation_id, header.client_id) == (7, "client")
    else:
        asked = encode_request(request(), version, 7, "client")[SIZE_PREFIX_BYTES:]
        speakers.hide_request(asked)
        payload = encode_response(message, version, 7)[SIZE_PREFIX_BYTES:]
        hidden = bytes(speakers.hide_response(payload))
        correlation_id, decoded = decode_response(cls, hidden, version)
        assert correlation_id == 7
    assert len(hidden) == len(payload)
    return decoded


def test_all_that_is_secret_is_of_a_kind_that_can_be_hidden():
    kinds = {(field.kind, field.is_array) for cls in CLASSES for field in secret_fields(cls)}
    assert kinds == {("string", False), ("bytes", False)}
    assert {cls.API_KEY for cls in CLASSES} <= SECRET_APIS
    assert len(CLASSES) >= 10


@pytest.mark.parametrize("cls", first(3, CLASSES), ids=lambda cls: cls.__name__)
def test_the_secret_is_gone_and_all_else_is_there(cls):
    random = Random(_SEED)
    hidden = 0
    for version in range(cls.VERSIONS.min, cls.VERSIONS.max + 1):
        for message in random_messages(cls, version, _MESSAGES, random):
            expected = blanked(message)
            assert as_captured(Speakers(), message, version) == expected, (version, message)
            hidden += message != expected
    assert hidden > _MESSAGES // 4


def handshake(correlation_id):
    """The old handshake, after which SASL's tokens stand on the wire without any header."""
    asked = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 0, correlation_id, "client")
    answer = SaslHandshakeResponse(mechanisms=("PLAIN",))
    return [asked, encode_response(answer, 0, correlation_id)]


@pytest.mark.parametrize("correlation_id", [0, 5])
@pytest.mark.parametrize(
    "tokens",
    [
        [b"\0alice\0s3cret", b"\0ok s3cret"],
        [b"n,,n=alice,r=s3cret", b"r=s3cret,s=s3cret,i=4096", b"c=biws,p=s3cret", b"v=s3cret"],
        [b"s3cret" * 400, b"s3cret" * 400],
    ],
)
def test_bare_tokens_are_hidden_and_what_is_around_them_is_read(correlation_id, tokens):
    out = io.BytesIO()
    track = Recorder(out.write).connection(Address("10.0.0.1", 1), Address("10.0.0.2", 2))
    said = [frame[SIZE_PREFIX_BYTES:] for frame in handshake(correlation_id)] + tokens
    said += [frame[SIZE_PREFIX_BYTES:] for frame in (metadata_request(9), metadata_response(9))]
    for index, payload in enumerate(said):
        (track.received if index % 2 else track.sent)(payload)
    messages, notes = read(out.getvalue())
    assert b"s3cret" not in out.getvalue()
    assert [message.title for message in messages] == [
        "SaslHandshake v0 request",
        "SaslHandshake v0 response",
        *["SASL token"] * len(tokens),
        "Metadata v12 request",
        "Metadata v12 response",
    ]
    assert [message.size_bytes for message in messages] == [len(payload) for payload in said]
    assert messages[1].body().mechanisms == ("PLAIN",)
    assert notes == []
