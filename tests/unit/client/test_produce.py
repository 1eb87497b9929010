"""Rows to leaders that behave: placed, batched, pipelined, in order; what comes out of it."""

import os
import threading
import time
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from pyspark_kafkaproto.client import Producer, ProducerRecord, Written
from pyspark_kafkaproto.client.writing import coalescing, gathering, plain
from pyspark_kafkaproto.client.writing.refusals import RecordRefused
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
)
from pyspark_kafkaproto.net import Connections, ProducerConfig
from tests.fake_broker import DEFAULT, STALL, FakeTopic, close, late, topic_id_of
from tests.fake_log import Batch, FakeLog
from tests.fake_past import behind
from tests.fake_produce import produce, times_of, values
from tests.forks import fork, in_child

ONE = TopicPartition("orders", 0)


def numbered(count, start=0, **fields):
    """Records whose values are their numbers."""
    return [ProducerRecord(f"{n}", **fields) for n in range(start, start + count)]


def sent_batches(brokers, node=None):
    """Per Produce: the (topic, partition) of each batch in it."""
    return [
        [(topic.name, item.index) for topic in request.topic_data for item in topic.partition_data]
        for request in brokers.asked("Produce", node)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [0, 2])
def test_a_child_process_is_told_to_make_a_producer_of_its_own(brokers, threads):
    rows = [*numbered(3, partition=0), ProducerRecord(b"x" * 100_000, partition=0)]
    properties = {"bootstrap.servers": brokers.bootstrap_servers, "compression.type": "gzip"}
    with Producer(properties, topic="orders", compression_threads=threads) as inherited:
        inherited.send(rows)
        inherited.flush()
        inherited.send(rows)

        def use_it():
            for use in (lambda: inherited.send(rows), inherited.flush):
                with pytest.raises(LocalProtocolError, match="make one in each process"):
                    use()
            inherited.close()
            inherited.close()

        assert in_child(use_it) == 0
        inherited.send(rows)
    assert len(values(brokers.logs["orders", 0])) == 3 * len(rows)


@pytest.mark.slow
def test_a_child_that_comes_out_of_its_parents_call_takes_no_answer_of_it(brokers, producer):
    """By an error, as where what makes the rows forks: what is written is told to the parent."""
    brokers.on("Produce", late(brokers, partial(produce, brokers)))
    writer = producer(linger_ms=0)
    writer.send(numbered(1, partition=0))
    brokers.wait_for_call("Produce", 1)
    statuses = []

    def rows():
        if (child := fork()) == 0:
            raise LocalProtocolError("of the child")
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        yield ProducerRecord("another", partition=0)

    try:
        writer.send(rows())
    except LocalProtocolError as error:
        os._exit(1 if error.usable else 0)
    written = writer.flush()[ONE]
    assert (statuses, written.records, written.retries) == ([0], 2, 0)


def test_a_first_write_asks_for_metadata_and_an_id_once(brokers, producer):
    writer = producer()
    writer.send(numbered(10, partition=0))
    assert writer.flush() == {
        ONE: Written(records=10, batches=1, bytes=len(brokers.logs["orders", 0].batches[0].data),
                     first_offset=0, last_offset=9)
    }  # fmt: skip
    writer.send(numbered(5, 10, partition=0))
    written = writer.flush()[ONE]
    assert (written.first_offset, written.last_offset) == (10, 14)
    assert values(brokers.logs["orders", 0]) == [f"{n}".encode() for n in range(15)]
    assert [call.api for call in brokers.calls] == [
        "ApiVersions", "Metadata", "InitProducerId", "Produce", "Produce",
    ]  # fmt: skip
    request = brokers.asked("Produce")[0]
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 30_000, None)


def test_topic_ids_are_used_where_brokers_know_them(brokers, producer):
    brokers.versions["Produce"] = (0, 13)
    writer = producer()
    writer.send(numbered(10, partition=1))
    writer.flush()
    assert brokers.calls[-1].header.api_version == 13
    assert brokers.asked("Produce")[0].topic_data[0].topic_id == brokers.topics["orders"].topic_id
    assert len(values(brokers.logs["orders", 1])) == 10


def test_a_broker_that_knows_old_versions_only_is_refused(brokers, producer):
    brokers.versions["Produce"] = (0, 2)
    writer = producer()
    writer.send(numbered(1, partition=0))
    with pytest.raises(Exception, match="speaks Produce 2: record batches need 3 or later"):
        writer.flush()


def test_rows_of_many_arrow_batches_share_record_batches(brokers, producer):
    writer = producer()
    for start in range(0, 100, 10):
        writer.send(numbered(10, start, partition=0))
    assert writer.flush()[ONE].batches == 1
    assert values(brokers.logs["orders", 0]) == [f"{n}".encode() for n in range(100)]


