"""What was fetched and not handed out yet: its order, threads in it, and what is paused."""

from __future__ import annotations

import itertools
import random
import threading
from functools import partial

import pytest

from pyspark_kafkaproto.client.group import reading
from pyspark_kafkaproto.client.group.fetched import BlockRows, Fetched
from pyspark_kafkaproto.client.reading import beside
from pyspark_kafkaproto.client.reading import decode as decode_module
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import OffsetRange
from pyspark_kafkaproto.client.threads import Work
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.records import NewRecord, decode, encode_batch
from tests.fake_broker import DEFAULT
from tests.fake_log import Answered, FakeLog
from tests.unit.client.answers import answered
from tests.unit.client.group.polling import PATIENCE_S, poll_rows, poll_until, rows_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({FIRST, SECOND})
OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED = 1, 29


@pytest.fixture
def small_parts(monkeypatch):
    """What a member fetches is decoded in many parts, by two threads beside it; those that were."""
    begun = []
    begin = beside.Beside._begin
    monkeypatch.setattr(beside.Beside, "_begin", lambda *args: begun.append(args) or begin(*args))
    monkeypatch.setattr(beside.Beside, "_is_worth_it", lambda *_: True)  # it is not compressed
    monkeypatch.setattr(beside, "DEFAULT_CHUNK_BYTES", 800)
    monkeypatch.setattr(beside, "_LEAST_PART_BYTES", 100)
    monkeypatch.setattr(decode_module, "decode", partial(decode, chunk_bytes=800))
    monkeypatch.setattr(reading, "decoding_threads", lambda _: 2)
    return begun


@pytest.mark.parametrize("bound", [{}, {"max_poll_records": 7}], ids=["chunks", "seven"])
def test_rows_of_parts_that_threads_decode_come_once_and_in_their_order(
    filled, group, consumer_of, small_parts, bound
):
    for number in (0, 1):
        filled.logs["orders", number].fill(40, size_bytes=20)
    ends = {item: filled.logs[item].stop for item in BOTH}
    consumer = consumer_of(enable_auto_commit="false", **bound)
    before = poll_rows(consumer, 100)
    consumer.seek(FIRST, 5)  # in the midst of parts that are decoded already
    after = poll_until(consumer, lambda: consumer.positions == ends, "the ends")
    assert small_parts
    assert [at for number, at in after if number == 0] == list(range(5, ends[FIRST]))
    assert [at for number, at in before + after if number == 1] == list(range(ends[SECOND]))


@pytest.fixture
def stuck_thread(small_parts, monkeypatch):
    """A thread is stuck in a part, once this is set, until a wait for it meets a Ctrl-C."""
    part, exception = BlockReading._part, Work.exception
    is_stuck, may_end = threading.Event(), threading.Event()

    def slow(self, data, pos, start):
        if threading.current_thread() is threading.main_thread():
            assert is_stuck.wait(10)  # one part is to be left for a thread
        elif pos > 2000:
            is_stuck.set()
            assert may_end.wait(10)
        return part(self, data, pos, start)

    def wait(self, timeout=None):
        if not may_end.is_set():
            may_end.set()
            raise KeyboardInterrupt
        return exception(self, timeout)

    monkeypatch.setattr(BlockReading, "_part", slow)
    monkeypatch.setattr(Work, "exception", wait)
    return is_stuck


def poll_texts(consumer, rows, count):
    """Poll until `rows`, to which (partition, value) are added, has so many."""
    deadline = Deadline.after(PATIENCE_S)
    while len(rows) < count:
        deadline.check(f"waiting for {count} rows; there are {len(rows)}")
        batch = consumer.poll(0.05)
        if batch is not None:
            texts = [value.decode().strip() for value in batch["value"].to_pylist()]
            rows += zip(batch["partition"].to_pylist(), texts, strict=True)


