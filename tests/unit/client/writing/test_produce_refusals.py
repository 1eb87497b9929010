"""Records that can never be written: named, or put aside; all others are written, in order."""

import time

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import ProducerRecord
from pyspark_kafkaproto.client.writing import refusals
from pyspark_kafkaproto.client.writing.plain import decoded_batch, records_of
from pyspark_kafkaproto.client.writing.refusals import RecordRefused, Refusals
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError, LocalProtocolError
from pyspark_kafkaproto.messages.produce import ProduceResponse
from pyspark_kafkaproto.net import ProducerConfig
from pyspark_kafkaproto.records import Columns, decode
from tests.examples import first
from tests.fake_broker import DEFAULT, STALL, FakeTopic, close, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_produce import produce, refusing, stamped, times_of, values, values_in, write

ROWS = 60
MESSAGE_TOO_LARGE = 10
TOPIC_AUTHORIZATION_FAILED = 29
INVALID_TIMESTAMP = 32
INVALID_RECORD = 87


@pytest.fixture
def letters(brokers):
    """The log of a dead letter topic."""
    brokers.topics["letters"] = FakeTopic(topic_id_of("letters"), [1], [0])
    brokers.logs["letters", 0] = FakeLog()
    return brokers.logs["letters", 0]


def numbered(count=ROWS, **fields):
    return [ProducerRecord(f"{n}", partition=0, **fields) for n in range(count)]


def texts(numbers):
    return [f"{n}".encode() for n in numbers]


def keys(log):
    """The key of each record."""
    taken = [decoded_batch(batch.data, log.stop) for batch in log.batches]
    return [record.key for part in taken for record in records_of(part, range(part.rows))]


def headers_of(log):
    """The headers of each record, as a mapping."""
    found = []
    for batch in log.batches:
        decoded = decode(batch.data, start=0, stop=log.stop, wanted=Columns.ALL)
        lists, keys, contents = (
            memoryview(part.offsets).cast("B").cast("i")
            for part in (decoded.headers, decoded.headers.keys, decoded.headers.values)
        )
        names, data = bytes(decoded.headers.keys.data), bytes(decoded.headers.values.data)
        for row in range(decoded.rows):
            pairs = range(lists[row], lists[row + 1])
            found.append(
                {
                    names[keys[n] : keys[n + 1]].decode(): data[contents[n] : contents[n + 1]]
                    for n in pairs
                }
            )
    return found


def letter_headers(log):
    """The headers of the only record, in their order; one may be there twice."""
    (batch,) = log.batches
    (record,) = records_of(decoded_batch(batch.data, log.stop), [0])
    return record.headers


def size_limited(brokers, most_bytes):
    """A leader that takes no batch above a size."""

    def answer(call):
        if any(len(item.records) > most_bytes for item in _sent(call)):
            return refusing(MESSAGE_TOO_LARGE)(call)
        return produce(brokers, call)

    return answer


def record_refusing(brokers, code, names_records, bad):
    """A leader that takes no batch with the values `bad`, and says which they are or does not."""

    def answer(call):
        (item,) = _sent(call)
        held = values_in(bytes(item.records))
        found = [index for index, value in enumerate(held) if value in bad]
        if not found:
            return produce(brokers, call)
        kind = ProduceResponse.Topic.Partition.RecordError
        errors = tuple(
            kind(batch_index=index, batch_index_error_message=f"bad {held[index].decode()}")
            for index in found
            if names_records
        )
        return refusing(code, record_errors=errors)(call)

    return answer


def time_limited(brokers, names_records, refused=()):
    """A leader of message.timestamp.after.max.ms, an hour; the values `refused` it never takes."""

    def answer(call):
        (item,) = _sent(call)
        decoded = decoded_batch(bytes(item.records), 1000)
        records = records_of(decoded, range(decoded.rows))
        late_ms = time.time() * 1000 + 3_600_000
        late = [index for index, record in enumerate(records) if record.timestamp_ms > late_ms]
        is_letters = call.request.topic_data[0].name == "letters"
        bad = [] if is_letters else [n for n, one in enumerate(records) if one.value in refused]
        if not (late or bad):
            return produce(brokers, call)
        kind = ProduceResponse.Topic.Partition.RecordError
        errors = tuple(kind(batch_index=index) for index in bad or late if names_records)
        return refusing(INVALID_RECORD if bad else INVALID_TIMESTAMP, record_errors=errors)(call)

    return answer


def _sent(call):
    return [item for topic in call.request.topic_data for item in topic.partition_data]


@pytest.mark.slow
@pytest.mark.parametrize("codec", first(2, ["none", "zstd", "gzip", "snappy", "lz4"]))
def test_a_batch_too_large_for_its_topic_is_split(brokers, producer, codec):
    brokers.on("Produce", size_limited(brokers, 200))
    writer = producer(batch_size=2000, compression_type=codec)
    records = [
        record._replace(headers=[("h", record.value.encode()), ("n", None)], timestamp_ms=n)
        for n, record in enumerate(numbered())
    ]
    writer.send(records)
    writer.send(numbered())
    written = writer.flush()[TopicPartition("orders", 0)]
    log = brokers.logs["orders", 0]
    assert values(log) == texts(range(ROWS)) * 2
    assert written.records == 2 * ROWS
    assert [pairs.get("h") for pairs in headers_of(log)][:ROWS] == texts(range(ROWS))
    # Later batches are made to fit from the start.
    assert writer._targets["orders"].queues[0].limit_bytes < 2000


def test_batches_are_filled_to_half_of_one_that_was_too_large(brokers, producer):
    """But to a kilobyte at least: one record may have been too large."""
    sizes = []

    def answer(call):
        sizes.extend(len(item.records) for item in _sent(call))
        return size_limited(brokers, 6000)(call)

    brokers.on("Produce", answer)
    writer = producer(batch_size=10_500)
    for _ in range(2):
        writer.send([ProducerRecord("x" * 1000, partition=0) for _ in range(10)])
        writer.flush()
    too_large, *halves = sizes
    assert too_large > 10_000
    assert max(halves) < 6000
    assert len(halves) == 2 + 3, "nor is one smaller than need be"
    writer = producer(batch_size=10_500)
    brokers.on("Produce", size_limited(brokers, 300))
    writer.send(numbered(30))
    writer.flush()
    assert writer._targets["orders"].queues[0].limit_bytes == 1024


