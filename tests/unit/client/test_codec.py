"""A slow codec is said, once, whoever reads or writes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from threading import Event

import pytest

from pyspark_kafkaproto.client import codec
from pyspark_kafkaproto.spark import shipping

_WHO = {
    "reader": "list(read_batches(ReadTask(()), config, ReadSettings(), schema_for([])))",
    "producer": "Producer({'bootstrap.servers': 'localhost:1'})",
    "member": "Consumer({'bootstrap.servers': 'localhost:1', 'group.id': 'g'}, {'orders'})",
}


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    monkeypatch.setattr(codec, "_is_said", Event())


@pytest.mark.parametrize("implementation", ["pure", "kernel"])
def test_a_decoder_in_plain_python_is_said_once_with_what_it_costs(
    monkeypatch, caplog, implementation
):
    monkeypatch.setattr(codec, "IMPLEMENTATION", implementation)
    monkeypatch.setattr(codec, "WHY_PURE", "no kernel was built")
    monkeypatch.setattr(metadata, "distributions", lambda name: [])
    for _ in range(2):
        codec.say_which_codec()
    said = [text for text in caplog.messages if "150 times slower" in text]
    assert len(said) == (implementation == "pure")
    assert all("no kernel was built" in text and "gcc" in text for text in said)


@pytest.mark.parametrize(("is_slow", "times"), [(True, 0), (False, 1)])
def test_a_worker_does_not_say_again_what_its_driver_has_said(monkeypatch, caplog, is_slow, times):
    monkeypatch.setattr(codec, "IMPLEMENTATION", "pure")
    monkeypatch.setattr(shipping, "is_slow", lambda: is_slow)
    make, parts = shipping.shipped(tuple, "ab")
    assert make(*parts) == ("a", "b")
    codec.say_which_codec()
    assert sum("150 times slower" in text for text in caplog.messages) == times


def test_a_checkout_that_hides_what_is_installed_is_named(monkeypatch, caplog, tmp_path):
    records = tmp_path / "installed" / "pyspark_kafkaproto" / "records"
    records.mkdir(parents=True)
    (records / "_kernel.so").touch()
    about = tmp_path / "installed" / "pyspark_kafkaproto-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: pyspark-kafkaproto\n")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    monkeypatch.setattr(codec, "_HERE", tmp_path / "checkout" / "pyspark_kafkaproto")
    monkeypatch.setattr(codec, "IMPLEMENTATION", "pure")
    monkeypatch.setattr(codec, "WHY_PURE", "it was not built")
    codec.say_which_codec()
    (said,) = caplog.messages
    assert f"in {tmp_path / 'installed'}, has it" in said
    assert f"the checkout in {tmp_path / 'checkout'}: start elsewhere" in said
    assert "gcc" not in said


@pytest.mark.slow
@pytest.mark.parametrize("who", _WHO)
def test_whoever_reads_or_writes_outside_spark_is_told(who):
    program = (
        "from pyspark_kafkaproto.arrow import schema_for\n"
        "from pyspark_kafkaproto.client import Producer, ReadSettings, ReadTask, read_batches\n"
        "from pyspark_kafkaproto.client.consumer import Consumer\n"
        "from pyspark_kafkaproto.net import ClientConfig\n"
        "config = ClientConfig.parse({'bootstrap.servers': 'localhost:1'})\n"
        f"{_WHO[who]}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"KAFKAPROTO_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("150 times slower") == 1
