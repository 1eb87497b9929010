"""Memory for answers: whoever comes next has it, and nobody has it twice."""

from collections import deque
from mmap import mmap

import pytest

from pyspark_kafkaproto.client import Fetcher, ReadSettings
from pyspark_kafkaproto.client.reading import memory
from tests.unit.client.rows import rows, rows_of


@pytest.fixture
def spare(monkeypatch):
    """What readers have left, from now on."""
    kept = deque(maxlen=1)
    monkeypatch.setattr(memory, "_spare", kept)
    return kept


def read(task, config):
    """All rows of a task."""
    blocks = Fetcher(task, config, ReadSettings()).blocks()
    return [row for block in blocks for row in rows_of(block)]


def test_the_next_reader_has_the_memory_of_the_last(brokers, config, task, spare):
    brokers.logs["orders", 0].fill(5)
    assert read(task((0, 0, 50)), config()) == rows(0, 0, 50)
    (kept,) = spare
    assert read(task((0, 10, 20)), config()) == rows(0, 10, 20)
    assert len(spare) == 1
    assert spare[0] is kept


def test_two_readers_at_once_have_memory_of_their_own(brokers, config, task, spare):
    brokers.logs["orders", 0].fill(5)
    assert read(task((0, 0, 50)), config()) == rows(0, 0, 50)
    (kept,) = spare
    for block in Fetcher(task((0, 0, 50)), config(), ReadSettings()).blocks():
        assert block.memory.obj is kept
        assert not spare
        assert read(task((0, 0, 20)), config()) == rows(0, 0, 20)
        assert rows_of(block) == rows(0, 0, 50)
        assert spare[0] is not kept
    assert len(spare) == 1


def test_a_reader_without_an_answer_takes_nothing_away(config, task, spare):
    spare.append(kept := mmap(-1, 10))
    assert read(task(), config()) == []
    assert list(spare) == [kept]


def test_what_is_left_is_the_largest(spare):
    for size_bytes in (100, 300, 200):
        owner = memory.AnswerMemory()
        owner.take(size_bytes)
        other = memory.AnswerMemory()
        other.take(50)
        owner.leave()
        other.leave()
    assert [len(kept) for kept in spare] == [300]


def test_memory_of_a_very_large_answer_is_let_go(monkeypatch, spare):
    monkeypatch.setattr(memory, "_MOST_SPARE_BYTES", 100)
    owner = memory.AnswerMemory()
    assert len(owner.take(101)) == 101
    owner.leave()
    assert not spare


def test_a_reader_that_takes_while_another_leaves_has_it_alone(monkeypatch, spare):
    leaving, taking, next_one = (memory.AnswerMemory() for _ in range(3))
    leaving.take(100)
    spare.append(mmap(-1, 300))
    taken = []

    def meet(*found, **options):
        taken.append(taking.take(50).obj)
        return max(*found, **options)

    monkeypatch.setattr(memory, "max", meet, raising=False)
    leaving.leave()
    assert taken[0] is not next_one.take(50).obj
