"""Transactions at real brokers, of both kinds: what is committed is seen, once; nothing else is."""

from __future__ import annotations

import time

import pytest

from pyspark_kafkaproto import Consumer, KafkaCluster, Producer, ProducerRecord, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.transactions import (
    ONGOING,
    end_transactions,
    list_transactions,
)
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    KafkaProtoError,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import ClientConfig, Deadline, connections_for
from tests.console import console_lines
from tests.settled import wait_until_settled
from tests.topics import make_topic

pytestmark = pytest.mark.broker

PARTITIONS = 2
_PAUSE_S = 0.1


@pytest.fixture(scope="module", params=[None, "3.9.1"], ids=["version 2", "version 1"])
def tools(request, broker):
    """Brokers whose transactions are of version 2 and 1."""
    if request.param is None:
        yield broker
        return
    with DevBroker(version=request.param) as oldest:
        yield oldest


@pytest.fixture
def topic(tools, new_name) -> str:
    name = new_name()
    make_topic(tools.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture
def make(tools, topic):
    """Makes producers with a transactional id."""
    made = []

    def producer(transactional_id=None, **options):
        properties = {
            "bootstrap.servers": tools.bootstrap_servers,
            "transactional.id": transactional_id or topic,
        } | {name: options.pop(name) for name in list(options) if "." in name}
        made.append(Producer(properties, **{"topic": topic} | options))
        return made[-1]

    yield producer
    for one in made:
        one.abandon()


@pytest.fixture
def router(tools):
    found = Router(ClientConfig.parse({"bootstrap.servers": tools.bootstrap_servers}))
    yield found
    found.close()


def records(name, count=50):
    return [ProducerRecord(f"{name}{n}", partition=n % PARTITIONS) for n in range(count)]


def committed(tools, topic):
    """What our reader sees under read_committed, sorted, once all that has ended is marked so."""
    partitions = {TopicPartition(topic, number) for number in range(PARTITIONS)}
    wait_until_settled(tools.bootstrap_servers, partitions)
    return readable(tools, topic)


def readable(tools, topic):
    """What our reader sees under read_committed now, sorted."""
    config = ClientConfig.parse(
        {"bootstrap.servers": tools.bootstrap_servers, "isolation.level": "read_committed"}
    )
    ranges = tuple(OffsetRange(topic, number, 0, None) for number in range(PARTITIONS))
    batches = read_batches(ReadTask(ranges), config, ReadSettings(), schema_for(["value"]))
    found = [value.decode() for batch in batches for value in batch.column(0).to_pylist()]
    connections_for(config).close()
    return sorted(found)


def values(*names, count=50):
    return sorted(f"{name}{n}" for name in names for n in range(count))


def test_offsets_of_a_reader_are_committed_with_their_leader_epochs(tools, topic, make):
    producer, deadline = make(), Deadline.after(30)
    producer.begin_transaction()
    producer.send(records("a"))
    producer.commit_transaction()
    properties = {
        "bootstrap.servers": tools.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
    }
    ends = [50 // PARTITIONS + 1] * PARTITIONS  # with the marker
    with Consumer(properties, {topic}) as reader:
        while sorted(reader.positions.values()) != ends:
            deadline.check("the rows")
            reader.poll(0.1)
        producer.begin_transaction()
        producer.send_offsets_to_transaction(reader.committable, topic, reader.group_member)
        producer.commit_transaction()
        assert {item: at.offset for item, at in reader.committable.items()} == reader.positions
        offsets = reader.committable
    with KafkaCluster({"bootstrap.servers": tools.bootstrap_servers}) as cluster:
        assert cluster.get_group_offsets({topic}) == {topic: offsets}
    assert {at.leader_epoch for at in offsets.values()} == {0}


def test_offsets_of_who_reads_no_more_are_refused(tools, topic, make):
    with Producer({"bootstrap.servers": tools.bootstrap_servers}, topic=topic) as plain:
        plain.send(records("a"))
    properties = {
        "bootstrap.servers": tools.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    producer, deadline = make(), Deadline.after(30)
    with Consumer(properties, {topic}) as late:
        while not late.positions:
            deadline.check("the first member's partitions")
            late.poll(0.1)
        before = late.group_member
        producer.begin_transaction()
        producer.send_offsets_to_transaction(late.positions, topic, before)
        producer.commit_transaction()
        with Consumer(properties, {topic}) as other:
            while not other.assignment:
                deadline.check("the second member's partitions")
                late.poll(0.1)
                other.poll(0.1)
            producer.begin_transaction()
            with pytest.raises(BrokerError, match="ILLEGAL_GENERATION"):
                producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic, before)
            producer.abort_transaction()


def test_what_is_committed_is_seen_once_by_both_readers(tools, topic, make):
    producer = make()
    group = {TopicPartition(topic, 0)}
    with KafkaCluster({"bootstrap.servers": tools.bootstrap_servers}) as cluster:
        for place, name in enumerate("abcdef"):
            producer.begin_transaction()
            producer.send(records(name))
            if name == "d":
                producer.flush()
                # It was let in, so those before it are marked; its own rows are not to be seen.
                assert readable(tools, topic) == values("a", "c")
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): place}, topic)
            if name in "bd":
                producer.abort_transaction()
            else:
                written = producer.commit_transaction()
                assert sum(item.records for item in written.values()) == 50
            expected = {"a": 0, "b": 0, "c": 2, "d": 2, "e": 4, "f": 5}[name]
            assert cluster.get_consumer_offsets(topic, group) == {
                TopicPartition(topic, 0): expected
            }
    producer.begin_transaction()  # an empty one is committed by saying nothing
    assert producer.commit_transaction() == {}
    assert committed(tools, topic) == values("a", "c", "e", "f")
    lines = console_lines(tools, topic, 200, "--isolation-level", "read_committed")
    assert sorted(line for line in lines if line[:1] in set("abcdef")) == values(*"acef")


