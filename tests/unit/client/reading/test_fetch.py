"""Blocks from leaders that behave, move, vanish, lie: every offset once, or a clear error."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from pyspark_kafkaproto.capture.about import about
from pyspark_kafkaproto.client import Fetcher, ReadSettings, ReadTask
from pyspark_kafkaproto.cluster import capturing, topic_ids
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    CorruptRecords,
    DataLoss,
    DeadlineExceeded,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.metadata import MetadataRequest
from pyspark_kafkaproto.net import Deadline, connections_for
from pyspark_kafkaproto.wire.ids import id_text
from tests.fake_broker import DEFAULT, STALL, FakeTopic, cut, topic_id_of
from tests.fake_log import Answered, Batch, fetch
from tests.fake_login import AS_KEYWORDS, login_again, want_login
from tests.fake_past import behind, lead_in_the_past
from tests.unit.capture.wire import read as read_capture
from tests.unit.client.answers import answered
from tests.unit.client.rows import rows, rows_of

pytestmark = pytest.mark.usefixtures("answers_in_pieces")

LENIENT = ReadSettings(fail_on_data_loss=False)
MIB = 1 << 20


def read(task, config, settings=None, found=None):
    """All rows, as (partition, offset), in the order they came; in `found` before an error, too."""
    found = [] if found is None else found
    for block in Fetcher(task, config, settings or ReadSettings()).blocks():
        found += rows_of(block)
    return found


def asked_offsets(brokers):
    """Per Fetch: the (partition, offset) pairs asked for."""
    return [
        [
            (item.partition, item.fetch_offset)
            for topic in request.topics
            for item in topic.partitions
        ]
        for request in brokers.asked("Fetch")
    ]


# The happy path


def test_reads_a_range_without_asking_for_metadata_or_offsets(brokers, config, task):
    brokers.logs["orders", 0].fill(5)
    assert read(task((0, 0, 50)), config()) == rows(0, 0, 50)
    assert [call.api for call in brokers.calls] == ["ApiVersions", "Fetch"]
    assert brokers.calls[-1].header.api_version == 17


def test_captures_know_what_a_topic_is_called_that_is_asked_for_by_id(
    brokers, config, task, tmp_path, monkeypatch
):
    names = {}
    monkeypatch.setattr(topic_ids, "NAMES", names)
    monkeypatch.setattr(capturing, "NAMES", names)
    brokers.logs["orders", 0].fill(1)
    read(task((0, 0, 10)), config(capture_to=str(tmp_path)))
    (path,) = tmp_path.iterdir()
    fetched = [message for message in read_capture(path.read_bytes())[0] if message.api == "Fetch"]
    assert [list(about(message).topics) for message in fetched] == [["orders"], ["orders"]]
    assert [call.api for call in brokers.calls] == ["ApiVersions", "Fetch"]


@pytest.mark.parametrize(("start", "stop"), [(0, 7), (3, 50), (19, 21), (20, 30), (49, 50)])
def test_rows_are_clipped_to_the_range(brokers, config, task, start, stop):
    brokers.logs["orders", 0].fill(5)
    assert read(task((0, start, stop)), config()) == rows(0, start, stop)


@pytest.mark.parametrize("bounds", [(5, 5), (7, 3)])
def test_empty_range_asks_nothing(brokers, config, task, bounds):
    assert read(task((0, *bounds)), config()) == []
    assert brokers.calls == []


def test_topic_without_id_is_asked_for_by_name(brokers, config, task):
    brokers.logs["orders", 0].fill(1)
    assert read(task((0, 0, 10), by_id=False), config()) == rows(0, 0, 10)
    assert brokers.calls[-1].header.api_version == 12
    assert brokers.asked("Fetch")[0].topics[0].topic == "orders"


def test_topics_with_an_id_and_without_are_asked_for_by_name(brokers, config, task):
    for topic in ("orders", "many"):
        brokers.logs[topic, 0].fill(1)
    known, nameless = task((0, 0, 10)), task((0, 0, 10), topic="many", by_id=False)
    both = ReadTask(
        known.ranges + nameless.ranges,
        {**known.leaders, **nameless.leaders},
        {**known.topic_ids, **nameless.topic_ids},
    )
    assert read(both, config()) == rows(0, 0, 10) * 2
    assert [call.header.api_version for call in brokers.calls if call.api == "Fetch"] == [12]


def test_next_block_is_asked_for_before_this_one_is_decoded(brokers, config, task):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    with closing(Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()) as blocks:
        block = next(blocks)
        block.finish()
        brokers.wait_for_call("Fetch", 2)
        read_so_far = rows_of(block)
    assert asked_offsets(brokers)[1] == [(0, len(read_so_far))]


def test_nothing_is_asked_or_waited_for_at_the_end(brokers, config, task):
    brokers.logs["orders", 0].fill(5)
    brokers.logs["orders", 1].fill(5)
    read(task((0, 0, 50), (1, 0, 20)), config())
    requests = brokers.asked("Fetch")
    assert len(requests) == 1
    assert requests[0].max_wait_ms == 0


def test_first_block_is_small_and_the_next_ones_are_not(brokers, config, task):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    read(task((0, 0, 100)), config(max_partition_fetch_bytes=123456))
    sizes = [
        request.topics[0].partitions[0].partition_max_bytes for request in brokers.asked("Fetch")
    ]
    assert sizes[:2] == [64 << 10, 123456]


@pytest.mark.parametrize("fetch_max", [1000, 100_000])
def test_answers_are_no_larger_than_fetch_max_bytes(brokers, config, task, fetch_max):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    assert read(task((0, 0, 100)), config(fetch_max_bytes=fetch_max)) == rows(0, 0, 100)
    assert max(request.max_bytes for request in brokers.asked("Fetch")) <= fetch_max


def test_all_partitions_of_a_leader_are_one_request(brokers, config, task):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(2)
    assert read(task((0, 0, 20), (1, 5, 20)), config()) == rows(0, 0, 20) + rows(1, 5, 20)
    assert asked_offsets(brokers) == [[(0, 0), (1, 5)]]


def test_each_leader_is_asked_for_its_own(brokers, config, task):
    brokers.topics["orders"].move(1, node_id=2)
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(2)
    assert read(task((0, 0, 20), (1, 0, 20)), config()) == rows(0, 0, 20) + rows(1, 0, 20)
    assert [call.node_id for call in brokers.calls if call.api == "Fetch"] == [1, 2]


@pytest.mark.slow
def test_many_partitions_are_a_few_requests(brokers, config, task):
    ranges = []
    for partition in range(250):
        brokers.logs["many", partition].fill(1)
        ranges.append((partition, 0, 10))
    found = read(task(*ranges, topic="many"), config())
    assert found == [row for partition in range(250) for row in rows(partition, 0, 10)]
    assert [len(asked) for asked in asked_offsets(brokers)] == [100, 100, 50]


def test_report_counts_what_was_done(brokers, config, task):
    log = brokers.logs["orders", 0].fill(3)
    fetcher = Fetcher(task((0, 0, 30)), config(), ReadSettings())
    began = time.monotonic()
    for _ in fetcher.blocks():
        pass
    (progress,) = fetcher.progress
    assert progress.report.fetched_bytes == sum(len(batch.data) for batch in log.batches)
    assert progress.report.retries == 0
    assert 0 < progress.report.fetch_s < time.monotonic() - began


# Open ends


def test_open_start_is_the_earliest_offset_and_open_stop_the_high_watermark(brokers, config, task):
    log = brokers.logs["orders", 0].fill(5)
    log.start = 17
    assert read(task((0, None, None)), config()) == rows(0, 17, 50)


@pytest.mark.slow
def test_open_stop_does_not_move_with_the_log(brokers, config, task):
    log = brokers.logs["orders", 0].fill(5, size_bytes=3000)
    with closing(Fetcher(task((0, 0, None)), config(), ReadSettings()).blocks()) as blocks:
        found = rows_of(next(blocks))
        log.fill(5)
        for block in blocks:
            found += rows_of(block)
    assert found == rows(0, 0, 50)


def test_open_stop_of_read_committed_is_the_last_stable_offset(brokers, config, task):
    log = brokers.logs["orders", 0].fill(5)
    log.stable = 33
    assert read(task((0, 0, None)), config(isolation_level="read_committed")) == rows(0, 0, 33)
    assert brokers.asked("Fetch")[0].isolation_level == 1


def test_aborted_transactions_go_with_their_block(brokers, config, task):
    log = brokers.logs["orders", 0].fill(1)
    log.aborted = [(7, 3), (8, 0)]
    committed = config(isolation_level="read_committed")
    with closing(Fetcher(task((0, 0, 10)), committed, ReadSettings()).blocks()) as blocks:
        assert list(next(blocks).aborted) == [(7, 3), (8, 0)]


def test_empty_partition_with_open_ends_ends_at_once(brokers, config, task):
    assert read(task((0, None, None), (1, 0, None)), config()) == []
    assert brokers.asked("Fetch") == []


@pytest.mark.slow
def test_open_stop_below_the_start_is_a_data_loss(brokers, config, task):
    brokers.logs["orders", 0].fill(1)
    with pytest.raises(DataLoss, match="orders-0: it ends at offset 10 now"):
        read(task((0, 25, None)), config())
    assert read(task((0, 25, None)), config(), LENIENT) == []


def test_open_start_that_ages_out_meanwhile_moves_on(brokers, config, task):
    log = brokers.logs["orders", 0].fill(5)

    def age(call):
        log.start = 20

    brokers.on("Fetch", age, DEFAULT)
    assert read(task((0, None, 50)), config()) == rows(0, 20, 50)


# Leaders that move


@pytest.mark.parametrize("with_epoch", [True, False], ids=["fenced", "not leader"])
def test_moved_leader_is_followed_without_loss_or_double(brokers, config, task, clock, with_epoch):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    planned = task((0, 0, 100))

    def move(call):
        if with_epoch:
            brokers.topics["orders"].epochs[0] += 1
        else:
            brokers.topics["orders"].move(0, node_id=2)

    brokers.on("Fetch", DEFAULT, move, DEFAULT)
    assert read(planned, config()) == rows(0, 0, 100)
    assert len(brokers.asked("Metadata")) == 1


def test_leader_unknown_to_the_planner_is_looked_up(brokers, config, task):
    brokers.logs["orders", 0].fill(1)
    assert read(task((0, 0, 10), with_leaders=False), config()) == rows(0, 0, 10)
    assert len(brokers.asked("Metadata")) == 1


def test_broker_that_lags_behind_the_epoch_is_asked_again(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.topics["orders"].epochs[0] = 5
    planned = task((0, 0, 10))
    brokers.topics["orders"].epochs[0] = 4

    def catch_up(call):
        answer = fetch(brokers, call)
        brokers.topics["orders"].epochs[0] = 5
        return answer

    brokers.on("Fetch", catch_up, DEFAULT)
    assert read(planned, config()) == rows(0, 0, 10)


def test_rows_of_the_leaders_that_stayed_are_not_thrown_away(brokers, config, task):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(2)
    planned = task((0, 0, 20), (1, 0, 20))
    brokers.topics["orders"].move(1, node_id=2)
    assert read(planned, config()) == rows(0, 0, 20) + rows(1, 0, 20)
    assert asked_offsets(brokers) == [[(0, 0), (1, 0)], [(1, 0)]]


def test_others_are_read_while_an_election_goes_on(brokers, config, task, clock):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(2)
    planned = task((0, 0, 20), (1, 0, 20), with_leaders=False)
    brokers.topics["orders"].leaders[0] = -1

    def elect(call):
        clock.now += 1
        brokers.topics["orders"].move(0, node_id=2)

    brokers.on("Fetch", elect, DEFAULT, node=1)
    assert read(planned, config()) == rows(1, 0, 20) + rows(0, 0, 20)
    assert asked_offsets(brokers) == [[(1, 0)], [(0, 0)]]


def test_election_is_waited_for(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    planned = task((0, 0, 10))
    brokers.topics["orders"].leaders[0] = -1

    def elect(call):
        if clock.now > 1003:
            brokers.topics["orders"].move(0, node_id=2)

    brokers.on("Metadata", elect)
    assert read(planned, config()) == rows(0, 0, 10)


@pytest.mark.slow
def test_leader_that_never_comes_back_is_an_error_in_time(brokers, config, task, clock):
    planned = task((0, 0, 10))
    brokers.topics["orders"].leaders[0] = -1
    with pytest.raises((BrokerError, DeadlineExceeded), match="LEADER_NOT_AVAILABLE"):
        read(planned, config())
    assert 50 < clock.now - 1000 <= 60


def test_stopped_leader_is_replaced(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    planned = task((0, 0, 10))
    brokers.stop(1)
    brokers.topics["orders"].move(0, node_id=2)
    assert read(planned, config()) == rows(0, 0, 10)


@pytest.mark.slow
@pytest.mark.parametrize("keep_bytes", [0, 3, 4, 40, 200, 60_000])
def test_answer_cut_anywhere_is_fetched_again(brokers, config, task, clock, keep_bytes):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    planned = task((0, 0, 100))
    brokers.on("Fetch", DEFAULT, lambda call: cut(fetch(brokers, call), keep_bytes), DEFAULT)
    fetcher = Fetcher(planned, config(), ReadSettings())
    found = [row for block in fetcher.blocks() for row in rows_of(block)]
    assert found == rows(0, 0, 100)
    assert fetcher.progress[0].report.retries == 1


def test_connection_closed_between_two_blocks_is_opened_again(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    found = []
    with closing(Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()) as blocks:
        found += rows_of(next(blocks))
        brokers.wait_for_call("Fetch", 2)
        brokers.hang_up()
        for block in blocks:
            found += rows_of(block)
    assert found == rows(0, 0, 100)


@pytest.mark.slow
def test_silent_leader_is_an_error_within_the_time_for_a_call(brokers, config, task):
    brokers.on("Fetch", STALL)
    times = config(request_timeout_ms=30, default_api_timeout_ms=100, retry_backoff_ms=1)
    with pytest.raises(DeadlineExceeded, match=r"fetch from orders-0\[0, 10\)") as caught:
        read(task((0, 0, 10)), times)
    assert caught.value.timeout_s == 0.1
    assert brokers.address(1) in str(caught.value)


@pytest.mark.slow
def test_tries_together_do_not_outlast_the_time_for_a_call(brokers, config, task):
    brokers.on("Fetch", STALL)
    times = config(request_timeout_ms=3000, default_api_timeout_ms=3500, retry_backoff_ms=1)
    began = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        read(task((0, 0, 10)), times)
    assert time.monotonic() - began < 5.9  # and not 6


def test_gone_cluster_is_an_error_within_the_time_for_a_call(brokers, config, task, clock):
    planned = task((0, 0, 10))
    for node in (1, 2):
        brokers.stop(node)
    with pytest.raises((ConnectionFailed, DeadlineExceeded), match="Connection refused"):
        read(planned, config())
    assert clock.now - 1000 <= 60


# Errors that no retry mends


def test_missing_right_is_an_error_at_once(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    denied = Answered(partition_index=1, error_code=29)
    moved = Answered(partition_index=0, error_code=6)
    fine = brokers.logs["orders", 0].fetch(0, 0, MIB, is_first=True)
    for first in (fine, moved):
        brokers.on("Fetch", answered(first, denied))
        text = f"orders-1 at broker {brokers.address(1)}: TOPIC_AUTHORIZATION_FAILED.*READ"
        with pytest.raises(BrokerError, match=text) as caught:
            read(task((0, 0, 10), (1, 0, 10)), config())
        assert caught.value.code == 29
    assert clock.slept == []


def test_error_of_the_whole_answer_is_retried_as_the_table_says(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.on("Fetch", FetchResponse(error_code=70), DEFAULT)
    assert read(task((0, 0, 10)), config()) == rows(0, 0, 10)
    brokers.on("Fetch", FetchResponse(error_code=42))
    with pytest.raises(BrokerError, match="INVALID_REQUEST"):
        read(task((0, 0, 10)), config())


UNASKED = [
    pytest.param(answered(Answered(partition_index=7)), "orders-7", id="partition"),
    pytest.param(
        FetchResponse(
            responses=(FetchResponse.Topic(topic_id=b"x" * 16, partitions=(Answered(),)),)
        ),
        "-0 was not asked for",
        id="topic",
    ),
    pytest.param(FetchResponse(), "orders-0", id="nothing at all"),
    pytest.param(answered(), "orders-0", id="no partition"),
]


@pytest.mark.parametrize(("answer", "text"), UNASKED)
def test_answer_about_something_else_is_refused(brokers, config, task, answer, text):
    brokers.on("Fetch", answer)
    with pytest.raises(RemoteProtocolError, match=text):
        read(task((0, 0, 10)), config())


@pytest.mark.parametrize("start", [20, 10])
def test_answer_that_does_not_reach_the_offset_is_refused(brokers, config, task, start):
    log = brokers.logs["orders", 0].fill(3)
    before = Answered(high_watermark=30, records=log.batches[0].data)
    brokers.on("Fetch", answered(before), DEFAULT)
    said = f"asked from offset {start}, the answer ends at 10"
    with pytest.raises(RemoteProtocolError, match=said):
        read(task((0, start, 30)), config())


def test_damaged_batch_header_names_topic_partition_and_offset(brokers, config, task):
    log = brokers.logs["orders", 0].fill(1)
    data = bytearray(log.batches[0].data)
    data[16] = 9  # the magic
    brokers.on("Fetch", answered(Answered(high_watermark=10, records=bytes(data))))
    with pytest.raises(CorruptRecords, match="orders-0, record batch at offset 0") as caught:
        read(task((0, 0, 10)), config())
    assert (caught.value.topic, caught.value.partition) == ("orders", 0)


# Sizes


def test_batch_larger_than_asked_for_is_read(brokers, config, task):
    brokers.logs["orders", 0].fill(3, size_bytes=20_000)
    assert read(task((0, 0, 30)), config(max_partition_fetch_bytes=1000)) == rows(0, 0, 30)


def test_broker_that_cuts_even_the_first_batch_is_asked_for_more(brokers, config, task):
    log = brokers.logs["orders", 0].fill(3, size_bytes=20_000)
    log.cuts_first = True
    assert read(task((0, 0, 30)), config(max_partition_fetch_bytes=1000)) == rows(0, 0, 30)
    assert len(brokers.asked("Fetch")) <= 7


@pytest.mark.slow
def test_size_goes_back_after_a_large_batch(brokers, config, task):
    log = brokers.logs["orders", 0]
    log.cuts_first = True
    log.fill(1, size_bytes=100_000)
    log.fill(40, size_bytes=500)
    read(task((0, 0, 410)), config(max_partition_fetch_bytes=10_000))
    sizes = [
        request.topics[0].partitions[0].partition_max_bytes for request in brokers.asked("Fetch")
    ]
    assert max(sizes) > 1_000_000
    assert sizes[-1] == 10_000


def test_batch_larger_than_any_answer_may_be_is_an_error(brokers, config, task):
    log = brokers.logs["orders", 0].fill(1, size_bytes=20_000)
    log.cuts_first = True
    small = config(max_partition_fetch_bytes=1000, receive_message_max_bytes=100_000)
    with pytest.raises(RemoteProtocolError, match=r"orders-0 at offset 0.*100000 bytes"):
        read(task((0, 0, 10)), small)


@pytest.mark.parametrize("size_bytes", [10, 4000])
@pytest.mark.parametrize("others", [0, 1])
def test_batch_that_never_comes_whole_is_an_error(brokers, config, task, size_bytes, others):
    log = brokers.logs["orders", 0].fill(2, size_bytes=size_bytes)
    brokers.logs["orders", 1].fill(others)
    log.batches[1] = log.batches[1].longer(50_000_000)
    found = []
    text = r"orders-0, record batch at offset 10 .* 50\d{6} bytes, which were asked for"
    with pytest.raises(CorruptRecords, match=text):
        read(task((0, 0, 20), (1, 0, 10 * others)), config(), found=found)
    assert found == rows(0, 0, 10) + rows(1, 0, 10 * others)
    assert len(brokers.asked("Fetch")) == 3


@pytest.mark.slow
def test_batch_cut_because_others_filled_the_answer_is_no_reason_to_grow(brokers, config, task):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(20, size_bytes=500)
    limits = config(max_partition_fetch_bytes=16_000, fetch_max_bytes=18_000)
    found = read(task((0, 0, 200), (1, 0, 200)), limits)
    assert sorted(found) == rows(0, 0, 200) + rows(1, 0, 200)
    sizes = {
        item.partition_max_bytes
        for request in brokers.asked("Fetch")
        for item in request.topics[0].partitions
    }
    assert sizes == {16_000}


def test_batch_cut_again_because_others_filled_the_answer_is_not_damaged(brokers, config, task):
    brokers.logs["orders", 0].fill(20, size_bytes=500)
    brokers.logs["orders", 1].fill(1, size_bytes=3000)
    limits = config(max_partition_fetch_bytes=16_000, fetch_max_bytes=40_000)
    found = read(task((0, 0, 200), (1, 0, 10)), limits)
    assert sorted(found) == rows(0, 0, 200) + rows(1, 0, 10)
    sizes = [
        request.topics[0].partitions[1].partition_max_bytes
        for request in brokers.asked("Fetch")[:3]
    ]
    assert sizes[0] == 16_000
    assert sizes[1] == sizes[2] > 30_000, "asked for twice, as the first partition came before it"


# Records that are gone, or not there yet


def test_offsets_that_aged_out_are_a_data_loss(brokers, config, task):
    log = brokers.logs["orders", 0].fill(5)
    log.start = 20
    with pytest.raises(
        DataLoss, match=r"\[0, 50\) for topic partition orders-0.*20 to 50"
    ) as caught:
        read(task((0, 0, 50)), config())
    assert caught.value.condition == "COULD_NOT_READ_OFFSET_RANGE"


def test_offsets_that_aged_out_are_passed_over_when_told_so(brokers, config, task, caplog):
    log = brokers.logs["orders", 0].fill(5)
    log.start = 20
    with caplog.at_level(logging.WARNING):
        assert read(task((0, 0, 50)), config(), LENIENT) == rows(0, 20, 50)
    assert "failOnDataLoss is false" in caplog.text


@pytest.mark.slow
def test_what_aged_out_of_many_partitions_is_asked_for_together(brokers, config, task):
    """With a round trip or two for each a task of a thousand would wait before its first row."""
    numbers = range(100)
    for number in numbers:
        brokers.logs["many", number].fill(2).start = 12
    many = task(*((number, 0, 20) for number in numbers), topic="many")
    assert read(many, config(), LENIENT) == [row for n in numbers for row in rows(n, 12, 20)]
    assert len(brokers.asked("ListOffsets")) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("start", "stop", "log_start"), [(0, 20, 30), (60, 80, 0), (0, 20, 20)])
def test_range_that_is_gone_altogether_gives_no_rows(
    brokers, config, task, clock, start, stop, log_start
):
    log = brokers.logs["orders", 0].fill(5)
    log.start = log_start
    brokers.logs["orders", 1].fill(1)
    assert read(
        task((0, start, stop), (1, 0, 10)), config(request_timeout_ms=3000), LENIENT
    ) == rows(1, 0, 10)


def test_range_from_the_earliest_offset_to_one_that_is_gone_is_a_data_loss(
    brokers, config, task, caplog
):
    """An end by number means records that were there: none of them is not what was asked for."""
    log = brokers.logs["orders", 0].fill(5)
    log.start = 30
    with pytest.raises(DataLoss, match=r"up to offset 20 .*orders-0: its first offset is 30 now"):
        read(task((0, None, 20)), config())
    assert read(task((0, None, 20)), config(), LENIENT) == []
    assert "Nothing is read of it, as failOnDataLoss is false" in caplog.text
    assert read(task((0, None, 30)), config()) == []


def test_range_whose_log_goes_beyond_its_end_before_it_is_read_is_a_data_loss(
    brokers, config, task, clock
):
    log = brokers.logs["orders", 0].fill(5)
    log.start = 30
    topic = ListOffsetsResponse.Topic
    begins = topic(name="orders", partitions=(topic.Partition(partition_index=0, offset=10),))
    brokers.on("ListOffsets", ListOffsetsResponse(topics=(begins,)), None)
    with pytest.raises(DataLoss, match=r"up to offset 20 .* its first offset is 30 now"):
        read(task((0, None, 20)), config())


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
@pytest.mark.parametrize("stop", [50, None])
def test_an_old_leader_that_has_been_away_passes_no_records_over(
    brokers, config, task, clock, stop, settings
):
    brokers.logs["orders", 0].fill(5)
    planned = task((0, 30, stop))
    out_of_range = Answered(partition_index=0, error_code=1, high_watermark=-1)
    brokers.on("Fetch", answered(out_of_range), node=1)
    lead_in_the_past(brokers, "orders", end=20)
    assert read(planned, config(), settings) == rows(0, 30, 50)


def test_an_end_before_the_start_is_a_data_loss_soon(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(2)
    for planned in (task((0, 30, 50)), task((0, 30, None))):
        began = clock.now
        with pytest.raises(DataLoss, match="COULD_NOT_READ_OFFSET_RANGE"):
            read(planned, config())
        assert clock.now - began < 3


@pytest.mark.slow
def test_records_that_never_come_are_a_data_loss_after_the_time_out(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.on("Fetch", _holding(clock))
    with pytest.raises(DataLoss, match=r"\[10, 20\).*orders-0.*ends at offset 10"):
        read(task((0, 0, 20)), config())
    assert 30 <= clock.now - 1000 < 32
    assert len(brokers.asked("Fetch")) < 80


def _holding(clock):
    """A broker that holds an empty answer for as long as it may."""

    def hold(call):
        clock.now += call.request.max_wait_ms / 1000

    return hold


@pytest.mark.slow
def test_records_that_never_come_are_passed_over_when_told_so(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.on("Fetch", _holding(clock))
    assert read(task((0, 0, 20)), config(), LENIENT) == rows(0, 0, 10)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
def test_records_of_an_open_transaction_are_no_loss(brokers, config, task, clock, settings):
    """They are there, and may still be committed: a query that went on would never read them."""
    log = brokers.logs["orders", 0].fill(1)
    log.stop, log.stable = 20, 10
    brokers.on("Fetch", _holding(clock))
    found = []
    with pytest.raises(DeadlineExceeded, match=r"from offset 10 .* is open.*transactions list"):
        read(task((0, 0, 20)), config(isolation_level="read_committed"), settings, found)
    assert found == rows(0, 0, 10)
    assert 30 <= clock.now - 1000 < 32


@pytest.mark.slow
def test_records_that_come_a_little_later_are_read(brokers, config, task, clock):
    log = brokers.logs["orders", 0].fill(1)

    def bring(call):
        clock.now += call.request.max_wait_ms / 1000
        if clock.now > 1005 and log.stop == 10:
            log.fill(1)

    brokers.on("Fetch", bring)
    assert read(task((0, 0, 20)), config()) == rows(0, 0, 20)


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
def test_records_that_others_leave_no_room_for_are_not_missing(
    brokers, config, task, clock, settings
):
    """Two answers without any, far apart: in between it was never the second one's turn."""
    first, second = (brokers.logs["orders", partition].fill(3) for partition in (0, 1))
    nothing = [Answered(partition_index=partition, high_watermark=30) for partition in (0, 1)]
    filled = [
        [Answered(partition_index=0, high_watermark=30, records=batch.data), nothing[1]]
        for batch in first.batches[:2]
    ]

    def say(parts):
        def answer(call):
            clock.now += 20
            (topic,) = call.request.topics
            told = FetchResponse.Topic(topic_id=topic.topic_id, partitions=tuple(parts))
            return FetchResponse(responses=(told,))

        return answer

    brokers.on("Fetch", say(nothing), *map(say, filled), say(nothing), DEFAULT)
    found = read(task((0, 0, 30), (1, 0, 30)), config(), settings)
    assert sorted(found) == rows(0, 0, first.stop) + rows(1, 0, second.stop)


