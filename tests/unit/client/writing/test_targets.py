"""Leaders that move unnoticed: with acks=0 a broker answers nothing, it hangs up at the most."""

from dataclasses import replace

import pytest

from pyspark_kafkaproto.arrow import write_columns
from pyspark_kafkaproto.client import Producer, ProducerRecord
from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.plain import to_arrow
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.client.writing.targets import _follow
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.net import Deadline, Endpoint, wait_for_answers
from pyspark_kafkaproto.records import partition_keys
from tests.fake_broker import DEFAULT, STALL, close
from tests.fake_past import behind
from tests.fake_produce import produce, refusing, stamped, values
from tests.unit.client.willing import be_willing

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


class Daily:
    """Writes a record to a topic of each day, which is deleted after a while.

    Args:
        brokers: the fake nodes.
        producer: of records that name their topic.
        clock: of both.
    """

    def __init__(self, brokers, producer, clock):
        self.brokers, self.producer, self.clock = brokers, producer, clock

    def write(self, *topics):
        is_transactional = self.producer.config.transactional_id is not None
        if is_transactional:
            self.producer.begin_transaction()
        self.producer.send([ProducerRecord("x", topic=topic, partition=0) for topic in topics])
        return self.producer.commit_transaction() if is_transactional else self.producer.flush()

    def let_days_pass(self, days):
        """Two looks at metadata in each."""
        for day in range(days):
            self.brokers.add_topic(topic := f"day-{day}")
            assert len(self.write("orders", topic)) == 2
            del self.brokers.topics[topic]
            for _ in range(3):
                self.clock.now += AGE_S
                self.write("orders")


@pytest.fixture
def daily(brokers, clock):
    """With the clock standing still; properties as keywords."""
    made = []

    def open_one(**properties):
        given = {name.replace("_", "."): value for name, value in properties.items()}
        made.append(Producer({"bootstrap.servers": brokers.bootstrap_servers} | given))
        return Daily(brokers, made[0], clock)

    yield open_one
    made[0].close()


@pytest.mark.parametrize("acks", ["all", "1"])
def test_topics_that_are_gone_are_forgotten(brokers, daily, acks):
    """Else who writes to another one each day would ask for all that ever were."""
    days = daily(acks=acks)
    days.let_days_pass(4)
    assert {queue.partition.topic for queue in days.producer._targets.queues()} == {"orders"}
    asked = brokers.asked("Metadata")[-1]
    assert [topic.name for topic in asked.topics] == ["orders"]
    assert len(values(brokers.logs["orders", 0])) == 4 * 4


@pytest.mark.parametrize("version", [1, 2])
def test_topics_that_are_gone_are_forgotten_in_transactions(brokers, daily, version):
    """Where one has the epoch of the last one, sequences go on: a new one is asked for."""
    be_willing(brokers, version)
    brokers.versions.pop("DescribeTransactions")  # nobody else has the id
    days = daily(transactional_id="mine")
    days.let_days_pass(4)
    days.write("orders")
    assert {queue.partition.topic for queue in days.producer._targets.queues()} == {"orders"}
    assert days.producer._targets._by_name.keys() == {"orders"}
    begun = 1 + 4 if version == 1 else 1
    assert len(brokers.asked("InitProducerId")) == begun


def test_one_that_only_seemed_to_be_gone_is_written_to_under_the_next_epoch(brokers, daily):
    """A sequence from the start on would be one that the broker has: it would write nothing."""
    days = daily()
    brokers.add_topic("seems")
    days.write("orders", "seems")
    behind = brokers.topics.pop("seems")
    for _ in range(3):
        days.clock.now += AGE_S
        days.write("orders")
    brokers.topics["seems"] = behind
    days.write("orders", "seems")
    assert len(values(brokers.logs["seems", 0])) == 2
    epochs = [epoch for _, epoch, _ in stamped(brokers.logs["seems", 0])]
    assert epochs == [0, 1]
    assert {epoch for _, epoch, _ in stamped(brokers.logs["orders", 0])} == {0}
    days.producer.close()
    with Producer({"bootstrap.servers": brokers.bootstrap_servers}, topic="seems") as after:
        after.send([ProducerRecord("y", partition=0)])
    assert [epoch for _, epoch, _ in stamped(brokers.logs["seems", 0])] == [0, 1, 2]


