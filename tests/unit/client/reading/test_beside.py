"""Parts of a block that other threads decode: the same rows, and the same said of what is wrong."""

from __future__ import annotations

import threading
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client import ReadSettings
from pyspark_kafkaproto.client.reading import beside
from pyspark_kafkaproto.client.reading.beside import Beside, decoding_threads
from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.decode import BlockReading
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.client.reading.ranges import Mode, OffsetRange
from pyspark_kafkaproto.errors import CorruptRecords
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.records import Columns, Damaged, NewRecord, encode_batch
from pyspark_kafkaproto.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from tests.forks import in_child
from tests.interrupted import Interrupted

CONFIG = ClientConfig.parse({"bootstrap.servers": "nobody:1"})
ID, FIRST_OF_TRANSACTION = 7, 20
TRANSACTIONAL = 0x10
PER_BATCH = 5
CHUNK_BYTES = 2000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(beside, "DEFAULT_CHUNK_BYTES", CHUNK_BYTES)
    monkeypatch.setattr(beside, "_LEAST_PART_BYTES", 100)


def batches(count, codec=ZSTD, size_bytes=100, **fields):
    """So many, of five records each."""
    return [
        encode_batch(
            [NewRecord(b"%04d" % offset * (size_bytes // 4)) for offset in range(begin, begin + 5)],
            base_offset=begin,
            codec=codec,
            **fields,
        )
        for begin in range(0, PER_BATCH * count, PER_BATCH)
    ]


def block_of(data, start=0, stop=None, aborted=()):
    """One answer, all of it there; the log ends where its last batch does."""
    end = PER_BATCH * len(data)
    stop = end if stop is None else stop
    progress = RangeProgress(OffsetRange("orders", 0, start, stop), start, start, stop)
    block = Block(progress, memoryview(b"".join(data)), aborted)
    block.ends(end)
    return block


def reading_of(block, threads, mode=Mode.FAILFAST):
    """Reads it with so many threads, in parts of a tenth: as if it had learned what bytes hold."""
    by = Beside(threads)
    by._ratio = len(block.memory) / 10 / CHUNK_BYTES
    return BlockReading(block, CONFIG, ReadSettings(mode=mode), Columns.OFFSET, by), by


def told(block, threads, mode=Mode.FAILFAST):
    """Every row and every damage in their order, and the error at the end."""
    reading, by = reading_of(block, threads, mode)
    found = []
    with closing(by):
        try:
            for piece in reading.pieces():
                if isinstance(piece, Damaged):
                    found.append((piece.start, piece.stop, bytes(piece.data)))
                else:
                    found += memoryview(piece.offsets).cast("B").cast("q")
        except CorruptRecords as error:
            found.append(str(error))
    report = block.progress.report
    return found, (report.rows, report.passed_over, report.damaged), reading.position


@pytest.fixture
def decoding(monkeypatch):
    """Who decodes parts, by name, in the order in which they begin; the reader is not the first."""
    names, has_begun = [], threading.Event()
    part = BlockReading._part

    def noted(self, data, pos, start):
        names.append(threading.current_thread().name)
        if others(names):
            has_begun.set()
        has_begun.wait(10)
        return part(self, data, pos, start)

    monkeypatch.setattr(BlockReading, "_part", noted)
    return names


def rows_of(piece):
    return list(memoryview(piece.offsets).cast("B").cast("q"))


def others(names):
    return [name for name in names if name.startswith("kafkaproto-decode")]


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_come_in_their_order(decoding, threads):
    data = batches(40)
    found, *_ = told(block_of(data), threads)
    assert found == list(range(200))
    assert others(decoding)
    assert len(decoding) >= 9


@given(
    data=st.data(),
    threads=st.integers(1, 3),
    codec=st.sampled_from([NONE, GZIP, SNAPPY, LZ4, ZSTD]),
    mode=st.sampled_from(Mode),
)
def test_nothing_is_told_otherwise_than_without_threads(data, threads, codec, mode):
    """Whatever is damaged, and wherever a range begins and ends."""
    whole = batches(data.draw(st.integers(1, 30), "batches"), codec)
    start = data.draw(st.integers(0, PER_BATCH * len(whole)), "start")
    stop = data.draw(st.integers(start, PER_BATCH * len(whole)), "stop")
    for number in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=2), "damaged"):
        changed = bytearray(whole[number])
        at = data.draw(st.integers(17, len(changed) - 1), "byte")  # no length, nor magic
        changed[at] ^= data.draw(st.integers(1, 255), "bits")
        whole[number] = bytes(changed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Beside, "_is_worth_it", lambda *_: True)
        assert told(block_of(whole, start, stop), threads, mode) == told(
            block_of(whole, start, stop), 0, mode
        )


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("is_small", [False, True])
def test_what_is_not_worth_it_is_read_in_one_thread(decoding, monkeypatch, codec, is_small):
    """Nothing without compression is, and small batches of light codecs are not."""
    data = batches(40, codec)
    content = len(data[0]) / (sum(map(len, data)) / 10 / CHUNK_BYTES)
    monkeypatch.setitem(beside._LEAST_BATCH_BYTES, SNAPPY, content + is_small)
    monkeypatch.setitem(beside._LEAST_BATCH_BYTES, LZ4, content + is_small)
    told(block_of(data), 1)
    assert bool(others(decoding)) == (codec in (GZIP, ZSTD) or (codec != NONE and not is_small))


def test_tiny_batches_of_snappy_are_read_in_one_thread(decoding):
    """Of 500 B each: less time goes into their bodies than into who has the interpreter."""
    told(block_of(batches(40, SNAPPY)), 1)
    assert others(decoding) == []


def test_what_may_be_aborted_is_read_in_one_thread(decoding):
    data = batches(40, producer_id=ID, attributes=TRANSACTIONAL)
    found, *_ = told(block_of(data, aborted=[(ID, FIRST_OF_TRANSACTION)]), 2)
    assert found == list(range(FIRST_OF_TRANSACTION))
    assert others(decoding) == []


def test_nobody_is_in_the_bytes_of_a_block_that_is_left(monkeypatch):
    """They are another answer's then."""
    begun, may_end, ended = threading.Event(), threading.Event(), []
    part = BlockReading._part

    def slow(self, data, pos, start):
        if threading.current_thread() is threading.main_thread():
            if pos:
                begun.wait(10)  # one part is to be left for the thread
        elif pos:
            begun.set()
            may_end.wait(10)
            ended.append(pos)
        return part(self, data, pos, start)

    monkeypatch.setattr(BlockReading, "_part", slow)
    reading, by = reading_of(block_of(batches(40)), 1)
    with closing(by):
        pieces = reading.pieces()
        next(pieces)
        assert begun.wait(10)
        threading.Timer(0.05, may_end.set).start()
        pieces.close()
        assert ended


def test_a_wait_that_was_interrupted_is_made_up_for(monkeypatch):
    release, inside = threading.Event(), threading.Event()

    def decode(*_):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            release.wait(10)

    def interrupt():
        raise KeyboardInterrupt

    data = memoryview(b"".join(batches(40)))
    with closing(Beside(1)) as by:
        by._ratio = len(data) / 10 / CHUNK_BYTES
        by.share(data, 0, 0, decode)
        assert inside.wait(10)
        work = by._parts[0].work
        with monkeypatch.context() as patch:
            patch.setattr(work, "result", interrupt)
            patch.setattr(work, "exception", interrupt)
            with pytest.raises(KeyboardInterrupt):
                by.take(0, 0)
            with pytest.raises(KeyboardInterrupt):
                by.drop()
        threading.Timer(0.05, release.set).start()
        by.drop()
        assert work.done()
        assert by.begins is None


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 130))
def test_wherever_the_reader_is_interrupted_it_comes_to_an_end(nth):
    """A thread waited for a lock that the interrupt had left taken, and `close` for the thread."""
    data = memoryview(b"".join(batches(40)))
    by = Beside(1)
    by._ratio = len(data) / 10 / CHUNK_BYTES
    files = {beside.__file__, threading.__file__}
    with suppress(KeyboardInterrupt), Interrupted(nth, files, behind_c=True):
        by.share(data, 0, 0, lambda *_: None)
        by.take(0, 0)
    ends = threading.Thread(target=by.close, daemon=True)
    ends.start()
    ends.join(5.0)
    assert not ends.is_alive()