@pytest.mark.slow
def test_broker_that_does_not_hold_empty_answers_is_not_asked_all_the_time(
    brokers, config, task, clock
):
    brokers.logs["orders", 0].fill(1)

    def take_a_millisecond(call):
        clock.now += 0.001

    brokers.on("Fetch", take_a_millisecond)
    with pytest.raises(DataLoss):
        read(task((0, 0, 20)), config(request_timeout_ms=5000))
    assert len(brokers.asked("Fetch")) < 60


def test_offset_that_is_there_after_all_is_read(brokers, config, task):
    log = brokers.logs["orders", 0].fill(1)

    def grow(call):
        answer = fetch(brokers, call)
        log.fill(2)
        return answer

    brokers.on("Fetch", grow, DEFAULT)
    assert read(task((0, 20, 30)), config()) == rows(0, 20, 30)


@pytest.mark.slow
def test_leader_that_denies_an_offset_it_lists_is_left_in_time(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)

    def deny(call):
        clock.now += 0.001
        return answered(Answered(error_code=1, high_watermark=-1))(call)

    brokers.on("Fetch", deny)
    with pytest.raises(DeadlineExceeded, match=r"orders-0: records from offset 0 on.*ends at 10"):
        read(task((0, 0, 10)), config(request_timeout_ms=5000))
    assert len(brokers.asked("Fetch")) < 60


