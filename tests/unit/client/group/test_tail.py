"""Fetching from all leaders at once: whoever fails, says nothing or moves holds up no other."""

from __future__ import annotations

import random
import threading
import time

import pytest

from pyspark_kafkaproto.client.group import failing
from pyspark_kafkaproto.client.group.tail import Tail
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    CorruptRecords,
    DeadlineExceeded,
)
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.net import Deadline
from tests.examples import first
from tests.fake_broker import DEFAULT, STALL, FakeTopic, Fault, topic_id_of
from tests.fake_log import NOT_LEADER, Answered, FakeLog, fetch, list_offsets
from tests.fake_login import AS_KEYWORDS, login_again, want_login
from tests.fake_sessions import with_values
from tests.stopwatch import Stopwatch
from tests.unit.client.answers import answered
from tests.unit.client.group.polling import PATIENCE_S, began, poll_rows, poll_until, rows_of

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOBODY = -1
KAFKA_STORAGE_ERROR = 56


@pytest.mark.slow
def test_a_batch_that_never_comes_whole_is_an_error_while_others_go_on(filled, group, consumer_of):
    log, other = (filled.logs["orders", partition] for partition in range(2))
    other.fill(300)
    log.batches[1] = log.batches[1].longer(50_000_000)
    consumer = consumer_of(max_partition_fetch_bytes=500)
    with pytest.raises(CorruptRecords, match="orders-0, record batch at offset 10 "):
        poll_until(consumer, lambda: False, "the error")
    assert consumer.positions[FIRST] == 10
    assert consumer.positions[SECOND] < 3000


@pytest.mark.slow
@pytest.mark.parametrize("most", [13, 9], ids=["with ids", "without"])
@pytest.mark.parametrize("partitions", [1, 150])
def test_a_topic_that_is_deleted_keeps_no_other_from_being_read(
    filled, group, consumer_of, caplog, partitions, most
):
    filled.versions["Metadata"] = (0, most)
    bills = FakeTopic(topic_id_of("bills"), [1] * partitions, [0] * partitions)
    filled.topics["bills"] = bills
    filled.logs |= {("bills", number): FakeLog() for number in range(partitions)}
    consumer = consumer_of(("orders", "bills"))
    poll_rows(consumer, 40)
    del filled.topics["bills"]
    for offset in (20, 21, 22):
        filled.logs["orders", 0].append(b"later")
        assert poll_rows(consumer, 1) == [(0, offset)]

    def said():
        return [text for text in caplog.messages if "'bills': UNKNOWN_TOPIC_OR_PARTITION" in text]

    poll_until(consumer, said, "a word about it")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 23)]
    assert len(said()) == 1
    filled.topics["bills"] = bills
    filled.logs["bills", 0].append(b"once more")
    assert poll_rows(consumer, 1) == [(0, 0)]


@pytest.mark.slow
def test_a_broker_that_says_nothing_holds_no_poll_up(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    asked = len(filled.asked("Fetch"))
    filled.on("Fetch", STALL)
    began = time.monotonic()
    for _ in range(25):
        assert consumer.poll(0.01) is None
    assert time.monotonic() - began < PATIENCE_S
    assert len(filled.asked("Fetch")) <= asked + 2, "the same one is waited for"
    filled.on("Fetch", DEFAULT)
    filled.hang_up()
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]


@pytest.mark.slow
def test_a_broker_that_never_answers_is_an_error_in_time(filled, group, consumer_of):
    consumer = consumer_of(request_timeout_ms=200, default_api_timeout_ms=600)
    poll_rows(consumer, 40)
    filled.on("Fetch", STALL)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"receive: not done within 0\.22 s"):
        poll_until(consumer, lambda: False, "the error")
    assert time.monotonic() - began < PATIENCE_S / 2
    filled.on("Fetch", DEFAULT)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]


@pytest.mark.slow
def test_an_answer_that_is_held_is_not_late(filled, group, consumer_of):
    """A leader may hold it for fetch.max.wait.ms, whatever request.timeout.ms is."""
    group.committed |= {("orders", 0): (20, ""), ("orders", 1): (20, "")}
    filled.on("Fetch", STALL)
    consumer = consumer_of(
        fetch_max_wait_ms=60_000, request_timeout_ms=100, default_api_timeout_ms=300
    )
    assert consumer.poll(0.6) is None
    assert len(filled.asked("Fetch")) == 1


def test_a_leader_is_told_how_much_is_worth_an_answer_and_how_long_to_hold_it(
    filled, group, consumer_of
):
    poll_rows(consumer_of(fetch_min_bytes=7, fetch_max_wait_ms=30), 1)
    asked = filled.asked("Fetch")[0]
    assert (asked.min_bytes, asked.max_wait_ms) == (7, 30)