def test_batches_are_no_larger_than_batch_size(brokers, producer):
    writer = producer(batch_size=200)
    writer.send(numbered(100, partition=0))
    writer.flush()
    sizes = [len(batch.data) for batch in brokers.logs["orders", 0].batches]
    assert len(sizes) > 5
    assert max(sizes) <= 200
    assert values(brokers.logs["orders", 0]) == [f"{n}".encode() for n in range(100)]


def test_linger_zero_sends_what_there_is(brokers, producer):
    writer = producer(linger_ms=0)
    writer.send(numbered(3, partition=0))
    brokers.wait_for_call("Produce")
    writer.send(numbered(3, 3, partition=0))
    assert writer.flush()[ONE].batches == 2


@pytest.mark.parametrize("most", [1, 3, 5])
def test_requests_are_pipelined_up_to_max_in_flight(brokers, producer, most):
    writer = producer(batch_size=100, max_in_flight_requests_per_connection=most)
    writer.send(numbered(10, partition=0))
    writer.flush()  # from here on the broker knows the producer
    before = len(brokers.asked("Produce"))
    brokers.on("Produce", STALL)
    writer.send(numbered(100, 10, partition=0))
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    brokers.wait_for_call("Produce", before + most)
    assert len(brokers.asked("Produce")) == before + most


@pytest.mark.slow
def test_while_a_request_is_under_way_the_next_one_fills(brokers, producer):
    writer = producer("many", batch_size=100, max_request_size=1000)
    writer.send([ProducerRecord("x", partition=n) for n in range(8)])
    writer.flush()  # from here on the broker knows the producer
    before = len(brokers.asked("Produce"))
    brokers.on("Produce", STALL)
    for partition in range(7):
        # A full batch each, and the start of another.
        writer.send([ProducerRecord("x" * 30, partition=partition) for _ in range(2)])
        brokers.wait_for_call("Produce", before + 1)
    assert sent_batches(brokers)[before:] == [[("many", 0)]]
    writer._appending.open_batches.finish_all()
    writer._sender.pump()
    brokers.wait_for_call("Produce", before + 2)
    assert set(sent_batches(brokers)[before + 1]) >= {("many", n) for n in range(1, 7)}


def test_nothing_is_pipelined_before_the_broker_knows_the_producer(brokers, producer):
    writer = producer(batch_size=100)
    brokers.on("Produce", STALL)
    writer.send(numbered(100, partition=0))
    writer._appending.open_batches.finish_all()
    for _ in range(3):
        writer._sender.pump()
    brokers.wait_for_call("Produce")
    assert len(brokers.asked("Produce")) == 1


@pytest.mark.slow
def test_one_request_carries_batches_of_many_partitions(brokers, producer):
    writer = producer("many")
    writer.send([ProducerRecord("x", partition=n) for n in range(250)])
    assert len(writer.flush()) == 250
    assert sent_batches(brokers) == [[("many", n) for n in range(250)]]


@pytest.mark.slow
def test_requests_are_no_larger_than_max_request_size(brokers, producer):
    writer = producer("many", max_request_size=2000, batch_size=1000)
    writer.send([ProducerRecord("x" * 150, partition=n) for n in range(50)])
    assert len(writer.flush()) == 50
    sizes = [
        sum(len(item.records) for topic in request.topic_data for item in topic.partition_data)
        for request in brokers.asked("Produce")
    ]
    assert 1900 < max(sizes) <= 2000


def test_each_leader_is_sent_its_own(brokers, producer):
    brokers.topics["orders"].move(1, node_id=2)
    writer = producer()
    writer.send([ProducerRecord(f"{n}", partition=n % 2) for n in range(20)])
    writer.flush()
    assert sent_batches(brokers, 1) == [[("orders", 0)]]
    assert sent_batches(brokers, 2) == [[("orders", 1)]]


def test_acks_0_waits_for_nothing_and_knows_no_offsets(brokers, producer):
    writer = producer(acks="0")
    writer.send(numbered(10, partition=0))
    assert writer.flush()[ONE].last_offset == -1
    brokers.wait_for_call("Produce")
    assert brokers.asked("Produce")[0].acks == 0
    assert brokers.asked("InitProducerId") == []
    writer.send(numbered(10, 10, partition=0))
    writer.flush()
    brokers.wait_for_call("Produce", 2)