def test_who_puts_rows_aside_needs_no_new_epoch_where_nothing_else_is_under_way(
    brokers, producer, letters
):
    brokers.on("Produce", orders_refusing(brokers, texts([3])))
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(10))
    written = writer.flush()
    assert values(letters) == texts([3])
    assert written[TopicPartition("orders", 0)].restarts == 0
    assert len(brokers.asked("InitProducerId")) == 1


@pytest.mark.slow
def test_a_record_too_large_for_its_topic_is_named(brokers, producer):
    brokers.on("Produce", size_limited(brokers, 300))
    writer = producer()
    records = numbered()
    records[17] = ProducerRecord("x" * 400, partition=0)
    writer.send(records)
    with pytest.raises(
        BrokerError, match=r"orders-0, row 17 \(4\d\d bytes\).*MESSAGE_TOO_LARGE.*max.message.bytes"
    ):
        writer.flush()


def test_a_record_larger_than_a_request_is_named_before_it_is_sent(brokers, producer):
    writer = producer(max_request_size=500)
    records = numbered()
    records[17] = ProducerRecord("x" * 600, partition=0)
    with pytest.raises(
        RecordRefused, match=r"orders-0, row 17: it takes 6\d\d bytes, max.request.size is 500"
    ):
        writer.send(records)


@pytest.mark.slow
@pytest.mark.parametrize("names_records", [True, False])
@pytest.mark.parametrize("code", first(1, [INVALID_TIMESTAMP, INVALID_RECORD]))
def test_records_that_the_broker_refuses_are_put_aside(
    brokers, producer, letters, code, names_records
):
    bad = texts([3, 4, 40])
    brokers.on("Produce", record_refusing(brokers, code, names_records, bad))
    writer = producer(dead_letter_topic="letters", batch_size=150)
    writer.send(numbered(headers=[("own", b"1")], key="k", timestamp_ms=5))
    brokers_values = texts(n for n in range(ROWS) if n not in (3, 4, 40))
    brokers.on("Produce", _only_orders(brokers, code, names_records, bad))
    written = writer.flush()
    assert values(brokers.logs["orders", 0]) == brokers_values
    assert sorted(values(letters)) == sorted(bad)
    assert writer.dead_letters == 3
    assert written[TopicPartition("orders", 0)].records == ROWS - 3
    for pairs in headers_of(letters):
        assert pairs["own"] == b"1"
        assert pairs["kafkaproto.topic"] == b"orders"
        assert pairs["kafkaproto.partition"] == b"0"
        assert pairs["kafkaproto.reason"].startswith(b"INVALID_")
        assert (b"bad " in pairs["kafkaproto.reason"]) == names_records


def _only_orders(brokers, code, names_records, bad):
    refuse = record_refusing(brokers, code, names_records, bad)

    def answer(call):
        is_letters = call.request.topic_data[0].name == "letters"
        return produce(brokers, call) if is_letters else refuse(call)

    return answer


def test_what_is_left_of_a_batch_is_written_under_the_next_epoch(brokers, producer, letters):
    """A later batch that is on its way twice could fit the sequences of one that lost rows."""
    writer = producer(dead_letter_topic="letters", batch_size=100)
    writer.send(numbered(1))
    writer.flush()
    bad = ProduceResponse.Topic.Partition.RecordError(batch_index=0)
    brokers.on("Produce", refusing(INVALID_RECORD, record_errors=(bad,)), DEFAULT)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 41)])
    writer.flush()
    log = brokers.logs["orders", 0]
    assert values(log) == texts(n for n in range(41) if n != 1)
    assert values(letters) == texts([1])
    epochs = [epoch for _, epoch, _ in stamped(log)]
    assert epochs == [0] + [1] * (len(epochs) - 1)
    assert len(epochs) > 4


def written_then_closed(brokers):
    """A leader that hangs up once it has written what it was sent."""

    def answer(call):
        produce(brokers, call)
        return close()

    return answer


def test_a_batch_that_is_written_is_not_written_again_in_halves(brokers, producer):
    """Its answer was lost, and max.message.bytes lowered before it was sent again."""
    brokers.on("Produce", written_then_closed(brokers), size_limited(brokers, 200))
    writer = producer()
    writer.send(numbered(20))
    with pytest.raises(
        BrokerError, match=r"orders-0, 10 rows, 0 to 9.*first try.*not written once"
    ):
        writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(20))


@pytest.mark.parametrize("lost", [close(), refusing(6)], ids=["no answer", "an error"])
def test_a_batch_that_was_lost_is_written_in_halves(brokers, producer, lost):
    brokers.on("Produce", lost, size_limited(brokers, 200))
    writer = producer()
    writer.send(numbered(20))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(20))


def test_what_is_left_of_a_batch_that_is_written_is_not_written_again(brokers, producer, letters):
    """Nor where batches behind it, which may be written too, want another epoch."""
    writer = producer(dead_letter_topic="letters", batch_size=100)
    writer.send(numbered(1))
    writer.flush()
    log = brokers.logs["orders", 0]
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, True, texts([3]))
    brokers.on("Produce", written_then_closed(brokers), refuse)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 41)])
    with pytest.raises(BrokerError, match=r"orders-0.*first try.*not written once"):
        writer.flush()
    written = [int(value) for value in values(log)]
    assert written == list(range(len(written)))


def test_what_follows_a_row_that_may_be_written_is_not_taken_for_it(brokers, producer, letters):
    """Not where as many rows come next as were put aside, under the same sequences."""
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, True, texts([0]))
    brokers.on("Produce", written_then_closed(brokers), refuse)
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    writer.send([ProducerRecord("next", partition=0)])
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"0", b"next"]
    assert values(letters) == [b"0"]


def test_a_row_that_was_lost_and_put_aside_does_not_fail_what_follows(brokers, producer, letters):
    """Also where of that, lost and sent again, a part is put aside as well."""
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, True, texts([1, 3]))
    writer = producer(dead_letter_topic="letters")
    for rows in ([0], [1], [2, 3]):
        brokers.on("Produce", close(), refuse)
        writer.send([ProducerRecord(f"{n}", partition=0) for n in rows])
        writer.flush()
    assert values(brokers.logs["orders", 0]) == texts([0, 2])
    assert values(letters) == texts([1, 3])


