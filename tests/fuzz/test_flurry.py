"""What the flurries count and notice: a law that is broken in one of many inputs."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.records import Columns, NewRecord, _kernel, encode_batch
from tests.fuzz import cost, flurry
from tests.fuzz.campaign import FLURRY
from tests.fuzz.oracle import assert_columns
from tests.fuzz.seeds import SEEDS

BATCH = b"\x09\x00\xff" + encode_batch([NewRecord(b"v", b"k")] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("target", flurry.FLURRIES)
def test_sound_inputs_are_each_read_many_times(target):
    seeds = list(SEEDS[target.removesuffix("-flurry")]())[::5]
    assert [flurry.FLURRIES[target](seed) for seed in seeds if len(seed) > 2].count(FLURRY) > 4


@pytest.mark.parametrize("target", flurry.FLURRIES)
def test_what_is_no_input_is_no_execution(target):
    assert flurry.FLURRIES[target](b"\x01\x01") == 0


def test_an_input_is_changed_in_the_same_ways_again():
    first, again = list(flurry.changed(BATCH)), list(flurry.changed(BATCH))
    assert first == again
    assert len({bytes(one) for one in first}) > FLURRY * 3 // 4
    assert all(one[:61] == BATCH[:61] for one in flurry.changed(BATCH, 61, may_resize=False))


def counting_decode(calls, then=lambda one: None):
    def decode(one, **options):
        calls.append(bytes(one))
        then(len(calls))
        return _kernel.decode(one, **options)

    return SimpleNamespace(decode=decode)


def test_an_execution_is_a_call_of_the_decoder(monkeypatch):
    calls = []
    monkeypatch.setattr(flurry, "_kernel", counting_decode(calls))
    assert flurry.batch_flurry(BATCH) == len(calls) == FLURRY


def test_another_exception_is_a_find_and_says_which_input(monkeypatch, capsys):
    def fail(count):
        if count == 9:
            raise IndexError("not the law's")

    calls = []
    monkeypatch.setattr(flurry, "_kernel", counting_decode(calls, fail))
    with pytest.raises(IndexError, match="not the law's"):
        flurry.batch_flurry(BATCH)
    assert f"changed to {calls[8].hex()}" in capsys.readouterr().err


@pytest.mark.slow
def test_one_slow_input_of_many_is_found(monkeypatch):
    def work(count):
        if count % FLURRY == 9:
            spin(0.05)

    monkeypatch.setattr(flurry, "_kernel", counting_decode([], work))
    monkeypatch.setattr(cost, "allowed_s", lambda _: 0.04)
    with pytest.raises(AssertionError, match=r"s for \d+ bytes: [0-9a-f]+$"):
        flurry.batch_flurry(BATCH)


@pytest.mark.slow
def test_inputs_that_are_slow_together_alone_are_no_find(monkeypatch):
    calls = []
    monkeypatch.setattr(flurry, "_kernel", counting_decode(calls, lambda _: spin(0.002)))
    monkeypatch.setattr(cost, "allowed_s", lambda _: 0.04)
    assert flurry.batch_flurry(BATCH) == FLURRY
    assert len(calls) == 2 * FLURRY - 1  # each was looked at but the last, which is read apart


def spin(seconds):
    """Take processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


# In a process of its own: a peak is a process's, and other tests have had theirs. A process begins
# with that of the one that started it, so a small shell does.
TAKES_MEMORY = """
from tests.fuzz import flurry, test_flurry

calls, taken = [], []
take = lambda count: taken.append(b"x" * (96 << 20)) if count == 5 else None
flurry._kernel = test_flurry.counting_decode(calls, take)
flurry.batch_flurry(test_flurry.BATCH)
"""


@pytest.mark.slow
def test_memory_that_inputs_take_is_found():
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1"; exit $?', sys.executable, TAKES_MEMORY],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "TooDear: the process grew by" in done.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": 4},
        {"offsets": bytes(23)},
        {"key": SimpleNamespace(offsets=bytes(16), data=b"kkk", validity=None)},
        {"value": SimpleNamespace(offsets=bytes(12), data=b"", validity=None)},
        {"value": SimpleNamespace(offsets=bytes(16), data=b"", validity=b"12")},
        {"decompressed_bytes": -80},
    ],
)
def test_columns_that_do_not_fit_each_other_are_found(wrong):
    block = BATCH[3:]
    decoded = _kernel.decode(block, start=0, stop=9, wanted=Columns.ALL)
    assert_columns(decoded, Columns.ALL, len(block))
    names = ("rows", "offsets", "timestamps", "timestamp_types", "key", "value", "headers",
             "decompressed_bytes")  # fmt: skip
    facts = {name: getattr(decoded, name) for name in names} | wrong
    with pytest.raises(AssertionError):
        assert_columns(SimpleNamespace(**facts), Columns.ALL, 0)
