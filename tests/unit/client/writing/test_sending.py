"""What a failure costs: one wait for one reason, no try that was not sent, no others' time."""

import itertools
import socket
import threading
import time
from math import inf

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import Producer, ProducerRecord
from pyspark_kafkaproto.client.writing import links, sending
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError, DeadlineExceeded
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import Deadline, ProducerConfig, pool
from tests.fake_broker import DEFAULT, STALL, FakeTopic, Fault, close, metadata, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_login import AS_KEYWORDS, logged_in, want_login
from tests.fake_produce import Written, produce, refusing, values, write
from tests.interrupted import Interrupted
from tests.unit.client.faults import wait_until_answered, while_others_are_sent

SLOW_S = 1.0  # the first wait after a failure, in tests of what it costs


def numbered(count, start=0, partition=0):
    return [ProducerRecord(f"{n}", partition=partition) for n in range(start, start + count)]


def expected(count):
    return [f"{n}".encode() for n in range(count)]


def half(answer):
    """The first bytes of an answer, and nothing more on a connection that stays open."""
    return Fault(answer, lambda frame: frame[:9])


def throttled(brokers, throttle_ms):
    """Answers to Produce after which the broker wants silence."""

    def answer(call):
        responses = produce(brokers, call).responses
        return ProduceResponse(responses=responses, throttle_time_ms=throttle_ms)

    return answer


