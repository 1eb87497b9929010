"""Who holds read_committed readers up, beside Kafka's own tool; and that they go on."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto import KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster.asking import Question, ask
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.transactions import Writer, begin_writer
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdRequest
from pyspark_kafkaproto.messages.produce import ProduceRequest
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from pyspark_kafkaproto.records import NewRecord, encode_batch
from tests.settled import wait_until_settled
from tests.topics import make_topic

pytestmark = pytest.mark.broker

TOOL = "org.apache.kafka.tools.TransactionsCommand"
_TRANSACTIONAL = 16
# From version 12 on leaders add the partition to the transaction themselves (KIP-890).
_LAST_WITHOUT_ADDING = 11
_TWENTY_MINUTES_MS = 1_200_000


@pytest.fixture(scope="module", params=[None, "3.9.1"], ids=["version 2", "version 1"])
def tools(request):
    """A broker that takes a transaction's records without asking its coordinator.

    As those before Kafka 3.6 did, by which transactions come to hang.
    """
    properties = {"transaction.partition.verification.enable": "false"}
    with DevBroker(version=request.param, properties=properties) as broker:
        yield broker


@pytest.fixture
def kafka(tools):
    with KafkaCluster({"bootstrap.servers": tools.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture
def place(tools, new_name) -> TopicPartition:
    name = new_name()
    make_topic(tools.bootstrap_servers, name)
    return TopicPartition(name, 0)


@pytest.fixture
def producer(tools, place):
    properties = {"bootstrap.servers": tools.bootstrap_servers, "transactional.id": place.topic}
    made = Producer(properties, topic=place.topic)
    yield made
    made.abandon()


def write_behind_the_coordinator(kafka, place, transactional_id, at_ms, *, is_known):
    """Records of a transaction of which the coordinator hears nothing; who wrote them.

    Not `is_known`, the producer is one that no coordinator has under any transactional id.
    """
    router = Router(kafka.config)
    if is_known:
        writer = begin_writer(router, transactional_id)
    else:
        plain = router.ask_any(InitProducerIdRequest(transactional_id=None), router.deadline())
        writer = Writer(transactional_id, plain.producer_id, plain.producer_epoch)
    batch = encode_batch(
        [NewRecord(b"hangs", timestamp_ms=at_ms)],
        attributes=_TRANSACTIONAL,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        base_sequence=0,
    )
    data = ProduceRequest.Topic.Partition(index=place.partition, records=batch)
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=(ProduceRequest.Topic(name=place.topic, partition_data=(data,)),),
    )

    def read(answer, _):
        (told,) = answer.responses[0].partition_responses
        subject = f"partition {place}"
        return {place: told.error_code and BrokerError(told.error_code, "Produce", subject)}

    question = Question("write", lambda _: request, read, most=_LAST_WITHOUT_ADDING)
    ask(router, question, [place], router.leader_places)
    router.close()
    return writer


def readable(tools, place):
    """What a read_committed reader sees by now."""
    servers = {"bootstrap.servers": tools.bootstrap_servers, "isolation.level": "read_committed"}
    config = ClientConfig.parse(servers)
    task = ReadTask((OffsetRange(*place, 0, None),))
    batches = read_batches(task, config, ReadSettings(), schema_for(["value"]))
    found = [value.decode() for batch in batches for value in batch.column(0).to_pylist()]
    connections_for(config).close()
    return found


def told_by(tools, *words):
    """The rows of Kafka's own tool, as texts."""
    lines = tools.run_tool(TOOL, "--bootstrap-server", tools.bootstrap_servers, *words)
    return [line.split() for line in lines.splitlines()[1:]]


def test_an_open_transaction_is_told_of_as_kafka_s_own_tool_does(tools, kafka, place, producer):
    producer.begin_transaction()
    producer.send([ProducerRecord("value")])
    producer.flush()
    name = place.topic
    ongoing = kafka.list_transactions({"ongoing"})
    assert name in {item.transactional_id for item in ongoing}
    texts = [
        [item.transactional_id, str(item.coordinator), str(item.producer_id), item.state]
        for item in kafka.list_transactions()
    ]
    assert texts == sorted(told_by(tools, "list"))
    (listed,) = (item for item in ongoing if item.transactional_id == name)
    assert kafka.list_transactions(producer_ids={listed.producer_id}) == [listed]
    assert kafka.list_transactions(longer_than_s=3600) == []
    assert listed in kafka.list_transactions(longer_than_s=0)

    described = kafka.describe_transactions({name})[name]
    (row,) = told_by(tools, "describe", "--transactional-id", name)
    assert row[:7] == [
        str(described.coordinator),
        name,
        str(described.writer.producer_id),
        str(described.writer.epoch),
        described.state,
        str(described.timeout_ms),
        str(described.started_at_ms),
    ]
    assert row[8] == ",".join(map(str, described.partitions))
    assert described.partitions == {place}

    (seen,) = kafka.describe_producers([place])[place]
    (row,) = told_by(tools, "describe-producers", "--topic", name, "--partition", "0")
    assert row == [
        *(str(seen.producer_id), str(seen.epoch), "-1", str(seen.last_sequence)),
        *(str(seen.last_timestamp_ms), str(seen.transaction_start_offset)),
    ]
    assert seen.producer_id == described.writer.producer_id
    assert kafka.find_hanging_transactions([place], longer_than_s=0) == []


