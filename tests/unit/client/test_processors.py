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
