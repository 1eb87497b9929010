"""Large answers, read while they come: what breaks off, stalls, ends early or is damaged."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from functools import partial

import pytest

from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import Fetcher, ReadSettings, read_batches
from pyspark_kafkaproto.client.group.seen import Seen
from pyspark_kafkaproto.client.group.sessions import FetchSessions
from pyspark_kafkaproto.client.group.tail import Tail
from pyspark_kafkaproto.client.reading import beside, fetch, probe
from pyspark_kafkaproto.client.reading import decode as decode_module
from pyspark_kafkaproto.client.reading.beside import Beside
from pyspark_kafkaproto.client.reading.ranges import Mode
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    CorruptRecords,
    LocalProtocolError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.net import Connection, ConsumerConfig, Deadline, transport
from pyspark_kafkaproto.net.transport import Transport
from pyspark_kafkaproto.records import (
    IMPLEMENTATION,
    NewRecord,
    compression,
    decode,
    encode_batch,
)
from tests.fake_broker import DEFAULT, Fault, cut
from tests.fake_log import Answered, Batch
from tests.fake_log import fetch as answer_to
from tests.unit.client.answers import answered
from tests.unit.client.rows import rows, rows_of
from tests.waiting import until

PIECE = 1000
NOT_LEADER_OR_FOLLOWER = 6
BATCH = 3200  # about what ten records of 300 bytes take


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(fetch, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(fetch, "_PIECE_ALONE_BYTES", PIECE)


@pytest.fixture(autouse=True, params=["python", "native", "ahead"])
def way(request, monkeypatch):
    """How the pieces are received: step by step, without Python, by a thread that goes ahead."""
    if request.param == "python":
        monkeypatch.setattr(transport, "_inflow_class", lambda: None)
    elif IMPLEMENTATION == "pure":
        pytest.skip("what is native needs the kernel")
    monkeypatch.setattr(fetch, "spare_threads", lambda _: 1 if request.param == "ahead" else 0)
    monkeypatch.setattr(fetch, "_LIGHT_RECORD_BYTES", 1 << 20)  # of these none are
    return request.param


@pytest.fixture
def log(brokers):
    """Ten batches of ten records in partition 0: one answer."""
    return brokers.logs["orders", 0].fill(10, size_bytes=300)


def asked(brokers):
    """The offset that each Fetch asked for first."""
    return [call.topics[0].partitions[0].fetch_offset for call in brokers.asked("Fetch")]


def cut_at(brokers, keep_bytes):
    return lambda call: cut(answer_to(brokers, call), keep_bytes)


def stalled_at(brokers, keep_bytes):
    return lambda call: Fault(answer_to(brokers, call), lambda frame: frame[:keep_bytes])


def read(fetcher):
    return [row for block in fetcher.blocks() for row in rows_of(block)]


def test_rows_are_read_before_all_of_the_answer_is_there(brokers, config, task, log, way):
    brokers.on("Fetch", stalled_at(brokers, 3 * BATCH))
    schema = schema_for(["offset"])
    settings = ReadSettings()
    with closing(Fetcher(task((0, 0, 100)), config(), settings).blocks()) as blocks:
        block = next(blocks)
        if way == "ahead":  # `more` might find all that will come, and wait for what will not
            until(lambda: block.arrived >= 4 * PIECE)
        while block.arrived < 4 * PIECE:
            block.more()
        assert BATCH < block.arrived < 3 * BATCH
        assert not block.is_whole
    # and who wants no more than is there has it:
    batches = read_batches(task((0, 0, 20)), config(request_timeout_ms=5000), settings, schema)
    assert next(batches).column("offset").to_pylist() == list(range(20))


def test_next_is_asked_for_when_the_last_piece_is_there(brokers, config, task, log):
    with closing(Fetcher(task((0, 0, 200)), config(), ReadSettings()).blocks()) as blocks:
        block = next(blocks)
        log.fill(10, size_bytes=300)
        while not block.is_whole:
            assert len(brokers.asked("Fetch")) == 1
            block.more()
        brokers.wait_for_call("Fetch", 2)
        assert asked(brokers) == [0, 100]
        found = rows_of(block) + [row for other in blocks for row in rows_of(other)]
    assert found == rows(0, 0, 200)


def test_a_large_answer_about_something_else_is_refused(brokers, config, task, log):
    records = b"".join(batch.data for batch in log.batches)
    brokers.on("Fetch", answered(Answered(partition_index=7, high_watermark=100, records=records)))
    with pytest.raises(RemoteProtocolError, match="orders-7 was not asked for"):
        read(Fetcher(task((0, 0, 100)), config(), ReadSettings()))


@pytest.mark.parametrize("level", ["answer", "partition"])
def test_a_large_answer_that_tells_of_an_error_gives_no_rows(brokers, config, task, log, level):
    """Its records are those of who is no leader any more."""
    records = b"".join(batch.data for batch in log.batches)
    stale = answer_with(records, **{level: NOT_LEADER_OR_FOLLOWER})
    brokers.on("Fetch", stale, DEFAULT)
    fetcher = Fetcher(task((0, 0, 100)), config(), ReadSettings())
    assert read(fetcher) == rows(0, 0, 100)
    assert asked(brokers)[:2] == [0, 0]


def answer_with(records, *, answer=0, partition=0):
    """About all that the log has, with such errors."""
    part = Answered(partition_index=0, error_code=partition, high_watermark=100, records=records)
    return answered(part, error_code=answer)


def test_a_first_batch_that_is_cut_does_not_end_where_another_partition_does(
    brokers, config, task, log
):
    """As brokers before Fetch 3 cut it."""
    log.cuts_first = True
    brokers.logs["orders", 1].fill(3, size_bytes=100)
    schema = schema_for(["partition", "offset"])
    little = config(max_partition_fetch_bytes=2 * PIECE)
    batches = read_batches(task((0, 0, 100), (1, 0, 30)), little, ReadSettings(), schema)
    found = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(found) == rows(0, 0, 100) + rows(1, 0, 30)


def test_each_answer_has_all_the_time_that_a_call_has(brokers, config, task, log, clock):
    """A read may take for ever, as long as something comes."""
    some = config(max_partition_fetch_bytes=2 * BATCH, default_api_timeout_ms=60_000)
    found = []
    for block in Fetcher(task((0, 0, 100)), some, ReadSettings()).blocks():
        found += rows_of(block)
        clock.now += 50
        brokers.hang_up(1)  # what is asked ahead is lost, and tried again
    assert found == rows(0, 0, 100)
    assert clock.now > 1200


@pytest.mark.parametrize("at", ["cut", "stalled"])
@pytest.mark.parametrize(
    "keep_bytes",
    [
        3 * BATCH + 700,
        pytest.param(8 * BATCH, marks=pytest.mark.slow),
        pytest.param(9 * BATCH + 700, marks=pytest.mark.slow),
    ],
)
def test_what_came_before_an_answer_broke_off_is_read_once(
    brokers, config, task, log, keep_bytes, at, way
):
    broken = (cut_at if at == "cut" else stalled_at)(brokers, keep_bytes)
    brokers.on("Fetch", broken, DEFAULT)
    patient = config(request_timeout_ms=5000 if at == "cut" else 1500, retry_backoff_ms=1)
    fetcher = Fetcher(task((0, 0, 100)), patient, ReadSettings())
    assert read(fetcher) == rows(0, 0, 100)
    begun, again = asked(brokers)
    pieces = (keep_bytes - 100) // PIECE * PIECE  # of the last one nothing is kept,
    if way != "python":
        pieces = keep_bytes - 100  # unless it is counted as it comes
    assert (begun, again) == (0, pieces // len(log.batches[0].data) * 10)
    report = fetcher.progress[0].report
    assert report.retries == 1
    assert report.fetched_bytes == sum(len(batch.data) for batch in log.batches)


@pytest.mark.parametrize("keep_bytes", [None, 7 * BATCH + 700])
def test_parts_that_threads_decode_are_read_once(
    brokers, config, task, log, monkeypatch, keep_bytes, way
):
    """Also those that a thread has as the answer breaks off. In Python a piece comes at a time."""
    begun = []
    begin = Beside._begin
    monkeypatch.setattr(Beside, "_begin", lambda *args: begun.append(args) or begin(*args))
    monkeypatch.setattr(beside, "DEFAULT_CHUNK_BYTES", 2 * BATCH)
    monkeypatch.setattr(Beside, "_is_worth_it", lambda *_: True)  # these are not compressed
    monkeypatch.setattr(beside, "_LEAST_PART_BYTES", 100)
    monkeypatch.setattr(decode_module, "decode", partial(decode, chunk_bytes=2 * BATCH))
    if keep_bytes is not None:
        brokers.on("Fetch", cut_at(brokers, keep_bytes), DEFAULT)
    log.fill(90, size_bytes=300)
    settings = ReadSettings(uses_threads=True)
    little = config(max_partition_fetch_bytes=30 * BATCH, retry_backoff_ms=1)
    batches = read_batches(task((0, 0, 1000)), little, settings, schema_for(["offset"]))
    found = [row["offset"] for batch in batches for row in batch.to_pylist()]
    assert found == list(range(1000))
    assert bool(begun) == (way == "ahead")


@pytest.mark.parametrize("way", ["ahead"], indirect=True)
@pytest.mark.parametrize(
    ("light_bytes", "spare", "uses_threads", "goes_on"),
    [(256, 1, None, False), (512, 1, None, True), (256, 2, None, True), (256, 1, True, True)],
)
def test_large_records_have_no_thread_that_receives_where_there_is_none_to_spare(  # noqa: PLR0917
    brokers, config, task, log, monkeypatch, way, light_bytes, spare, uses_threads, goes_on
):
    """But for the first answer: nobody knows yet how large they are."""
    with_thread = []
    begin = Connection.begin

    def noted(*arguments, **how):
        with_thread.extend(value for name, value in how.items() if name == "thread")
        return begin(*arguments, **how)

    monkeypatch.setattr(Connection, "begin", noted)
    monkeypatch.setattr(fetch, "spare_threads", lambda _: spare)
    monkeypatch.setattr(fetch, "_LIGHT_RECORD_BYTES", light_bytes)
    settings = ReadSettings(uses_threads=uses_threads)
    fetcher = Fetcher(task((0, 0, 100)), config(max_partition_fetch_bytes=3 * BATCH), settings)
    assert read(fetcher) == rows(0, 0, 100)
    assert with_thread == [True] + [goes_on] * (len(with_thread) - 1)
    assert len(with_thread) > 1


@pytest.mark.parametrize("way", ["ahead"], indirect=True)
def test_what_is_compressed_is_not_light_nor_what_is_damaged(monkeypatch, way):
    monkeypatch.setattr(fetch, "_LIGHT_RECORD_BYTES", 256)
    kept = [NewRecord(b"x" * 300, offset_delta=delta) for delta in range(10)]
    for codec, name in compression.NAMES.items():
        block = memoryview(encode_batch(kept, codec=codec))
        assert fetch._is_light(block) == (name == "none")
    assert not fetch._is_light(memoryview(b"\xff" * 100))
    assert not fetch._is_light(memoryview(b""))


@pytest.mark.slow
def test_answers_that_always_break_off_before_a_batch_are_an_error_in_time(
    brokers, config, task, clock
):
    brokers.logs["orders", 0].fill(1, size_bytes=3000)
    brokers.on("Fetch", cut_at(brokers, 10_000))
    with pytest.raises(ConnectionFailed, match="the broker closed the connection"):
        read(Fetcher(task((0, 0, 10)), config(default_api_timeout_ms=2000), ReadSettings()))
    assert len(brokers.asked("Fetch")) > 3


@pytest.mark.slow
def test_answers_that_break_off_behind_a_batch_each_time_come_to_the_end(
    brokers, config, task, log, clock
):
    brokers.on("Fetch", cut_at(brokers, BATCH + PIECE))
    fetcher = Fetcher(task((0, 0, 90)), config(default_api_timeout_ms=500), ReadSettings())
    assert read(fetcher) == rows(0, 0, 90)
    assert asked(brokers) == list(range(0, 90, 10))


@pytest.mark.parametrize("way", ["python", "native"], indirect=True)
def test_pieces_of_an_answer_have_one_time_out_together(brokers, config, task, log, clock):
    """Who gets a piece now and then waits no longer than for an answer that comes at once."""
    more = Connection.more

    def dripping(connection, *arguments):
        clock.sleep(8)
        more(connection, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "more", dripping)
        fetcher = Fetcher(task((0, 0, 100)), config(request_timeout_ms=30_000), ReadSettings())
        began = clock.now
        with closing(fetcher.blocks()) as blocks:
            block = next(blocks)
            block.finish()
            assert block.has_broken_off
            assert 24 <= clock.now - began <= 40
            found = rows_of(block)
            assert found == rows(0, 0, 10)
            patch.setattr(Connection, "more", more)
            found += [row for other in blocks for row in rows_of(other)]
    assert found == rows(0, 0, 100)


def test_time_between_the_pieces_is_the_readers_own(brokers, config, task, log, clock):
    with closing(Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()) as blocks:
        block = next(blocks)
        while not block.is_whole:
            clock.sleep(50)
            block.more()
        assert not block.has_broken_off
        assert rows_of(block) == rows(0, 0, 100)


def test_answer_that_breaks_off_before_what_was_asked_for_is_asked_for_again(
    brokers, config, task, log
):
    def from_the_start(call):
        asked = call.request.topics[0].partitions[0]
        records = b"".join(batch.data for batch in log.batches)
        data = log.fetch(0, asked.fetch_offset, 0, is_first=True)
        data = Answered(high_watermark=data.high_watermark, records=records)
        return cut(answered(data)(call), BATCH + PIECE)

    brokers.on("Fetch", from_the_start, DEFAULT)
    fetcher = Fetcher(task((0, 30, 100)), config(retry_backoff_ms=1), ReadSettings())
    assert read(fetcher) == rows(0, 30, 100)
    assert asked(brokers) == [30, 30]


def test_partitions_behind_the_first_are_read_after_it(brokers, config, task, log):
    brokers.logs["orders", 1].fill(5, size_bytes=300)
    assert read(Fetcher(task((0, 0, 100), (1, 0, 50)), config(), ReadSettings())) == (
        rows(0, 0, 100) + rows(1, 0, 50)
    )
    assert len(brokers.asked("Fetch")) == 1


def test_range_that_ends_early_leaves_a_connection_that_can_be_used(brokers, config, task, log):
    for start in (0, 30):
        fetcher = Fetcher(task((0, start, start + 5)), config(), ReadSettings())
        assert read(fetcher) == rows(0, start, start + 5)
    assert len({call.connection for call in brokers.calls}) == 1


def test_reader_that_leaves_an_answer_lying_closes_its_connection(brokers, config, task, log):
    brokers.on("Fetch", stalled_at(brokers, 3 * BATCH), DEFAULT)
    with closing(Fetcher(task((0, 0, 100)), config(), ReadSettings()).blocks()) as blocks:
        next(blocks)
    assert read(Fetcher(task((0, 0, 100)), config(), ReadSettings())) == rows(0, 0, 100)
    assert len({call.connection for call in brokers.calls}) == 2


def test_nothing_is_received_on_the_number_of_a_socket_that_broke_off(
    brokers, config, task, log, monkeypatch
):
    """As another thread of this process gets it from the system, at once and in one step.

    Between a close and a dup2 the fake broker's accept may have reserved the number.
    """
    brokers.on("Fetch", cut_at(brokers, 3 * BATCH + 700), DEFAULT)
    other, peer = socket.socketpair()
    close, reused = Transport.close, []

    def closing(transport):
        number = transport.fileno()
        if number >= 0 and not reused:
            reused.append(os.dup2(other.fileno(), number))
            transport._sock.detach()
        close(transport)

    monkeypatch.setattr(Transport, "close", closing)
    with other, peer:
        peer.sendall(b"another's" * 300)
        fetcher = Fetcher(task((0, 0, 100)), config(retry_backoff_ms=1), ReadSettings())
        assert read(fetcher) == rows(0, 0, 100)
        assert other.recv(4000, socket.MSG_DONTWAIT) == b"another's" * 300
        os.close(reused[0])


def test_block_cannot_be_read_behind_the_next(brokers, config, task, log):
    fetcher = Fetcher(task((0, 0, 100)), config(), ReadSettings())
    blocks = fetcher.blocks()
    block = next(blocks)
    blocks.close()
    with pytest.raises(LocalProtocolError, match="after the one that follows"):
        block.more()


@pytest.mark.parametrize("mode", [Mode.FAILFAST, Mode.DROPMALFORMED])
def test_damaged_batch_in_the_middle_is_one_as_in_any_block(brokers, config, task, log, mode):
    damaged = bytearray(log.batches[4].data)
    damaged[-3] ^= 1
    log.batches[4] = log.batches[4]._replace(data=bytes(damaged))
    schema = schema_for(["offset"])
    batches = read_batches(task((0, 0, 100)), config(), ReadSettings(mode=mode), schema)
    found = []
    if mode is Mode.FAILFAST:
        with pytest.raises(CorruptRecords, match="orders-0, record batch at offset 40"):
            found += [each for batch in batches for each in batch.column("offset").to_pylist()]
    else:
        found = [each for batch in batches for each in batch.column("offset").to_pylist()]
        assert found == [*range(40), *range(50, 100)]


def test_damage_is_told_before_the_rest_has_come(brokers, config, task, log):
    damaged = bytearray(log.batches[0].data)
    damaged[-3] ^= 1
    log.batches[0] = log.batches[0]._replace(data=bytes(damaged))
    brokers.on("Fetch", stalled_at(brokers, 5 * BATCH))
    batches = read_batches(task((0, 0, 100)), config(), ReadSettings(), schema_for(["offset"]))
    with pytest.raises(CorruptRecords, match="orders-0, record batch at offset 0"):
        next(batches)


def damaged_and_compacted(log):
    """Append a batch of the offsets 100 to 119 whose CRC is wrong, and five batches behind it.

    Only the batch behind it shows where it ends.
    """
    kept = [NewRecord(b"x" * 300, offset_delta=delta) for delta in range(0, 20, 2)]
    data = bytearray(encode_batch(kept, base_offset=100, last_offset_delta=19))
    data[-3] ^= 1
    log.batches.append(Batch(bytes(data), 120))
    log.stop = 120
    log.fill(5, size_bytes=300)


def read_around_damage(config, task):
    settings = ReadSettings(mode=Mode.DROPMALFORMED)
    batches = read_batches(task, config(retry_backoff_ms=1), settings, schema_for(["offset"]))
    return [each for batch in batches for each in batch.column("offset").to_pylist()]


# It may be what the answer that breaks off begins with, too.
@pytest.mark.parametrize(("start", "batches_before"), [(0, 10), (100, 0)])
def test_damaged_batch_whose_end_the_next_would_tell_is_asked_for_again(
    brokers, config, task, log, start, batches_before
):
    damaged_and_compacted(log)
    brokers.on("Fetch", cut_at(brokers, (batches_before + 1) * BATCH + 1500), DEFAULT)
    found = read_around_damage(config, task((0, start, 170)))
    assert found == [*range(start, 100), *range(120, 170)]
    assert asked(brokers) == [start, 100]


def test_damaged_batch_whose_end_no_answer_tells_is_an_error(brokers, config, task, log):
    damaged_and_compacted(log)
    brokers.on("Fetch", cut_at(brokers, 11 * BATCH + 1500), cut_at(brokers, BATCH + 1500))
    with pytest.raises(CorruptRecords, match=r"record batch at offset 100 .*CRC-32C"):
        read_around_damage(config, task((0, 0, 170)))
    assert asked(brokers) == [0, 100]


def test_answers_that_break_off_spoil_no_guess_of_sizes(brokers, config, task, log):
    brokers.on("Fetch", cut_at(brokers, PIECE + 500), DEFAULT)
    found = probe.probe_bytes_per_offset(task((0, 0, 100)), config(retry_backoff_ms=1))
    (bytes_per_offset,) = found.values()
    assert 300 < bytes_per_offset < 330


@pytest.mark.parametrize("mode", [Mode.FAILFAST, Mode.DROPMALFORMED])
def test_what_is_damaged_behind_a_block_is_none_of_its_batches(brokers, config, task, log, mode):
    """It is known once all has come, in the middle of the block, which is sound."""
    other = brokers.logs["orders", 1].fill(1, size_bytes=300)
    data = other.batches[0].data
    other.batches[0] = other.batches[0]._replace(data=data[:16] + b"\x09" + data[17:])
    planned = task((0, 0, 100), (1, 0, 10))
    batches = read_batches(planned, config(), ReadSettings(mode=mode), schema_for(["offset"]))
    with pytest.raises(CorruptRecords, match=r"orders-1, record batch at offset 0 .*magic is 9"):
        list(batches)


def test_who_goes_on_behind_a_block_that_broke_off_tells_the_epoch_of_its_last_batch(
    brokers, config, task
):
    """With an older one the leader would name its end, before what was read: that is no loss."""
    log = brokers.logs["orders", 0]
    brokers.topics["orders"].epochs[0] = 7
    for log.epoch, batches in ((3, 30), (5, 10)):
        log.fill(batches, size_bytes=300)
    brokers.on("Fetch", DEFAULT, cut_at(brokers, 17 * BATCH), DEFAULT)
    assert read(Fetcher(task((0, 0, 400)), config(retry_backoff_ms=1), ReadSettings())) == (
        rows(0, 0, 400)
    )
    assert asked(brokers)[-1] > 300


def no_reset(partition, why, end=None):
    pytest.fail(f"{partition} was at {end}: {why}")


def test_member_reads_what_breaks_off_once_and_from_all_partitions(brokers, log):
    brokers.logs["orders", 1].fill(10, size_bytes=300)
    brokers.on("Fetch", cut_at(brokers, 3 * BATCH), DEFAULT)
    config = ConsumerConfig.parse(
        {"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g", "retry.backoff.ms": 1}
    )
    router = Router(config.client)
    positions = {TopicPartition("orders", number): 0 for number in (0, 1)}
    tail = Tail(positions, config, router, no_reset, Seen(), FetchSessions())
    deadline = Deadline.after(10)
    found = []
    while len(found) < 200 and not deadline.has_passed:
        for block in tail.next_blocks(Deadline.after(1)):
            found += rows_of(block)
    tail.close()
    router.close()
    assert sorted(found) == rows(0, 0, 100) + rows(1, 0, 100)
    assert [row for row in found if row[0] == 0] == rows(0, 0, 100)
