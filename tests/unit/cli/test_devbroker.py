import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.cli import devbroker as commands
from pyspark_kafkaproto.cli import root
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.devbroker import RunningBroker
from pyspark_kafkaproto.devbroker.jars import cache_dir
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed

RUNNING = RunningBroker(
    Path("/data"),
    "127.0.0.1:9092",
    "4.3.0",
    (4711,),
    detached=True,
    listeners={"PLAINTEXT": "127.0.0.1:9092"},
)
DEFAULTS = {"version": None, "nodes": 1, "listeners": {}, "advertised": {}, "properties": {}}


@pytest.fixture
def run():
    def invoke(*arguments):
        return CliRunner().invoke(kafkaproto, arguments)

    return invoke


class FakeBroker:
    """Takes the place of DevBroker; remembers how it was made and started."""

    def __init__(self, data_dir, **options):
        self.made = (data_dir, options)

    def start(self, *, detached=False):
        FakeBroker.last = (*self.made, detached)
        FakeBroker.is_up = True
        return self

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        FakeBroker.is_up = False

    @property
    def is_running(self):
        return False


@pytest.fixture
def fake_broker(monkeypatch):
    FakeBroker.is_up = False
    monkeypatch.setattr(commands, "DevBroker", FakeBroker)
    monkeypatch.setattr(commands, "find_running", lambda _: RUNNING if FakeBroker.is_up else None)


def test_version_and_help(run):
    assert run("--version").output == f"kafkaproto, version {__version__}\n"
    for words in ([], ["devbroker"]):
        shown = run(*words, "--help")
        assert shown.exit_code == 0
        assert "Examples:\n" in shown.output


@pytest.mark.usefixtures("fake_broker")
def test_start_prints_the_address_alone_on_standard_output(run, tmp_path):
    done = run("devbroker", "start", "--data-dir", str(tmp_path), "--property", "a.b=c=d")
    assert done.exit_code == 0
    assert done.stdout == "127.0.0.1:9092\n"
    assert "export KAFKA_BOOTSTRAP_SERVERS=127.0.0.1:9092\n" in done.stderr
    assert f"kafkaproto devbroker stop --data-dir {tmp_path}\n" in done.stderr
    expected = DEFAULTS | {"properties": {"a.b": "c=d"}}
    assert FakeBroker.last == (tmp_path, expected, True)


@pytest.mark.usefixtures("fake_broker")
def test_a_folder_of_two_words_is_one_to_the_shell(run, tmp_path):
    folder = tmp_path / "my data"
    done = run("devbroker", "start", "--data-dir", str(folder))
    assert f"kafkaproto devbroker stop --data-dir '{folder}'\n" in done.stderr


@pytest.mark.usefixtures("fake_broker")
def test_start_as_json(run, tmp_path):
    options = ("--nodes", "3", "--kafka-version", "3.9.1", "--json")
    done = run("devbroker", "start", "--data-dir", str(tmp_path), *options)
    assert json.loads(done.stdout) == {
        "running": True,
        "data_dir": str(tmp_path),
        "bootstrap_servers": "127.0.0.1:9092",
        "listeners": {"PLAINTEXT": "127.0.0.1:9092"},
        "kafka_version": "4.3.0",
        "pids": [4711],
    }
    assert FakeBroker.last[1] == DEFAULTS | {"version": "3.9.1", "nodes": 3}


@pytest.mark.usefixtures("fake_broker")
def test_listeners_get_protocols_and_the_addresses_that_clients_are_sent_to(
    run, tmp_path, monkeypatch
):
    both = {"IN": "127.0.0.1:9092", "OUT": "127.0.0.1:9093"}
    running = dataclasses.replace(RUNNING, listeners=both)
    monkeypatch.setattr(commands, "find_running", lambda _: running)
    options = ("--listener", "IN:PLAINTEXT", "--listener", "OUT:SSL@kafka:9999")
    done = run("devbroker", "start", "--data-dir", str(tmp_path), *options)
    assert FakeBroker.last[1] == DEFAULTS | {
        "listeners": {"IN": "PLAINTEXT", "OUT": "SSL"},
        "advertised": {"OUT": "kafka:9999"},
    }
    assert done.stdout == "127.0.0.1:9092\n"
    assert "listener OUT: 127.0.0.1:9093\n" in done.stderr


