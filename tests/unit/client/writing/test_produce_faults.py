"""Leaders that refuse, move, forget, hang up or stall: every row once, in order, or an error."""

import itertools
import random
from functools import partial

import pytest

from pyspark_kafkaproto.client import Producer, ProducerRecord
from pyspark_kafkaproto.client import produce as produce_module
from pyspark_kafkaproto.client.writing.plain import decoded_batch, records_of
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.error_codes import DUPLICATE_SEQUENCE_NUMBER
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import ProducerConfig
from pyspark_kafkaproto.records.layout import HEADER
from tests.examples import first, marked
from tests.fake_broker import DEFAULT, STALL, FakeTopic, close, cut, late, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_produce import come_up_again, produce, refusing, stamped, values, write
from tests.unit.client.faults import (
    MOST_CALLS,
    Failing,
    lost,
    timed_out,
    wait_until_answered,
    while_others_are_sent,
)

pytestmark = pytest.mark.usefixtures("compressed_in_threads")

ONE, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
ROWS = 100
EXPECTED = [f"{n}".encode() for n in range(ROWS)]


def numbered(count=ROWS, start=0, partition=0):
    return [ProducerRecord(f"{n}", partition=partition) for n in range(start, start + count)]


def write_all(writer, partition=0):
    """Ten batches or so; the first ones are known to the broker before the others go."""
    writer.send(numbered(10, 0, partition))
    first = writer.flush()
    writer.send(numbered(ROWS - 10, 10, partition))
    second = writer.flush()[TopicPartition("orders", partition)]
    second.merge(first[TopicPartition("orders", partition)])
    return second


def after(count, *answers):
    """Answers that come once `count` requests were answered well."""
    return [*[DEFAULT] * count, *answers, DEFAULT]


def five_of_each(writer, brokers):
    """Under way to both leaders."""
    brokers.topics["orders"].move(1, node_id=2)
    writer.send([*numbered(5), *numbered(5, partition=1)])


def test_an_error_has_what_other_leaders_were_just_writing(brokers, producer):
    brokers.on("Produce", refusing(29), node=1)
    brokers.on("Produce", late(brokers, partial(produce, brokers)), node=2)
    writer = producer()
    five_of_each(writer, brokers)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        writer.flush()
    assert {item: each.records for item, each in caught.value.usable.items()} == {OTHER: 5}


def test_an_error_has_what_another_leader_says_was_written_before(brokers, producer):
    brokers.on("Produce", refusing(29), node=1)
    brokers.on("Produce", late(brokers, refusing(DUPLICATE_SEQUENCE_NUMBER)), node=2)
    writer = producer()
    five_of_each(writer, brokers)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        writer.flush()
    assert {item: each.records for item, each in caught.value.usable.items()} == {OTHER: 5}


def test_an_error_of_a_row_has_what_was_under_way(brokers, producer):
    brokers.on("Produce", late(brokers, partial(produce, brokers)), node=2)
    writer = producer(linger_ms=0)
    five_of_each(writer, brokers)
    brokers.wait_for_call("Produce", 2)
    with pytest.raises(KafkaProtoError, match="partition 7") as caught:
        writer.send(numbered(1, partition=7))
    written = {item: each.records for item, each in caught.value.usable.items()}
    assert written == {ONE: 5, OTHER: 5}


def test_an_error_of_a_row_that_what_makes_the_rows_has_sent_has_it_too(brokers, producer):
    """Two calls end with it, and to the second one nothing is left to be told."""
    writer = producer(linger_ms=0)
    writer.send(numbered(5))
    brokers.wait_for_call("Produce", 1)

    def rows():
        writer.send(numbered(1, partition=7))
        yield ProducerRecord("another", partition=0)

    with pytest.raises(KafkaProtoError, match="partition 7") as caught:
        writer.send(rows())
    assert {item: each.records for item, each in caught.value.usable.items()} == {ONE: 5}


def test_an_error_waits_for_no_leader_that_hangs(brokers, producer, monkeypatch):
    monkeypatch.setattr(produce_module, "_SETTLE_S", 0.2)
    brokers.on("Produce", refusing(29), node=1)
    brokers.on("Produce", STALL, node=2)
    writer = producer()
    five_of_each(writer, brokers)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
        writer.flush()
    assert caught.value.usable == {}


