"""The command line with a broker of paper behind it."""

import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.devbroker import devbroker
from pyspark_kafkaproto.devbroker import find_running

pytestmark = pytest.mark.usefixtures("fake_java", "fake_kafka")
MAIN = "from pyspark_kafkaproto.cli import main; main()"


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "data"
    yield folder
    if running := find_running(folder):
        running.stop()


def _command(data_dir, *words):
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", MAIN, "devbroker", *words, "--data-dir", str(data_dir)]
    return subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _run(data_dir, *words):
    with _command(data_dir, *words) as process:
        out, _ = process.communicate(timeout=60)
    return process.returncode, out


def _invoke(data_dir, *words):
    """As `_run`, without the price of a process."""
    return CliRunner().invoke(devbroker, [*words, "--data-dir", str(data_dir)])


@pytest.mark.slow
def test_started_in_the_background_asked_and_stopped(data_dir):
    code, address = _run(data_dir, "start")
    assert code == 0
    assert find_running(data_dir).bootstrap_servers == address.strip()
    again = _invoke(data_dir, "start")
    assert (again.exit_code, again.stdout) == (0, address)  # it is used as it is
    assert address.strip() in _invoke(data_dir, "status", "--json").stdout
    assert _invoke(data_dir, "stop").exit_code == 0
    assert _invoke(data_dir, "status").exit_code == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_foreground_ends_at_a_signal_and_takes_the_broker_along(data_dir, number):
    with _command(data_dir, "start", "--foreground") as process:
        address = process.stdout.readline().strip()
        assert find_running(data_dir).bootstrap_servers == address
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    # Before it, the line for the shell, unless the signal came first.
    assert err.endswith(f"stopped; data kept in {data_dir}\n")
    assert find_running(data_dir) is None


@pytest.mark.slow
def test_the_foreground_can_be_stopped_from_elsewhere(data_dir):
    with _command(data_dir, "start", "--foreground") as process:
        process.stdout.readline()
        assert _invoke(data_dir, "stop").exit_code == 0
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the broker ended by itself" in err
