from __future__ import annotations

import pytest
from reading import measures as m
from reading.bars import Bar, growth_bar, memory_bar, rate_bars, wide_bars


def test_a_ratio_is_ours_by_the_other() -> None:
    rates = {("100 B lz4", m.SPARK_OURS): 79.9, ("100 B lz4", m.SPARK_CEILING): 100.0}

    (bar,) = rate_bars(rates)

    assert bar.measured == pytest.approx(0.799)
    assert bar.verdict == "MISSED"


def test_nothing_is_rounded_before_the_verdict() -> None:
    assert Bar("x", 0.8, 0.7999999).verdict == "MISSED"
    assert Bar("x", 0.8, 0.8).verdict == "met"
    assert Bar("x", 3.0, 3.0000001, "s", is_limit=True).verdict == "MISSED"


@pytest.mark.parametrize(
    ("workload", "ours", "other", "needed"),
    [
        ("100 B none", m.SPARK_OURS, m.SPARK_CEILING, 0.80),
        ("100 B gzip", m.SPARK_OURS, m.SPARK_CEILING, 0.65),
        ("100 B snappy", m.SPARK_OURS, m.SPARK_CEILING, 0.75),
        ("10 kB none", m.SPARK_OURS, m.SPARK_CEILING, 0.70),
        ("10 kB zstd", m.SPARK_OURS, m.SPARK_CEILING, 0.50),
        ("100 B zstd", m.SPARK_OURS_CONF, m.SPARK_RIVAL, 3.0),
        ("100 B gzip", m.SPARK_OURS_CONF, m.SPARK_RIVAL, 2.5),
        ("10 kB zstd", m.SPARK_OURS_CONF, m.SPARK_RIVAL, 2.5),
        ("100 B none", m.CLIENT_OURS, m.CONSUMER_PERFORMANCE, 4.0),
        ("100 B none", m.CLIENT_OURS, m.CONFLUENT, 10.0),
        ("100 B none", m.CLIENT_OURS, m.BARE_SOCKET, 0.8),
    ],
)
def test_each_pair_has_its_own_bar(workload: str, ours: str, other: str, needed: float) -> None:
    (bar,) = rate_bars({(workload, ours): 1.0, (workload, other): 1.0})

    assert bar.needed == needed


def test_a_figure_that_is_not_there_gives_no_bar() -> None:
    assert list(rate_bars({("100 B none", m.SPARK_OURS): 1.0})) == []


def test_the_bare_socket_is_no_bar_for_compressed_topics() -> None:
    rates = {("100 B zstd", m.CLIENT_OURS): 1.0, ("100 B zstd", m.BARE_SOCKET): 9.0}

    assert list(rate_bars(rates)) == []


def test_many_partitions_are_judged_by_seconds() -> None:
    whole, planning = wide_bars("1,000 partitions", {m.SPARK_OURS: 2.9, m.PLAN: 1.1})

    assert (whole.needed, whole.verdict) == (3.0, "met")
    assert (planning.needed, planning.verdict) == (1.0, "MISSED")


def test_memory_may_be_four_times_the_larger_of_block_and_batch() -> None:
    allowed = 4 * 2_000_000 + 32_000_000

    assert memory_bar("w", allowed, block_bytes=2_000_000, batch_bytes=16_384).is_met
    assert memory_bar("w", allowed, block_bytes=16_384, batch_bytes=2_000_000).is_met
    assert not memory_bar("w", allowed + 1, block_bytes=2_000_000, batch_bytes=0).is_met


def test_growth_may_be_ten_mb() -> None:
    assert growth_bar("w", 10_000_000).is_met
    assert not growth_bar("w", 10_000_001).is_met


def test_a_row_says_all_of_it() -> None:
    shown = Bar("100 B none: a / b", 3.0, 2.9996).shown()

    assert shown == ("100 B none: a / b", "≥ 3.00 x", "3.000 x", "MISSED")
