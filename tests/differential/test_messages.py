"""Every message in every version, byte for byte against Kafka's own generated classes.

Three comparisons a message: Java reads our bytes to the values we meant; what Java writes of them
anew are our bytes, unknown tagged fields included; and Java's bytes, made from values in JSON, are
what our encoder writes and our decoder reads. Frames go whole, so headers are compared as well.
"""

from __future__ import annotations

import json
from random import Random, SystemRandom

import pytest

from pyspark_kafkaproto.messages import consumer_protocol, request_class, response_class
from pyspark_kafkaproto.messages.apis import APIS
from pyspark_kafkaproto.wire.declaration import Request, Response
from pyspark_kafkaproto.wire.frame import (
    SIZE_PREFIX_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from pyspark_kafkaproto.wire.schema import decode, encode
from tests.differential.java_process import Reader, sized
from tests.differential.kafka_json import names_of, to_json
from tests.differential.random_messages import random_messages, without_unknown_tags

pytestmark = pytest.mark.differential

CLASSES = [
    *(request_class(api.key) for api in APIS),
    *(response_class(api.key) for api in APIS),
    consumer_protocol.ConsumerProtocolAssignment,
    consumer_protocol.ConsumerProtocolSubscription,
]
SEED = 20261121
COUNT = 50
LONG_COUNT = 1000
CHUNK = 250

each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


@each_class
def test_kafka_reads_and_writes_the_same(cls, message_oracle, facts, compared):
    Comparison(cls, message_oracle, facts).run(SEED, COUNT, compared)


@pytest.mark.long
@each_class
def test_kafka_reads_and_writes_the_same_at_length(cls, message_oracle, facts, compared):
    Comparison(cls, message_oracle, facts).run(SystemRandom().getrandbits(32), LONG_COUNT, compared)


class Comparison:
    """Compares one class in all of its versions."""

    def __init__(self, cls, oracle, facts):
        self.cls = cls
        self.oracle = oracle
        self.names = names_of(cls, facts[cls.__name__].fields)

    def run(self, seed, count, compared):
        for version in range(self.cls.VERSIONS.min, self.cls.VERSIONS.max + 1):
            random = Random(f"{seed} {self.cls.__name__} {version}")
            messages = list(random_messages(self.cls, version, count, random))
            assert len(messages) == count
            for start in range(0, count, CHUNK):
                where = f"{self.cls.__name__} v{version}, seed {seed}, from message {start} on"
                self.compare(messages[start : start + CHUNK], version, random, where)
            compared["messages"] += count
            compared["messages' versions"] += 1

    def compare(self, messages, version, random, where):
        written = [Envelope(self, message, version, random) for message in messages]
        tasks = b"".join(
            b"\x00" + sized(item.frame) + b"\x01" + sized(item.header_json) + sized(item.body_json)
            for item in written
        )
        head = sized(self.target.encode()) + version.to_bytes(2)
        answer = Reader(self.oracle.ask(head + (2 * len(written)).to_bytes(4) + tasks))
        for index, item in enumerate(written):
            item.check(answer, f"{where}: {index}: {item.message!r}")
        assert answer.is_done

    @property
    def target(self):
        if issubclass(self.cls, Request):
            return f"request {self.cls.API_KEY}"
        if issubclass(self.cls, Response):
            return f"response {self.cls.API_KEY}"
        return f"data {self.cls.__name__}"


class Envelope:
    """One message in its frame, and what Kafka should say of it."""

    def __init__(self, comparison, message, version, random):
        self.comparison = comparison
        self.message = message
        self.version = version
        self.correlation_id = random.choice((0, 1, 2**31 - 1, random.getrandbits(31)))
        self.client_id = random.choice((None, "", "spark", "ü" * 100))
        self.frame = self.framed(message)
        # JSON has no place for unknown tags: Kafka's classes are asked to write the rest.
        self.plain = without_unknown_tags(message)
        self.header_json = compact(self.header())
        self.body_json = compact(self.body(self.plain, with_records=True))

    def framed(self, message):
        if isinstance(message, Request):
            frame = encode_request(message, self.version, self.correlation_id, self.client_id)
        elif isinstance(message, Response):
            frame = encode_response(message, self.version, self.correlation_id)
        else:
            return encode(message, self.version)
        return frame[SIZE_PREFIX_BYTES:]

    def decoded(self, frame):
        """Header and message of a frame."""
        cls = self.comparison.cls
        if issubclass(cls, Request):
            header, message = decode_request(cls, frame)
            return tuple(header), message
        if issubclass(cls, Response):
            correlation_id, message = decode_response(cls, frame, self.version)
            return (correlation_id,), message
        return (), decode(cls, frame, self.version)

    def header(self):
        cls = self.comparison.cls
        if issubclass(cls, Request):
            return {
                "requestApiKey": cls.API_KEY,
                "requestApiVersion": self.version,
                "correlationId": self.correlation_id,
                "clientId": self.client_id,
            }
        return {"correlationId": self.correlation_id} if issubclass(cls, Response) else {}

    def body(self, message, *, with_records):
        names = self.comparison.names
        return to_json(message, names, self.version, with_records=with_records)

    def check(self, answer, where):
        header, body, again = parts(answer, 3, where)
        if self.header():
            assert canonical(json.loads(header)) == canonical(self.header()), where
        expected = self.body(self.message, with_records=False)
        assert canonical(json.loads(body)) == canonical(expected), where
        assert again == self.frame, where
        (made,) = parts(answer, 1, where)
        assert made == self.framed(self.plain), where
        found_header, found = self.decoded(made)
        assert found_header == tuple(self.header().values()), where
        # Compared as JSON, where a NaN equals a NaN.
        found_body = self.body(found, with_records=True)
        assert canonical(found_body) == canonical(json.loads(self.body_json)), where


def parts(answer, count, where):
    failed = answer.integer(1)
    assert not failed, f"Java says {answer.sized().decode()}: {where}"
    return [answer.sized() for _ in range(count)]


def compact(value):
    return json.dumps(value, ensure_ascii=False).encode()


def canonical(value):
    """Text that tells true from 1 and 1 from 1.0."""
    return json.dumps(value, sort_keys=True)