# Topics that are not what they were


def test_topic_created_again_is_a_data_loss(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    planned = task((0, 0, 10))
    brokers.topics["orders"].topic_id = b"another topic id"
    with pytest.raises(DataLoss, match="orders was deleted and created again") as caught:
        read(planned, config())
    assert caught.value.condition == "PARTITIONS_DELETED"
    ids = f"(topic id {id_text(topic_id_of('orders'))}, now YW5vdGhlciB0b3BpYyBpZA)"
    assert ids in str(caught.value)


def test_topic_created_again_is_read_when_told_so(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    planned = task((0, 0, 10))
    brokers.topics["orders"].topic_id = b"another topic id"
    assert read(planned, config(), LENIENT) == rows(0, 0, 10)


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
def test_a_broker_that_names_a_deleted_topic_loses_nothing(brokers, config, task, clock, settings):
    brokers.logs["orders", 0].fill(5)
    planned = task((0, 0, 50))
    before = FakeTopic(topic_id_of("orders before"), [1, 1], [0, 0])
    brokers.topics["orders"].move(0, node_id=2)
    brokers.on("Metadata", behind(brokers, "orders", before), node=1)
    assert read(planned, config(), settings) == rows(0, 0, 50)


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
def test_a_broker_that_has_not_heard_of_a_topic_loses_nothing(
    brokers, config, task, clock, settings
):
    """Another is asked the next time; this one might not hear of it for long."""
    brokers.logs["orders", 0].fill(5)
    brokers.on("Metadata", behind(brokers, "orders", None), node=1)
    planned = task((0, 0, 50), with_leaders=False)
    assert read(planned, config(), settings) == rows(0, 0, 50)
    asked = [call.node_id for call in brokers.calls if call.api == "Metadata"]
    assert asked == [1, 2]


@pytest.mark.parametrize(
    ("prefix", "said", "unsaid"),
    [("", "fail_on_data_loss=False", "failOnData"), ("kafka.", "failOnDataLoss to", "fail_on")],
    ids=["alone", "in Spark"],
)
def test_the_way_out_of_a_data_loss_is_told_in_the_readers_words(
    brokers, config, task, clock, prefix, said, unsaid
):
    own = replace(config(), prefix=prefix)
    log = brokers.logs["orders", 0].fill(5)
    log.start = 20
    planned = task((0, 0, 50))
    with pytest.raises(DataLoss) as aged:
        read(planned, own)
    brokers.topics["orders"].topic_id = b"another topic id"
    with pytest.raises(DataLoss) as renamed:
        read(planned, own)
    del brokers.topics["orders"]
    with pytest.raises(DataLoss) as deleted:
        read(planned, own)
    texts = [str(caught.value) for caught in (aged, renamed, deleted)]
    assert len(set(texts)) == 3
    assert all(said in text and unsaid not in text for text in texts)


def test_deleted_topic_is_a_data_loss_soon(brokers, config, task, clock):
    planned = task((0, 0, 10))
    del brokers.topics["orders"]
    with pytest.raises(DataLoss, match=r"orders was deleted.*no such topic") as caught:
        read(planned, config())
    assert caught.value.condition == "PARTITIONS_DELETED"
    assert clock.now - 1000 < 3


OPEN = [(0, None, None), (0, 3, None), (0, None, 10)]


def delete(brokers, topic):
    """A topic that was planned; its partitions have an answer of their own to ListOffsets."""
    del brokers.topics[topic]
    brokers.logs = {place: log for place, log in brokers.logs.items() if place[0] != topic}


@pytest.mark.parametrize("bounds", OPEN, ids=str)
@pytest.mark.parametrize("with_leaders", [True, False])
def test_topic_deleted_before_its_bounds_are_known_is_a_data_loss(
    brokers, config, task, clock, bounds, with_leaders
):
    planned = task(bounds, with_leaders=with_leaders)
    delete(brokers, "orders")
    with pytest.raises(DataLoss, match=r"orders was deleted.*no such topic") as caught:
        read(planned, config())
    assert caught.value.condition == "PARTITIONS_DELETED"
    assert clock.now - 1000 < 3


@pytest.mark.parametrize("bounds", OPEN, ids=str)
def test_topic_deleted_before_its_bounds_are_known_is_left_out_when_told_so(
    brokers, config, task, clock, bounds, caplog
):
    brokers.logs["many", 3].fill(2)
    gone, stays = task(bounds, (1, 0, 10)), task((3, None, None), topic="many")
    both = type(gone)(
        gone.ranges + stays.ranges,
        {**gone.leaders, **stays.leaders},
        {**gone.topic_ids, **stays.topic_ids},
    )
    delete(brokers, "orders")
    assert read(both, config(), LENIENT) == rows(3, 0, 20)
    assert clock.now - 1000 >= 30, "a broker may lag behind: what is there is not passed over"
    assert caplog.text.count("Nothing is read of it, as failOnDataLoss is false") == 1


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0, 0, 10), *OPEN], ids=str)
def test_tasks_behind_the_first_need_not_wait_for_a_deleted_topic(
    brokers, config, task, clock, bounds
):
    planned = task(bounds)
    delete(brokers, "orders")
    assert read(planned, config(), LENIENT) == []
    assert clock.now - 1000 >= 30
    after_the_first = clock.now
    for _ in range(20):
        assert read(planned, config(), LENIENT) == []
    assert clock.now - after_the_first < 20 * 2


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0, 0, 10), (0, None, None)], ids=str)
def test_a_topic_that_is_there_after_all_is_waited_for_again(brokers, config, task, clock, bounds):
    planned = task(bounds)
    brokers.logs["orders", 0].fill(1)
    logs, topics = dict(brokers.logs), dict(brokers.topics)
    delete(brokers, "orders")
    assert read(planned, config(), LENIENT) == []
    brokers.logs, brokers.topics = dict(logs), dict(topics)
    not_the_leader = answered(Answered(error_code=6, high_watermark=-1))
    brokers.on("Fetch", not_the_leader, DEFAULT)  # so that metadata is asked for
    assert read(planned, config(), LENIENT) == rows(0, 0, 10)
    delete(brokers, "orders")
    began = clock.now
    assert read(planned, config(), LENIENT) == []
    assert clock.now - began >= 30