def test_a_topic_that_is_missed_for_a_moment_is_not_forgotten(brokers, daily):
    days = daily()
    brokers.add_topic("seems")
    days.write("orders", "seems")
    for _ in range(4):
        behind = brokers.topics.pop("seems")
        days.clock.now += AGE_S
        days.write("orders")
        brokers.topics["seems"] = behind
        days.clock.now += AGE_S
        days.write("orders")
    days.write("seems")
    assert [epoch for _, epoch, _ in stamped(brokers.logs["seems", 0])] == [0, 0]


def test_a_topic_that_one_broker_alone_does_not_know_is_not_forgotten(brokers, daily):
    """A broker that is cut off from the controller misses it for hours, and answers all the same.

    Written to again it would be looked up there, too: the rows would be refused for good.
    """
    days = daily()
    brokers.add_topic("seems")
    days.write("orders", "seems")
    brokers.on("Metadata", behind(brokers, "seems", None), node=1)
    for _ in range(4):
        days.clock.now += AGE_S
        days.write("orders")
    days.write("seems")
    assert [epoch for _, epoch, _ in stamped(brokers.logs["seems", 0])] == [0, 0]


# --- topics that are made again


@pytest.fixture
def anew(brokers, producer):
    """A topic that has `count` partitions, of which a producer learns with each row."""

    def make(count, **properties):
        brokers.add_topic("anew", count)
        brokers.versions["Produce"] = (0, 13)  # by topic id
        return producer("anew", metadata_max_age_ms=0, **properties)

    return make


def test_keys_go_where_they_belong_in_a_topic_that_was_made_again_with_less(brokers, anew):
    writer = anew(5)
    rows = [ProducerRecord(f"{n}", key=f"{n}") for n in range(50)]
    writer.send(rows)
    writer.flush()
    brokers.make_again("anew", 3)
    writer.send(rows)
    writer.flush()
    keys = partition_keys(write_columns(to_arrow(rows)), 3, "murmur2")
    placed = memoryview(keys).cast("B").cast("i")
    for number in range(3):
        wanted = [f"{n}".encode() for n in range(50) if placed[n] == number]
        assert values(brokers.logs["anew", number]) == wanted


def test_where_the_new_topic_is_known_nothing_is_sent_to_the_old_one(brokers, anew):
    writer = anew(2, retries=0)
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    brokers.make_again("anew", 2)
    writer.send([ProducerRecord("1", partition=0)])
    writer.flush()
    assert values(brokers.logs["anew", 0]) == [b"1"]


def test_a_broker_that_knows_less_of_the_same_topic_is_not_believed(brokers, producer):
    writer = producer(metadata_max_age_ms=0)
    rows = [ProducerRecord(f"{n}", key=f"{n}") for n in range(20)]
    writer.send(rows)
    writer.flush()
    known = brokers.topics["orders"]
    brokers.topics["orders"] = replace(known, leaders=known.leaders[:1], epochs=known.epochs[:1])
    writer.send([])
    assert len(writer._targets["orders"].topic.partitions) == 2
    brokers.topics["orders"] = known