@pytest.mark.parametrize("written", [0, 1, 2], ids=["none", "the row", "both"])
def test_what_follows_a_row_that_may_be_written_is_written_once(
    brokers, producer, letters, written
):
    """Both were sent, and no answer came."""
    row, later = (f"{n}".ljust(60, ".") for n in (1, 2))
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, True, [row.encode()])
    fates = iter(range(2))

    def answer(call):
        number = next(fates, None)
        if number is None:
            return refuse(call)
        if number < written:
            produce(brokers, call)
        return close() if number else STALL

    writer = producer(dead_letter_topic="letters", batch_size=100)
    writer.send(numbered(1))
    writer.flush()
    brokers.on("Produce", answer)
    writer.send([ProducerRecord(text, partition=0) for text in (row, later)])
    writer.flush()
    found = values(brokers.logs["orders", 0])
    assert found == [b"0", *[row.encode()] * (written > 0), later.encode()]
    assert values(letters) == [row.encode()]


@pytest.mark.slow
@pytest.mark.parametrize("is_lost_first", [False, True])
def test_a_half_behind_one_that_may_be_written_is_not_taken_for_it(
    brokers, producer, letters, is_lost_first
):
    """One row each, and the first one is put aside: the other would have its sequence."""
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, True, texts([1]))
    lost = [close()] if is_lost_first else []
    faults = [*lost, refusing(MESSAGE_TOO_LARGE), written_then_closed(brokers), refuse]
    brokers.on("Produce", *faults)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in (1, 2)])
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(3))
    assert values(letters) == [b"1"]


@pytest.mark.slow
def test_a_half_of_a_batch_that_is_written_is_not_written_again_behind_one_that_was_put_aside(
    brokers, producer, letters
):
    """Nor where it was on its way with that one, and its connection was lost."""
    refuse = _only_orders(brokers, INVALID_TIMESTAMP, False, texts([1]))

    def answer(call):
        is_second = values_in(bytes(_sent(call)[0].records)) == texts([2, 3])
        if is_second and not lost:
            lost.append(call)
            return close()
        return refuse(call)

    lost = []
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    brokers.on("Produce", written_then_closed(brokers), answer)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 4)])
    with pytest.raises(BrokerError, match=r"orders-0, 2 rows, 2 to 3 .*not written once"):
        writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(4))


@pytest.mark.slow
def test_halves_that_are_put_aside_leave_their_sequences_to_no_other_half(
    brokers, producer, letters
):
    """Of four rows two are written, answered with nothing, and refused one by one then."""
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    refuse = _only_orders(brokers, MESSAGE_TOO_LARGE, False, texts([1, 2]))
    too_large = refusing(MESSAGE_TOO_LARGE)
    brokers.on("Produce", close(), too_large, written_then_closed(brokers), refuse)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 5)])
    with pytest.raises(LocalProtocolError, match=r"orders-0, 2 rows, 3 to 4 .*cannot go on$"):
        writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(3))


def test_letters_that_are_written_are_not_written_again_shortened(brokers, producer, letters):
    refuse = _only_orders(brokers, INVALID_RECORD, True, [b"a" * 3000, b"b" * 3000])
    limited = size_limited(brokers, 1500)
    seen = []

    def answer(call):
        if call.request.topic_data[0].name != "letters":
            return refuse(call)
        seen.append(call)
        if len(seen) > 1:
            return limited(call)
        produce(brokers, call)
        return close()

    brokers.on("Produce", answer)
    writer = producer(dead_letter_topic="letters")
    writer.send([ProducerRecord(text * 3000, partition=0) for text in "ab"])
    with pytest.raises(BrokerError, match=r"letters-0.*first try.*not written once"):
        writer.flush()
    assert values(letters) == [b"a" * 3000, b"b" * 3000]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [1, 2])
def test_a_row_of_a_batch_that_was_lost_is_put_aside_and_the_others_written(
    brokers, producer, letters, bad
):
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    refuse = _only_orders(brokers, MESSAGE_TOO_LARGE, False, texts([bad]))
    brokers.on("Produce", close(), refuse)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in (1, 2)])
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts({0, 1, 2} - {bad})
    assert values(letters) == texts([bad])


def test_a_batch_behind_which_others_are_written_is_there_once_whatever_is_refused(
    brokers, producer
):
    writer = producer(batch_size=100)
    writer.send(numbered(1))
    writer.flush()
    seen = []

    def answer(call):
        (item,) = _sent(call)
        if b"1" not in values_in(bytes(item.records)):
            return produce(brokers, call)
        seen.append(call)
        if len(seen) > 1:
            return refusing(MESSAGE_TOO_LARGE)(call)
        produce(brokers, call)
        return refusing(7)(call)

    brokers.on("Produce", answer)
    writer.send([ProducerRecord(f"{n}", partition=0) for n in range(1, 41)])
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts(range(41))
    assert len(seen) == 2


def test_a_record_that_the_broker_refuses_is_named(brokers, producer):
    brokers.on("Produce", record_refusing(brokers, INVALID_RECORD, True, texts([41])))
    writer = producer()
    writer.send(numbered())
    with pytest.raises(BrokerError, match=r"orders-0, row 41 among 60 rows, 0 to 59.*bad 41"):
        writer.flush()
    brokers.on("Produce", refusing(INVALID_RECORD, error_message="no reason"))
    writer = producer()
    writer.send(numbered())
    with pytest.raises(BrokerError, match=r"orders-0, 60 rows, 0 to 59.*INVALID_RECORD.*no reason"):
        writer.flush()


@pytest.mark.parametrize("code", [MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD])
@pytest.mark.parametrize(("rows", "text"), [(1, ""), (1, "why"), (60, "why"), (60, "")])
def test_what_to_do_about_what_a_broker_refuses_is_said(brokers, producer, code, rows, text):
    brokers.on("Produce", refusing(code, error_message=text))
    writer = producer()
    writer.send(numbered(rows))
    with pytest.raises(BrokerError, match=r"orders-0, .*\)") as caught:
        writer.flush()
    said = str(caught.value)
    assert text in said
    assert said.endswith("To put such records aside instead: give the Producer a dead_letter_topic")
    assert said.endswith(caught.value.advice)


