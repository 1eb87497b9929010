"""Figures of running queries into tables and bars."""

from __future__ import annotations

from typing import Any

import pytest
from streaming import measures
from streaming.measures import FLOOR, OURS, RIVAL

OPTIONS: dict[str, dict[str, str]] = {OURS: {}, FLOOR: {}, RIVAL: {}}


class FakeApp:
    """Answers as an application would whose queries take what `takes` says."""

    def __init__(self, takes: dict[str, Any]) -> None:
        self._takes = takes

    def ask(self, do: str, source: str = "", options: object = None) -> Any:
        del options
        return self._takes[source] if do == "run" else {}


def batches(whole_ms: int, add_ms: int) -> dict[str, Any]:
    return {
        "seconds": whole_ms / 100,
        "batches": [{"rows": 10, "ms": {"triggerExecution": whole_ms, "addBatch": add_ms}}] * 9,
    }


def test_micro_batches_are_compared_with_the_floor() -> None:
    app: Any = FakeApp({OURS: batches(120, 80), FLOOR: batches(100, 70), RIVAL: batches(150, 99)})

    table, (bar,) = measures.micro_batches(app, OPTIONS, rounds=1)

    assert bar.measured == pytest.approx(1.2)
    assert bar.verdict == "MISSED"
    ours = next(line for line in table.splitlines() if "| ours" in line)
    assert [cell.strip() for cell in ours.split("|")[2:-1]] == ["120", *"000", "80", *"00", "40"]


def test_catch_up_counts_what_was_read() -> None:
    app: Any = FakeApp({OURS: batches(100, 1), RIVAL: batches(300, 1)})
    both = {source: OPTIONS[source] for source in (OURS, RIVAL)}

    _, (bar,) = measures.catch_up(app, both, records=90, rounds=2)

    assert (bar.measured, bar.verdict) == (3.0, "met")
    with pytest.raises(RuntimeError, match="read 90 records of 91"):
        measures.catch_up(app, both, records=91, rounds=1)


def test_soak_compares_the_second_minute_with_the_last() -> None:
    def sample(size_mib: int, sockets: int) -> dict[str, dict[str, float]]:
        own = {"rss_bytes": size_mib * 2.0**20, "sockets": float(sockets)}
        return dict.fromkeys(("JVM", "source", "workers"), own)

    samples = [sample(10, 9)] * 6 + [sample(50, 3)] * 6 + [sample(61, 4)] * 6

    _, bars = measures._flatness(samples)

    assert {bar.subject: bar.verdict for bar in bars} == {
        "soak: more sockets in JVM": "MISSED",
        "soak: growth of source": "MISSED",
        "soak: more sockets in source": "MISSED",
        "soak: growth of workers": "MISSED",
        "soak: more sockets in workers": "MISSED",
    }
