"""Files that cannot be read or written: wrong usage; a full disk is a failure."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tests.unit.cli.processes import kafkaproto
from tests.unit.cluster.admin.test_reassignments import LIST, under_way
from tests.unit.cluster.committing import FakeCoordinator

CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "java.pcap"
MOVES = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]}
NO_FILE = "/proc/none.png"  # nobody can make one there, root neither


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--plot", "lag g --plot"),
        ("--html", f"dissect {CAPTURE} --html"),
        ("--rollback", "reassignments begin moves.json --yes --rollback"),
        ("--to", "tokens create --to"),
        ("--write", "tap --listen 0 --to 127.0.0.1:9 --write"),
    ],
)
@pytest.mark.parametrize("file", [NO_FILE, "/nowhere/at/all.png", "."])
def test_a_file_that_cannot_be_written_is_wrong_usage(
    brokers, command, tmp_path, monkeypatch, option, words, file
):
    if option == "--plot":
        pytest.importorskip("matplotlib", reason="the extra [plot]; CI has it")
    monkeypatch.chdir(tmp_path)
    Path("moves.json").write_text(json.dumps(MOVES), "utf-8")
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    brokers.on(LIST, under_way())
    done = command(*words.split(), file)
    assert done.exit_code == 2, done.output
    assert option in done.stderr
    assert file in done.stderr


def test_a_way_back_on_a_full_disk_has_failed(brokers, command, tmp_path, monkeypatch):
    file = tmp_path / "moves.json"
    file.write_text(json.dumps(MOVES), "utf-8")
    brokers.on(LIST, under_way())

    def is_full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", is_full)
    back = tmp_path / "back.json"
    done = command("reassignments", "begin", str(file), "--yes", "--rollback", str(back))
    assert done.exit_code == 1
    assert f"{back} cannot be written: No space left on device" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("dissect", "-"), ("produce", "orders")], ids=" ".join)
def test_standard_input_that_cannot_be_read_is_named(brokers, tmp_path, words):
    """As with `0>file`: it was a traceback."""
    env = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": brokers.bootstrap_servers}
    with (tmp_path / "file").open("wb") as wrong:
        done = kafkaproto(*words, stdin=wrong, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    why = "'standard input': it cannot be read: Bad file descriptor"
    assert done.stderr.startswith(f"Error: option 'FILE' is {why}")


def test_a_capture_that_cannot_be_read_is_named(command):
    done = command("dissect", "/proc/self/mem")
    assert done.exit_code == 2
    assert "'/proc/self/mem': it cannot be read: Input/output error" in done.stderr


def test_lines_before_one_that_cannot_be_read_are_written_and_told(
    brokers, command, tmp_path, monkeypatch
):
    file = tmp_path / "lines"
    file.write_text("a\nb\nhalf", "utf-8")
    read, chunks = os.read, []

    def broken(descriptor, size):
        if os.fstat(descriptor).st_ino != file.stat().st_ino:
            return read(descriptor, size)
        if chunks:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        chunks.append(read(descriptor, size))
        return chunks[0]

    monkeypatch.setattr(os, "read", broken)
    done = command("produce", "orders", str(file), "-p", "1", "--json")
    assert done.exit_code == 2
    assert [row["records"] for row in json.loads(done.stdout)] == [2]
    assert f"'{file}': it cannot be read: Input/output error; lines that" in done.stderr


def test_a_file_with_a_password_is_too(command):
    done = command("users", "set", "u", "--password-file", "/proc/self/mem")
    assert done.exit_code == 2
    assert "'/proc/self/mem': it cannot be read: Input/output error" in done.stderr