RETRIABLE = [2, 3, 5, 6, 7, 9, 13, 19, 20, 56, 74, 75, 89, 100, 103]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "place"), first(3, [(19, 0), (19, 1), *((code, 3) for code in RETRIABLE)])
)
def test_a_retriable_error_costs_nothing(brokers, producer, code, place):
    brokers.on("Produce", *after(place, refusing(code), refusing(code)))
    written = write_all(producer(batch_size=100))
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert (written.records, written.restarts) == (ROWS, 0)
    assert written.retries >= 2


@pytest.mark.parametrize("code", [7, 20])
def test_a_batch_that_was_written_all_the_same_is_there_once(brokers, producer, code):
    def written_but(call):
        produce(brokers, call)
        return refusing(code)(call)

    brokers.on("Produce", *after(0, written_but), *after(2, written_but, written_but))
    assert write_all(producer(batch_size=100)).last_offset == ROWS - 1
    assert values(brokers.logs["orders", 0]) == EXPECTED


def test_the_first_offset_is_the_first_one_also_where_later_ones_are_heard_of_first(
    brokers, producer
):
    def written_but(call):
        produce(brokers, call)
        return refusing(7)(call)

    writer = producer(batch_size=100)
    writer.send(numbered(10))
    writer.flush()
    brokers.on("Produce", written_but, DEFAULT)  # others are in flight behind it
    writer.send(numbered(ROWS - 10, 10))
    written = writer.flush()[ONE]
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert (written.first_offset, written.last_offset) == (10, ROWS - 1)


def written_then_closed(brokers):
    def answer(call):
        produce(brokers, call)
        return close()

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("place", first(1, [1, 0, 4]))
def test_a_lost_connection_costs_nothing_and_doubles_nothing(brokers, producer, place):
    answers = [close(), written_then_closed(brokers), lambda call: cut(produce(brokers, call), 9)]
    for fault in answers:
        brokers.on("Produce", *after(place, fault, fault))
        log = brokers.logs["orders", 0]
        log.batches.clear()
        write_all(producer(batch_size=100))
        assert values_of_new(log) == EXPECTED


def values_of_new(log):
    """The values of a log whose first batches were deleted."""
    moved, stop = log.batches, log.stop
    found = values(log)
    assert (moved, stop) == (log.batches, log.stop)
    return found


@pytest.mark.slow
def test_a_leader_that_says_nothing_is_given_up_in_time(brokers, producer):
    brokers.on("Produce", *after(2, STALL))
    written = write_all(producer(batch_size=100, request_timeout_ms=200))
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert written.retries >= 1


@pytest.mark.slow
def test_batches_follow_their_leader(brokers, producer):
    def moved(call):
        brokers.topics["orders"].move(0, 2)
        return produce(brokers, call)

    brokers.on("Produce", *after(2, moved), node=1)
    write_all(producer(batch_size=100))
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert brokers.asked("Produce", 2)


def test_a_new_leader_that_is_named_is_not_looked_up(brokers, producer):
    port = brokers.nodes[2].port

    def moved(call):
        brokers.topics["orders"].move(0, 2)
        (topic,) = call.request.topic_data
        found = ProduceResponse.Topic.Partition(
            index=0,
            error_code=6,
            base_offset=-1,
            current_leader=ProduceResponse.Topic.Partition.CurrentLeader(
                leader_id=2, leader_epoch=brokers.topics["orders"].epochs[0]
            ),
        )
        return ProduceResponse(
            responses=(ProduceResponse.Topic(name=topic.name, partition_responses=(found,)),),
            node_endpoints=(ProduceResponse.NodeEndpoint(node_id=2, host="127.0.0.1", port=port),),
        )

    brokers.on("Produce", moved, DEFAULT, node=1)
    writer = producer()
    writer.send(numbered())
    assert writer.flush()[ONE].retries == 1
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert len(brokers.asked("Metadata")) == 1


@pytest.mark.slow
def test_one_partition_in_trouble_does_not_hold_up_the_others(brokers, producer):
    brokers.topics["orders"].move(0, 2)
    brokers.on("Produce", STALL, node=2)
    writer = producer(request_timeout_ms=500, batch_size=100)
    for partition in (0, 1):
        writer.send(numbered(partition=partition))
    writer._appending.open_batches.finish_all()
    while brokers.logs["orders", 1].stop < ROWS:
        writer._sender.drain(writer._sender.held_bytes - 1)
    assert brokers.logs["orders", 0].stop == 0
    brokers.on("Produce", DEFAULT, node=2)
    writer.flush()
    assert values(brokers.logs["orders", 0]) == EXPECTED