def test_pattern_is_of_the_whole_id(tools, kafka, place, producer):
    producer.begin_transaction()
    producer.send([ProducerRecord("value")])
    producer.flush()
    if tools.version.startswith("3."):
        with pytest.raises(
            UnsupportedVersion, match=r"pattern takes brokers of Kafka 4\.1 or later"
        ):
            kafka.list_transactions(pattern=".*")
        return
    (found,) = kafka.list_transactions(pattern=place.topic[:-1] + ".")
    assert found.transactional_id == place.topic
    assert kafka.list_transactions(pattern=place.topic[:-1]) == []
    with pytest.raises(BrokerError, match=r"the pattern.*RE2"):
        kafka.list_transactions(pattern="[")


def test_a_fenced_producer_holds_nobody_up(tools, kafka, place, producer):
    producer.begin_transaction()
    producer.send([ProducerRecord("dropped")])
    producer.flush()
    (seen,) = kafka.describe_producers([place])[place]
    with pytest.raises(LocalProtocolError, match=r"Ongoing.*does not hang.*fence_producers"):
        kafka.abort_transaction(place, seen.transaction_start_offset)
    fenced = kafka.fence_producers({place.topic})[place.topic]
    assert (fenced.producer_id, fenced.epoch > seen.epoch) == (seen.producer_id, True)
    wait_until_settled(tools.bootstrap_servers, {place})
    assert kafka.describe_transactions({place.topic})[place.topic].state == "Empty"
    with pytest.raises(BrokerError, match="another producer has taken over"):
        producer.commit_transaction()
    with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_NOT_FOUND"):
        kafka.fence_producers({"misspelt"})
    assert "misspelt" not in {item.transactional_id for item in kafka.list_transactions()}


@pytest.mark.parametrize(
    ("is_known", "ended_before"),
    [(True, False), (True, True), (False, False)],
    ids=["known", "known, and not its first", "not known"],
)
def test_a_hanging_transaction_is_found_and_aborted_and_readers_go_on(
    tools, kafka, place, producer, is_known, ended_before
):
    name = f"{place.topic}-hanging"
    own = {"bootstrap.servers": tools.bootstrap_servers, "transactional.id": name}
    with Producer(own, topic=place.topic) as earlier:
        for writer in (producer, earlier) if ended_before else (producer,):
            writer.begin_transaction()
            writer.send([ProducerRecord("before")])
            writer.commit_transaction()
    before = ["before"] * (1 + ended_before)
    wait_until_settled(tools.bootstrap_servers, {place})
    at_ms = int(time.time() * 1000) - _TWENTY_MINUTES_MS
    writer = write_behind_the_coordinator(kafka, place, name, at_ms, is_known=is_known)
    producer.begin_transaction()
    producer.send([ProducerRecord("behind")])
    producer.commit_transaction()
    assert readable(tools, place) == before

    (found,) = kafka.find_hanging_transactions()
    assert found.partition == place
    assert (found.producer.producer_id, found.producer.epoch) == writer[1:]
    assert (found.producer.coordinator_epoch == 0) == ended_before
    known = (name, "Empty") if is_known else (None, None)
    assert (found.transactional_id, found.state) == known
    (row,) = told_by(tools, "find-hanging", "--topic", place.topic)
    assert row == [
        *(place.topic, "0", str(writer.producer_id), str(writer.epoch)),
        "-1" if found.producer.coordinator_epoch is None else "0",
        *(str(found.producer.transaction_start_offset), str(at_ms), "20"),
    ]
    assert kafka.find_hanging_transactions(longer_than_s=1800) == []

    start = found.producer.transaction_start_offset
    with pytest.raises(ConfigError, match=rf"open are those from {start} on"):
        kafka.abort_transaction(place, start + 1)
    assert kafka.abort_transaction(place, start) == found.producer
    deadline = Deadline.after(20)
    while readable(tools, place) != [*before, "behind"]:
        deadline.check("the reader")
    assert kafka.find_hanging_transactions() == []
    assert told_by(tools, "find-hanging", "--topic", place.topic) == []
    with pytest.raises(ConfigError, match="no transaction is open"):
        kafka.abort_transaction(place, start)