def test_rows_beside_one_for_a_partition_that_is_not_there_go_where_they_would(
    brokers, producer, letters
):
    """Also those that name none."""
    writer = producer(dead_letter_topic="letters")
    writer.send([ProducerRecord(f"{n}", partition=n) for n in (0, 1, 2)])
    writer.send([ProducerRecord("3", partition=-1), ProducerRecord("4")])
    writer.flush()
    written = [value for number in (0, 1) for value in values(brokers.logs["orders", number])]
    assert sorted(written) == texts([0, 1, 4])
    assert values(letters) == texts([2, 3])


@pytest.mark.slow
def test_rows_that_cannot_be_sent_are_put_aside(brokers, producer, letters):
    writer = producer(None, dead_letter_topic="letters", max_request_size=3000)
    records = [ProducerRecord(f"{n}", topic="orders", partition=0) for n in range(10)]
    records[1] = records[1]._replace(partition=2)
    records[2] = records[2]._replace(topic=None)
    records[3] = records[3]._replace(topic="no-such")
    records[4] = records[4]._replace(timestamp_ms=-5)
    records[5] = records[5]._replace(value="x" * 4000, key="big")
    writer.send(records)
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts([0, 6, 7, 8, 9])
    reasons = {
        value: pairs["kafkaproto.reason"].decode()
        for value, pairs in zip(values(letters), headers_of(letters), strict=True)
    }
    assert writer.dead_letters == len(reasons) == 5
    assert reasons[b"1"].startswith("there is no partition 2: the topic has 2")
    assert reasons[b"2"].startswith("null topic")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in reasons[b"3"]
    assert "before 1970" in reasons[b"4"]
    assert reasons[b""].startswith("it takes 40")
    (left_out,) = [
        pairs["kafkaproto.left_out"]
        for pairs in headers_of(letters)
        if "kafkaproto.left_out" in pairs
    ]
    assert left_out == b"value (4000 bytes)"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"partition": 2}, "orders, row 1: there is no partition 2: the topic has 2, from 0 on"),
        (
            {"topic": None},
            r"a row without a topic, row 1: null topic \(KAFKA_NULL_TOPIC_IN_DATA\); name one",
        ),
        ({"topic": "no-such"}, "no-such.*UNKNOWN_TOPIC_OR_PARTITION"),
        ({"timestamp_ms": -5}, "orders-0, row 1: its timestamp, -5000 microseconds"),
    ],
)
def test_rows_that_cannot_be_sent_are_named(producer, clock, fields, text):
    records = [ProducerRecord(f"{n}", topic="orders", partition=0) for n in range(3)]
    records[1] = records[1]._replace(**fields)
    with pytest.raises((RecordRefused, BrokerError), match=text):
        producer(None).send(records)


@pytest.mark.parametrize(
    ("prefix", "named"),
    [
        ("", "give the Producer a dead_letter_topic"),
        ("kafka.", "onInvalidRecord=deadletter with deadLetterTopic"),
    ],
)
def test_what_to_do_is_said_in_the_words_of_who_writes(prefix, named):
    config = ProducerConfig.parse({"bootstrap.servers": "b-1:9092"}, prefix)
    with pytest.raises(RecordRefused) as caught:
        Refusals(config, None).refuse(ProducerRecord(b"v"), 3, "orders", 0, "too large")
    assert str(caught.value).endswith(f"too large. To put such records aside instead: {named}")
    assert named in caught.value.advice


def test_a_row_for_the_dead_letter_topic_is_refused_without_advice_to_give_one():
    refusals = Refusals(ProducerConfig.parse({"bootstrap.servers": "b-1:9092"}), "letters")
    with pytest.raises(RecordRefused, match=r"letters-0, row 3: too large$") as caught:
        refusals.refuse(ProducerRecord(b"v"), 3, "letters", 0, "too large")
    assert caught.value.advice == ""


def test_header_keys_are_never_null(producer, letters):
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = pa.array([[("a", b"")], [(None, b"x")]], pa.list_(pair))
    batch = pa.RecordBatch.from_arrays([pa.array(["0", "1"]), headers], ["value", "headers"])
    with pytest.raises(RecordRefused, match="row 1: the key of its header 0 is null"):
        producer().send(batch)
    writer = producer(dead_letter_topic="letters")
    writer.send(batch)
    writer.flush()
    assert values(letters) == [b"1"]


def unchecked(values, kind):
    """An array of text whose bytes are not UTF-8: what other programs make."""
    array = pa.array(values, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(array), array.buffers())
    return text if kind == pa.string() else text.cast(kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_text_that_is_no_utf_8_is_named_or_put_aside(brokers, producer, letters, kind):
    pairs = pa.StructArray.from_arrays(
        [unchecked([b"\xff"], kind), unchecked([b"\xfe"], kind)], ["key", "value"]
    )
    columns = {
        "value": unchecked([b"\xfd", b"\xfc"], kind),
        "key": unchecked([None, b"\xfb"], kind),
        "headers": pa.ListArray.from_arrays(pa.array([0, 0, 1], pa.int32()), pairs),
        "partition": pa.array([0, 7]),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(RecordRefused, match="orders, row 1: there is no partition 7"):
        producer().send(batch)
    writer = producer(dead_letter_topic="letters")
    writer.send(batch)
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"\xfd"]
    (taken,) = [decoded_batch(item.data, 1) for item in letters.batches]
    (letter,) = records_of(taken, [0])
    assert (letter.value, letter.key) == (b"\xfc", b"\xfb")
    assert dict(letter.headers)[b"\xff"] == b"\xfe"


@pytest.mark.parametrize("names", [[b"orders", b"\xff", b"\xff"], [b"\xff"]])
def test_a_topic_that_is_no_utf_8_is_named_or_put_aside(brokers, producer, letters, names):
    batch = pa.RecordBatch.from_arrays(
        [pa.array([f"{n}" for n in range(len(names))]), unchecked(names, pa.string())],
        ["value", "topic"],
    )
    bad = [n for n, name in enumerate(names) if name != b"orders"]
    with pytest.raises(
        RecordRefused, match=rf"row {bad[0]}: its column topic is no UTF-8: b'.xff'"
    ):
        producer(None).send(batch)
    writer = producer(None, dead_letter_topic="letters")
    writer.send(batch)
    writer.flush()
    assert values(letters) == texts(bad)
    assert sum(len(values(brokers.logs["orders", n])) for n in (0, 1)) == len(names) - len(bad)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *[(pa.int64(), 2**32), (pa.int64(), 2**63 - 1), (pa.int64(), -(2**63))],
        *[(pa.uint64(), 2**64 - 1), (pa.uint32(), 2**31), (pa.int32(), -(2**31))],
        *[(pa.int8(), -1), (pa.uint8(), 255)],
    ],
    ids=str,
)
@pytest.mark.parametrize("topic", ["orders", None])
def test_a_partition_that_no_topic_has_is_named_or_put_aside(
    brokers, producer, letters, clock, kind, number, topic
):
    columns = {"value": ["0", "1", "2"], "partition": pa.array([0, number, 0], kind)}
    batch = pa.RecordBatch.from_pydict({**columns, "topic": ["orders"] * 3})
    with pytest.raises(RecordRefused, match=f"orders, row 1: there is no partition {number}: the"):
        producer(topic).send(batch)
    with producer(topic, dead_letter_topic="letters") as writer:
        writer.send(batch)
        writer.send(batch.slice(1))
    assert values(brokers.logs["orders", 0]) == texts([0, 2, 2])
    assert values(letters) == texts([1, 1])