@pytest.mark.parametrize("bounds", OPEN, ids=str)
def test_topic_that_a_broker_does_not_know_yet_has_its_bounds_when_it_does(
    brokers, config, task, clock, bounds
):
    planned = task(bounds)
    logs, topics = dict(brokers.logs), dict(brokers.topics)
    logs["orders", 0].fill(1)
    delete(brokers, "orders")

    def hear_of_it(call):
        if clock.now > 1010:
            brokers.logs, brokers.topics = logs, topics

    brokers.on("Metadata", hear_of_it)
    assert read(planned, config(), LENIENT) == rows(0, bounds[1] or 0, 10)


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
def test_topic_without_an_id_that_is_not_there_is_told_by_name(
    brokers, config, task, clock, settings
):
    """Nobody has seen it: it may be misspelt."""
    planned = task((0, None, None), by_id=False)
    delete(brokers, "orders")
    with pytest.raises(BrokerError, match="check its name"):
        read(planned, config(), settings)


def make_again_with_one_partition(brokers, name):
    """A topic with a partition fewer; the fewer ones have no answer of their own."""
    brokers.topics[name] = FakeTopic(b"another topic id", [1], [0])
    brokers.logs.pop((name, 1))


@pytest.mark.parametrize("with_leaders", [True, False])
@pytest.mark.parametrize("bounds", [(1, 0, 10), (1, None, None), (1, 3, None), (1, None, 9)])
def test_a_partition_that_a_topic_made_again_has_not_got_is_left_out_when_told_so(
    brokers, config, task, clock, caplog, bounds, with_leaders
):
    brokers.logs["orders", 0].fill(1)
    planned = task(bounds, (0, 0, 10), with_leaders=with_leaders)
    make_again_with_one_partition(brokers, "orders")
    assert read(planned, config(), LENIENT) == rows(0, 0, 10)
    assert clock.now - 1000 >= 30, "a broker may lag behind: what is there is not passed over"
    assert caplog.text.count("orders-1: UNKNOWN_TOPIC_OR_PARTITION") == 1
    caplog.clear()
    began = clock.now
    assert read(task((0, 0, 10)), config(), LENIENT) == rows(0, 0, 10)
    assert clock.now == began, "the topic itself does not count as gone"