def test_without_idempotence_one_batch_of_a_partition_is_in_flight(brokers, producer):
    writer = producer(batch_size=100, enable_idempotence="false")
    brokers.on("Produce", STALL)
    writer.send([ProducerRecord(f"{n}", partition=n % 2) for n in range(100)])
    writer._appending.open_batches.finish_all()
    for _ in range(3):
        writer._sender.pump()
    brokers.wait_for_call("Produce")
    assert sent_batches(brokers) == [[("orders", 0), ("orders", 1)]]


# Arrow in


def arrow(**columns):
    return pa.RecordBatch.from_pydict(columns)


def test_arrow_columns_are_written_as_they_are(brokers, producer):
    writer = producer()
    batch = arrow(
        value=pa.array(["a", None, "c"], pa.large_string()),
        partition=pa.array([1, 1, 1], pa.int64()),
        other=pa.array([1, 2, 3]),
    )
    writer.send(batch.slice(1))
    writer.flush()
    assert brokers.logs["orders", 1].stop == 2
    assert values(brokers.logs["orders", 1])[-1] == b"c"


def test_a_table_is_written_batch_by_batch(brokers, producer):
    parts = [
        pa.RecordBatch.from_pydict({"value": [f"{n}", f"{n + 1}"], "partition": [0, 0]})
        for n in (0, 2, 4)
    ]
    writer = producer()
    for table in (pa.Table.from_batches(parts), pa.Table.from_batches([], parts[0].schema)):
        writer.send(table)
    assert writer.flush()[ONE].records == 6
    assert values(brokers.logs["orders", 0]) == [f"{n}".encode() for n in range(6)]
    writer.send(pa.Table.from_batches(parts[:2]).append_column("topic", pa.nulls(4)))
    writer.send(pa.Table.from_pydict({"value": ["x"], "partition": [9]}).slice(1))
    with pytest.raises(RecordRefused, match="row 10: there is no partition 9"):
        writer.send(pa.Table.from_pydict({"value": ["x"], "partition": [9]}))


@pytest.mark.slow
def test_rows_go_to_their_own_topics_in_their_order(brokers, producer):
    writer = producer(None)
    topics = ["orders", "many", "orders", "many", "orders"]
    writer.send(arrow(value=list("abcde"), topic=topics, partition=[0] * 5))
    writer.send(arrow(value=["f"], topic=["many"], partition=[0]))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"a", b"c", b"e"]
    assert values(brokers.logs["many", 0]) == [b"b", b"d", b"f"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_and_columns_that_are_left_can_be_anything(brokers, producer, kind):
    texts = pa.array(list("abcd"))
    pair = pa.struct([("key", pa.string_view()), ("value", pa.binary_view())])
    pairs = [[{"key": text, "value": text.encode()}] for text in "abcd"]
    batch = pa.record_batch(
        {
            "value": texts.cast(kind),
            "key": texts.cast(kind),
            "headers": pa.array(pairs, pa.list_(pair)),
            "topic": pa.array(["orders", "many", None, "many"]),
            "partition": pa.array([0, 0, 0, 250]),
            "other": pa.RunEndEncodedArray.from_arrays([4], ["x"]),
        }
    )
    writer = producer(None, dead_letter_topic="orders")
    writer.send(batch)
    writer.flush()
    assert values(brokers.logs["many", 0]) == [b"b"]
    assert records_in(brokers.logs["orders", 0])[0] == (b"a", b"a", [(b"a", b"a")])
    assert writer.dead_letters == 2


def test_the_producers_topic_wins(brokers, producer):
    writer = producer("orders")
    writer.send(arrow(value=["a"], topic=["many"], partition=[0]))
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"a"]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"value": ["a"]}, "topic"),
        ({"value": ["a"], "topic": [5]}, "topic has to be a string"),
        ({"value": ["a"], "topic": ["orders"], "partition": ["0"]}, "partition has to be an int"),
        ({"value": [1.5], "topic": ["orders"]}, "value"),
        ({"key": ["a"], "valu": ["b"], "topic": ["orders"]}, "key, valu, topic.*`value` is needed"),
    ],
)
def test_columns_that_no_record_has_are_refused(producer, columns, text):
    with pytest.raises(ConfigError, match=text):
        producer(None).send(arrow(**columns))


@pytest.mark.parametrize("name", ["value", "key", "topic", "partition", "headers", "at"])
def test_a_column_that_is_there_twice_is_refused_where_it_counts(producer, name):
    names = ["value", "key", "at", "other", "other", name, name]
    batch = pa.RecordBatch.from_arrays([pa.nulls(1)] * 7, names)
    with pytest.raises(ConfigError, match=f"`{name}`, .* once"):
        producer(timestamp_column="at").send(batch)