@pytest.mark.parametrize("text", ["OUT", "OUT:", ":SSL", "OUT:SSL@"])
def test_a_listener_of_another_form_is_a_usage_error(run, text):
    done = run("devbroker", "start", "--listener", text)
    assert done.exit_code == 2
    assert "expected NAME:PROTOCOL" in done.stderr


@pytest.mark.parametrize("pairs", [["a.b"], ["a.b=1", "a.b=2"]])
def test_a_property_without_a_value_or_given_twice_is_a_usage_error(run, pairs):
    done = run("devbroker", "start", *(word for pair in pairs for word in ("--property", pair)))
    assert done.exit_code == 2
    assert "'a.b'" in done.stderr
    assert "expected KEY=VALUE, each KEY once" in done.stderr


@pytest.mark.usefixtures("fake_broker")
def test_foreground_ends_with_the_broker_and_says_where_to_look(run, tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    try:
        done = run("devbroker", "start", "--foreground", "--data-dir", str(tmp_path))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done.exit_code == 1
    assert "the broker ended by itself: see the logs in" in done.stderr
    assert not FakeBroker.is_up


@pytest.mark.usefixtures("fake_broker")
def test_foreground_beside_a_running_broker_is_refused(run, tmp_path):
    FakeBroker.is_up = True
    done = run("devbroker", "start", "--foreground", "--data-dir", str(tmp_path))
    assert done.exit_code == 1
    assert "a broker runs on" in done.stderr


def test_an_error_of_ours_is_a_line_and_no_traceback(run, monkeypatch, tmp_path):
    def fail(self, **options):
        raise DevBrokerFailed("no luck")

    monkeypatch.setattr(commands.DevBroker, "start", fail)
    done = run("devbroker", "start", "--data-dir", str(tmp_path))
    assert (done.exit_code, done.stderr) == (1, "Error: no luck\n")


@pytest.mark.usefixtures("fake_broker")
@pytest.mark.parametrize("command", ["start", "stop", "status"])
@pytest.mark.parametrize("text", ["", " "])
def test_no_name_is_not_the_working_directory(run, command, text):
    """As where a variable of the shell is not set: `--data-dir "$KAFKA_DATA"`."""
    done = run("devbroker", command, "--data-dir", text)
    assert done.exit_code == 2
    assert "'--data-dir': expected a folder, not nothing" in done.stderr


def test_status_says_3_when_nothing_runs(run, tmp_path):
    done = run("devbroker", "status", "--data-dir", str(tmp_path))
    assert (done.exit_code, done.output) == (3, f"no broker runs on {tmp_path}\n")
    done = run("devbroker", "status", "--data-dir", str(tmp_path), "--json")
    assert done.exit_code == 3
    assert json.loads(done.output) == {"running": False, "data_dir": str(tmp_path)}


def test_status_says_0_and_where_it_answers(run, monkeypatch):
    monkeypatch.setattr(commands, "find_running", lambda _: RUNNING)
    done = run("devbroker", "status")
    assert done.exit_code == 0
    for shown in ("127.0.0.1:9092", "4.3.0", "4711", "/data"):
        assert shown in done.output
    assert json.loads(run("devbroker", "status", "--json").output)["pids"] == [4711]


def test_status_in_a_pipe_is_plain_columns(run, monkeypatch):
    long = dataclasses.replace(RUNNING, data_dir=Path("/data") / ("d" * 100))
    monkeypatch.setattr(commands, "find_running", lambda _: long)
    heads, row = run("devbroker", "status").stdout.splitlines()
    assert heads.split() == ["Bootstrap", "servers", "Kafka", "Processes", "Data"]
    assert row.split() == ["127.0.0.1:9092", "4.3.0", "4711", str(long.data_dir)]


def test_stop_without_a_broker_is_no_error(run, tmp_path):
    done = run("devbroker", "stop", "--data-dir", str(tmp_path))
    assert (done.exit_code, done.output) == (0, f"no broker runs on {tmp_path}\n")
    done = run("devbroker", "stop", "--data-dir", str(tmp_path), "--json")
    assert json.loads(done.output) == {"stopped": False, "data_dir": str(tmp_path)}


def test_stop_stops_what_runs(run, monkeypatch, tmp_path):
    stopped = []

    def note(broker):
        stopped.append(broker)

    monkeypatch.setattr(RunningBroker, "stop", note)
    monkeypatch.setattr(commands, "find_running", lambda _: RUNNING)
    done = run("devbroker", "stop", "--data-dir", str(tmp_path))
    assert done.exit_code == 0
    assert stopped == [RUNNING]


def test_fetch_tells_where_kafka_is(run, monkeypatch, tmp_path):
    fetched = []
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(commands, "class_path", lambda *words, **more: fetched.append(words))
    done = run("devbroker", "fetch", "--kafka-version", "3.9.1")
    assert done.output == f"Apache Kafka 3.9.1 is in {tmp_path}/pyspark-kafkaproto\n"
    assert fetched == [("3.9.1",)]


def _python(program):
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
def test_without_click_it_is_one_line_with_what_to_install():
    program = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'click' else real(name, *more)\n"
        "from pyspark_kafkaproto.cli import main; main()"
    )
    done = _python(program)
    assert done.returncode == 1
    needs = "kafkaproto: the command line needs click: pip install 'pyspark-kafkaproto[cli]'\n"
    assert done.stderr == needs