@pytest.mark.parametrize("bounds", [(1, 0, 10), (1, None, None)])
def test_a_partition_that_a_topic_made_again_has_not_got_is_a_data_loss(
    brokers, config, task, clock, bounds
):
    planned = task(bounds)
    make_again_with_one_partition(brokers, "orders")
    with pytest.raises(DataLoss, match="orders") as caught:
        read(planned, config())
    assert caught.value.condition == "PARTITIONS_DELETED"


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
@pytest.mark.parametrize("bounds", [(1, 0, 10), (1, None, None)])
def test_a_partition_of_a_topic_without_an_id_that_is_not_there_is_told_by_name(
    brokers, config, task, clock, settings, bounds
):
    planned = task(bounds, by_id=False, with_leaders=False)
    make_again_with_one_partition(brokers, "orders")
    with pytest.raises(BrokerError, match=r"orders-1: UNKNOWN_TOPIC_OR_PARTITION"):
        read(planned, config(), settings)


@pytest.mark.parametrize("settings", [ReadSettings(), LENIENT], ids=["strict", "lenient"])
@pytest.mark.parametrize("bounds", [(1, 0, 10), (1, None, None)])
def test_a_broker_that_does_not_know_of_an_added_partition_takes_none_away(
    brokers, config, task, clock, settings, bounds
):
    """It is the same topic, of which partitions are never fewer: the broker is behind."""
    planned = task(bounds, with_leaders=False)
    topic = brokers.topics["orders"]
    brokers.topics["orders"] = FakeTopic(topic.topic_id, topic.leaders[:1], topic.epochs[:1])
    brokers.logs.pop(("orders", 1))
    with pytest.raises(BrokerError, match=r"orders-1: UNKNOWN_TOPIC_OR_PARTITION"):
        read(planned, config(), settings)