def test_a_producer_of_the_same_id_fences_the_first_by_name(tools, topic, make):
    first, second = make(), make()
    first.begin_transaction()
    first.send(records("a"))
    first.flush()
    second.begin_transaction()
    second.send(records("b"))
    with pytest.raises(BrokerError, match=r"another producer .*has taken over") as seen:
        first.commit_transaction()
    assert topic in str(seen.value)
    first.abandon()
    second.commit_transaction()
    assert committed(tools, topic) == values("b")


def test_a_commit_that_comes_too_late_is_told_so(tools, topic, make, router):
    late = make(**{"transaction.timeout.ms": "5000"})
    late.begin_transaction()
    late.send(records("a"))
    late.flush()
    deadline = Deadline.after(60)
    while list_transactions(router, topic, {ONGOING}):  # brokers look every ten seconds
        deadline.check("waiting for the transaction to time out")
        time.sleep(_PAUSE_S)
    with pytest.raises(BrokerError, match=r"timed out.*\(transaction\.timeout\.ms\)") as seen:
        late.commit_transaction()
    assert committed(tools, topic) == []
    if seen.value.code != 48:  # a broker that fences whoever is late
        return
    late.abort_transaction()
    late.begin_transaction()
    late.send(records("b"))
    late.commit_transaction()
    assert committed(tools, topic) == values("b")


def test_another_process_ends_what_was_left_and_may_do_so_twice(tools, topic, make, router):
    kept, dropped, empty = make(f"{topic}-1"), make(f"{topic}-2"), make(f"{topic}-3")
    left = []
    for producer, name in ((kept, "a"), (dropped, "b")):
        producer.begin_transaction()
        producer.send(records(name))
        left.append(producer.leave_transaction())
    empty.begin_transaction()
    assert empty.leave_transaction() is None
    listed = list_transactions(router, topic, {ONGOING})
    assert [item.transactional_id for item in listed] == [f"{topic}-1", f"{topic}-2"]
    for _ in range(2):
        end_transactions(router, left[:1], commit=True)
        end_transactions(router, left[1:], commit=False)
    assert committed(tools, topic) == values("a")
    with pytest.raises(BrokerError, match=rf"{topic}-2.*ended the other way, or timed out"):
        end_transactions(router, left[1:], commit=True)
    assert list_transactions(router, topic, {ONGOING}) == []


def test_an_error_is_survived_by_aborting(tools, topic, make):
    producer = make(**{"max.request.size": "2000"})
    with pytest.raises(LocalProtocolError, match="call begin_transaction first"):
        producer.send(records("a"))
    producer.begin_transaction()
    with pytest.raises(LocalProtocolError, match="is open already"):
        producer.begin_transaction()
    producer.send(records("a"))
    with pytest.raises(KafkaProtoError, match=r"row 50.*max\.request\.size"):
        producer.send([ProducerRecord("x" * 5000)])
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(records("b"))
    producer.commit_transaction()
    assert committed(tools, topic) == values("b")


def test_what_the_broker_refuses_is_put_aside_in_the_same_transaction(tools, new_name, make):
    small, letters = new_name(), new_name()
    servers = tools.bootstrap_servers
    make_topic(servers, small, PARTITIONS, configs={"max.message.bytes": "3000"})
    make_topic(servers, letters, PARTITIONS)
    producer = make(topic=small, dead_letter_topic=letters)
    for name, end in (("a", producer.abort_transaction), ("b", producer.commit_transaction)):
        producer.begin_transaction()
        large = ProducerRecord("x" * 9000, partition=0)
        producer.send([*records(name), large, *records(f"{name}-")])
        producer.flush()
        assert producer.dead_letters
        end()
    assert committed(tools, small) == values("b", "b-")
    assert committed(tools, letters) == ["x" * 9000]


def test_a_timeout_beyond_the_brokers_is_refused(make):
    with pytest.raises(BrokerError, match="INVALID_TRANSACTION_TIMEOUT"):
        make(**{"transaction.timeout.ms": "2000000000"}).begin_transaction()
    with pytest.raises(ConfigError, match="need idempotence"):
        make(**{"enable.idempotence": "false"})
