from __future__ import annotations

import json
import zlib

import pytest
from reading.workloads import CODECS, Workload, payload_lines, plan


@pytest.mark.slow
@pytest.mark.parametrize("value_bytes", [100, 10_000])
def test_values_are_json_of_exactly_the_size(value_bytes: int) -> None:
    lines = payload_lines(value_bytes)

    assert {len(line.encode()) for line in lines} == {value_bytes}
    assert all(json.loads(line) for line in lines[:100])


@pytest.mark.slow
def test_values_are_the_same_each_time_and_seldom_alike() -> None:
    lines = payload_lines(100)

    assert lines == payload_lines(100)
    assert len(set(lines)) == len(lines) == 50_000


@pytest.mark.slow
def test_values_compress_as_events_do() -> None:
    sample = "".join(payload_lines(100)[:160]).encode()  # what a batch of Kafka's default size has

    assert 2 < len(sample) / len(zlib.compress(sample)) < 5


def test_the_plan_has_every_codec_and_a_fortieth_of_large_values() -> None:
    planned = list(plan(4_000_000, CODECS, 1000, ("small", "large", "wide")))

    assert [(workload.name, workload.records) for workload in planned] == [
        ("100 B none", 4_000_000),
        ("100 B gzip", 4_000_000),
        ("100 B snappy", 4_000_000),
        ("100 B lz4", 4_000_000),
        ("100 B zstd", 4_000_000),
        ("10 kB none", 100_000),
        ("10 kB zstd", 100_000),
        ("1,000 partitions", 100_000),
    ]


def test_what_differs_lies_in_another_topic() -> None:
    topics = {
        Workload(records, value_bytes, codec, partitions).topic
        for records in (1, 2)
        for value_bytes in (100, 10_000)
        for codec in CODECS
        for partitions in (4, 1000)
    }

    assert len(topics) == 40
