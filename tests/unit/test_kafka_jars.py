"""tools/kafka_jars.py: jars are fetched whole, also by two at once."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import kafka_jars


@pytest.fixture
def ivy(monkeypatch):
    """In place of Ivy's process; gives the commands so far, and may be told to bring nothing."""
    done = SimpleNamespace(commands=[], brings=True, meanwhile=lambda: None)

    def run(command, **_):
        done.commands.append(command)
        done.meanwhile()
        target = command[command.index("-retrieve") + 1]
        if done.brings:
            place = target.replace("[artifact]", "kafka-clients").replace("[revision]", "4.3.0")
            Path(place.replace("[ext]", "jar")).write_bytes(b"jar")
        return SimpleNamespace(returncode=0, stdout="no such module")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(kafka_jars, "_ivy", lambda: Path("ivy.jar"))
    return done


def caches(ivy):
    return [Path(command[command.index("-cache") + 1]) for command in ivy.commands]


def test_two_that_fetch_at_once_share_no_file_before_it_is_whole(ivy, tmp_path):
    def fetch_too():
        ivy.meanwhile = lambda: None
        kafka_jars._fetch("4.3.0", tmp_path)

    ivy.meanwhile = fetch_too
    kafka_jars._fetch("4.3.0", tmp_path)
    first, second = caches(ivy)
    assert first != second
    assert [path.name for path in tmp_path.iterdir()] == ["kafka-clients-4.3.0.jar"]


def test_what_ivy_did_not_bring_is_an_error_with_its_words(ivy, tmp_path):
    ivy.brings = False
    with pytest.raises(kafka_jars.WrongJar, match=r"kafka-clients 4\.3\.0:\nno such module"):
        kafka_jars._fetch("4.3.0", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_newest_release_goes_into_the_cache_under_its_version(ivy, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    version, path = kafka_jars.fetch_release(None)
    assert (version, path) == ("4.3.0", kafka_jars.cached("4.3.0"))
    assert path.read_bytes() == b"jar"