@pytest.mark.parametrize(
    "record",
    [
        ProducerRecord(5),
        ProducerRecord("\ud800"),
        ProducerRecord(b"", "\ud800"),
        ProducerRecord(b"", topic="\ud800"),
        ProducerRecord(b"", headers=[("\ud800", b"")]),
        ProducerRecord(b"", headers=[("one", b"", "too many")]),
        ProducerRecord(b"", headers=[b"no pair"]),
        ProducerRecord(b"", headers=5),
        ProducerRecord(b"", headers={"id": b"1"}),  # its keys would be pairs of letters
        ProducerRecord(b"", headers=["id"]),
        ProducerRecord(b"", partition=1 << 63),
        ProducerRecord(b"", partition=0.5),
        ProducerRecord(b"", timestamp_ms="now"),
        ProducerRecord(b"", timestamp_ms=1 << 63),
        ProducerRecord(b"", timestamp_ms=float("nan")),
        ProducerRecord(b"", timestamp_ms=float("inf")),
    ],
)
@pytest.mark.parametrize("others", [0, 5])
def test_plain_records_that_cannot_be_are_refused(producer, record, others):
    fine = [ProducerRecord(b"fine")] * others
    with pytest.raises(ConfigError, match=r"ProducerRecord\((5|'|b'').*one cannot be used"):
        producer().send([*fine, record, *fine])


@pytest.mark.parametrize("record", [("key", "value"), "value", None])
def test_what_is_no_record_is_refused(producer, record):
    kind = type(record).__name__
    with pytest.raises(ConfigError, match=rf"records.*{kind}.*expected ProducerRecord"):
        producer().send([record])


class Frame:
    """Like pandas' one, to go through which is to go through the names of its columns."""

    iloc, columns = None, ["value"]

    def __iter__(self):
        return iter(self.columns)


class Series:
    """Like pandas' one, such as `frame.apply(make_record, axis=1)` gives."""

    iloc = None

    def __iter__(self):
        return iter(numbered(3, partition=0))


@pytest.mark.parametrize("data", [None, 5, "", b"value", {"value": ["a"]}, Frame()])
def test_what_is_no_list_is_refused(producer, data):
    kind = type(data).__name__
    with pytest.raises(ConfigError, match=rf"records' is '{kind}'.*expected records.*from_pandas"):
        producer().send(data)


def test_a_series_of_records_is_taken_as_a_list_is(brokers, producer):
    writer = producer()
    writer.send(Series())
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"0", b"1", b"2"]


def test_one_record_by_itself_is_refused_for_what_it_is(producer):
    """It is a tuple, whose parts would be taken for records."""
    match = r"records.*ProducerRecord.*expected a list: send\(\[record\]\)"
    with pytest.raises(ConfigError, match=match):
        producer().send(ProducerRecord("value"))


def test_a_second_thread_is_refused_and_the_first_goes_on(brokers, producer):
    """Two would take each other's batches, and lose all of them with an error of ours."""
    writer = producer()
    refused = []

    def other():
        for use in (partial(writer.send, [ProducerRecord(b"other")]), writer.flush, writer.close):
            with pytest.raises(LocalProtocolError, match="another thread uses this producer") as e:
                use()
            refused.append(e)

    def records():
        yield ProducerRecord(b"first", partition=0)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        writer.send([ProducerRecord(b"inner", partition=0)])
        yield ProducerRecord(b"last", partition=0)

    writer.send(records())
    assert len(refused) == 3
    assert writer.flush()[ONE].records == 3
    assert values(brokers.logs["orders", 0]) == [b"inner", b"first", b"last"]


@pytest.mark.parametrize(
    ("owner", "step", "use"),
    [("_transactions", "leave", "leave_transaction"), ("", "_take_written", "flush")],
)
def test_a_second_thread_is_refused_to_the_very_end(producer, monkeypatch, owner, step, use):
    writer = producer(transactional_id="t")
    writer.begin_transaction()
    place = getattr(writer, owner) if owner else writer
    last, refused = getattr(place, step), []

    def other():
        with pytest.raises(LocalProtocolError, match="another thread uses this producer") as e:
            writer.send([ProducerRecord(b"other")])
        refused.append(e)

    def end():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        return last()

    monkeypatch.setattr(place, step, end)
    getattr(writer, use)()
    assert refused


def test_a_second_thread_is_refused_in_transactions_too(producer):
    writer = producer(transactional_id="t")
    writer.begin_transaction()
    refused = []

    def other():
        for use in (writer.commit_transaction, writer.abort_transaction):
            with pytest.raises(LocalProtocolError, match="another thread uses this producer") as e:
                use()
            refused.append(e)

    def records():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(10)
        yield ProducerRecord(b"x")

    writer.send(records())
    assert len(refused) == 2
    writer.abort_transaction()


