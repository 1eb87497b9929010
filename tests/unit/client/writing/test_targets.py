"""Leaders that move unnoticed: with acks=0 a broker answers nothing, it hangs up at the most."""

import pytest

from pyspark_kafkaproto.client import ProducerRecord
from pyspark_kafkaproto.net import wait_for_answers
from tests.fake_broker import DEFAULT, STALL, close
from tests.fake_produce import produce, values

NOBODY = -1
AGE_S = 301  # more than metadata.max.age.ms


@pytest.fixture
def writer(producer):
    """One with acks=0, which is never tried again."""
    return producer(acks="0", linger_ms=0, retries=0)


@pytest.fixture
def write(brokers, writer):
    """Writes a number to partitions, in one request, which has arrived afterwards."""

    def send_and_flush(number, *partitions):
        before = len(brokers.asked("Produce"))
        writer.send([ProducerRecord(f"{number}", partition=item) for item in partitions])
        writer.flush()
        brokers.wait_for_call("Produce", before + 1)

    return send_and_flush


def hang_up_on_errors(brokers):
    """Take Produce with acks=0 as real brokers do: one that does not lead ends the connection."""

    def answer(call):
        (topic,) = call.request.topic_data
        leaders = brokers.topics[topic.name].leaders
        is_wrong = any(leaders[item.index] != call.node_id for item in topic.partition_data)
        return close() if is_wrong else produce(brokers, call)

    brokers.on("Produce", answer)


def wait_for_hang_up(writer):
    """Return once the writer can see that the broker has ended the connection, or has seen it."""
    (link,) = writer._sender._links.values()
    if link.connection is not None:
        assert wait_for_answers([link.connection], 10)


def written(brokers, partition):
    return [int(value) for value in values(brokers.logs["orders", partition])]


def test_a_newer_leader_is_heard_of_within_the_age_of_metadata(brokers, write, clock):
    write(0, 0, 1)
    brokers.topics["orders"].move(0, 2)
    write(1, 0)
    assert written(brokers, 0) == [0]
    clock.now += AGE_S
    write(2, 0)
    write(3, 1)
    assert written(brokers, 0) == [0, 2]
    assert written(brokers, 1) == [0, 3]
    assert len(brokers.asked("Metadata")) == 2


def test_where_nobody_leads_the_next_leader_is_waited_for(brokers, write, clock):
    hang_up_on_errors(brokers)
    write(0, 0)
    brokers.topics["orders"].move(0, NOBODY)
    clock.now += AGE_S
    brokers.on("Metadata", DEFAULT, DEFAULT, lambda _: brokers.topics["orders"].move(0, 2), DEFAULT)
    write(1, 0)
    assert written(brokers, 0) == [0, 1]


def test_a_hang_up_has_every_leader_looked_up_that_it_may_be_about(brokers, writer, write):
    hang_up_on_errors(brokers)
    write(0, 0, 1)
    for partition in (0, 1):
        brokers.topics["orders"].move(partition, 2)
    write(1, 0)
    wait_for_hang_up(writer)
    write(2, 0)
    write(3, 1)
    assert written(brokers, 0) == [0, 2]
    assert written(brokers, 1) == [0, 3]


def test_a_hang_up_about_nothing_costs_nothing(brokers, writer, write):
    write(0, 0)
    brokers.hang_up(1)
    wait_for_hang_up(writer)
    write(1, 0)
    assert written(brokers, 0) == [0, 1]


def test_an_older_leader_is_not_gone_back_to(brokers, producer):
    writer = producer()
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    (queue,) = writer._targets.queues()
    brokers.topics["orders"].move(0, 2)
    writer._targets.look_again({"orders"})
    assert (queue.leader.node_id, queue.leader.epoch) == (2, 1)
    brokers.topics["orders"].leaders[0], brokers.topics["orders"].epochs[0] = 1, 0
    writer._targets.look_again({"orders"})
    assert (queue.leader.node_id, queue.leader.epoch) == (2, 1)


@pytest.mark.parametrize("epoch", [-1, 0], ids=["unknown", "the same"])
def test_where_epochs_tell_nothing_the_leader_is_the_last_one_named(brokers, producer, epoch):
    brokers.topics["orders"].epochs[0] = epoch
    writer = producer()
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    (queue,) = writer._targets.queues()
    brokers.topics["orders"].leaders[0] = 2
    writer._targets.look_again({"orders"})
    assert (queue.leader.node_id, queue.leader.epoch) == (2, epoch)


def test_what_is_in_flight_is_answered_before_anything_goes_to_a_newer_leader(brokers, producer):
    writer = producer()
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    brokers.on("Produce", STALL)
    writer.send([ProducerRecord("1", partition=0)])
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    (queue,) = writer._targets.queues()
    assert queue.in_flight
    brokers.topics["orders"].move(0, 2)
    writer._targets.look_again({"orders"})
    assert queue.leader.node_id == 1
