"""A Kafka of paper: a fake java that behaves as broker, formatter or tool, at once.

What the embedded broker does with processes, ports, files and logs is tested with it in
milliseconds; tests/broker has the same with the real one.
"""

from __future__ import annotations

import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyspark_kafkaproto.devbroker.processes import ProcessId

_PROGRAM = Path(__file__).with_name("fake_java.py")


@dataclass(frozen=True)
class FakeJava:
    """The fake, how it is told what to do, and what it was called with."""

    home: Path

    def behave(self, mode: str) -> None:
        """`ok`, `crash`, `silent` (never ready), `stubborn` (ignores SIGTERM) …."""
        (self.home / "mode").write_text(mode)

    def calls(self) -> list[str]:
        """One line per call, its arguments without options and class path."""
        log = self.home / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def hanging(self) -> ProcessId | None:
        """The process of a call that never ends; None while there is none."""
        file = self.home / "hanging"
        text = file.read_text() if file.exists() else ""
        return ProcessId.of(int(text)) if text else None


@pytest.fixture(scope="session")
def fake_java_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("fake-java")
    (home / "bin").mkdir()
    program = home / "bin" / "java"
    program.write_text(f"#!{sys.executable} -IS\n{_PROGRAM.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return home


@pytest.fixture
def fake_java(fake_java_home, monkeypatch):
    for told in ("mode", "calls", "hanging"):
        (fake_java_home / told).unlink(missing_ok=True)
    monkeypatch.setenv("JAVA_HOME", str(fake_java_home))
    return FakeJava(fake_java_home)


@pytest.fixture
def fake_kafka(tmp_path, monkeypatch):
    """KAFKA_HOME of a release 4.3.0 that holds nothing but the name of its jar."""
    home = tmp_path / "fake-kafka"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / "kafka_2.13-4.3.0.jar").touch()
    monkeypatch.setenv("KAFKA_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def clean_environment(tmp_path, monkeypatch):
    """Nothing of the machine's own settings, and no cache of the user's."""
    names = ("KAFKA_HOME", "KAFKAPROTO_IVY_SETTINGS", "KAFKAPROTO_BROKER_PROPERTIES")
    proxies = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    for name in (*names, *proxies, "KAFKA_HEAP_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