def counted(monkeypatch):
    """How many records came together each time that columns were made of records."""
    counts = []

    def to_arrow(records, times_ms):
        counts.append(len(records))
        return plain.to_arrow(records, times_ms)

    monkeypatch.setattr(gathering, "to_arrow", to_arrow)
    return counts


def test_records_that_come_one_by_one_are_written_together_in_their_order(
    brokers, producer, monkeypatch
):
    counts = counted(monkeypatch)
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer()
    for record in numbered(700, partition=0):
        writer.send([record])
    writer.send(arrow(value=["700", "701"], partition=[0, 0]))
    for record in numbered(300, 702, partition=0):
        writer.send([record])
    assert writer.flush()[ONE].records == 1002
    assert counts[0] == 1  # nobody knew that others would follow
    assert max(counts) > 250
    assert sum(counts) == 1000
    assert values(brokers.logs["orders", 0]) == [str(n).encode() for n in range(1002)]


def test_the_first_record_after_a_flush_is_looked_at_at_once(brokers, producer, monkeypatch):
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer()
    for record in numbered(3):
        writer.send([record])
    writer.flush()
    with pytest.raises(RecordRefused, match=r"row 3.*there is no partition 7"):
        writer.send([ProducerRecord("x", partition=7)])


def test_a_gathered_record_has_the_time_at_which_it_was_sent(brokers, producer, monkeypatch):
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    now_ns = 1_700_000_000_000_000_000
    monkeypatch.setattr(gathering.time, "time_ns", lambda: now_ns)
    writer = producer()
    for second in range(5):
        now_ns += 1_000_000_000
        own = {"timestamp_ms": 5} if second == 3 else {}
        writer.send(numbered(1, second, partition=0, **own))
    now_ns += 1_000_000_000_000
    writer.flush()
    first = 1_700_000_000_000
    expected = [first + 1000, first + 2000, first + 3000, 5, first + 5000]
    assert times_of(brokers.logs["orders", 0]) == expected


def test_numbers_that_are_not_pythons_own_are_numbers(brokers, producer):
    """NumPy's among them, as a table's rows have them: Arrow takes those for no times."""

    class Whole:
        def __index__(self):
            return 1

    writer = producer()
    writer.send([ProducerRecord("x", partition=Whole(), timestamp_ms=Whole())])
    writer.flush()
    assert times_of(brokers.logs["orders", 1]) == [1]


def test_fractions_of_a_millisecond_are_left_out(brokers, producer):
    writer = producer()
    writer.send([ProducerRecord("", partition=0, timestamp_ms=at) for at in (0.0, 7.999)])
    writer.flush()
    assert times_of(brokers.logs["orders", 0]) == [0, 7]
    with pytest.raises(RecordRefused, match=r"row 3: its timestamp, .* before 1970"):
        writer.send([ProducerRecord(""), ProducerRecord("", timestamp_ms=-0.0001)])


@pytest.mark.slow
def test_what_fills_a_batch_is_not_gathered(brokers, producer, monkeypatch):
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer(batch_size=200)
    for record in numbered(100, partition=0):
        writer.send([record])
    brokers.wait_for_call("Produce")


def test_records_are_looked_at_when_others_come_late(brokers, producer, monkeypatch):
    counts = counted(monkeypatch)
    now = 100.0
    monkeypatch.setattr(gathering.time, "monotonic", lambda: now)
    monkeypatch.setattr(gathering, "_MOST_S", 0.01)
    writer = producer(linger_ms=10_000)
    for pause_s in (0, 0.004, 0.004, 0.004, 0.005, 0.020, 0.001):
        now += pause_s
        writer.send(numbered(1))
    writer.flush()
    # The first, and after it those of 10 ms; then one that came late with what waited for it.
    assert counts == [1, 4, 1, 1]


def records_in(log):
    """Key, value and headers of each record of a log."""
    taken = [plain.decoded_batch(batch.data, log.stop) for batch in log.batches]
    records = [record for part in taken for record in plain.records_of(part, range(part.rows))]
    return [(record.key, record.value, record.headers) for record in records]


def test_a_record_is_written_as_it_was_when_it_was_sent(brokers, producer, monkeypatch):
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer()
    used = bytearray(b"0")
    headers = [("number", used)]
    for number in range(3):
        used[:] = f"{number}".encode()
        writer.send([ProducerRecord(memoryview(used), key=used, partition=0, headers=headers)])
        headers[0] = ("number", used)
    used[:] = b"?"
    headers[0] = ("late", b"?")
    writer.flush()
    expected = [(n, n, [(b"number", n)]) for n in (b"0", b"1", b"2")]
    assert records_in(brokers.logs["orders", 0]) == expected


