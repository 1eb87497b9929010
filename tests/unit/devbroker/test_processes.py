import os
import signal
import subprocess
import sys

import pytest

from pyspark_kafkaproto.devbroker import processes
from pyspark_kafkaproto.devbroker.processes import ProcessId, start_watchdog

SLEEP = [sys.executable, "-IS", "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-ISu",
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('on'); time.sleep(60)",
]


@pytest.fixture
def start():
    started = []

    def run(command, **options):
        started.append(subprocess.Popen(command, **options))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.fixture(params=["proc", "ps"])
def by_either_way(request, monkeypatch, tmp_path):
    """/proc where there is one, `ps` elsewhere."""
    if request.param == "ps":
        monkeypatch.setattr(processes, "_PROC", tmp_path / "no-proc")


@pytest.mark.usefixtures("by_either_way")
def test_a_process_is_known_by_its_number_and_its_beginning(start):
    process = start(SLEEP)
    found = ProcessId.of(process.pid)
    assert found.is_alive
    assert not ProcessId(process.pid, "another time").is_alive
    process.kill()
    # It is not reaped yet: a zombie has ended.
    assert found.wait(10)
    assert ProcessId.of(process.pid) is None


def test_a_process_that_was_never_there_is_none():
    assert ProcessId.of(2**22 + 1) is None


@pytest.mark.slow
def test_a_signal_to_a_process_that_ended_harms_nobody(start):
    process = start(SLEEP)
    ProcessId(process.pid, "an earlier one with its number").signal(signal.SIGKILL)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)


@pytest.mark.slow
def test_ending_asks_first_and_kills_then(start):
    process = start(STUBBORN, stdout=subprocess.PIPE)
    process.stdout.readline()
    ProcessId.of(process.pid).end(0.2)
    assert process.wait(10) == -signal.SIGKILL


def test_ending_asks_and_that_is_enough(start):
    process = start(SLEEP)
    ProcessId.of(process.pid).end(10)
    assert process.wait(10) == -signal.SIGTERM


@pytest.mark.slow
def test_the_watchdog_ends_with_what_it_watches(start):
    process = start(SLEEP)
    watchdog = start_watchdog(process.pid)
    process.kill()
    process.wait()
    assert watchdog.wait(10) == 0


def started(start, program):
    """A process that runs `program`, and the one whose number it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    starter = start([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment)
    return starter, ProcessId.of(int(starter.stdout.readline()))


@pytest.mark.slow
def test_the_watchdog_ends_a_process_whose_starter_was_killed(start):
    program = (
        "import subprocess, sys, time\n"
        "from pyspark_kafkaproto.devbroker.processes import start_watchdog\n"
        f"child = subprocess.Popen({SLEEP!r})\n"
        "start_watchdog(child.pid)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    starter, orphan = started(start, program)
    starter.kill()
    starter.wait()
    assert orphan.wait(10)


@pytest.mark.slow
def test_a_process_can_end_with_the_one_that_started_it(start):
    """A driver whose spark-submit was killed would go on, and keep what the next one needs."""
    program = (
        "import time\n"
        "from pyspark_kafkaproto.devbroker.processes import end_with_starter\n"
        "end_with_starter()\n"
        "print('on', flush=True)\n"
        "time.sleep(60)\n"
    )
    starting = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {program!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    starter, orphan = started(start, starting)
    assert orphan.is_alive
    starter.kill()
    starter.wait()
    assert orphan.wait(10)