# Sequences


@pytest.mark.slow
@pytest.mark.parametrize("code", [45, 59])
@pytest.mark.parametrize("place", first(1, [1, 0, 4]))
def test_a_forgotten_producer_goes_on_in_the_next_epoch(brokers, producer, code, place):
    brokers.on("Produce", *after(place, refusing(code)))
    written = write_all(producer(batch_size=100))
    log = brokers.logs["orders", 0]
    assert values(log) == EXPECTED
    assert written.restarts == 1
    assert [epoch for _, epoch, _ in stamped(log)] == [0] * place + [1] * (
        len(stamped(log)) - place
    )
    assert stamped(log)[place] == (1001, 1, 0)


@pytest.mark.parametrize("has", range(1, 5))
@pytest.mark.parametrize("fault", first(1, ["lost", 7, 20]))
def test_a_broker_that_came_up_again_is_asked_by_the_last_batch_that_it_has(
    brokers, producer, has, fault
):
    """Its snapshot knows no other one: those before were out of order, and written once more."""
    log = brokers.logs["orders", 0]
    writer = producer(batch_size=100)
    writer.send(numbered(1))
    writer.flush()
    sent = []

    def half_heard(call):
        sent.append(call)
        if len(sent) <= has:
            produce(brokers, call)
        if len(sent) == 4:
            come_up_again(log)
        return close() if fault == "lost" else refusing(fault)(call)

    first_of_all = while_others_are_sent(writer, half_heard)
    brokers.on("Produce", first_of_all, half_heard, half_heard, half_heard, DEFAULT)
    writer.send(numbered(60, 1))
    written = writer.flush()[ONE]
    assert values(log) == [f"{n}".encode() for n in range(61)]
    assert (written.records, written.restarts, written.last_offset) == (60, 0, 60)
    assert written.first_offset in {-1, 1}  # where it was passed over no offset was told


def test_a_witness_that_is_refused_ends_the_write(brokers, producer):
    """Whether what comes before it is written nothing tells then."""
    log = brokers.logs["orders", 0]
    writer = producer(batch_size=100)
    writer.send(numbered(1))
    writer.flush()

    def unheard(call):
        produce(brokers, call)
        return refusing(7)(call)

    def out_of_order(call):
        come_up_again(log)
        return produce(brokers, call)

    first_of_all = while_others_are_sent(writer, unheard)
    brokers.on("Produce", first_of_all, *[unheard] * 4, out_of_order, refusing(32), DEFAULT)
    writer.send(numbered(20, 1))
    with pytest.raises(BrokerError, match="may be written, as it may be itself, and nothing tells"):
        writer.flush()
    assert values(log) == [f"{n}".encode() for n in range(log.stop)]


@pytest.mark.parametrize("unknown", [7, 20])
@pytest.mark.parametrize("then", [45, 59, 87])
def test_what_may_be_written_is_not_written_again_in_the_next_epoch(
    brokers, producer, unknown, then
):
    """What comes behind it loses a row, or is not known any more, while nobody knows of it."""
    brokers.topics["letters"] = FakeTopic(topic_id_of("letters"), [1], [0])
    letters = brokers.logs["letters", 0] = FakeLog()

    def written_all_the_same(call):
        produce(brokers, call)
        return refusing(unknown)(call)

    bad = ProduceResponse.Topic.Partition.RecordError(batch_index=0)
    refused = refusing(then, record_errors=(bad,) if then == 87 else ())
    with producer(batch_size=100, dead_letter_topic="letters") as writer:
        writer.send(numbered(1))  # from the second on there are several in flight
        writer.flush()
        first_of_all = while_others_are_sent(writer, written_all_the_same)
        brokers.on("Produce", first_of_all, refused, DEFAULT)
        writer.send(numbered(21)[1:])
    found = values(brokers.logs["orders", 0])
    put_aside = values(letters)
    assert len(put_aside) == (then == 87)
    assert found == [value for value in EXPECTED[:21] if value not in put_aside]
    expected_epochs = [0, 1] if then != 45 else [0]  # 45 means no more than that it overtook
    assert sorted({epoch for _, epoch, _ in stamped(brokers.logs["orders", 0])}) == expected_epochs