@pytest.mark.slow
def test_ctrl_c_while_it_starts_is_no_traceback():
    program = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pyspark_kafkaproto.cli.root': raise KeyboardInterrupt\n"
        "from pyspark_kafkaproto.cli import main\n"
        "sys.meta_path.insert(0, Pressed()); main()"
    )
    done = _python(program)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.slow
def test_no_command_imports_pyspark():
    program = (
        "import sys; sys.argv = ['kafkaproto', 'devbroker', 'status', '--data-dir', '/nowhere']\n"
        "from pyspark_kafkaproto.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, 'pyspark' in sys.modules)"
    )
    assert _python(program).stdout.splitlines()[-1] == "3 False"


@pytest.mark.usefixtures("fake_broker")
def test_a_user_without_a_home_names_a_folder(run, tmp_path, monkeypatch):
    """As in a container that runs under any number."""

    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    done = run("devbroker", "status")
    assert done.exit_code == 2
    assert "'XDG_STATE_HOME' is missing: this user has no home, so HOME or this" in done.stderr
    done = run("devbroker", "start", "--data-dir", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "127.0.0.1:9092\n")
    assert "--data-dir DIRECTORY" in run("devbroker", "start", "--help").output
    with pytest.raises(ConfigError, match="'XDG_CACHE_HOME' is missing: this user has no home"):
        cache_dir()


@pytest.mark.parametrize(
    "words",
    [["devbroker", "status", "--data-dir", "x"], ["devbroker", "start"], ["compare", "orders"]],
)
def test_a_working_directory_that_was_deleted_is_named(run, tmp_path, monkeypatch, words):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "localhost:1")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = run(*words)
    assert done.exit_code == 1
    assert done.stderr == (
        "Error: the working directory was deleted: change to one that is there (cd)\n"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(BrokenPipeError(errno.EPIPE, "gone"), 141), (OSError(errno.ENOSPC, "no room"), 1)],
)
def test_who_reads_and_a_full_disk_are_told_where_the_working_directory_was_deleted(
    run, tmp_path, monkeypatch, error, code
):
    def fails(*_):
        raise error

    monkeypatch.setattr(commands, "find_running", lambda _: RUNNING)
    monkeypatch.setattr(commands, "table_text", fails)
    monkeypatch.setattr(root, "_leave_output", lambda: None)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = run("devbroker", "status", "--data-dir", str(tmp_path))
    said = {141: "", 1: "Error: standard output cannot be written: no room\n"}
    assert (done.exit_code, done.stderr) == (code, said[code])