def test_such_a_partition_of_a_plain_record_is_named_or_put_aside(brokers, producer, letters):
    records = numbered(3)
    records[1] = records[1]._replace(partition=2**32)
    with pytest.raises(RecordRefused, match=rf"orders, row 1: there is no partition {2**32}: the"):
        producer().send(records)
    with producer(dead_letter_topic="letters") as writer:
        writer.send(records)
    assert values(brokers.logs["orders", 0]) == texts([0, 2])
    assert values(letters) == texts([1])


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        ([[], [{"key": "k", "value": None}]], [(b"k", None)]),
        ([[], []], []),
        ([None, []], []),
    ],
)
def test_a_refused_row_may_have_headers_without_any_content(producer, letters, lists, kept):
    batch = pa.RecordBatch.from_pydict({"value": ["0", "1"], "partition": [0, 7], "headers": lists})
    with producer(dead_letter_topic="letters") as writer:
        writer.send(batch)
    pairs = letter_headers(letters)
    assert [pair for pair in pairs if not pair[0].startswith(b"kafkaproto.")] == kept


@pytest.mark.parametrize("lists", [[[], [None]], [[], [{"key": None, "value": None}]]])
def test_a_header_that_is_null_and_of_no_type_is_named_or_put_aside(producer, letters, lists):
    batch = pa.RecordBatch.from_pydict({"value": ["0", "1"], "headers": lists})
    with pytest.raises(RecordRefused, match="row 1: the key of its header 0 is null"):
        producer().send(batch)
    with producer(dead_letter_topic="letters") as writer:
        writer.send(batch)
    assert values(letters) == texts([1])


def test_a_refused_row_may_have_a_finer_timestamp(producer, letters):
    batch = pa.RecordBatch.from_pydict(
        {"value": ["0"], "partition": [7], "at": pa.array([1_234_567_890], pa.timestamp("ns"))}
    )
    writer = producer(dead_letter_topic="letters", timestamp_column="at")
    writer.send(batch)
    writer.flush()
    (taken,) = [decoded_batch(item.data, 1) for item in letters.batches]
    assert [letter.timestamp_ms for letter in records_of(taken, [0])] == [1234]


@pytest.mark.parametrize(
    ("most_bytes", "left_out", "kept"),
    [
        (2000, b"value (3000 bytes)", (b"", b"k" * 500, b"h" * 500)),
        (1000, b"value (3000 bytes), headers (501 bytes)", (b"", b"k" * 500, None)),
        (560, b"value (3000 bytes), headers (501 bytes), key (500 bytes)", (b"", None, None)),
    ],
)
def test_a_letter_is_cut_to_what_its_topic_takes(
    brokers, producer, letters, most_bytes, left_out, kept
):
    brokers.on("Produce", size_limited(brokers, most_bytes))
    writer = producer(dead_letter_topic="letters")
    records = numbered(5)
    records[2] = ProducerRecord("x" * 3000, "k" * 500, partition=0, headers=[("h", b"h" * 500)])
    writer.send(records)
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts([0, 1, 3, 4])
    (pairs,) = headers_of(letters)
    assert pairs["kafkaproto.left_out"] == left_out
    assert [name for name, _ in letter_headers(letters)].count(b"kafkaproto.left_out") == 1
    assert pairs["kafkaproto.reason"].startswith(b"MESSAGE_TOO_LARGE")
    assert pairs["kafkaproto.topic"] == b"orders"
    value, key, own = kept
    assert (values(letters), keys(letters), pairs.get("h")) == ([value], [key], own)
    assert writer.dead_letters == 1


def test_a_row_for_the_dead_letter_topic_itself_is_not_cut(brokers, producer, letters):
    brokers.on("Produce", size_limited(brokers, 1000))
    writer = producer(topic=None, dead_letter_topic="letters")
    writer.send([ProducerRecord("x" * 3000, topic="letters")])
    with pytest.raises(BrokerError, match=r"letters-0, row 0.*MESSAGE_TOO_LARGE"):
        writer.flush()
    assert values(letters) == []


@pytest.mark.parametrize("dead_letter_topic", [None, "letters"])
def test_a_letter_that_is_written_elsewhere_is_a_row_as_others_and_is_not_cut(
    brokers, producer, letters, dead_letter_topic
):
    """Who writes letters to where they were to go has to get them back whole, or told."""
    limited = size_limited(brokers, 1000)

    def answer(call):
        is_letters = call.request.topic_data[0].name == "letters"
        return produce(brokers, call) if is_letters else limited(call)

    brokers.on("Produce", answer)
    writer = producer(dead_letter_topic=dead_letter_topic)
    headers = [(refusals.REASON_HEADER, b"then")]
    writer.send([ProducerRecord("x" * 3000, partition=0, headers=headers)])
    if dead_letter_topic is None:
        with pytest.raises(BrokerError, match=r"orders-0, row 0.*MESSAGE_TOO_LARGE"):
            writer.flush()
    else:
        writer.flush()
        assert values(letters) == [b"x" * 3000]
    assert values(brokers.logs["orders", 0]) == []


