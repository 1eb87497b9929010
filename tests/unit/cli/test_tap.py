"""`kafkaproto tap` as users call it."""

import ctypes
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import KafkaProtoError
from tests.fake_broker import FakeCluster
from tests.unit.capture.wire import read
from tests.unit.cli.processes import MAIN, command, kafkaproto

WITHOUT_ROOM = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
{MAIN}
"""


@pytest.fixture
def broker():
    with FakeCluster({"orders": 1}) as fake:
        yield fake.bootstrap_servers


@contextmanager
def tapping(broker, path, code=MAIN):
    """A tap of its own process, and the address at which it waits for clients."""
    words = command("tap", "--listen", 0, "--to", broker, "-w", path, code=code)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stderr.readline().split()[0]
        finally:
            process.kill()


def end(process):
    """What a tap says when Ctrl-C ends it."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=30)[1]


def talk(address, **properties):
    with KafkaCluster({"bootstrap.servers": address, **properties}) as cluster:
        cluster.get_partitions(["orders"])


def refused(*arguments):
    """The error of a tap that does not begin."""
    done = kafkaproto("tap", *arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.slow
def test_it_records_until_it_is_told_to_end(broker, tmp_path):
    path = tmp_path / "what was said.pcapng"
    with tapping(broker, path) as (process, address):
        talk(address)
        assert f"kafkaproto dissect '{path}'" in end(process)
        assert process.returncode == 0
    assert path.stat().st_mode & 0o077 == 0
    assert {message.api for message in read(path.read_bytes())[0]} == {"ApiVersions", "Metadata"}


@pytest.mark.slow
def test_a_full_disk_ends_the_recording_and_cuts_nobody_off(broker, tmp_path):
    path = tmp_path / "talk.pcapng"
    with tapping(broker, path, WITHOUT_ROOM) as (process, address):
        for _ in range(3):
            talk(address)
        assert process.poll() is None
        said = end(process)
    assert process.returncode == 1
    assert said.count("File too large") == 1
    assert str(path) in said
    assert "Traceback" not in said
    messages, notes = read(path.read_bytes())
    assert messages
    assert not any("ends early" in note.text for note in notes)


@pytest.mark.slow
def test_a_disk_that_takes_nothing_is_said_before_clients_come():
    done = kafkaproto("tap", "--listen", 0, "--to", "localhost:1", "-w", "/dev/full")
    assert done.returncode == 1
    assert "/dev/full" in done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="signals to one thread, by Linux's own call")
@pytest.mark.slow
def test_ctrl_c_ends_it_whichever_thread_the_system_tells(broker, tmp_path):
    path = tmp_path / "talk.pcapng"
    with (
        tapping(broker, path) as (process, address),
        KafkaCluster({"bootstrap.servers": address}) as cluster,
    ):
        cluster.get_partitions(["orders"])
        tasks = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        other = max(task for task in tasks if task != process.pid)
        assert ctypes.CDLL(None).tgkill(process.pid, other, signal.SIGINT) == 0
        assert f"kafkaproto dissect {path}" in process.communicate(timeout=10)[1]
    assert process.returncode == 0
    assert not any("ends early" in note.text for note in read(path.read_bytes())[1])


@pytest.mark.slow
def test_it_ends_when_nobody_reads_the_recording(broker):
    words = command("tap", "--listen", 0, "--to", broker, "-w", "-")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True) as process:
        try:
            address = process.stderr.readline().split()[0]
            process.stdout.close()
            with suppress(KafkaProtoError):
                talk(address, **{"default.api.timeout.ms": 300})
            assert process.wait(timeout=10) == 141
            assert process.stderr.read() == ""
        finally:
            process.kill()


@pytest.mark.slow
def test_a_file_that_cannot_be_made_is_named(tmp_path):
    path = tmp_path / "no" / "talk.pcapng"
    assert str(path) in refused("--listen", 0, "--to", "localhost:1", "-w", path)


@pytest.mark.slow
def test_a_tap_that_cannot_listen_leaves_the_file_alone(tmp_path):
    path = tmp_path / "talk.pcapng"
    path.write_bytes(b"an older recording")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port) in refused("--listen", port, "--to", "localhost:1", "-w", path)
        absent = tmp_path / "absent.pcapng"
        refused("--listen", port, "--to", "localhost:1", "-w", absent)
    assert path.read_bytes() == b"an older recording"
    assert not absent.exists()


@pytest.mark.slow
def test_a_file_that_another_tap_writes_is_refused(broker, tmp_path):
    path = tmp_path / "talk.pcapng"
    with tapping(broker, path) as (process, address):
        talk(address)
        said = refused("--listen", 0, "--to", broker, "-w", path)
        assert str(path) in said
        assert "another tap" in said
        talk(address)
        end(process)
    messages, notes = read(path.read_bytes())
    assert [message.api for message in messages] == ["ApiVersions"] * 2 + ["Metadata"] * 2 + [
        "ApiVersions"
    ] * 2 + ["Metadata"] * 2
    assert notes == []


@pytest.mark.slow
def test_an_older_recording_is_replaced(broker, tmp_path):
    path = tmp_path / "talk.pcapng"
    path.write_bytes(b"an older recording" * 10_000)
    path.chmod(0o644)
    with tapping(broker, path) as (process, _):
        end(process)
    assert path.stat().st_mode & 0o077 == 0
    assert path.stat().st_size == 60