@pytest.mark.slow
def test_an_interrupt_while_threads_are_waited_for_is_raised_and_mixes_no_partitions(
    brokers, group, consumer_of, stuck_thread
):
    """It was lost, and the other partition was given what was decoded of the first one."""
    for number, _ in itertools.product((0, 1), range(40)):
        log = brokers.logs["orders", number]
        log.append(*(f"{number}:{log.stop + n}".ljust(12).encode() for n in range(10)))
    consumer = consumer_of(enable_auto_commit="false")
    rows = []
    while not stuck_thread.is_set():
        poll_texts(consumer, rows, len(rows) + 1)
    consumer.pause([TopicPartition("orders", rows[0][0])])
    with pytest.raises(KeyboardInterrupt):
        poll_texts(consumer, rows, len(rows) + 1)
    poll_texts(consumer, rows, 400)
    consumer.resume(consumer.paused)
    poll_texts(consumer, rows, 800)
    for number in (0, 1):
        expected = [f"{number}:{offset}" for offset in range(400)]
        assert [text for own, text in rows if own == number] == expected


@pytest.fixture
def long_logs(filled):
    """Both logs many answers long; the second one's leader is another node."""
    filled.topics["orders"].move(1, 2)
    for number in (0, 1):
        log = filled.logs["orders", number] = FakeLog()
        for start in range(0, 800, 10):
            log.append(*(f"{at} {number}".ljust(20).encode() for at in range(start, start + 10)))
    return filled


SMALL = {"enable_auto_commit": "false", "max_partition_fetch_bytes": 3_000}


def read_of(consumer, long_logs, choose):
    """(partition, offset) of all rows; before each poll `choose` names what is paused."""
    rows, deadline = [], Deadline.after(PATIENCE_S)
    ends = {item: long_logs.logs[item].stop for item in BOTH}
    while consumer.positions != ends:
        deadline.check(f"waiting for the ends; there are {len(rows)} rows")
        consumer.resume(consumer.paused)
        paused = choose() & consumer.assignment
        consumer.pause(paused)
        batch = consumer.poll(0.01)
        if batch is not None:
            found = rows_of(batch)
            assert TopicPartition("orders", found[0][0]) not in paused
            values = [tuple(map(int, value.split())) for value in batch["value"].to_pylist()]
            assert values == [(offset, number) for number, offset in found]
            rows += found
    return rows


def assert_once_and_in_order(rows, long_logs):
    for topic, number in BOTH:
        stop = long_logs.logs[topic, number].stop
        assert [offset for own, offset in rows if own == number] == list(range(stop))


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("bound", [{}, {"max_poll_records": 7}], ids=["chunks", "seven"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_paused_meanwhile_rows_come_once_and_in_their_order(
    request, long_logs, group, consumer_of, seed, bound, threads
):
    parts = request.getfixturevalue("small_parts") if threads else None
    choices = random.Random(seed)

    def choose():
        return frozenset(choices.sample(sorted(BOTH), choices.choice([0, 0, 1, 1, 1, 2])))

    rows = read_of(consumer_of(**SMALL, **bound), long_logs, choose)
    assert_once_and_in_order(rows, long_logs)
    assert parts is None or len(parts) > 10


def test_pausing_one_partition_has_nothing_fetched_again(long_logs, group, consumer_of):
    """All that was under way or decoded of all partitions was dropped at each change."""
    turns = iter(range(1_000_000))
    rows = read_of(
        consumer_of(**SMALL), long_logs, lambda: frozenset({FIRST} if next(turns) % 2 else ())
    )
    assert_once_and_in_order(rows, long_logs)
    stops = {item.partition: long_logs.logs[item].stop for item in BOTH}
    asked = [
        (item.partition, item.fetch_offset)
        for request in long_logs.asked("Fetch")
        for topic in request.topics
        for item in topic.partitions
        if item.fetch_offset < stops[item.partition]
    ]
    assert len(asked) > 10
    assert len(asked) == len(set(asked))


class Noting:
    """Stands for the threads, and for a block: what was done, in order."""

    def __init__(self):
        self.done = []
        self.progress = RangeProgress(OffsetRange(*FIRST, 0, 10), 0, 0, 10)

    def drop(self):
        self.done.append("threads let go")

    def keep(self):
        self.done.append("kept")


def test_threads_let_go_of_what_is_set_aside_before_other_answers_come():
    noting = Noting()
    fetched = Fetched(noting)
    fetched.add([BlockRows(noting, iter(["rows", "more", "most"]))])
    assert fetched.next_batch(frozenset()) == "rows"
    noting.done.clear()
    assert fetched.next_batch({FIRST}) is None
    assert noting.done == ["threads let go", "kept"]
    assert fetched.next_batch(frozenset()) == "more"
    assert fetched.next_batch({FIRST}) is None
    assert noting.done.count("kept") == 1, "a copy is made once"
    assert fetched.next_batch(frozenset()) == "most"


def one_batch(at):
    return encode_batch([NewRecord(b"a")], base_offset=at)


def pause_while_it_is_fetched(filled, consumer, told):
    """Pause the first partition; then the answer comes that says this of it."""
    is_asked, may_answer = threading.Event(), threading.Event()
    refused = answered(told, Answered(partition_index=1))

    def refuse(call):
        is_asked.set()
        assert may_answer.wait(PATIENCE_S)
        return refused(call)

    filled.on("Fetch", refuse, DEFAULT)
    poll_until(consumer, is_asked.is_set, "a Fetch of both")
    consumer.pause({FIRST})
    may_answer.set()
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 20)]
    assert consumer.positions[FIRST] == 20