@pytest.mark.parametrize(("said", "reason"), [("no key", b"no key"), (None, b"one is bad")])
def test_a_letter_says_what_the_broker_says_of_its_record(brokers, producer, letters, said, reason):
    """Of a batch of one record too, of which it says something in general as well."""
    error = ProduceResponse.Topic.Partition.RecordError(
        batch_index=0, batch_index_error_message=said
    )
    refuse = refusing(INVALID_RECORD, record_errors=(error,), error_message="one is bad")
    brokers.on("Produce", refuse, DEFAULT)
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    writer.flush()
    (pairs,) = headers_of(letters)
    assert pairs["kafkaproto.reason"] == b"INVALID_RECORD: " + reason


@pytest.mark.parametrize(
    ("code", "name"),
    [
        pytest.param(MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE", id="cut as far as it can be"),
        pytest.param(INVALID_TIMESTAMP, "INVALID_TIMESTAMP", id="with the time of now"),
    ],
)
def test_a_letter_that_is_refused_too_fails_the_write(brokers, producer, letters, code, name):
    brokers.on("Produce", refusing(code))
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(1))
    with pytest.raises(BrokerError, match=f"letters-0, row 0.*{name}"):
        writer.flush()


@pytest.mark.parametrize("is_sent", [False, True], ids=["never sent", "refused by the broker"])
def test_a_letter_keeps_the_number_of_its_row(brokers, producer, letters, is_sent):
    brokers.topics["letters"].move(0, 2)
    records = numbered(30)
    if is_sent:
        brokers.on("Produce", record_refusing(brokers, INVALID_RECORD, True, texts([13, 17])))
    else:
        records[13] = records[13]._replace(partition=9)
        records[17] = records[17]._replace(timestamp_ms=-5)
    brokers.on("Produce", refusing(TOPIC_AUTHORIZATION_FAILED), node=2)
    writer = producer(dead_letter_topic="letters", linger_ms=600_000)
    for start in (0, 10, 20):
        writer.send(records[start : start + 10])
    with pytest.raises(BrokerError, match=r"letters-0, 2 rows, 13 to 17 .*AUTHORIZATION"):
        writer.flush()
    assert values(letters) == []


@pytest.mark.parametrize(
    ("code", "name"), [(TOPIC_AUTHORIZATION_FAILED, "AUTHORIZATION"), (5, "LEADER_NOT_AVAILABLE")]
)
def test_a_topic_that_cannot_be_looked_up_makes_no_letters(
    brokers, producer, letters, clock, code, name
):
    brokers.topics["many"].error_code = code
    twice = {"default_api_timeout_ms": 900, "retry_backoff_ms": 400}
    writer = producer(None, dead_letter_topic="letters", **twice)
    with pytest.raises(BrokerError, match=f"many.*{name}"):
        writer.send([ProducerRecord(f"{n}", topic=at) for n, at in enumerate(["orders", "many"])])
    assert (writer.dead_letters, values(letters)) == (0, [])


@pytest.mark.slow
def test_topics_that_cannot_be_are_put_aside_with_one_look(brokers, producer, letters, clock):
    brokers.topics["no good"] = FakeTopic(topic_id_of("no good"), [1], [0], error_code=17)
    names = ["orders", "no good", "absent", "missing", "many", "absent"]
    records = [ProducerRecord(f"{n}", topic=name) for n, name in enumerate(names)]
    writer = producer(None, dead_letter_topic="letters")
    writer.send(records[:1] + records[4:5])
    assert len(brokers.asked("Metadata")) == 1
    clock.now += 1
    writer.send(records)
    took_s, looks = sum(clock.slept), len(brokers.asked("Metadata"))
    assert 0 < took_s < 1.001
    for _ in range(3):
        writer.send(records)
    writer.flush()
    assert writer.dead_letters == len(values(letters)) == 4 * 4
    assert sum(clock.slept) == took_s
    assert len(brokers.asked("Metadata")) == looks


@pytest.mark.parametrize(("age_ms", "believed_s"), [(300_000, 60), (5000, 5)])
def test_a_topic_that_comes_later_is_written_to(
    brokers, producer, letters, clock, age_ms, believed_s
):
    writer = producer(None, dead_letter_topic="letters", metadata_max_age_ms=age_ms)
    record = ProducerRecord("0", topic="new")
    writer.send([record])
    brokers.topics["new"] = FakeTopic(topic_id_of("new"), [1], [0])
    brokers.logs["new", 0] = FakeLog()
    clock.now += believed_s - 1
    writer.send([record])
    assert writer.dead_letters == 2
    clock.now += 2
    writer.send([record])
    writer.flush()
    assert writer.dead_letters == 2
    assert values(brokers.logs["new", 0]) == [b"0"]


@pytest.mark.parametrize("names_records", [True, False])
@pytest.mark.parametrize("refused", [(), texts([4, 5])], ids=["for its time", "for something else"])
def test_a_letter_of_a_refused_timestamp_has_the_time_of_now(
    brokers, producer, letters, refused, names_records
):
    brokers.on("Produce", time_limited(brokers, names_records, refused))
    before_ms = int(time.time() * 1000)
    late_ms = before_ms + 10**10
    records = numbered(10, timestamp_ms=before_ms)
    records[5] = records[5]._replace(timestamp_ms=late_ms, key="k", headers=[("own", b"1")])
    writer = producer(dead_letter_topic="letters")
    writer.send(records)
    writer.flush()
    aside = refused or texts([5])
    assert values(letters) == [*aside]
    left = [text for text in texts(range(10)) if text not in aside]
    assert values(brokers.logs["orders", 0]) == left
    timed = zip(headers_of(letters), times_of(letters), strict=True)
    written = dict(zip(values(letters), timed, strict=True))
    pairs, time_ms = written[b"5"]
    assert pairs["kafkaproto.timestamp"] == str(late_ms).encode()
    assert (pairs["own"], pairs["kafkaproto.topic"]) == (b"1", b"orders")
    assert before_ms <= time_ms <= time.time() * 1000
    if refused:
        pairs, time_ms = written[b"4"]
        assert "kafkaproto.timestamp" not in pairs
        assert time_ms == before_ms
    assert writer.dead_letters == len(aside)


