"""Writing to a real broker: what we write Kafka's own tools read back, and its log tool accepts."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed
from pyspark_kafkaproto.messages.describe_producers import DescribeProducersRequest
from pyspark_kafkaproto.net import Deadline
from tests.console import console_lines
from tests.stalled import stalled
from tests.topics import make_topic
from tests.waiting import until

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ROWS = 2000
NOON_MS = 1_709_294_400_123


@pytest.fixture
def produce(broker):
    """Writes records and gives what was written."""

    def write(topic, records, **properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        config = {"bootstrap.servers": broker.bootstrap_servers} | given
        with Producer(config, topic=topic) as producer:
            producer.send(records)
            return producer.flush()

    return write


def consume(tools, topic, count):
    """What Java's console consumer prints: timestamp, headers, key and value of each record."""
    printed = ("timestamp", "headers", "key", "partition", "offset")
    formats = (*(f"print.{name}=true" for name in printed), "key.separator=|", "null.literal=NULL")
    arguments = [part for own in formats for part in ("--formatter-property", own)]
    return console_lines(tools, topic, count, *arguments)


@pytest.mark.parametrize("codec", CODECS)
def test_javas_console_consumer_reads_it_back(produce, broker, new_topic, codec):
    topic = new_topic(2)
    records = [
        ProducerRecord(
            f"value {n} " + "x" * (n % 70),
            key=f"key-{n % 13}" if n % 3 else None,
            partition=n % 2,
            timestamp_ms=NOON_MS + 7 * n,
            headers=[("h", f"{n}".encode()), ("h", b"again")] if n % 5 == 0 else (),
        )
        for n in range(ROWS)
    ]
    written = produce(topic, records, compression_type=codec, batch_size=20_000)
    assert [written[TopicPartition(topic, n)].last_offset for n in (0, 1)] == [ROWS // 2 - 1] * 2
    expected = {
        f"CreateTime:{record.timestamp_ms}|Partition:{n % 2}|Offset:{n // 2}|"
        + (f"h:{n},h:again" if n % 5 == 0 else "NO_HEADERS")
        + f"|{record.key or 'NULL'}|{record.value}"
        for n, record in enumerate(records)
    }
    found = [line for line in consume(broker, topic, ROWS) if line.startswith("CreateTime")]
    assert len(found) == ROWS
    assert set(found) == expected


def test_batches_are_split_where_a_topic_takes_smaller_ones(produce, new_topic, broker):
    topic = new_topic(1, configs={"max.message.bytes": "5000"})
    (written,) = produce(topic, [ProducerRecord("x" * 90)] * ROWS).values()
    assert written.records == ROWS == written.last_offset + 1
    assert written.batches > ROWS * 90 / 5000
    with pytest.raises(BrokerError, match=rf"{topic}-0, row 1 .*MESSAGE_TOO_LARGE"):
        produce(topic, [ProducerRecord("a"), ProducerRecord("x" * 6000)], batch_size=0)


def test_a_broker_names_the_record_it_refuses(produce, new_topic):
    topic = new_topic(1, configs={"message.timestamp.after.max.ms": "1000"})
    records = [ProducerRecord(f"{n}") for n in range(10)]
    records[6] = records[6]._replace(timestamp_ms=4_000_000_000_000)
    with pytest.raises(BrokerError, match=rf"{topic}-0, row 6 among 10 rows.*INVALID_TIMESTAMP"):
        produce(topic, records)
    compacted = new_topic(1, configs={"cleanup.policy": "compact"})
    with pytest.raises(BrokerError, match=rf"{compacted}-0, row 0 among .*INVALID_RECORD"):
        produce(compacted, records)


def test_deleted_records_do_not_disturb_a_producer(broker, kafka_tool, new_topic, tmp_path):
    topic = new_topic(1)
    file = tmp_path / "offsets.json"
    file.write_text(
        f'{{"partitions":[{{"topic":"{topic}","partition":0,"offset":10}}],"version":1}}'
    )
    with Producer({"bootstrap.servers": broker.bootstrap_servers}, topic=topic) as producer:
        for start in (0, 10):
            producer.send([ProducerRecord(f"{n}") for n in range(start, start + 10)])
            (written,) = producer.flush().values()
            assert (written.last_offset, written.restarts) == (start + 9, 0)
            kafka_tool("DeleteRecordsCommand", "--offset-json-file", str(file))


def test_who_sends_more_than_a_broker_takes_at_once_is_told_what_to_set(tmp_path):
    limit = {"socket.request.max.bytes": "200000"}
    with DevBroker(tmp_path / "data", properties=limit) as broker:
        make_topic(broker.bootstrap_servers, "orders", 8)
        config = {"bootstrap.servers": broker.bootstrap_servers, "batch.size": 100_000}
        records = [ProducerRecord(b"x" * 50_000, partition=number) for number in range(8)]
        writer = Producer(config | {"retries": 3}, topic="orders")
        writer.send(records)
        told = r"(?s)tried 4 times.*socket\.request\.max\.bytes.*max\.request\.size \(1048576\)"
        with pytest.raises(ConnectionFailed, match=told):
            writer.flush()
        with Producer(config | {"max.request.size": 150_000}, topic="orders") as writer:
            writer.send(records)
            assert sum(written.records for written in writer.flush().values()) == len(records)


def test_a_broker_that_came_up_again_is_given_nothing_twice(tmp_path):
    """It knows the last batch of a producer alone, and calls those before it out of order."""
    with DevBroker(tmp_path / "data") as broker:
        make_topic(broker.bootstrap_servers, "orders")
        config = {"bootstrap.servers": broker.bootstrap_servers, "batch.size": 500, "linger.ms": 0}
        only, rows = TopicPartition("orders", 0), 200
        with Producer(config | {"max.request.size": 500}, topic="orders") as producer:
            producer.send([ProducerRecord("0")])
            producer.flush()  # from the second batch on there are several in flight
            with stalled(broker):
                producer.send([ProducerRecord(f"{number}") for number in range(1, rows)])
                (link,) = producer._sender._links.values()
                sent = [batch for each in link.sent for _, batch in each.batches.values()]
                in_flight = [batch.records for batch in sent]
            assert len(in_flight) > 1
            with KafkaCluster(config) as kafka:
                end = {only: 1 + sum(in_flight)}
                until(lambda: kafka.get_latest_leader_offsets({only}) == end, what="their end")
            link.connection.close()  # what was answered is never heard of
            broker.restart()
            written = producer.flush()[only]
        read = console_lines(broker, "orders", rows)
        with KafkaCluster(config) as kafka:
            assert kafka.get_latest_leader_offsets({only}) == {only: rows}
    assert read == [f"{number}" for number in range(rows)]
    assert (written.records, written.restarts) == (rows - 1, 0)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_fewer_acks_are_possible(produce, broker, new_topic, acks):
    topic = new_topic(1)
    produce(topic, [ProducerRecord(f"{n}") for n in range(100)], acks=acks)
    only = TopicPartition(topic, 0)
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
        # With 0 nobody says when it is there.
        until(lambda: cluster.get_latest_leader_offsets({only}) == {only: 100}, what="all rows")


def test_without_acks_a_topic_that_was_made_anew_is_found(broker, new_topic):
    topic = new_topic(1)
    config = {"bootstrap.servers": broker.bootstrap_servers}
    unacknowledged = {"acks": "0", "linger.ms": "0"}
    with KafkaCluster(config) as kafka, Producer(config | unacknowledged, topic=topic) as producer:
        _write_until_it_is_there(kafka, producer, topic)
        kafka.delete_topics({topic})
        deadline = Deadline.after(30)
        while kafka.describe({topic}).has(topic):
            deadline.check(f"waiting for {topic} to be gone")
        kafka.create_topics([NewTopic(topic, 1)])
        # The broker hangs up on who writes to what is gone, and says no more.
        _write_until_it_is_there(kafka, producer, topic)


def _write_until_it_is_there(kafka, producer, topic):
    only, deadline = TopicPartition(topic, 0), Deadline.after(30)
    while kafka.get_latest_leader_offsets({only}) == {only: 0}:
        deadline.check(f"waiting for a record in {topic}")
        producer.send([ProducerRecord("a")])
        producer.flush()


def test_producers_one_after_the_other_write_under_one_id(broker, new_topic, produce):
    topic, rounds = new_topic(2), 4
    only = TopicPartition(topic, 0)
    config = {"bootstrap.servers": broker.bootstrap_servers, "client.id": topic}
    known = []
    with KafkaCluster(config) as kafka:
        for n in range(rounds):
            records = [ProducerRecord(f"{n} {row}", partition=0) for row in range(200)]
            if n == 2:  # one that does not write to that partition: its epoch is passed over there
                produce(topic, [ProducerRecord("other", partition=1)], client_id=topic)
            written = produce(topic, records, client_id=topic, batch_size=500)[only]
            assert (written.first_offset, written.last_offset) == (200 * n, 200 * n + 199)
            assert (written.retries, written.restarts) == (0, 0)
            known.append(_producers_of(kafka._router, only))
    ids = {producer.producer_id for producers in known for producer in producers}
    assert [len(producers) for producers in known] == [1] * rounds
    assert len(ids) == 1
    first = known[0][0].producer_epoch
    assert [producer.producer_epoch - first for (producer,) in known] == [0, 1, 3, 4]
    assert [producer.last_sequence for (producer,) in known] == [199] * rounds
    lines = consume(broker, topic, 200 * rounds + 1)
    values = [line.rpartition("|")[2] for line in lines if "|Partition:0|" in f"|{line}|"]
    assert values == [f"{n} {row}" for n in range(rounds) for row in range(200)]


def _producers_of(router, partition):
    """What its leader knows of those that have written to a partition (DescribeProducers)."""
    asked = DescribeProducersRequest.Topic(
        name=partition.topic, partition_indexes=(partition.partition,)
    )
    request = DescribeProducersRequest(topics=(asked,))
    deadline = router.deadline()
    leader = router.leaders([partition], deadline)[partition]
    answer = router.connect(leader.endpoint, deadline).request(request, deadline)
    (found,) = answer.topics[0].partitions
    assert found.error_code == 0
    return found.active_producers