@pytest.mark.slow
def test_an_epoch_that_somebody_else_passed_costs_a_new_id(brokers, producer):
    brokers.on("Produce", *after(1, refusing(47)))
    assert write_all(producer(batch_size=100)).restarts == 1
    assert values(brokers.logs["orders", 0]) == EXPECTED
    assert {producer_id for producer_id, _, _ in stamped(brokers.logs["orders", 0])} == {1001, 1002}


def test_a_batch_that_is_there_already_is_written(brokers, producer):
    def known_already(call):
        produce(brokers, call)
        return refusing(46)(call)

    brokers.on("Produce", known_already)
    writer = producer()
    writer.send(numbered())
    written = writer.flush()[ONE]
    assert (written.records, written.last_offset, written.retries) == (ROWS, -1, 0)


def test_sequences_wrap_at_2_31(brokers, producer):
    writer = producer(batch_size=100)
    writer.send(numbered(1))
    sequences = writer._targets["orders"].queues[0].sequences
    sequences._next = sequences._expected = 2**31 - 25
    writer.send(numbered(ROWS - 1, 1))
    writer.flush()
    log = brokers.logs["orders", 0]
    assert values(log) == EXPECTED
    sent = [sequence for _, _, sequence in stamped(log)]
    assert max(sent) < 2**31
    assert sent.index(min(sent)) > 0


# What cannot be mended


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (29, "orders-0, 100 rows, 0 to 99.*TOPIC_AUTHORIZATION_FAILED.*the right WRITE"),
        (31, "CLUSTER_AUTHORIZATION_FAILED"),
        (17, "INVALID_TOPIC_EXCEPTION.*brokers' own"),
        (43, "UNSUPPORTED_FOR_MESSAGE_FORMAT.*message.format.version.*enable.idempotence=false"),
        (76, "UNSUPPORTED_COMPRESSION_TYPE"),
        (999, "UNKNOWN_ERROR_CODE_999"),
    ],
)
def test_a_fatal_error_names_partition_rows_and_size(brokers, producer, code, text):
    brokers.on("Produce", refusing(code))
    writer = producer()
    writer.send(numbered())
    with pytest.raises(BrokerError, match=text) as caught:
        writer.flush()
    assert "bytes) at broker 127.0.0.1" in str(caught.value)


@pytest.mark.slow
def test_delivery_timeout_ends_the_tries_and_tells_of_them(brokers, producer):
    brokers.on("Produce", refusing(19))
    writer = producer(delivery_timeout_ms=1000, request_timeout_ms=500, linger_ms=0)
    writer.send(numbered(1))
    with pytest.raises(
        DeadlineExceeded,
        match=r"(?s)write row 0 \(\d+ bytes\) to orders-0: not done within 1 s"
        r".*NOT_ENOUGH_REPLICAS",
    ):
        writer.flush()


LARGE = [ProducerRecord(random.Random(1).randbytes(100_000), partition=0)]
HANGS_UP = r"\n\d+ tries in a row ended with the connection, while a request with {} bytes.*"


def advice_on(request_bytes, prefix=""):
    names = r"socket\.request\.max\.bytes.*{0}max.request.size \(1048576\).*{0}batch.size"
    return HANGS_UP.format(request_bytes) + names.format(prefix)


@pytest.mark.parametrize("others", [[], numbered(1, 0, 1)])
def test_an_error_of_what_ends_its_connection_each_time_says_why_that_may_be(
    brokers, producer, others
):
    for number in (0, 1):
        brokers.topics["orders"].move(number, 1)
    brokers.on("Produce", close())
    writer = producer(delivery_timeout_ms=1000, request_timeout_ms=500, linger_ms=0)
    writer.send(LARGE + others)
    with pytest.raises(DeadlineExceeded, match=r"(?s)closed the conn.*" + advice_on(r"100\d+")):
        writer.flush()