def test_only_letters_are_written_with_another_timestamp(brokers, producer, letters):
    brokers.on("Produce", time_limited(brokers, names_records=True))
    writer = producer(None, dead_letter_topic="letters")
    late_ms = int(time.time() * 1000) + 10**10
    writer.send([ProducerRecord("0", topic="letters", timestamp_ms=late_ms)])
    with pytest.raises(BrokerError, match=r"letters-0, row 0.*INVALID_TIMESTAMP"):
        writer.flush()
    assert values(letters) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "content", "left_out"),
    [
        (8000, None, [b"headers (8000 bytes)"]),
        (4000, None, []),
        (100, b"x" * 200, [b"headers (20100 bytes)"]),
    ],
)
def test_a_letter_is_cut_by_the_lengths_of_its_headers_too(
    brokers, producer, letters, count, content, left_out
):
    writer = producer(dead_letter_topic="letters", max_request_size=20_000)
    headers = [("a", content)] * count
    writer.send([ProducerRecord(None, "k", partition=9, headers=headers)])
    writer.flush()
    (pairs,) = headers_of(letters)
    assert keys(letters) == [b"k"]
    assert [pairs[name] for name in pairs if name.endswith("left_out")] == left_out
    assert pairs["kafkaproto.topic"] == b"orders"
    assert "kafkaproto.partition" not in pairs, "there is none of that number"
    assert ("a" in pairs) == (not left_out)


@pytest.mark.parametrize("most_bytes", [500, 20_000])
def test_a_letter_that_just_fits_keeps_its_value(brokers, producer, letters, most_bytes):
    writer = producer(dead_letter_topic="letters", max_request_size=most_bytes)
    # The reason and the other headers take about 250 bytes.
    value = "x" * (most_bytes - 400)
    writer.send([ProducerRecord(value, "k", partition=9)])
    writer.flush()
    (pairs,) = headers_of(letters)
    assert "kafkaproto.left_out" not in pairs
    assert values(letters) == [value.encode()]


@pytest.mark.parametrize("headers", [0, 50])
def test_letters_of_any_size_fit_a_request(producer, letters, headers):
    """What the lengths of their headers take counts, too."""
    writer = producer(dead_letter_topic="letters", max_request_size=500 + 3 * headers)
    sizes = range(100, 300)  # of the smaller ones the values are kept
    given = [("h", None)] * headers
    records = [ProducerRecord("x" * size, "k", partition=9, headers=given) for size in sizes]
    writer.send(records)
    writer.flush()
    kept = [len(value) for value in values(letters) if value]
    assert kept == [*sizes][: len(kept)]
    assert 0 < len(kept) < writer.dead_letters == len(values(letters)) == len(sizes)


def test_where_every_record_is_put_aside_no_batch_without_records_is_sent(
    brokers, producer, letters
):
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(3, headers=[(None, b"x")]))
    assert [written.records for written in writer.flush().values()] == [3]
    topics = [topic for call in brokers.asked("Produce") for topic in call.topic_data]
    assert {topic.name for topic in topics} == {"letters"}
    assert values(letters) == texts(range(3))


@pytest.mark.parametrize(
    ("unit", "number", "words"),
    [
        ("s", 2**44, "17592186044416 s"),
        ("ms", 2**62, "4611686018427387904 ms"),
        ("ms", -(2**62), "-4611686018427387904 ms"),
    ],
)
def test_a_timestamp_beyond_64_bits_of_microseconds_is_named_or_put_aside(
    brokers, producer, letters, unit, number, words
):
    times = pa.array([9, number, None, 7, number], pa.timestamp(unit, "UTC"))
    columns = {"value": ["0", "1", "2", "3", "4"], "at": times, "partition": [0, 0, 0, 0, 9]}
    batch = pa.RecordBatch.from_pydict(columns).slice(0, 4)
    with pytest.raises(RecordRefused, match=rf"orders, row 1: its timestamp, {words} since 1970"):
        producer(timestamp_column="at").send(batch)
    writer = producer(dead_letter_topic="letters", timestamp_column="at")
    before_ms = int(time.time() * 1000)
    writer.send(batch.slice(1))
    writer.send(pa.RecordBatch.from_pydict(columns))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == texts([2, 3, 0, 2, 3])
    per_unit = {"s": 1000, "ms": 1}[unit]
    assert times_of(brokers.logs["orders", 0])[1:3] == [7 * per_unit, 9 * per_unit]
    assert values(letters) == texts([1, 1, 4])
    assert min(times_of(letters)) >= before_ms
    reasons = [pairs["kafkaproto.reason"] for pairs in headers_of(letters)]
    assert all(words.encode() in reason for reason in reasons)


@pytest.mark.parametrize(
    ("unit", "number"),
    [
        *[("ns", -1), ("ns", -999), ("ns", -1000), ("ns", -(2**63)), ("us", -1), ("us", -999)],
        *[("ms", -1), ("s", -1)],
    ],
)
def test_a_time_before_1970_is_named_or_put_aside(brokers, producer, letters, unit, number):
    times = pa.array([0, number, None], pa.timestamp(unit, "UTC"))
    columns = {"value": ["0", "1", "2"], "at": times, "partition": [0, 0, 0]}
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(RecordRefused, match=r"orders-0, row 1: its timestamp, .* before 1970"):
        producer(timestamp_column="at").send(batch)
    with producer(dead_letter_topic="letters", timestamp_column="at") as writer:
        writer.send(batch)
    assert values(brokers.logs["orders", 0]) == texts([0, 2])
    assert times_of(brokers.logs["orders", 0])[0] == 0
    assert values(letters) == texts([1])


