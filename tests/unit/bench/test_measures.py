from __future__ import annotations

import argparse

import pytest
from reading.measures import (
    ALL,
    PLAN,
    SPARK_CEILING,
    SPARK_OURS,
    SPARK_OURS_CONF,
    SPARK_RIVAL,
    SPARK_VALUE,
    Run,
    measures_of,
    parse_consumer_performance,
    parts_of_names,
)
from reading.processes import RunFailed
from reading.workloads import Workload

_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
_ROW = (
    "2024-01-01 10:00:00:000, 2024-01-01 10:00:05:000, 95.3674, 19.0, 1000100, 200020.0, "
    "3500, 1500, 63.6, 666733.3"
)
_NARROW = Workload(4_000_000, 100, "none")
_WIDE = Workload(100_000, 100, "none", 1000)


def _names(workload: Workload, *only: str, slow_rival: bool = False) -> list[str]:
    return [measure.name for measure in measures_of(workload, only, slow_rival=slow_rival)]


def test_the_tools_time_is_that_of_fetching() -> None:
    assert parse_consumer_performance(f"{_HEADER}\n{_ROW}\n") == Run(1.5, 1_000_100)


@pytest.mark.parametrize("printed", ["", _HEADER, f"{_HEADER}\n1, 2\n"])
def test_a_tool_without_a_result_is_a_failure(printed: str) -> None:
    with pytest.raises(RunFailed, match="printed no result"):
        parse_consumer_performance(printed)


def test_every_measure_but_planning_runs_on_few_partitions() -> None:
    assert _names(_NARROW) == [measure.name for measure in ALL if measure.name != PLAN]


def test_many_partitions_are_read_by_ours_and_by_the_rival_if_asked() -> None:
    assert _names(_WIDE) == [SPARK_OURS, SPARK_OURS_CONF, PLAN]
    assert _names(_WIDE, slow_rival=True) == [SPARK_OURS, SPARK_OURS_CONF, SPARK_RIVAL, PLAN]


def test_only_takes_parts_of_names() -> None:
    assert _names(_NARROW, "kcat", "bare") == ["bare socket", "kcat"]


def test_a_name_with_a_comma_is_one() -> None:
    assert parts_of_names("kcat,bare") == ["kcat", "bare"]
    parts = parts_of_names("Spark, ours,Spark, engine's")
    assert _names(_NARROW, *parts) == [SPARK_OURS, SPARK_CEILING, SPARK_VALUE]


@pytest.mark.parametrize("text", ["zzz", "kcat,zzz"])
def test_a_part_of_no_name_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"'zzz': they are .*; kcat;"):
        parts_of_names(text)