@pytest.mark.slow
@pytest.mark.parametrize("poll_s", first(1, [0.01, 0.5]))
def test_a_leader_that_cannot_be_reached_keeps_no_other_from_being_read(
    filled, group, consumer_of, poll_s
):
    """It is an error in time all the same, and the others go on after that."""
    filled.topics["orders"].move(0, 2)
    consumer = consumer_of(default_api_timeout_ms=500)
    poll_rows(consumer, 40)
    filled.stop(2)
    errors = []
    deadline = Deadline.after(PATIENCE_S)
    for offset in range(20, 23):
        filled.logs["orders", 1].append(b"later")
        rows = []
        while not rows or len(errors) < offset - 20:
            deadline.check("waiting for rows and errors")
            try:
                rows += rows_of(consumer.poll(poll_s))
            except ConnectionFailed as error:
                errors.append(error)
        assert rows == [(1, offset)]


@pytest.mark.slow
def test_leaders_are_asked_at_once_and_whoever_answers_is_read(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", STALL, node=1)
    consumer = consumer_of(fetch_max_wait_ms=20_000)
    began = time.monotonic()
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    for offset in range(20, 25):
        filled.logs["orders", 1].append(b"later")
        assert poll_rows(consumer, 1) == [(1, offset)]
    assert time.monotonic() - began < PATIENCE_S / 2
    assert len(filled.asked("Fetch", node=1)) == 1, "it has not answered yet"


def half(answer):
    """The first bytes of an answer, and nothing more on a connection that stays open."""
    return Fault(answer, lambda frame: frame[: len(frame) // 2])


@pytest.mark.slow
def test_half_an_answer_holds_no_other_leader_up(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", lambda call: half(fetch(filled, call)), DEFAULT, node=1)
    consumer = consumer_of(request_timeout_ms=1000, fetch_max_wait_ms=10)
    with Stopwatch() as watch:
        assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
        assert consumer.poll(0.1) is None
    assert watch.took_s < 0.9
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)], "asked for again"


@pytest.mark.slow
def test_nobody_is_to_blame_for_half_an_answer_while_the_member_was_away(
    filled, group, consumer_of
):
    rest = threading.Event()
    filled.on("Fetch", lambda call: Fault(fetch(filled, call), rest_after=rest), DEFAULT)
    consumer = consumer_of(
        request_timeout_ms=1000, fetch_max_wait_ms=10, default_api_timeout_ms=4000
    )
    assert consumer.poll(0.1) is None
    rest.set()
    time.sleep(1.3)  # away for longer than request.timeout.ms
    assert len(poll_rows(consumer, 40)) == 40
    asked_on = {call.connection for call in filled.calls if call.api == "Fetch"}
    assert len(asked_on) == 1, "it was not asked again elsewhere"


@pytest.mark.slow
def test_logins_that_fail_to_be_renewed_lose_and_double_no_row(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    want_login(filled)
    # Every other login fails, of two threads: in a row often enough that many tries are wanted.
    waits = {"retry_backoff_max_ms": 20, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20}
    tries = {"max_partition_fetch_bytes": 200, **waits}
    consumer = consumer_of(**tries, **AS_KEYWORDS)
    login_again(filled, consumer._router.connections)
    found = poll_rows(consumer, 40)
    assert sorted(found) == [(number, offset) for number in (0, 1) for offset in range(20)]
    assert len(filled.asked("SaslAuthenticate")) > 4


def throttled(brokers, throttle_time_ms):
    """What there is, with the wish for silence."""

    def answer(call):
        parts = fetch(brokers, call).responses
        return FetchResponse(throttle_time_ms=throttle_time_ms, responses=parts)

    return answer


@pytest.mark.slow
def test_a_broker_that_wants_silence_from_the_start_holds_no_other_up(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)

    def listed(call):
        parts = list_offsets(filled, call).topics
        return ListOffsetsResponse(throttle_time_ms=1000, topics=parts)

    filled.on("ListOffsets", listed, node=1)
    with Stopwatch() as watch:
        consumer = consumer_of()
        assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    assert watch.took_s < 0.9
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.mark.slow
def test_a_member_that_is_given_nothing_for_long_says_that_it_is_throttled(
    filled, group, consumer_of, caplog
):
    """Over its quota for requests a client gets no rows, be it for good: it looked like none."""
    over = FetchResponse(throttle_time_ms=60)
    filled.on("Fetch", *[over] * 20, DEFAULT)
    consumer = consumer_of(default_api_timeout_ms=200)
    poll_rows(consumer, 40)
    said = [text for text in caplog.messages if "throttles this client, over a quota" in text]
    assert 1 <= len(said) <= 10
    assert "nothing of orders-0, orders-1 has come for 0.2 s" in said[0]


@pytest.fixture
def silenced(filled, group, consumer_of):
    """Its first leader has row 21 and wants silence for 300 ms, its second one says nothing."""
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.on("Fetch", STALL, node=2)
    filled.on("Fetch", throttled(filled, 300), DEFAULT, node=1)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    filled.logs["orders", 0].append(b"later still")
    return consumer


@pytest.mark.slow
def test_a_broker_is_asked_when_it_wants_no_more_silence(silenced):
    began = time.monotonic()
    assert rows_of(silenced.poll(PATIENCE_S)) == [(0, 21)]
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.slow
def test_a_rest_that_ends_before_the_wait_begins_ends_that(silenced, monkeypatch):
    ask = Tail._ask

    def ask_slowly(tail, only=None):
        ask(tail, only)
        time.sleep(0.02)  # longer than retry.backoff.ms

    monkeypatch.setattr(Tail, "_ask", ask_slowly)
    assert rows_of(silenced.poll(PATIENCE_S / 2)) == [(0, 21)]


@pytest.mark.slow
def test_a_poll_does_not_wait_for_the_end_of_a_silence(filled, group, consumer_of):
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.on("Fetch", throttled(filled, 1000), DEFAULT)
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    filled.logs["orders", 0].append(b"later still")
    asked = len(filled.asked("Fetch"))
    with Stopwatch() as watch:
        assert consumer.poll(0.1) is None
    assert watch.took_s < 0.9
    assert len(filled.asked("Fetch")) == asked
    assert poll_rows(consumer, 1) == [(0, 21)]


@pytest.mark.slow
def test_a_partition_that_fails_for_too_long_is_an_error_beside_one_that_is_read(
    filled, group, consumer_of
):
    def without_the_first(call):
        log = filled.logs["orders", 1]
        (topic,) = call.request.topics
        parts = (
            Answered(partition_index=0, error_code=KAFKA_STORAGE_ERROR)
            if item.partition == 0
            else log.fetch(1, item.fetch_offset, item.partition_max_bytes, is_first=True)
            for item in topic.partitions
        )
        return answered(*parts)(call)

    filled.on("Fetch", without_the_first)
    consumer = consumer_of(default_api_timeout_ms=300)
    assert poll_rows(consumer, 20) == [(1, offset) for offset in range(20)]
    for offset in (20, 21):
        filled.logs["orders", 1].append(b"later")
        assert poll_rows(consumer, 1) == [(1, offset)]
        with pytest.raises(BrokerError, match=r"orders-0 .*KAFKA_STORAGE_ERROR"):
            poll_until(consumer, lambda: False, "the error")
    filled.on("Fetch", DEFAULT)
    assert poll_rows(consumer, 20) == [(0, offset) for offset in range(20)]


@pytest.fixture
def second_alone(filled, group):
    """Only the second partition has a leader, node 2; it is read to its end."""
    group.committed |= {("orders", 0): (15, ""), ("orders", 1): (20, "")}
    filled.topics["orders"].move(1, 2)
    filled.topics["orders"].leaders[0] = NOBODY
    return filled


@pytest.mark.slow
def test_a_partition_without_a_leader_makes_no_other_rest(second_alone, consumer_of):
    consumer = consumer_of(retry_backoff_ms=700, fetch_max_wait_ms=0)
    poll_until(consumer, lambda: second_alone.asked("Fetch", node=2), "a fetch")
    time.sleep(0.8)  # its leader is to be looked up again
    with Stopwatch() as watch:
        for offset in range(20, 24):
            second_alone.logs["orders", 1].append(b"later")
            assert poll_rows(consumer, 1) == [(1, offset)]
    assert watch.took_s < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("retry_backoff_ms", [5, 0])
def test_a_leader_that_comes_is_asked_while_another_has_nothing(
    second_alone, consumer_of, retry_backoff_ms
):
    """However short the rest is: it may be over before anybody waits for its end."""

    def elected_meanwhile(call):
        second_alone.topics["orders"].leaders[0] = 1
        return STALL

    second_alone.on("Fetch", elected_meanwhile, node=2)
    began = time.monotonic()
    batch = consumer_of(retry_backoff_ms=retry_backoff_ms).poll(PATIENCE_S)
    assert rows_of(batch) == [(0, offset) for offset in range(15, 20)]
    assert time.monotonic() - began < PATIENCE_S / 2


@pytest.mark.slow
def test_a_leader_that_says_nothing_is_noticed_beside_one_without_end(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    filled.on("Fetch", STALL, DEFAULT, node=1)
    filled.logs["orders", 1].fill(200)
    consumer = consumer_of(request_timeout_ms=200, max_partition_fetch_bytes=1)
    rows = []
    while not rows or rows[-1][0] == 1:
        time.sleep(0.02)  # by now the second one has answered again
        rows += rows_of(consumer.poll(1))
    assert consumer.positions[SECOND] < 1000


def refused(call):
    """A Fetch answer by who leads none of the partitions any more."""
    (topic,) = call.request.topics
    errors = (
        Answered(partition_index=item.partition, error_code=NOT_LEADER) for item in topic.partitions
    )
    return answered(*errors)(call)


def refusing_once(offset):
    """A Fetch answer: a refusal of the first one that asks for `offset`, else what there is."""
    refusals = [refused]

    def answer(call):
        asked = {item.fetch_offset for topic in call.request.topics for item in topic.partitions}
        return refusals.pop()(call) if offset in asked and refusals else DEFAULT

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_what_a_leader_says_while_nobody_polls_is_no_older_than_the_next_poll(
    filled, group, consumer_of, beside
):
    if beside:
        filled.topics["orders"].move(0, 2)
        filled.on("Fetch", STALL, node=2)
        group.committed["orders", 0] = (20, "")
    consumer = consumer_of(default_api_timeout_ms=5_000 if beside else 500)
    poll_rows(consumer, 20 if beside else 40)
    filled.on("Fetch", refusing_once(21), node=1)
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 20)]
    filled.logs["orders", 1].append(b"later still")
    time.sleep(0.7)
    with Stopwatch() as watch:
        assert poll_rows(consumer, 1) == [(1, 21)]
    assert watch.took_s < 0.5


@pytest.fixture
def each_asked_once(monkeypatch):
    """Fails a poll that asks for a partition that a Fetch under way asks for."""
    send_to = Tail._send_to

    def checked(tail, place, chosen, deadline):
        assert not tail._under_way.partitions & {item for item, _ in chosen}
        return send_to(tail, place, chosen, deadline)

    monkeypatch.setattr(Tail, "_send_to", checked)


@pytest.mark.slow
@pytest.mark.parametrize("seed", first(1, range(8)))
@pytest.mark.usefixtures("each_asked_once")
@pytest.mark.parametrize("pauses", [False, True])
def test_each_row_comes_once_and_in_order_whatever_happens_to_its_leader(
    filled, group, consumer_of, seed, pauses
):
    chance = random.Random(seed)
    consumer = consumer_of(max_partition_fetch_bytes=200, request_timeout_ms=200)
    rows, ends = [], [20, 20]
    for _ in range(60):
        partition = chance.randrange(2)
        bad = ["move", "fail", "hang up", "stall", "forget", "full"]
        happens = chance.choice([*bad, "write", "write", "write"])
        if happens == "move":
            filled.topics["orders"].move(partition, chance.choice([1, 2]))
        elif happens == "fail":
            filled.on("Fetch", refused, DEFAULT)
        elif happens == "hang up":
            filled.hang_up(chance.choice([1, 2]))
        elif happens == "stall":
            filled.on("Fetch", STALL, DEFAULT, node=chance.choice([1, 2]))
        elif happens == "forget":
            with filled.at_once():
                filled.sessions.forget()
        elif happens == "full":
            filled.sessions.most = chance.choice([0, 1, 2])
        else:
            filled.logs["orders", partition].append(b"more", b"and more")
            ends[partition] += 2
        if pauses and chance.random() < 0.5:
            consumer.resume(consumer.paused)
            consumer.pause({item for item in sorted(consumer.assignment) if chance.random() < 0.5})
        found = rows_of(consumer.poll(0.01))
        assert not {TopicPartition("orders", number) for number, _ in found} & consumer.paused
        rows += found
    consumer.resume(consumer.paused)
    rows += poll_rows(consumer, sum(ends) - len(rows))
    for partition, end in enumerate(ends):
        assert [offset for number, offset in rows if number == partition] == list(range(end))


@pytest.mark.slow
def test_a_large_batch_is_read_beside_a_busy_partition_that_is_always_answered_first(
    filled, group, consumer_of
):
    """As brokers before Fetch 3 do, which answer in an order of their own, and cut any batch."""
    filled.versions["Fetch"] = (0, 2)
    for number in range(2):
        filled.logs["orders", number].cuts_first = True
    filled.logs["orders", 1].append(bytes(5_000))

    def busy(call):
        filled.logs["orders", 0].append(b"more")
        return by_number(fetch(filled, call))

    filled.on("Fetch", busy)
    consumer = consumer_of(max_partition_fetch_bytes=300)
    rows, deadline = [], Deadline.after(5)
    while (1, 20) not in rows:
        deadline.check("the large one")
        rows += rows_of(consumer.poll(0.01))


def by_number(answer):
    (topic,) = answer.responses
    partitions = tuple(sorted(topic.partitions, key=lambda item: item.partition_index))
    return with_values(answer, responses=(with_values(topic, partitions=partitions),))


@pytest.mark.slow
def test_a_partition_that_moves_is_read_beside_one_without_end(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of(max_partition_fetch_bytes=1)
    poll_rows(consumer, 40)
    filled.logs["orders", 0].fill(500)
    filled.logs["orders", 1].append(b"later")
    filled.topics["orders"].move(1, 1)
    assert (1, 20) in poll_until(consumer, lambda: consumer.positions[SECOND] > 20, "its row")
    assert consumer.positions[FIRST] < 5000


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True])
def test_brokers_that_hold_no_empty_answer_are_not_asked_all_the_time(
    filled, group, consumer_of, beside
):
    if beside:
        filled.topics["orders"].move(1, 2)
        filled.on("Fetch", STALL, node=2)
    consumer = consumer_of(fetch_max_wait_ms=60_000, retry_backoff_ms=50)
    poll_rows(consumer, 20 if beside else 40)
    asked = len(filled.asked("Fetch", node=1))
    began, deadline = time.monotonic(), Deadline.after(PATIENCE_S)
    while time.monotonic() - began < 0.2 or len(filled.asked("Fetch", node=1)) == asked:
        deadline.check("another Fetch")
        assert consumer.poll(0.2) is None
    most = 1 + (time.monotonic() - began) / 0.04  # five in 0.2 s
    assert len(filled.asked("Fetch", node=1)) - asked <= most


@pytest.mark.slow
@pytest.mark.parametrize("poll_s", first(1, [0.05, 0, 0.5]))
def test_short_polls_try_again_no_more_often_than_long_ones(filled, group, consumer_of, poll_s):
    consumer = consumer_of(retry_backoff_ms=100)
    poll_rows(consumer, 40)
    filled.on("Fetch", refused)
    asked, began = len(filled.asked("Fetch")), time.monotonic()
    deadline = Deadline.after(PATIENCE_S)
    while time.monotonic() - began < 0.6 or len(filled.asked("Fetch")) < asked + 2:
        deadline.check("two more Fetches")
        assert consumer.poll(poll_s) is None
    most = 2 + (time.monotonic() - began) / 0.08  # seven in 0.6 s
    assert len(filled.asked("Fetch")) - asked <= most


@pytest.mark.slow
def test_a_leader_that_fails_for_long_is_said_once(filled, group, consumer_of, caplog, monkeypatch):
    monkeypatch.setattr(failing, "_WORTH_A_WORD_S", 0.1)
    filled.topics["orders"].move(1, 2)
    consumer = consumer_of()
    poll_rows(consumer, 40)
    filled.stop(2)

    def said():
        return [
            text for text in caplog.messages if text.startswith("nothing fetched from orders-1")
        ]

    poll_until(consumer, said, "a word about it")
    filled.logs["orders", 0].append(b"later")
    assert poll_rows(consumer, 1) == [(0, 20)]
    consumer.poll(0.1)
    assert len(said()) == 1


@pytest.mark.slow
def test_partitions_of_several_leaders_come_side_by_side(filled, group, consumer_of):
    filled.topics["orders"].move(1, 2)
    for partition in range(2):
        filled.logs["orders", partition].fill(98)
    consumer = consumer_of(max_partition_fetch_bytes=1)
    # Each leader answers when the system lets it: one may come twice before the other, not always.
    rows = poll_until(consumer, lambda: {FIRST, SECOND} <= began(consumer), "rows of both")
    assert len(rows) < 1000
    assert len(rows + poll_rows(consumer, 2000 - len(rows))) == 2000
    filled.topics["orders"].move(1, 1)
    filled.logs["orders", 1].append(b"later")
    assert poll_rows(consumer, 1) == [(1, 1000)]


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [0, 1000])
def test_a_partition_without_end_does_not_starve_the_others(filled, group, consumer_of, sessions):
    """Nor where the broker remembers nothing, and serves as it is asked."""
    filled.sessions.most = sessions
    filled.logs["orders", 0].fill(50)
    consumer = consumer_of(max_partition_fetch_bytes=1, fetch_max_bytes=1)
    assert {partition for partition, _ in poll_rows(consumer, 60)} == {0, 1}