def test_headers_that_can_be_read_once_are_written(brokers, producer, monkeypatch):
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer()
    for _ in range(2):
        pairs = zip(["a", "b"], [b"1", None], strict=True)
        writer.send([ProducerRecord(b"x", partition=0, headers=pairs)])
    writer.flush()
    expected = (None, b"x", [(b"a", b"1"), (b"b", None)])
    assert records_in(brokers.logs["orders", 0]) == [expected] * 2


@pytest.mark.parametrize("most_s", [0.0, 60.0])
@pytest.mark.parametrize("flushes", [False, True])
def test_what_makes_the_records_may_send_others(brokers, producer, monkeypatch, most_s, flushes):
    monkeypatch.setattr(gathering, "_MOST_S", most_s)
    writer = producer()
    writer.send(numbered(1, partition=0))

    def make():
        yield ProducerRecord(b"2", partition=0)
        writer.send([ProducerRecord(b"1", partition=0)])
        if flushes:
            writer.flush()
        yield ProducerRecord(b"3", partition=0)

    writer.send(make())
    writer.flush()
    assert values(brokers.logs["orders", 0]) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("nothing", [[], pa.record_batch({"value": pa.array([], pa.string())})])
def test_a_send_of_nothing_looks_at_what_has_waited(brokers, producer, monkeypatch, nothing):
    now = 100.0
    for module in (gathering, coalescing):
        monkeypatch.setattr(module.time, "monotonic", lambda: now)
        monkeypatch.setattr(module, "_MOST_S", 0.01)
    writer = producer(linger_ms=50)
    for row in range(2):
        writer.send(numbered(1, row, partition=0))
        writer.send(arrow(value=[f"{row + 2}"], partition=[0]))
    log = brokers.logs["orders", 0]
    for _ in range(2000):
        now += 0.005
        writer.send(nothing)
        if log.stop == 4:
            break
        time.sleep(0.001)
    assert sorted(values(log)) == [b"0", b"1", b"2", b"3"]


def test_what_comes_after_a_pause_filled_with_nothing_waits_for_nothing(
    brokers, producer, monkeypatch
):
    counts = counted(monkeypatch)
    now = 100.0
    monkeypatch.setattr(gathering.time, "monotonic", lambda: now)
    monkeypatch.setattr(gathering, "_MOST_S", 0.01)
    writer = producer(linger_ms=10_000)
    for records in [numbered(1), [], [], [], numbered(1)]:
        writer.send(records)
        now += 0.005
    assert counts == [1, 1]


@pytest.mark.slow
def test_small_batches_for_many_partitions_are_looked_at_together(brokers, producer, monkeypatch):
    monkeypatch.setattr(coalescing, "_MOST_S", 60.0)
    writer = producer("many")
    looks = []
    append = writer._appending.append

    def looked_at(part):
        looks.append(part[0].num_rows)
        return append(part)

    monkeypatch.setattr(writer._appending, "append", looked_at)
    for start in range(0, 5000, 500):
        numbers = range(start, start + 500)
        writer.send(arrow(value=[f"{n}" for n in numbers], partition=[n % 250 for n in numbers]))
    assert looks == [500]
    writer.send(arrow(value=["x", "y"], partition=[0, 250]))
    with pytest.raises(RecordRefused, match=r"row 5001.*there is no partition 250"):
        writer.flush()
    assert looks == [500, 4502]


def test_what_is_held_is_written_in_order_and_at_its_time(brokers, producer, monkeypatch):
    monkeypatch.setattr(coalescing, "_MOST_S", 60.0)
    now_ns = 1_700_000_000_000_000_000
    monkeypatch.setattr(coalescing.time, "time_ns", lambda: now_ns)
    writer = producer()
    for number in range(0, 8, 2):
        now_ns += 1_000_000_000
        pair = [f"{number}", f"{number + 1}"]
        if number == 4:
            writer.send([ProducerRecord(text, partition=0, timestamp_ms=5) for text in pair])
        else:
            writer.send(arrow(value=pair, partition=[0, 0]))
    now_ns += 1_000_000_000
    assert writer.flush()[ONE].records == 8
    assert values(brokers.logs["orders", 0]) == [f"{number}".encode() for number in range(8)]
    start = 1_700_000_000_000
    held = [start + 2000] * 2 + [5, 5] + [start + 4000] * 2
    assert times_of(brokers.logs["orders", 0])[2:] == held