# Followers, KIP-392


def test_reader_in_another_rack_is_sent_to_its_follower(brokers, config, task):
    log = brokers.logs["orders", 0].fill(2)

    def send_on(call):
        assert call.request.rack_id == "eu-2"
        return answered(Answered(high_watermark=20, preferred_read_replica=2))(call)

    def follow(call):
        assert [item.fetch_offset for item in call.request.topics[0].partitions] == [0]
        return answered(log.fetch(0, 0, MIB, is_first=True))(call)

    brokers.on("Fetch", send_on, node=1)
    brokers.on("Fetch", follow, node=2)
    assert read(task((0, 0, 20)), config(client_rack="eu-2")) == rows(0, 0, 20)
    assert len(brokers.asked("Fetch", node=1)) == 1


def test_follower_without_the_offset_is_left_for_the_leader(brokers, config, task):
    log = brokers.logs["orders", 0].fill(2)
    send_on = answered(Answered(high_watermark=20, preferred_read_replica=2))
    brokers.on("Fetch", send_on, answered(log.fetch(0, 0, MIB, is_first=True)), node=1)
    brokers.on("Fetch", answered(Answered(error_code=1)), node=2)
    assert read(task((0, 0, 20)), config(client_rack="eu-2")) == rows(0, 0, 20)
    assert [call.node_id for call in brokers.calls if call.api == "Fetch"] == [1, 2, 1]
    assert [request.rack_id for request in brokers.asked("Fetch")] == ["eu-2", "eu-2", ""]