@pytest.mark.parametrize(
    "told",
    [
        Answered(partition_index=0, error_code=TOPIC_AUTHORIZATION_FAILED),
        Answered(partition_index=0, records=bytes(8) + b"\xff" * 60, high_watermark=21),
        Answered(partition_index=0, records=one_batch(at=1), high_watermark=21),
        Answered(partition_index=0, records=one_batch(at=20)[:-1], high_watermark=21),
        Answered(partition_index=0, records=one_batch(at=2000), high_watermark=21),
    ],
    ids=["refused", "damaged", "before", "cut", "beyond"],
)
def test_an_error_of_what_is_paused_meanwhile_fails_no_poll(filled, group, consumer_of, told):
    consumer = consumer_of(**SMALL)
    poll_rows(consumer, 40)
    pause_while_it_is_fetched(filled, consumer, told)
    filled.logs["orders", 0].append(b"later")
    consumer.resume({FIRST})
    assert poll_rows(consumer, 1) == [(0, 20)]


def test_a_position_that_is_not_there_is_an_error_once_it_is_read_on(filled, group, consumer_of):
    group.committed.update(dict.fromkeys(BOTH, (0, "")))
    consumer = consumer_of(auto_offset_reset="none", **SMALL)
    poll_rows(consumer, 40)
    filled.logs["orders", 0].fill(2).start = 30
    told = Answered(partition_index=0, error_code=OFFSET_OUT_OF_RANGE)
    pause_while_it_is_fetched(filled, consumer, told)
    consumer.resume({FIRST})
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        poll_rows(consumer, 1)


@pytest.mark.slow
def test_rows_of_a_topic_of_the_past_are_not_kept_for_who_was_paused(long_logs, group, consumer_of):
    consumer = consumer_of(**SMALL)
    poll_until(consumer, lambda: 0 < consumer.positions.get(FIRST, 0) < 800, "some of the first")
    consumer.pause({FIRST})
    ends = long_logs.logs[SECOND].stop
    poll_until(consumer, lambda: consumer.positions[SECOND] == ends, "all of the other")
    group.committed.clear()
    long_logs.make_again("orders", 2)
    for number in (0, 1):
        long_logs.logs["orders", number].fill(3)
    poll_until(consumer, lambda: consumer.positions[SECOND] == 30, "the new topic")
    consumer.resume({FIRST})
    assert poll_rows(consumer, 30) == [(0, offset) for offset in range(30)]