@pytest.mark.parametrize("number", [(2**63 - 1) // 1000 + 1, 2**63 - 1, -(2**63)])
def test_such_a_timestamp_of_a_plain_record_is_named_or_put_aside(
    brokers, producer, letters, number
):
    records = [ProducerRecord("0", partition=0), ProducerRecord("1", timestamp_ms=number)]
    records += [ProducerRecord("2", partition=0, timestamp_ms=7)]
    with pytest.raises(RecordRefused, match=rf"orders, row 1: its timestamp, {number} ms since"):
        producer().send(records)
    with producer(dead_letter_topic="letters") as writer:
        writer.send(records)
        writer.send(records[2:])
    assert values(brokers.logs["orders", 0]) == texts([0, 2, 2])
    assert times_of(brokers.logs["orders", 0])[1:] == [7, 7]
    assert values(letters) == texts([1])


def test_the_last_timestamps_that_64_bits_of_microseconds_tell_are_written(brokers, producer):
    most = (2**63 - 1) // 1000
    for unit, number in (("ms", most), ("s", most // 1000)):
        writer = producer(timestamp_column="at")
        times = pa.array([number, None], pa.timestamp(unit))
        columns = {"value": ["", ""], "at": times, "partition": [0, 0]}
        writer.send(pa.RecordBatch.from_pydict(columns))
        writer.flush()
    assert times_of(brokers.logs["orders", 0])[::2] == [most, most // 1000 * 1000]


def orders_refusing(brokers, bad):
    """A leader that names the records with the values `bad` in orders, and takes all letters."""
    kind = ProduceResponse.Topic.Partition

    def written(call, topic, item):
        held = values_in(bytes(item.records))
        found = [index for index, value in enumerate(held) if value in bad]
        if topic.name == "letters" or not found:
            return write(brokers, call, topic.name, item)
        errors = tuple(kind.RecordError(batch_index=index) for index in found)
        return kind(index=item.index, error_code=INVALID_RECORD, record_errors=errors)

    def answer(call):
        return ProduceResponse(
            responses=tuple(
                ProduceResponse.Topic(
                    name=topic.name,
                    partition_responses=tuple(
                        written(call, topic, item) for item in topic.partition_data
                    ),
                )
                for topic in call.request.topic_data
            )
        )

    return answer


@pytest.fixture
def held_letters(monkeypatch):
    """How many letters a producer holds after each that it has put aside; 10 at a time are sent."""
    seen = []
    monkeypatch.setattr(refusals, "MOST_HELD_BYTES", 10 * 2000)

    def watch(writer):
        put_aside = writer._refusals._put_aside

        def counted(*given):
            put_aside(*given)
            seen.append(len(writer._refusals.letters))

        monkeypatch.setattr(writer._refusals, "_put_aside", counted)
        return seen

    return watch


@pytest.mark.slow
@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(40_000, id="while rows come"),
        pytest.param(1 << 25, id="at the end", marks=pytest.mark.slow),
    ],
)
def test_letters_are_sent_while_others_are_refused(
    brokers, producer, letters, held_letters, memory
):
    bad = texts(n for n in range(300) if n % 3)
    brokers.on("Produce", orders_refusing(brokers, bad))
    writer = producer(
        dead_letter_topic="letters", batch_size=2000, buffer_memory=memory, linger_ms=600_000
    )
    seen = held_letters(writer)
    headers = [("own", b"h" * 900)]
    for start in (0, 150):
        writer.send(numbered(300, headers=headers)[start : start + 150])
    written = writer.flush()
    assert max(seen) < 25
    assert sorted(values(letters)) == sorted(bad)
    assert values(brokers.logs["orders", 0]) == texts(range(0, 300, 3))
    assert writer.dead_letters == written[TopicPartition("letters", 0)].records == len(bad)


def test_a_flush_writes_letters_that_were_taken_as_it_waited(
    brokers, producer, letters, monkeypatch
):
    """None wait any more then, and their batch is not full."""
    monkeypatch.setattr(refusals, "MOST_HELD_BYTES", 1)
    brokers.on("Produce", orders_refusing(brokers, texts([3, 7])))
    writer = producer(dead_letter_topic="letters")
    writer.send(numbered(10))
    writer.flush()
    assert values(letters) == texts([3, 7])


def test_no_more_letters_are_taken_at_once_than_should_be_held(monkeypatch):
    """But one, however large; and an end of a transaction leaves nothing to be counted on."""
    config = ProducerConfig.parse({"bootstrap.servers": "b:1"})
    waiting = Refusals(config, "letters")

    def refuse(*sizes):
        for row, size in enumerate(sizes):
            waiting.refuse(ProducerRecord(b"v" * size), row, "orders", 0, "no")

    refuse(1000)
    monkeypatch.setattr(refusals, "MOST_HELD_BYTES", 2 * waiting._held_bytes)
    assert not waiting.holds_many
    refuse(1000)
    assert not waiting.holds_many, "as many as should be held"
    refuse(1000, 9000, 1000)
    assert waiting.holds_many
    sizes = []
    while taken := waiting.take_letters():
        sizes.append([len(record.value) for _, record in taken])
    assert sizes == [[1000, 1000], [1000, 9000], [1000]]
    assert not waiting.holds_many
    refuse(1000, 1000, 1000)
    waiting.forget_letters()
    refuse(1000, 1000)
    assert not waiting.holds_many
    assert [row for row, _ in waiting.take_letters()] == [0, 1]


@pytest.mark.slow
def test_rows_that_are_never_sent_are_put_aside_in_slices(brokers, producer, letters, held_letters):
    writer = producer(dead_letter_topic="letters", linger_ms=600_000)
    sizes = []
    append = writer._appending._append_to

    def counted(target, picked):
        sizes.append(picked.batch.num_rows)
        return append(target, picked)

    writer._appending._append_to = counted
    held_letters(writer)
    writer.send([ProducerRecord("x" * 900, partition=9) for _ in range(100)])
    writer.flush()
    assert sizes[0] == sum(sizes[1:]) == len(values(letters)) == 100
    assert max(sizes[1:]) <= 12


def test_rows_that_are_too_large_are_letters_and_nothing_else(
    brokers, letters, producer, monkeypatch
):
    """Their letters fill memory, so that whatever is open is finished meanwhile."""
    monkeypatch.setattr(refusals, "MOST_HELD_BYTES", 50_000)
    writer = producer(None, "letters", max_request_size=2000, buffer_memory=40_000, linger_ms=1000)
    row = ProducerRecord(b"x" * 30_000, key=b"k", partition=0, topic="orders")
    writer.send([row] * 60)
    writer.flush()
    assert len(values(letters)) == 60
    assert not values(brokers.logs["orders", 0])


def test_of_one_arrow_batch_no_more_letters_are_held_than_of_many(letters, producer, monkeypatch):
    monkeypatch.setattr(refusals, "MOST_HELD_BYTES", 50_000)
    writer = producer(None, "letters")
    held = []
    put_aside = writer._refusals._put_aside

    def noting(*record):
        put_aside(*record)
        held.append(writer._refusals._held_bytes)

    monkeypatch.setattr(writer._refusals, "_put_aside", noting)
    nowhere = {"topic": pa.nulls(300, pa.string()), "value": [b"x" * 1000] * 300}
    writer.send(pa.record_batch(nowhere))
    writer.flush()
    assert len(values(letters)) == len(held) == 300
    assert max(held) < 60_000