def test_follower_that_sends_on_is_left_for_the_leader(brokers, config, task):
    brokers.logs["orders", 0].fill(2)
    for node, other in ((1, 2), (2, 1)):
        named = answered(Answered(high_watermark=20, preferred_read_replica=other))
        brokers.on(
            "Fetch",
            lambda call, named=named: named(call) if call.request.rack_id else None,
            node=node,
        )
    assert read(task((0, 0, 20)), config(client_rack="eu-2")) == rows(0, 0, 20)
    assert [call.node_id for call in brokers.calls if call.api == "Fetch"] == [1, 2, 1]


def test_follower_that_died_is_left_for_the_leader(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(2)

    def send_on_those_of_a_rack(call):
        if not call.request.rack_id:
            return DEFAULT
        return answered(Answered(high_watermark=20, preferred_read_replica=2))(call)

    brokers.on("Fetch", send_on_those_of_a_rack)
    brokers.stop(2)
    assert read(task((0, 0, 20)), config(client_rack="eu-2")) == rows(0, 0, 20)


def test_follower_that_nobody_knows_leaves_the_read_with_the_leader(brokers, config, task):
    brokers.logs["orders", 0].fill(2)
    nobody = answered(Answered(high_watermark=20, preferred_read_replica=9))
    brokers.on("Fetch", nobody, DEFAULT)
    assert read(task((0, 0, 20)), config(client_rack="eu-2")) == rows(0, 0, 20)
    assert [call.rack_id for call in brokers.asked("Fetch")][:2] == ["eu-2", ""]


# Connections that are shared


def test_reader_that_stops_early_leaves_no_answer_for_the_next(brokers, config, task):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    blocks = Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()
    next(blocks)
    blocks.close()
    assert not connections_for(config()).is_busy, "nobody would ever close it"
    kept = connections_for(config()).get(_leader(task), Deadline.after(5))
    assert kept.request(MetadataRequest(topics=()), Deadline.after(5)).cluster_id == "fake"
    assert read(task((0, 0, 100)), config()) == rows(0, 0, 100)


def _leader(task):
    (leader,) = task((0, 0, 1)).leaders.values()
    return leader.endpoint


@pytest.mark.parametrize("is_closed", [False, True])
def test_block_is_not_read_when_its_memory_may_hold_another(brokers, config, task, is_closed):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    blocks = Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()
    block = next(blocks)
    if is_closed:
        blocks.close()
    else:
        next(blocks)
    with pytest.raises(LocalProtocolError, match="read after the one that follows"):
        rows_of(block)
    blocks.close()


@pytest.mark.slow
def test_readers_that_take_turns_do_not_disturb_each_other(brokers, config, task):
    for partition in (0, 1):
        brokers.logs["orders", partition].fill(20, size_bytes=3000)
    limits = config(max_partition_fetch_bytes=70_000)
    fetchers = [Fetcher(task((number, 0, 200)), limits, ReadSettings()) for number in (0, 1)]
    found = []
    for one, other in zip(*(fetcher.blocks() for fetcher in fetchers), strict=True):
        found += rows_of(one) + rows_of(other)
    assert sorted(found) == rows(0, 0, 200) + rows(1, 0, 200)
    assert [fetcher.progress[0].report.retries for fetcher in fetchers] == [0, 0]
    assert len(brokers.asked("ApiVersions")) == 2


@pytest.mark.slow
def test_threads_with_one_configuration_do_not_disturb_each_other(brokers, config, task):
    brokers.logs["orders", 0].fill(20)
    same, together = config(), threading.Barrier(2)

    def read_again_and_again(start):
        planned, wanted = task((0, start, start + 100)), rows(0, start, start + 100)
        for _ in range(100):
            together.wait(5)
            assert read(planned, same) == wanted

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(read_again_and_again, start) for start in (0, 100)]:
            each.result()


