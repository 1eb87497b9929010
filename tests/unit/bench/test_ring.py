"""What remembering the last frames costs: pairs of readings in one process."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from reading import ring
from reading.bars import ring_bar
from reading.processes import RunFailed
from reading.ring import cost, read_pairs, row

from tests.fake_broker import FakeCluster


def test_the_cost_is_the_median_of_the_pairs() -> None:
    pairs = [(1.01, 1.0), (2.06, 2.0), (5.0, 1.0)]

    assert cost(pairs) == pytest.approx(0.03)
    assert row("100 B none", pairs) == ("100 B none", "2,060.0", "1,000.0", "+3.00", "3")


def test_two_percent_are_allowed() -> None:
    assert ring_bar("w", 0.02).is_met
    assert ring_bar("w", -0.01).is_met
    assert ring_bar("w", 0.0201).shown()[1:] == ("≤ 2.00 %", "2.010 %", "MISSED")


@pytest.mark.slow
def test_readings_alternate_with_and_without_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real = ring._seconds

    def timed(properties: Mapping[str, str], topic: str, records: int) -> float:
        told.append(properties["capture.errors"])
        assert real(properties, topic, records) > 0
        return 2.0 if told[-1] == "true" else 1.0

    monkeypatch.setattr(ring, "_seconds", timed)
    with FakeCluster({"orders": 1}) as fake:
        fake.logs["orders", 0].append(b"1", b"2", b"3")
        properties = {"bootstrap.servers": fake.bootstrap_servers}
        pairs = read_pairs(properties, "orders", 3, 2)
        with pytest.raises(RunFailed, match="read 3 records of 4"):
            read_pairs(properties, "orders", 4, 1)

    assert told == ["false", "true", "true", "false", "false", "true", "false"]
    assert pairs == [(2.0, 1.0)] * 2