@pytest.mark.slow
def test_many_open_batches_stay_within_buffer_memory(brokers, producer):
    writer = producer("many", buffer_memory=40_000)
    for start in range(20):
        writer.send([ProducerRecord("x" * 100, partition=n) for n in range(250)])
        assert writer._appending.open_batches._open_bytes <= 20_000 + 250 * 200, start
    writer.flush()
    assert sum(log.stop for name, log in brokers.logs.items() if name[0] == "many") == 5000


# The face


def test_a_topic_that_does_not_exist_is_named_before_anything_is_sent(brokers, producer, clock):
    writer = producer("no-such")
    with pytest.raises(BrokerError, match=r"no-such.*UNKNOWN_TOPIC_OR_PARTITION"):
        writer.send(numbered(1))
    assert brokers.asked("Produce") == []


def test_the_first_row_that_names_a_topic_that_does_not_exist_is_told(brokers, producer, clock):
    """Who has millions of rows has to find it."""
    writer = producer(None)
    writer.send([ProducerRecord("a", topic="orders")])
    rows = [ProducerRecord("a", topic=name) for name in ("orders", "zzz", "no-such", "zzz")]
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION") as caught:
        writer.send(rows)
    asked, _, told = str(caught.value).partition("\n")
    assert "topic 'zzz'" in asked
    assert told.startswith("Row 2 names it. To put such records aside instead: give the Producer")


def widen(brokers, count):
    """Give `orders` more partitions."""
    topic = brokers.topics["orders"]
    for number in range(len(topic.leaders), count):
        topic.leaders.append(1)
        topic.epochs.append(0)
        brokers.logs["orders", number] = FakeLog()


def test_a_row_may_name_a_partition_that_was_added(brokers, producer):
    writer = producer()
    writer.send([ProducerRecord("a", partition=0)])
    widen(brokers, 4)
    writer.send([ProducerRecord("b", partition=3), ProducerRecord("c", partition=0)])
    writer.flush()
    assert values(brokers.logs["orders", 3]) == [b"b"]
    assert values(brokers.logs["orders", 0]) == [b"a", b"c"]
    with pytest.raises(RecordRefused, match="there is no partition 4: the topic has 4"):
        writer.send([ProducerRecord("d", partition=4)])


def test_a_partition_that_one_broker_has_not_heard_of_yet_is_written_to(brokers, producer, clock):
    """A record that is refused is lost to its topic, and ends the write."""
    writer = producer()
    writer.send([ProducerRecord("a", partition=0)])
    topic = brokers.topics["orders"]
    before = replace(topic, leaders=list(topic.leaders), epochs=list(topic.epochs))
    widen(brokers, 4)
    brokers.on("Metadata", behind(brokers, "orders", before), DEFAULT)
    writer.send([ProducerRecord("b", partition=3)])
    writer.flush()
    assert values(brokers.logs["orders", 3]) == [b"b"]


def test_a_partition_is_looked_for_until_somebody_tells(brokers, producer, clock):
    writer = producer()
    writer.send([ProducerRecord("a", partition=0)])
    widen(brokers, 4)
    brokers.on("Metadata", close(), close(), DEFAULT)
    writer.send([ProducerRecord("b", partition=3)])
    writer.flush()
    assert values(brokers.logs["orders", 3]) == [b"b"]


def test_that_a_topic_has_not_grown_is_believed_for_a_while(brokers, producer, clock):
    """Row after row that names no partition is not to wait for news each time."""
    brokers.topics["letters"] = FakeTopic(topic_id_of("letters"), [1], [0])
    brokers.logs["letters", 0] = FakeLog()
    writer = producer(dead_letter_topic="letters")
    for _ in range(3):
        writer.send([ProducerRecord("a", partition=7), ProducerRecord("b", partition=0)])
        writer.flush()
    assert len(clock.slept) == 2  # between the three who were asked first
    widen(brokers, 8)
    writer.send([ProducerRecord("c", partition=7)])
    writer.flush()
    assert values(brokers.logs["orders", 7]) == [b"c"]


def written_to(brokers):
    """Which partitions of `orders` have records."""
    return {number for number in range(4) if brokers.logs["orders", number].stop}