def test_so_does_the_last_try_of_a_few(brokers, producer):
    brokers.on("Produce", close())
    properties = {"bootstrap.servers": brokers.bootstrap_servers, "retries": "2"}
    writer = Producer(ProducerConfig.parse(properties, "kafka."), topic="orders")
    writer.send(LARGE)
    with pytest.raises(
        ConnectionFailed, match=r"(?s)tried 3 times.*" + advice_on(r"\d+", "kafka.")
    ):
        writer.flush()


@pytest.mark.parametrize(
    ("records", "answers"),
    [
        (numbered(), [close()] * 3),
        (LARGE, [close(), refusing(19), close()]),
        (LARGE, [close(), close(), refusing(19)]),
    ],
)
def test_what_is_small_or_does_not_end_it_each_time_is_not_blamed(
    brokers, producer, records, answers
):
    brokers.on("Produce", *answers)
    writer = producer(retries=len(answers) - 1)
    writer.send(records)
    with pytest.raises(KafkaProtoError, match="tried 3 times") as caught:
        writer.flush()
    assert "in a row" not in str(caught.value)


@pytest.mark.slow
def test_a_dead_leader_is_an_error_in_time(brokers, producer):
    # A busy machine has had no try within 0.3 s.
    writer = producer(delivery_timeout_ms=1000, request_timeout_ms=100, linger_ms=0)
    brokers.topics["orders"].move(0, 2)
    brokers.stop(2)
    writer.send(numbered(1))
    with pytest.raises(DeadlineExceeded, match=r"(?s)orders-0: not done.*refused"):
        writer.flush()


def test_a_last_try_that_nobody_answers_was_not_in_time(brokers, producer):
    brokers.on("Produce", STALL)
    writer = producer(request_timeout_ms=200, retries=0)
    writer.send(numbered(1))
    with pytest.raises(DeadlineExceeded, match=r"orders-0.*tried 1 times \(retries is 0\)"):
        writer.flush()


def test_retries_are_counted(brokers, producer):
    brokers.on("Produce", refusing(19))
    writer = producer(retries=3)
    writer.send(numbered())
    with pytest.raises(BrokerError, match=r"NOT_ENOUGH_REPLICAS.*tried 4 times \(retries is 3\)"):
        writer.flush()


@pytest.mark.slow
def test_batches_that_wait_for_the_next_call_do_not_grow_old(brokers, producer, clock):
    writer = producer(batch_size=100)
    writer.send(numbered())
    wait_until_answered(writer)
    clock.now += 1000
    writer.send(numbered(start=ROWS))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [f"{n}".encode() for n in range(2 * ROWS)]


def test_pieces_of_a_refused_batch_do_not_grow_old(brokers, producer, clock):
    brokers.on("Produce", refusing(10), DEFAULT)
    writer = producer()
    writer.send(numbered())
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    wait_until_answered(writer)
    clock.now += 1000
    writer.flush()
    assert values(brokers.logs["orders", 0]) == EXPECTED


@pytest.mark.slow
def test_what_has_no_leader_grows_old(brokers, producer, clock):
    brokers.topics["orders"].move(0, -1)
    writer = producer(delivery_timeout_ms=40_000, retry_backoff_ms=1000, retry_backoff_max_ms=1000)
    writer.send(numbered())
    with pytest.raises(DeadlineExceeded, match=r"LEADER_NOT_AVAILABLE"):
        writer.flush()
    assert sum(clock.slept) == pytest.approx(40, abs=2)


@pytest.mark.slow
def test_a_topic_deleted_meanwhile_is_named_soon(brokers, producer, clock):
    writer = producer()
    writer.send(numbered(10))
    writer.flush()
    del brokers.topics["orders"]
    writer.send(numbered(10))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*UNKNOWN_TOPIC_OR_PARTITION"):
        writer.flush()
    assert sum(clock.slept) < 20


def test_an_answer_about_something_else_is_refused(brokers, producer):
    for answer in (ProduceResponse(), refusing(0, partition=7)):
        brokers.on("Produce", answer)
        writer = producer()
        writer.send(numbered())
        with pytest.raises(RemoteProtocolError, match=r"no answer for orders-0"):
            writer.flush()


@pytest.mark.slow
def test_a_throttled_client_keeps_quiet(brokers, producer):
    def throttled(call):
        answer = produce(brokers, call)
        return ProduceResponse(responses=answer.responses, throttle_time_ms=50)

    brokers.on("Produce", throttled)
    write_all(producer(batch_size=300))
    assert values(brokers.logs["orders", 0]) == EXPECTED