def took(work):
    """Seconds that `work` takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


# --- how often, and how long


@pytest.mark.slow
def test_a_broker_that_cannot_be_reached_uses_up_no_retries(brokers, producer):
    brokers.topics["orders"].move(0, 2)
    writer = producer(retries=3)
    writer.send(numbered(1))
    brokers.stop(2)
    moving = threading.Timer(1.5, lambda: brokers.topics["orders"].move(0, 1))
    moving.start()
    writer.flush()
    moving.join()
    assert values(brokers.logs["orders", 0]) == expected(1)


@pytest.mark.slow
def test_a_failure_behind_a_batch_that_was_replaced_is_waited_for(brokers, pipelined, monkeypatch):
    """It has a reason of its own."""
    monkeypatch.setattr(pipelined._sender, "pump", lambda: None)  # both go out with the flush
    brokers.on("Produce", refusing(10), refusing(19), DEFAULT)
    pipelined.send(numbered(6, 1))
    assert took(pipelined.flush) > SLOW_S / 2
    assert values(brokers.logs["orders", 0]) == expected(7)


@pytest.mark.slow
def test_a_leader_whose_advertised_address_is_not_reached_says_what_to_set(
    brokers, producer, caplog
):
    brokers.topics["orders"].move(0, 2)
    brokers.advertised = {2: ("nowhere.invalid", 9092)}
    writer = producer(delivery_timeout_ms=400, request_timeout_ms=300, linger_ms=0)
    writer.send(numbered(1))
    with pytest.raises(DeadlineExceeded, match="advertises this address") as caught:
        writer.flush()
    told = [text for text in caplog.messages if "advertised.listeners=PLAINTEXT://" in text]
    assert len(told) == 1, "it was tried for 0.4 s"
    assert told[0] in str(caught.value)


def test_the_time_of_a_caller_who_is_away_is_not_the_brokers(brokers, producer, clock):
    brokers.on("Produce", refusing(6), DEFAULT)
    writer = producer()
    writer.send(numbered(10))
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    wait_until_answered(writer)
    clock.now += 1000
    writer.send(numbered(10, 10))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(20)


@pytest.mark.parametrize("period_s", [0.9, 1.1, 30])
def test_what_is_refused_each_time_is_given_up_however_seldom_rows_come(
    brokers, producer, clock, period_s
):
    brokers.on("Produce", refusing(19))
    writer = producer(request_timeout_ms=500, delivery_timeout_ms=2000, linger_ms=0)

    def send_seldom():
        for number in range(20):
            writer.send(numbered(1, number))
            if any(link.sent for link in writer._sender._links.values()):
                wait_until_answered(writer)
            clock.now += period_s

    with pytest.raises(DeadlineExceeded, match="not done within 2 s"):
        send_seldom()


def test_after_an_absence_there_is_time_for_another_try_however_short_it_is(
    brokers, producer, clock
):
    brokers.on("Produce", refusing(19), DEFAULT)
    writer = producer(request_timeout_ms=500, delivery_timeout_ms=600, linger_ms=0)
    writer.send(numbered(1))
    wait_until_answered(writer)
    clock.now += 5
    writer.send(numbered(1, 1))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(2)


@pytest.mark.parametrize("linger_ms", [0, 1000])
def test_while_rows_come_fast_brokers_are_looked_at_now_and_then(
    brokers, producer, clock, monkeypatch, linger_ms
):
    """A look has its price, and what is finished meanwhile shares a request."""
    monkeypatch.setattr(sending, "_MOMENT_S", 0.02)
    writer = producer(batch_size=100, linger_ms=linger_ms)

    def is_under_way():
        return any(link.sent for link in writer._sender._links.values())

    writer.send(numbered(30))
    assert writer._sender.held_bytes > 0
    assert is_under_way() == (linger_ms == 0)
    clock.now += 0.021
    writer.send(numbered(1, 30))
    assert is_under_way()
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(31)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 250])
def test_partitions_without_a_leader_are_looked_up_together(brokers, producer, clock, count):
    """Each with a pause of its own would be hundreds of Metadata requests a second."""
    rows = pa.record_batch({"value": [b"v"] * count, "partition": range(count)})
    known = brokers.topics["many"]
    led, back_at = list(known.leaders), clock.now + 5.0
    write_to = producer(topic="many", retry_backoff_ms=100, retry_backoff_max_ms=1000)
    write_to.send(rows)
    write_to.flush()
    known.leaders[:] = [-1] * len(led)

    def elect(_):
        if clock.now >= back_at:
            known.leaders[:] = led
        return DEFAULT

    brokers.on("Metadata", elect)
    write_to.send(rows)
    write_to.flush()
    assert clock.now >= back_at
    assert len(brokers.asked("Metadata")) <= 12
    assert len(brokers.asked("Produce")) <= 4


def test_patience_with_one_failure_is_not_used_up_by_another(brokers, producer, clock):
    """A broker that has just come up does not know the topic yet."""
    writer = producer(retry_backoff_ms=500, retry_backoff_max_ms=500)

    def not_yet(call):
        known = [
            MetadataResponse.Broker(node_id=node, host=host, port=port)
            for node, (host, port) in brokers.places().items()
        ]
        topic = MetadataResponse.Topic(name="orders", error_code=3)
        return MetadataResponse(brokers=tuple(known), topics=(topic,), controller_id=1)

    brokers.on("Produce", *[refusing(19)] * 10, refusing(6), DEFAULT)
    writer.check_topics({"orders"})
    brokers.on("Metadata", not_yet, DEFAULT)
    writer.send(numbered(1))
    writer.flush()
    assert sum(clock.slept) > 4
    assert values(brokers.logs["orders", 0]) == expected(1)


def test_one_broker_that_does_not_know_the_topic_is_not_believed_at_once(brokers, producer, clock):
    """However long the waits between tries have grown."""
    writer = producer(retry_backoff_ms=2000, retry_backoff_max_ms=2000)
    writer.check_topics({"orders"})

    def gone(call):
        brokers.topics["orders"].error_code = 3
        found = metadata(brokers, call)
        brokers.topics["orders"].error_code = 0
        return found

    brokers.on("Produce", refusing(6), DEFAULT)
    brokers.on("Metadata", gone, gone, gone, DEFAULT)
    writer.send(numbered(1))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(1)
    assert sum(clock.slept) > 4


def test_a_broker_that_names_the_leader_of_yesterday_is_not_asked_again(brokers, producer):
    topic = brokers.topics["orders"]
    writer = producer(delivery_timeout_ms=5000, request_timeout_ms=2000)
    topic.move(0, 2)
    writer.send(numbered(1))
    writer.flush()

    def dated(call):
        now = topic.leaders[0], topic.epochs[0]
        topic.leaders[0], topic.epochs[0] = 2, 1
        found = metadata(brokers, call)
        topic.leaders[0], topic.epochs[0] = now
        return found

    brokers.on("Metadata", dated, node=1)
    topic.move(0, 1)
    writer.send(numbered(2)[1:])
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(2)
    assert len(brokers.asked("Metadata", node=1)) <= 3


@pytest.mark.slow
def test_a_throttle_does_not_outlast_the_delivery_timeout(brokers, producer):
    brokers.on("Produce", throttled(brokers, 60_000), DEFAULT)
    writer = producer(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0)
    writer.send(numbered(1))
    writer.flush()
    writer.send(numbered(2)[1:])
    text = r"write row 1 .* not done within 1 s.*broker .* throttles this client"
    with pytest.raises(DeadlineExceeded, match=f"(?s){text}"):
        writer.flush()


def test_who_is_not_throttled_is_not_said_to_be(brokers, producer):
    brokers.on("Produce", refusing(6))
    writer = producer(delivery_timeout_ms=1000, request_timeout_ms=500, linger_ms=0)
    writer.send(numbered(1))
    with pytest.raises(DeadlineExceeded, match="NOT_LEADER_OR_FOLLOWER") as caught:
        writer.flush()
    assert "throttles" not in str(caught.value)


@pytest.mark.slow
def test_under_a_steady_quota_all_is_written_in_its_turn(brokers, producer):
    """However long that takes in all: the broker takes something all the time."""
    brokers.topics["wide"] = FakeTopic(topic_id_of("wide"), [1] * 12, [0] * 12)
    brokers.logs |= {("wide", partition): FakeLog() for partition in range(12)}

    brokers.on("Produce", throttled(brokers, 200))
    writer = producer(
        "wide", delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0, batch_size=100,
        max_request_size=100, max_in_flight_requests_per_connection=1,
    )  # fmt: skip
    writer.send([ProducerRecord(f"{n}", partition=n) for n in range(12)])
    written = writer.flush().values()
    assert sum(each.records for each in written) == 12
    assert sum(each.retries for each in written) == 0, "to wait is no try"


@pytest.fixture
def pipelined(brokers, producer):
    """A producer that the broker knows, so that it sends five batches at a time."""
    writer = producer(
        batch_size=100, retry_backoff_ms=int(SLOW_S * 1000), retry_backoff_max_ms=60_000
    )
    writer.send(numbered(1))
    writer.flush()
    return writer


@pytest.mark.slow
def test_a_lost_connection_is_one_failure_whatever_was_in_flight(brokers, pipelined):
    brokers.on("Produce", close(), DEFAULT)
    pipelined.send(numbered(60, 1))
    assert took(pipelined.flush) < 2 * SLOW_S
    assert values(brokers.logs["orders", 0]) == expected(61)


def naming(brokers, node_id=2, epoch=1):
    """A leader that says who leads now."""
    in_partition = ProduceResponse.Topic.Partition

    def named(call):
        (topic,) = call.request.topic_data
        leader = in_partition.CurrentLeader(leader_id=node_id, leader_epoch=epoch)
        refused = in_partition(index=0, error_code=6, base_offset=-1, current_leader=leader)
        host, port = brokers.places()[node_id]
        return ProduceResponse(
            responses=(ProduceResponse.Topic(name=topic.name, partition_responses=(refused,)),),
            node_endpoints=(ProduceResponse.NodeEndpoint(node_id=node_id, host=host, port=port),),
        )

    return named


def test_a_leader_that_an_answer_names_is_asked_at_once(brokers, clock, pipelined):
    brokers.topics["orders"].move(0, 2)
    brokers.on("Produce", naming(brokers), node=1)
    asked = len(brokers.asked("Metadata"))
    pipelined.send(numbered(60, 1))
    pipelined.flush()
    assert sum(clock.slept) < SLOW_S / 2
    assert len(brokers.asked("Metadata")) == asked
    assert values(brokers.logs["orders", 0]) == expected(61)


def test_one_that_names_itself_as_before_is_left_alone_for_a_while(brokers, clock, pipelined):
    brokers.on("Produce", naming(brokers, node_id=1, epoch=0), DEFAULT)
    pipelined.send(numbered(1, 1))
    pipelined.flush()
    assert sum(clock.slept) > SLOW_S / 2
    assert values(brokers.logs["orders", 0]) == expected(2)


def test_nor_is_it_forgotten_over_what_the_last_one_answers_next(
    brokers, clock, producer, monkeypatch
):
    writer = producer(batch_size=100, linger_ms=600_000)
    writer.send(numbered(1))
    writer.flush()
    monkeypatch.setattr(writer._sender, "pump", lambda: None)  # both go out with the flush
    brokers.topics["orders"].move(0, 2)
    brokers.on("Produce", naming(brokers), node=1)
    asked = len(brokers.asked("Metadata"))
    writer.send(numbered(6, 1))
    writer.flush()
    assert len(brokers.asked("Produce", node=1)) == 1 + 2
    assert len(brokers.asked("Metadata")) == asked
    assert clock.slept == []


def test_a_leader_that_only_the_second_answer_names_is_asked(brokers, clock, producer, monkeypatch):
    """By then the first has said that who was asked leads no more, and not who does."""
    writer = producer(batch_size=100, linger_ms=600_000)
    writer.send(numbered(1))
    writer.flush()
    monkeypatch.setattr(writer._sender, "pump", lambda: None)  # both go out with the flush
    brokers.topics["orders"].move(0, 2)
    brokers.on("Produce", refusing(6), naming(brokers), node=1)
    asked = len(brokers.asked("Metadata"))
    writer.send(numbered(6, 1))
    writer.flush()
    assert len(brokers.asked("Produce", node=1)) == 1 + 2
    assert len(brokers.asked("Metadata")) == asked
    assert values(brokers.logs["orders", 0]) == expected(7)


# --- a broker that has forgotten the producer


def test_after_a_long_silence_one_batch_goes_first(brokers, producer, clock):
    writer = producer(batch_size=100, max_request_size=100)
    writer.send(numbered(5))
    writer.flush()
    clock.now += 1000
    brokers.logs["orders", 0].producers.clear()
    brokers.on("Produce", refusing(19), DEFAULT)
    writer.send(numbered(30, 5))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(35)


@pytest.mark.parametrize("code", [19, 10, 3, 6])  # the last two may come behind an append
def test_what_a_forgetful_broker_lets_overtake_fails_the_write(brokers, producer, code):
    writer = producer(batch_size=100, max_request_size=100)
    writer.send(numbered(5))
    writer.flush()
    brokers.logs["orders", 0].producers.clear()
    brokers.on("Produce", refusing(code), DEFAULT)

    def write():
        writer.send(numbered(30, 5))
        writer.flush()

    with pytest.raises(BrokerError, match=r"orders-0, .*not written, but .*comes after it"):
        write()


def test_what_was_let_overtake_hides_nothing_else_that_is_written(brokers, producer):
    """Of another partition, which the same answer is about."""
    writer = producer(batch_size=100)
    writer.send([*numbered(5), *numbered(5, partition=1)])
    writer.flush()
    brokers.logs["orders", 0].producers.clear()

    def refuse_one(call):
        (topic,) = call.request.topic_data
        refused, other = topic.partition_data
        told = Written(index=refused.index, error_code=19), write(brokers, call, "orders", other)
        answered = ProduceResponse.Topic(name="orders", partition_responses=told)
        return ProduceResponse(responses=(answered,))

    brokers.on("Produce", while_others_are_sent(writer, refuse_one), DEFAULT)
    with pytest.raises(BrokerError, match=r"orders-0, .*not written, but .*comes") as caught:
        send_and_flush(writer, [*numbered(30, 5), *numbered(30, 5, partition=1)])
    written = caught.value.usable[TopicPartition("orders", 1)]
    assert written.last_offset == brokers.logs["orders", 1].stop - 1 > 5


def send_and_flush(writer, rows):
    writer.send(rows)
    writer.flush()


@pytest.mark.parametrize("code", [7, 20])
@pytest.mark.parametrize("before", [5, 50])
def test_what_is_written_to_a_topic_that_was_made_again_is_not_taken_for_lost(
    brokers, producer, code, before
):
    """There offsets begin anew, and those of before say nothing of what may be written."""
    writer = producer(batch_size=100, max_request_size=100)
    writer.send(numbered(before))
    writer.flush()
    log = brokers.logs["orders", 0] = FakeLog()

    def appended(call):
        produce(brokers, call)
        return refusing(code)(call)

    brokers.on("Produce", appended, DEFAULT)
    writer.send(numbered(30, before))
    writer.flush()
    assert values(log) == expected(before + 30)[before:]


# --- other leaders


@pytest.mark.slow
def test_a_leader_that_throttles_does_not_hold_up_another(brokers, producer):
    brokers.topics["orders"].move(1, 2)

    brokers.on("Produce", throttled(brokers, 2000), node=1)
    writer = producer(linger_ms=0)
    writer.send(numbered(1, 0, 0) + numbered(1, 0, 1))
    writer.flush()

    def both():
        writer.send(numbered(1, 1, 0))
        writer.send(numbered(1, 1, 1))

    assert took(both) < 1
    writer.flush()
    assert [values(brokers.logs["orders", number]) for number in (0, 1)] == [expected(2)] * 2


@pytest.fixture
def sharing(brokers):
    """Makes producers that share connections, as tasks of Spark do; properties as keywords."""

    def make(**properties):
        given = {name.replace("_", "."): f"{value}" for name, value in properties.items()}
        servers = {"bootstrap.servers": brokers.bootstrap_servers, "linger.ms": "0"}
        config = ProducerConfig.of_producer(servers | given)
        return Producer(config, topic="orders", connections=pool.connections_for(config.client))

    return make


@pytest.mark.slow
def test_nor_does_one_that_has_throttled_the_producer_before(brokers, sharing):
    brokers.topics["orders"].move(1, 2)

    brokers.on("Produce", throttled(brokers, 2000), node=1)
    with sharing() as before:
        before.send(numbered(1, 0, 0))
    with sharing() as writer:
        assert took(lambda: writer.send(numbered(1, 1, 0) + numbered(1, 1, 1))) < 1
    assert values(brokers.logs["orders", 0]) == expected(2)


def test_an_interrupted_send_leaves_others_no_connection_with_an_answer_to_come(sharing):
    """Nobody would take it, so nobody could use that connection, and nothing would close it."""
    met = 0
    for nth in itertools.count(1):
        writer = sharing()
        writer.send(numbered(1))
        writer.flush()
        try:
            with Interrupted(nth, {links.__file__}):
                writer.send(numbered(1, 1))
        except KeyboardInterrupt:
            met += 1
            assert not pool.connections_for(writer.config.client).is_busy
        else:
            writer.abandon()
            break
    assert met > 5


@pytest.mark.slow
def test_half_a_request_of_another_producer_holds_nobody_up(brokers, sharing):
    brokers.nodes[1]._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 102_400)
    goes_on = threading.Event()

    def reads_nothing(call):
        answer = produce(brokers, call)
        return Fault(answer, lambda frame: (goes_on.wait(30), frame)[1])

    room = {"max_request_size": 9_000_000, "buffer_memory": 64 << 20}
    with sharing(**room) as one, sharing(**room) as other:
        for number, writer in enumerate((one, other)):
            writer.send(numbered(1, 0, number))
            writer.flush()  # over the same connection
        brokers.on("Produce", reads_nothing, DEFAULT)
        other.send(numbered(1, 1, 1))
        other.send([ProducerRecord(b"x" * 8_000_000, partition=1)])
        (link,) = other._sender._links.values()
        until = Deadline.after(10)
        while not link.connection.has_unsent:
            other._sender._turn(0.01, is_pressing=True)
            until.check("half a request to go out")
        try:
            one.send(numbered(1, 1, 0))
            assert took(one.flush) < 5
        finally:
            goes_on.set()
    assert values(brokers.logs["orders", 0]) == expected(2)
    assert len(values(brokers.logs["orders", 1])) == 3


@pytest.mark.slow
def test_an_answer_that_came_while_half_a_one_was_waited_for_counts(brokers, producer):
    brokers.topics["orders"].move(1, 2)
    brokers.on("Produce", lambda call: half(produce(brokers, call)), DEFAULT, node=1)

    def later(call):
        time.sleep(0.2)  # behind the half
        return produce(brokers, call)

    brokers.on("Produce", later, DEFAULT, node=2)
    writer = producer(acks=1, request_timeout_ms=2000, delivery_timeout_ms=10_000)
    writer.send(numbered(1, 0, 0) + numbered(1, 0, 1))
    written = writer.flush()
    assert written["orders", 1].retries == 0
    assert values(brokers.logs["orders", 1]) == expected(1)


def test_half_an_answer_holds_nobody_up(brokers, producer):
    brokers.on("Produce", lambda call: half(produce(brokers, call)))
    writer = producer(acks=1)
    writer.send(numbered(10))
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    (link,) = writer._sender._links.values()
    deadline = Deadline.after(10)
    while not link.connection.heard_at:
        deadline.check("waiting for half an answer")
        assert took(writer._sender.pump) < 1


@pytest.fixture
def half_answered(brokers, producer):
    """A producer, its connection with half an answer of an acknowledged batch, and when to go on.

    The login there has to be renewed, and another batch waits to be sent.
    """
    want_login(brokers)
    rest = threading.Event()

    def answer(call):
        return Fault(throttled(brokers, 100)(call), rest_after=rest)

    brokers.on("Produce", answer, DEFAULT)
    # Without idempotence whatever is sent again is written again.
    writer = producer(acks=1, enable_idempotence="false", linger_ms=0, **AS_KEYWORDS)
    writer.send(numbered(1, partition=0))
    (link,) = writer._sender._links.values()
    deadline = Deadline.after(10)
    while not link.connection.heard_at:
        deadline.check("waiting for half an answer")
        writer._sender.pump()
    link.connection._renew_login_at = 0.0
    yield writer, link.connection, rest
    rest.set()


@pytest.mark.slow
@pytest.mark.parametrize("again", [logged_in(), close()])
def test_a_login_is_renewed_behind_what_is_in_flight(brokers, half_answered, again):
    writer, connection, rest = half_answered
    brokers.on("SaslAuthenticate", again, logged_in())
    assert took(lambda: writer.send(numbered(1, 0, 1))) < 1
    assert took(lambda: writer._sender._turn(0.0, is_pressing=True)) < 1
    assert connection.in_flight == 1
    threading.Timer(0.1, rest.set).start()
    written = writer.flush()
    assert written["orders", 0].retries == 0
    assert [values(brokers.logs["orders", number]) for number in (0, 1)] == [expected(1)] * 2


def test_a_leader_that_just_failed_gets_little_of_the_others_time(brokers, producer, monkeypatch):
    brokers.topics["orders"].move(1, 2)
    writer = producer(linger_ms=0)
    given_s = []
    get = pool.Connections.get

    def spy(connections, endpoint, deadline):
        if endpoint.port == brokers.places()[2][1]:
            given_s.append(deadline.remaining_s)
        return get(connections, endpoint, deadline)

    monkeypatch.setattr(pool.Connections, "get", spy)
    brokers.stop(2)
    deadline = Deadline.after(10)
    while min(given_s[1:], default=inf) > 1:  # more only while no other leader has anything to do
        deadline.check("waiting for a hurried try")
        writer.send(numbered(1, partition=0) + numbered(1, partition=1))
        writer._sender._turn(0.02, is_pressing=True)
    brokers.topics["orders"].move(1, 1)
    writer.flush()
    assert given_s[0] > 5


@pytest.mark.slow
def test_a_leader_that_hangs_is_not_asked_who_takes_its_place(brokers, producer):
    """It takes connections all the same, and others would wait for an answer to that."""
    brokers.topics["orders"].move(1, 2)
    writer = producer(linger_ms=0, request_timeout_ms=1500)
    writer.send(numbered(1, 0, 0) + numbered(1, 0, 1))
    writer.flush()
    for api in ("ApiVersions", "Metadata", "Produce"):
        brokers.on(api, STALL, node=1)
    brokers.topics["orders"].move(0, 2)
    writer.send(numbered(1, 1, 0))
    longest_s = 0.0
    until = Deadline.after(10)
    while len(values(brokers.logs["orders", 0])) < 2:
        longest_s = max(longest_s, took(lambda: writer.send(numbered(1, 1, 1))))
        until.check("the row to be written")
    assert longest_s < 1  # not request.timeout.ms once more


@pytest.mark.slow
def test_half_a_request_holds_no_other_leader_up(brokers, producer):
    """Of a leader that reads nothing more, as one that was stopped: its kernel takes little."""
    brokers.nodes[2]._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 102_400)
    brokers.topics["orders"].move(1, 2)
    goes_on = threading.Event()

    def reads_nothing(call):
        answer = produce(brokers, call)
        return Fault(answer, lambda frame: (goes_on.wait(30), frame)[1])

    writer = producer(linger_ms=0, max_request_size=5_000_000, buffer_memory=64 << 20)
    writer.send(numbered(1, 0, 0) + numbered(1, 0, 1))
    writer.flush()
    brokers.on("Produce", reads_nothing, DEFAULT, node=2)
    longest_s = 0.0
    large = [ProducerRecord(b"x" * 4_000_000, partition=1)]
    try:
        for number in range(4):
            longest_s = max(longest_s, took(lambda: writer.send(large)))
            one = numbered(1, 1 + number, 0)
            longest_s = max(longest_s, took(lambda rows=one: writer.send(rows)))
            until = Deadline.after(10)
            while len(values(brokers.logs["orders", 0])) < 2 + number:
                writer._sender._turn(0.01, is_pressing=True)
                until.check("the other leader's row to be written")
    finally:
        goes_on.set()
    assert longest_s < 2
    writer.flush()
    assert values(brokers.logs["orders", 0]) == expected(5)
    assert len(values(brokers.logs["orders", 1])) == 5