def test_what_an_interrupted_end_of_a_block_left_is_none_of_the_next_one(monkeypatch):
    """Parts of both would begin at the same positions, with the same offsets."""

    def interrupt(_):
        raise KeyboardInterrupt

    reading, by = reading_of(block_of(batches(40)), 1)
    with closing(by):
        pieces = reading.pieces()
        next(pieces)
        with monkeypatch.context() as patch:
            patch.setattr(Beside, "drop", interrupt)
            with pytest.raises(KeyboardInterrupt):
                pieces.close()
        assert by.begins is not None
        wanted = Columns.VALUE  # which the first reading did not want
        after = BlockReading(block_of(batches(40)), CONFIG, ReadSettings(), wanted, by)
        assert None not in [piece.value for piece in after.pieces()]


def test_a_thread_that_collects_a_reader_nobody_closed_does_not_wait_for_itself():
    """Python collects garbage wherever objects are made: that never ended, nor did the process."""
    is_shared, is_closed = threading.Event(), threading.Event()

    def decode(*_):
        assert is_shared.wait(10)
        by.close()
        is_closed.set()

    data = memoryview(b"".join(batches(40)))
    by = Beside(1)
    by._ratio = len(data) / 10 / CHUNK_BYTES
    by.share(data, 0, 0, decode)
    work = by._parts[0].work
    is_shared.set()
    assert is_closed.wait(10)
    assert work.exception(10) is None


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_forked_child_waits_for_no_thread_of_its_parent(monkeypatch, goes_on):
    """It has none of them, and what they had begun is never done there."""
    part, has_begun, is_done = BlockReading._part, threading.Event(), threading.Event()

    def slow(self, data, pos, start):
        if not others([threading.current_thread().name]):
            assert has_begun.wait(10)
        elif pos > 0:  # the reader goes on without it
            has_begun.set()
            assert is_done.wait(30)
        return part(self, data, pos, start)

    monkeypatch.setattr(BlockReading, "_part", slow)
    reading, by = reading_of(block_of(batches(40)), 1)
    with closing(by):
        pieces = reading.pieces()
        found = rows_of(next(pieces))
        assert has_begun.wait(10)

        def leave():
            rest = [row for piece in pieces for row in rows_of(piece)] if goes_on else []
            assert not goes_on or found + rest == list(range(200))
            pieces.close()
            by.close()

        ended = in_child(leave)
        is_done.set()
        assert ended == 0
        assert found + [row for piece in pieces for row in rows_of(piece)] == list(range(200))


def test_without_a_thread_all_of_it_is_read_by_the_reader(monkeypatch, decoding):
    def none_left(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    found, *_ = told(block_of(batches(40)), 2)
    assert found == list(range(200))
    assert decoding == []


@pytest.mark.parametrize(("spare", "threads"), [(0, 0), (1, 1), (3, 3), (63, 3)])
def test_how_many_there_are(monkeypatch, spare, threads):
    monkeypatch.setattr(beside, "spare_threads", lambda _: spare)
    monkeypatch.setattr(beside, "IMPLEMENTATION", "kernel")
    assert decoding_threads(None) == threads
    monkeypatch.setattr(beside, "IMPLEMENTATION", "pure")
    assert decoding_threads(None) == 0, "which holds the interpreter all the time"