def test_rows_that_may_go_anywhere_leave_out_where_others_wait_for_a_leader(brokers, producer):
    brokers.topics["orders"].move(1, 2)
    writer = producer(batch_size=1000, linger_ms=0)
    some = [ProducerRecord(b"x" * 100) for _ in range(10)]
    for _ in range(20):
        writer.send(some)
    writer.flush()
    brokers.topics["orders"].leaders[1] = NOBODY
    writer.send([ProducerRecord("first", partition=1)])
    queue = writer._targets["orders"].queues[1]
    until = Deadline.after(10)
    while queue.leader is not None:
        writer._sender._turn(0.01, is_pressing=True)
        until.check("nobody to lead")
    for _ in range(100):
        writer.send(some)
    assert sum(batch.records for batch in queue.unsent()) == 1
    brokers.topics["orders"].leaders[1] = 2
    writer.flush()
    before = len(values(brokers.logs["orders", 1]))
    for _ in range(20):
        writer.send(some)
    writer.flush()
    assert len(values(brokers.logs["orders", 1])) > before, "it has a leader again"


def test_where_no_other_partition_is_led_rows_wait_with_the_others(brokers, producer):
    """Not where nobody has led for long: those would fail the write."""
    brokers.topics["orders"].leaders[1] = NOBODY
    writer = producer(linger_ms=0, batch_size=500)
    some = [ProducerRecord(b"x" * 100) for _ in range(10)]
    writer.send(some)
    writer.flush()
    brokers.topics["orders"].leaders[0] = NOBODY
    brokers.on("Produce", refusing(6), DEFAULT)
    writer.send([ProducerRecord("first")])
    queues = writer._targets["orders"].queues
    until = Deadline.after(10)
    while queues[0].leader is not None:
        writer._sender._turn(0.01, is_pressing=True)
        until.check("nobody to lead")
    for _ in range(10):
        writer.send(some)
    assert 1 not in queues
    brokers.topics["orders"].leaders[0] = 1
    writer.flush()
    assert len(values(brokers.logs["orders", 0])) == 111


def queue_led(leader, topic_id, *, is_sending=False):
    queue = PartitionQueue(TopicPartition("orders", 0), Sequences(Identity(1000, 0)), 1000)
    queue.leader, queue.topic_id = leader, topic_id
    if is_sending:
        queue.in_flight.append(Batch(b"", 1, (1,), 0, []))
    return queue


def leader(node_id, epoch):
    return Leader(node_id, Endpoint(f"b-{node_id}", 9092), epoch)


@pytest.mark.parametrize(
    ("queue", "found", "topic_id", "expected"),
    [
        (queue_led(leader(1, 5), b"1"), leader(2, 6), b"1", (leader(2, 6), b"1")),
        (queue_led(leader(1, 5), b"1"), leader(2, 5), b"1", (leader(2, 5), b"1")),
        (queue_led(leader(1, 5), b"1"), leader(2, 4), b"1", (leader(1, 5), b"1")),
        (queue_led(leader(1, 5), b"1"), leader(2, 6), None, (leader(2, 6), b"1")),
        (queue_led(leader(1, 5), b"1"), None, b"1", (None, b"1")),
        (queue_led(leader(1, 5), b"1"), leader(2, 0), b"2", (leader(2, 0), b"2")),
        (queue_led(None, b"1"), leader(2, 6), b"2", (None, b"1")),
        (queue_led(leader(1, 5), b"1", is_sending=True), leader(2, 6), b"1", (leader(1, 5), b"1")),
    ],
)
def test_metadata_moves_what_has_a_leader_to_one_that_is_no_older(queue, found, topic_id, expected):
    """Of who has none the leader is looked up when it is sent to."""
    _follow(queue, found, topic_id)
    assert (queue.leader, queue.topic_id) == expected


def test_what_was_learned_of_a_topic_outlasts_its_queues(brokers, producer):
    writer = producer()
    writer.send([ProducerRecord("0", partition=0)])
    writer.flush()
    target = writer._targets["orders"]
    target.queues[0].leader, target.queues[0].topic_id = leader(2, 9), b"another id"
    writer._targets.forget_queues()
    assert not target.queues
    assert (target.leaders[0], target.topic.topic_id) == (leader(2, 9), b"another id")