def test_task_after_task_uses_the_same_connection(brokers, config, task):
    brokers.logs["orders", 0].fill(2)
    for _ in range(3):
        read(task((0, 0, 20)), config())
    assert len(brokers.asked("ApiVersions")) == 1


def test_client_over_its_quota_is_told_nothing_but_to_wait(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    over = [FetchResponse(throttle_time_ms=700), FetchResponse(throttle_time_ms=300)]
    brokers.on("Fetch", *over, DEFAULT)
    assert read(task((0, 0, 10)), config()) == rows(0, 0, 10)
    assert clock.slept == [pytest.approx(0.7), pytest.approx(0.3)]


def test_hole_that_opens_in_the_middle_of_an_open_range_is_a_data_loss(brokers, config, task):
    log = brokers.logs["orders", 0].fill(10, size_bytes=20_000)

    def age_out(call):
        log.start = 60
        return fetch(brokers, call)

    brokers.on("Fetch", DEFAULT, age_out)
    with pytest.raises(DataLoss, match="it holds the offsets 60 to 100 now"):
        read(task((0, None, None)), config(max_partition_fetch_bytes=70_000))


def test_batches_written_while_the_answer_was_made_are_read(brokers, config, task):
    # A leader notes the high watermark, then reads up to where it is by then.
    whole = brokers.logs["orders", 0].fill(3).fetch(0, 0, 64 << 10, is_first=True)
    noted = Answered(
        partition_index=0, high_watermark=25, last_stable_offset=25, records=whole.records
    )
    brokers.on("Fetch", answered(noted), DEFAULT)
    assert read(task((0, 0, 30)), config()) == rows(0, 0, 30)


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("with_leaders", [True, False])
def test_batches_beyond_the_end_of_the_log_are_damaged(brokers, config, task, by_id, with_leaders):
    """Whether or not somebody has looked up the topic's id and leaders for the task."""
    log = brokers.logs["orders", 0].fill(2)
    far = bytearray(log.batches[1].data)
    far[:8] = (10**6).to_bytes(8)  # the base offset, which no CRC covers
    log.batches[1] = Batch(bytes(far), 20)
    planned = task((0, 0, 20), by_id=by_id, with_leaders=with_leaders)
    with pytest.raises(CorruptRecords, match=r"orders-0.*beyond the end of the log, 20"):
        read(planned, config())


def test_throttled_reader_stays_silent(brokers, config, task, clock):
    log = brokers.logs["orders", 0].fill(10, size_bytes=3000)
    first = log.fetch(0, 0, 64 << 10, is_first=True)
    brokers.on("Fetch", answered(first, throttle_time_ms=700), DEFAULT)
    assert read(task((0, 0, 100)), config()) == rows(0, 0, 100)
    assert clock.slept == [pytest.approx(0.7)]


def test_a_reader_that_is_given_nothing_for_long_says_that_it_is_throttled(
    brokers, config, task, clock, caplog
):
    """Brokers answer so for as long as the quota is exceeded: it may be for good."""
    brokers.logs["orders", 0].fill(1)
    over = FetchResponse(throttle_time_ms=1000)
    brokers.on("Fetch", *[over] * 150, DEFAULT)
    assert read(task((0, 0, 10)), config()) == rows(0, 0, 10)
    said = [text for text in caplog.messages if "over a quota of its user or id" in text]
    assert len(said) == 2  # once in default.api.timeout.ms
    assert "nothing of orders-0 has come for" in said[0]


@pytest.mark.slow
def test_logins_that_fail_to_be_renewed_lose_and_double_no_row(brokers, config, task):
    brokers.logs["orders", 0].fill(100, size_bytes=10)
    want_login(brokers)
    client = config(max_partition_fetch_bytes=1000, retry_backoff_ms=1, **AS_KEYWORDS)
    login_again(brokers, connections_for(client))
    assert read(task((0, 0, 100)), client) == rows(0, 0, 100)
    assert len(brokers.asked("SaslAuthenticate")) > 4
