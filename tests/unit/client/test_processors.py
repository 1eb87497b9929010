"""How many processors a process may use."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client import processors


@pytest.mark.parametrize("count", [1, 3])
def test_those_that_the_system_lets_it_run_on(monkeypatch, count):
    given = set(range(count))
    monkeypatch.setattr(processors.os, "sched_getaffinity", lambda _: given, raising=False)
    assert processors.processors() == count


@pytest.mark.parametrize(("count", "said"), [(4, 4), (None, 1)])
def test_all_where_the_system_lets_it_run_anywhere(monkeypatch, count, said):
    monkeypatch.delattr(processors.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(processors.os, "cpu_count", lambda: count)
    assert processors.processors() == said


@pytest.mark.parametrize(
    ("is_wanted", "count", "threads"),
    [(None, 1, 0), (None, 2, 1), (None, 64, 63), (False, 64, 0), (True, 1, 1), (True, 3, 2)],
)
def test_threads_beside_the_callers(monkeypatch, is_wanted, count, threads):
    monkeypatch.setattr(processors, "processors", lambda: count)
    assert processors.spare_threads(is_wanted) == threads