def test_an_id_that_may_not_be_had_says_what_to_do(brokers, producer):
    from pyspark_kafkaproto.messages.init_producer_id import InitProducerIdResponse

    brokers.on("InitProducerId", InitProducerIdResponse(error_code=31))
    with pytest.raises(BrokerError, match=r"enable.idempotence=false.*the right IDEMPOTENT_WRITE"):
        producer().send(numbered())


# Everywhere


@pytest.mark.slow
@pytest.mark.parametrize("error", [lost, timed_out])
@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
def test_the_kth_use_of_a_socket_fails(brokers, producer, monkeypatch, error, restarts):
    """Where brokers restart, each batch that goes again meets one that has just come up."""
    brokers.topics["orders"].move(1, node_id=2)
    if restarts:
        brokers.on("Produce", come_up_to_answer(brokers))
    for k in itertools.count(1):
        for log in brokers.logs.values():
            log.batches.clear()
            log.stop = 0
        with monkeypatch.context() as patch:
            failing = Failing(patch, k, error)
            with producer(batch_size=500, client_id=f"k-{k}") as writer:
                writer.send([ProducerRecord(f"{n}", partition=n % 2) for n in range(2 * ROWS)])
        for partition in (0, 1):
            found = values(brokers.logs["orders", partition])
            assert found == [f"{n}".encode() for n in range(partition, 2 * ROWS, 2)]
        if failing.is_over:
            break
    assert 20 < k < MOST_CALLS


def come_up_to_answer(brokers):
    def answer(call):
        for log in brokers.logs.values():
            come_up_again(log)
        return produce(brokers, call)

    return answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [*first(2, range(5)), *marked("long", range(5, 200))],
)
def test_any_mixture_of_faults(brokers, producer, seed):
    source = random.Random(seed)

    def leader(call):
        return _refusing_bad_rows(brokers, call)

    def moved(call):
        topic = brokers.topics["orders"]
        topic.move(source.randrange(2), source.choice([1, 2]))
        return leader(call)

    def lost_after(call):
        leader(call)
        return close()

    def failed_after(call):
        leader(call)
        return refusing(source.choice([7, 20]))(call)

    def answer(call):
        if source.random() < 0.6:
            return leader(call)
        faults = [moved, lost_after, failed_after, lambda _: close(), refusing(19), refusing(6)]
        return source.choice(faults)(call)

    brokers.topics["letters"] = FakeTopic(topic_id_of("letters"), [1], [0])
    letters = brokers.logs["letters", 0] = FakeLog()
    brokers.on("Produce", answer)
    expected = {0: [], 1: []}
    with producer(batch_size=150, dead_letter_topic="letters") as writer:
        for start in range(0, 300, 50):
            records = [
                ProducerRecord(f"{n}", partition=source.randrange(2))
                for n in range(start, start + 50)
            ]
            for record in records:
                expected[record.partition].append(record.value.encode())
            writer.send(records)
    assert sorted(values(letters)) == sorted(filter(_is_bad, expected[0] + expected[1]))
    for partition in (0, 1):
        good = [value for value in expected[partition] if not _is_bad(value)]
        assert values(brokers.logs["orders", partition]) == good


def _is_bad(value):
    return int(value) % 17 == 5


def _refusing_bad_rows(brokers, call):
    """What a leader answers that takes no bad rows, and names them."""
    topics = []
    for topic in call.request.topic_data:
        answered = tuple(
            (topic.name == "orders" and _refused(brokers, call, item))
            or write(brokers, call, topic.name, item)
            for item in topic.partition_data
        )
        topics.append(ProduceResponse.Topic(name=topic.name, partition_responses=answered))
    return ProduceResponse(responses=tuple(topics))


def _refused(brokers, call, item):
    answered = ProduceResponse.Topic.Partition
    data = bytes(item.records)
    count = HEADER.unpack_from(data)[12]
    found = records_of(decoded_batch(data, count), range(count))
    bad = [row for row, record in enumerate(found) if _is_bad(record.value)]
    if not bad or brokers.topics["orders"].leaders[item.index] != call.node_id:
        return None
    errors = tuple(answered.RecordError(batch_index=row) for row in bad)
    return answered(index=item.index, error_code=87, base_offset=-1, record_errors=errors)
