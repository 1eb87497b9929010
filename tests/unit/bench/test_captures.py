"""Captures that are made to be listed, and what is said about the listing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from captures import bars_of, measured, row
from capturing.dissecting import Dissected
from capturing.traffic import Mix, Written, heartbeat, mixes, write_capture

from pyspark_kafkaproto.capture import Message, open_capture, read_messages

ETHERNET_BYTES = 1514
NAMES = (
    "Fetch of 1 MB",
    "Fetch of 100 kB",
    "Fetch of 16 kB",
    "Produce of 16 kB",
    "small messages alone",
    "all of them",
)


@cache
def by_name() -> dict[str, Mix]:
    """Made when a test needs them, not when tests are collected."""
    return {mix.name: mix for mix in mixes()}


@pytest.mark.slow
def test_each_mix_is_tested() -> None:
    assert tuple(by_name()) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_everything_in_a_capture_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    # Of 1 MB are some: four connections say one each, and each exchange is whole.
    size_bytes = 5_000_000 if "1 MB" in name else 300_000

    written = write_capture(path, by_name()[name], size_bytes)

    with path.open("rb") as stream:
        items = list(read_messages(open_capture(stream)))
    assert all(isinstance(item, Message) and item.body() is not None for item in items)
    assert len(items) == written.messages
    assert written.size_bytes == path.stat().st_size
    assert size_bytes <= written.size_bytes < size_bytes + 1_200_000


@pytest.mark.slow
def test_packets_are_as_a_network_has_them(tmp_path: Path) -> None:
    path = tmp_path / "talk.pcap"
    write_capture(path, by_name()["Fetch of 100 kB"], 1_000_000)
    with path.open("rb") as stream:
        packets = list(open_capture(stream))
    assert max(len(packet.data) for packet in packets) == ETHERNET_BYTES
    assert sorted(packet.time_ns for packet in packets) == [packet.time_ns for packet in packets]
    full = sum(len(packet.data) == ETHERNET_BYTES for packet in packets)
    acks = sum(len(packet.data) == 66 for packet in packets)
    assert full * 0.45 < acks < full * 0.6


def test_the_same_capture_is_made_each_time(tmp_path: Path) -> None:
    mix = by_name()["all of them"]
    for name in ("one", "two"):
        write_capture(tmp_path / name, mix, 100_000)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_sizes_are_those_of_the_names() -> None:
    sizes = {name: len(mix.exchanges[0].response) for name, mix in by_name().items()}
    assert 0.95e6 < sizes["Fetch of 1 MB"] < 1.1e6
    assert 0.9e5 < sizes["Fetch of 100 kB"] < 1.1e5
    assert 15_000 < sizes["Fetch of 16 kB"] < 17_000
    assert 15_000 < len(by_name()["Produce of 16 kB"].exchanges[0].request) < 17_000


@pytest.mark.slow
def test_a_listing_is_measured_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    written, (run,) = measured(Mix("few", [heartbeat()]), 20_000, 1)

    assert run.lines == written.messages
    assert 10_000_000 < run.peak_bytes < 100_000_000
    assert list(tmp_path.iterdir()) == []


def test_bars_are_about_memory_and_where_there_are_records_about_speed() -> None:
    written = Written(10_000, 1_000_000_000)
    runs = [Dissected(seconds, 30_000_000, 10_000) for seconds in (8.0, 9.0, 20.0)]

    memory, listing = bars_of(Mix("x", [heartbeat()]), written, runs)
    (alone,) = bars_of(Mix("x", [heartbeat()], has_records=False), written, runs)

    assert (memory.measured, memory.verdict) == (30.0, "met")
    assert listing.measured == pytest.approx(111.1, abs=0.1)
    assert alone == memory
    shown = row(Mix("x", [heartbeat()]), written, runs)
    assert shown == ("x", "10,000", "111", "1,111", "9.00", "8.00 to 20.00", "30")


def test_a_slow_or_large_listing_misses() -> None:
    runs = [Dissected(10.1, 301_000_000, 1)]
    bars = bars_of(Mix("x", [heartbeat()]), Written(1, 1_000_000_000), runs)
    assert [bar.verdict for bar in bars] == ["MISSED", "MISSED"]