@pytest.mark.parametrize(("age_ms", "wait_s"), [(None, 301), (2000, 3)])
def test_partitions_that_were_added_are_written_to_after_a_while(
    brokers, producer, clock, age_ms, wait_s
):
    keyed = [ProducerRecord("v", f"{n}") for n in range(100)]
    writer = producer(**({} if age_ms is None else {"metadata_max_age_ms": age_ms}))
    writer.send(keyed)
    widen(brokers, 4)
    clock.now += wait_s - 2
    writer.send(keyed)
    writer.flush()
    assert written_to(brokers) == {0, 1}
    clock.now += 2
    brokers.on("Metadata", close())  # nothing hangs on it: asked again the next time
    writer.send(keyed)
    brokers.on("Metadata", DEFAULT)
    clock.now += wait_s
    writer.send(keyed)
    writer.flush()
    assert written_to(brokers) == {0, 1, 2, 3}


def test_an_ended_producer_says_why(brokers, producer, clock):
    writer = producer("no-such")
    with pytest.raises(BrokerError):
        writer.send(numbered(1))
    with pytest.raises(LocalProtocolError, match="ended, with BrokerError: make a new one"):
        writer.flush()
    closed = producer()
    closed.close()
    closed.close()
    with pytest.raises(LocalProtocolError, match="it was closed"):
        closed.send(numbered(1))
    with pytest.raises(LocalProtocolError, match="it was closed"):
        closed.check_topics({"orders"})
    assert not closed._router.connections.kept


def test_leaving_the_with_flushes_and_an_error_does_not(brokers, producer):
    with producer() as writer:
        writer.send(numbered(3, partition=0))
    assert brokers.logs["orders", 0].stop == 3
    with pytest.raises(ConfigError), producer() as writer:
        writer.send([ProducerRecord(5)])
    assert brokers.logs["orders", 0].stop == 3


def test_nothing_sent_is_nothing_asked(brokers, producer):
    with producer() as writer:
        writer.send([])
        assert writer.flush() == {}
    assert brokers.calls == []


def test_records_of_a_generator_are_sent_as_they_are_drawn(brokers, producer):
    def records():
        for record in numbered(1000, partition=0):
            if record.value == "900":  # held until the last one is made, there would be none
                brokers.wait_for_call("Produce")
            yield record

    with producer(linger_ms=0) as writer:
        writer.send(records())
    assert values(brokers.logs["orders", 0]) == [b"%d" % n for n in range(1000)]


def test_first_and_last_offsets_span_other_producers_records(brokers, producer):
    log = brokers.logs["orders", 0]

    def between(call):
        answer = produce(brokers, call)
        log.stop += 3
        log.batches.append(Batch(b"", log.stop))
        return answer

    writer = producer(batch_size=100)
    brokers.on("Produce", between)
    writer.send(numbered(20, partition=0))
    written = writer.flush()[ONE]
    assert written.first_offset == 0
    assert written.last_offset == log.stop - 4 > 19


def test_a_topic_that_is_not_there_fails_the_send_with_what_the_broker_says(
    brokers, producer, clock
):
    """Before any row of the same batch is written, where nothing is put aside."""
    del clock
    writer = producer(topic=None)
    rows = [ProducerRecord("a", topic="orders"), ProducerRecord("b", topic="absent")]
    with pytest.raises(BrokerError, match=r"absent.*UNKNOWN_TOPIC_OR_PARTITION"):
        writer.send(rows)
    assert not brokers.asked("Produce")


def test_an_error_leaves_no_connection_open(producer):
    writer = producer()
    writer.send(numbered(1, partition=0))
    writer.flush()
    with pytest.raises(RecordRefused, match="no partition 9"):
        writer.send(numbered(1, partition=9))
    assert not writer._router.connections.kept


@pytest.mark.parametrize("part", ["value", "key", "name", "header"])
def test_what_is_changed_after_a_send_is_written_as_it_was_sent(
    brokers, producer, monkeypatch, part
):
    """Each part by itself, of a record that waits for others."""
    monkeypatch.setattr(gathering, "_MOST_S", 60.0)
    writer = producer()
    writer.send([ProducerRecord("first", partition=0)])
    mine = bytearray(b"then")
    headers = [(mine, b"h")] if part == "name" else [("h", mine)] if part == "header" else ()
    own = {part: mine} if part in {"value", "key"} else {"headers": headers}
    writer.send([ProducerRecord(**({"value": "v"} | own), partition=0)])
    mine[:] = b"late"
    writer.flush()
    block = b"".join(batch.data for batch in brokers.logs["orders", 0].batches)
    assert b"then" in block
    assert b"late" not in block


def test_connections_that_were_given_stay_open(brokers):
    config = ProducerConfig.parse({"bootstrap.servers": brokers.bootstrap_servers})
    connections = Connections(config.client)
    with Producer(config, topic="orders", connections=connections) as writer:
        writer.send(numbered(1, partition=0))
        writer.flush()
    assert connections.kept
    assert all(connection.is_open for connection in connections.kept)
    connections.close()
