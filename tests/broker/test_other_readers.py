"""What we write librdkafka reads back byte by byte, in every codec, and finds the checksums right.

Through confluent-kafka; and in the long run through kcat, which is Debian's, with an older
librdkafka. Both leave out what was aborted: read_committed is their default.
"""

from __future__ import annotations

import subprocess
import uuid
from contextlib import closing

import confluent_kafka
import pytest

from pyspark_kafkaproto import Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.net import Deadline
from tests.settled import wait_until_settled

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS, IN_EACH = 2, 300
NOON_MS = 1_709_294_400_123

KEYS = (b"key", None, b"", "schlüssel".encode(), b"\x00\xff\n|,=")
VALUES = (b"value", b"\xff\x00|\n" * 3, None, b"", "wert ü".encode(), b"x" * 700)
HEADERS = (
    (),
    (("h", b"1"), ("h", b"2")),
    (("empty", b""), ("null", None), ("ü", b"\xff\x01")),
    (),
)
TIMES_MS = (NOON_MS, 0, NOON_MS - 1, NOON_MS + 40 * 86_400_000, 1)


def records():
    """Every kind of key, value, headers and time meets every other; a null value is a tombstone."""
    return [
        ProducerRecord(
            VALUES[n % len(VALUES)],
            key=KEYS[n // 2 % len(KEYS)],
            partition=n // IN_EACH,
            timestamp_ms=TIMES_MS[n // 3 % len(TIMES_MS)],
            headers=HEADERS[n // 7 % len(HEADERS)],
        )
        for n in range(PARTITIONS * IN_EACH)
    ]


def expected(first=0):
    """Records as a reader gives them, the first of each partition at offset `first`."""
    return [
        (record.partition, first + n % IN_EACH, record.timestamp_ms, record.key, record.value,
         tuple(record.headers))
        for n, record in enumerate(records())
    ]  # fmt: skip


def read_by_confluent(servers, topic):
    """Everything in the topic, through confluent-kafka."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": str(uuid.uuid4()),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    found, open_partitions, deadline = [], set(range(PARTITIONS)), Deadline.after(60)
    with closing(consumer):
        consumer.assign(
            [
                confluent_kafka.TopicPartition(topic, number, confluent_kafka.OFFSET_BEGINNING)
                for number in open_partitions
            ]
        )
        while open_partitions:
            deadline.check("reading with confluent-kafka")
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error() is None:
                found.append(_row(message))
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                open_partitions.discard(message.partition())
    return sorted(found, key=lambda row: row[:2])


def _row(message):
    kind, time_ms = message.timestamp()
    assert kind == confluent_kafka.TIMESTAMP_CREATE_TIME
    headers = tuple(message.headers() or ())
    return (
        message.partition(), message.offset(), time_ms, message.key(), message.value(), headers
    )  # fmt: skip


def read_by_kcat(servers, topic):
    """Everything in the topic, through kcat. Lengths go before what may hold anything."""
    command = ["kcat", "-C", "-q", "-e", "-o", "beginning", "-b", servers, "-t", topic]
    shape = "%p %o %T %K %S:%k%s%h\n"
    options = ["-X", "check.crcs=true", "-f", shape]
    done = subprocess.run([*command, *options], capture_output=True, timeout=60, check=True)
    found, rest = [], done.stdout
    while rest:
        head, _, rest = rest.partition(b":")
        partition, offset, time_ms, key_bytes, value_bytes = map(int, head.split())
        key, rest = _taken(rest, key_bytes)
        value, rest = _taken(rest, value_bytes)
        headers, rest = _headers(rest)
        found.append((partition, offset, time_ms, key, value, headers))
    return sorted(found, key=lambda row: row[:2])


def _taken(data, length):
    """The first `length` bytes, None for a negative one, and what is behind them."""
    return (None, data) if length < 0 else (data[:length], data[length:])


def _headers(data):
    """The headers that kcat has written in front of a line's end. No value here has a comma."""
    text, _, rest = data.partition(b"\n")
    pairs = (pair.partition(b"=") for pair in text.split(b",") if pair)
    return tuple(
        (name.decode(), None if value == b"NULL" else value) for name, _, value in pairs
    ), rest


READERS = [read_by_confluent, pytest.param(read_by_kcat, marks=pytest.mark.long)]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("codec", CODECS)
def test_every_record_is_read_back_as_it_was_written(broker, new_topic, read, codec):
    topic = new_topic(PARTITIONS)
    properties = {"compression.type": codec, "batch.size": "2000"}
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer(servers | properties, topic=topic) as producer:
        producer.send(records())
        written = producer.flush()
    assert all(item.batches > 1 for item in written.values())
    assert read(broker.bootstrap_servers, topic) == expected()


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_batch_that_a_codec_cuts_into_blocks_is_read_back(broker, new_topic, read, codec):
    """The broker has read it, too: it counts a batch's records before it takes it."""
    topic = new_topic(PARTITIONS)
    values = [b"%d:" % n * 300 for n in range(600)]
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    with Producer(servers | {"compression.type": codec}, topic=topic) as producer:
        producer.send([ProducerRecord(value, partition=0) for value in values])
        (written,) = producer.flush().values()
    assert written.batches == 2  # of half a megabyte
    assert [row[4] for row in read(broker.bootstrap_servers, topic)] == values


@pytest.mark.parametrize("read", READERS)
def test_what_was_aborted_is_left_out(broker, new_topic, read):
    topic = new_topic(PARTITIONS)
    properties = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
    with Producer(properties, topic=topic) as producer:
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(records())
            producer.flush()
            end()
    wait_until_settled(
        broker.bootstrap_servers, [TopicPartition(topic, number) for number in range(PARTITIONS)]
    )
    behind_aborted = IN_EACH + 1  # them, and their marker
    assert read(broker.bootstrap_servers, topic) == expected(behind_aborted)
