"""`kafkaproto compare` runs its job in a process of its own, with what it was told."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli import compare as command
from pyspark_kafkaproto.cli.root import kafkaproto


@pytest.fixture
def ran(monkeypatch):
    """What was run, with its standard input; it ends with exit code 3."""
    calls = []

    def run(words, told):
        calls.append((words, json.loads(told)))
        return 3

    monkeypatch.setattr(command, "_run", run)
    return calls


def invoke(*words):
    return CliRunner().invoke(kafkaproto, ["compare", *words])


def test_arguments_are_handed_on_and_the_exit_code_back(ran):
    done = invoke("-b", "b:9092", "x", "y", "--option", "minPartitions=5", "--runs", "2", "--json")
    assert done.exit_code == 3, done.output
    ((words, options),) = ran
    assert words == [
        *(sys.executable, "-m", "pyspark_kafkaproto.jobs.compare", "--options", "-"),
        *("--master", "local[*]", "--runs", "2", "--json"),
    ]
    assert options == {
        "kafka.bootstrap.servers": "b:9092",
        "subscribe": "x,y",
        "minPartitions": "5",
    }


def test_secrets_are_no_arguments_of_the_process(ran):
    invoke("-b", "b:9092", "-X", "ssl.key.password=hunter2", "x")
    ((words, options),) = ran
    assert options["kafka.ssl.key.password"] == "hunter2"
    assert "hunter2" not in " ".join(words)


def test_option_without_a_value_is_wrong_usage(ran):
    done = invoke("-b", "b:9092", "--option", "minPartitions")
    assert (done.exit_code, ran) == (2, [])
    assert "KEY=VALUE" in done.output


@pytest.mark.parametrize("name", ["subscribe", "Subscribe"])
def test_topics_are_not_named_twice(ran, name):
    done = invoke("-b", "b:9092", "x", "--option", f"{name}=y")
    assert done.exit_code == 2
    assert "name them once" in done.output
    assert ran == []


@pytest.mark.parametrize("name", ["minPartitions", "minpartitions"])
def test_an_option_is_not_named_twice(ran, name):
    """One of the two would be passed over without a word."""
    done = invoke("-b", "b:9092", "x", "--option", "minPartitions=1", "--option", f"{name}=2")
    assert (done.exit_code, ran) == (2, [])
    assert "each KEY once" in done.output


def test_spark_that_is_not_there_is_said_in_a_line(monkeypatch, ran):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = invoke("-b", "b:9092", "x")
    assert (done.exit_code, ran) == (1, [])
    assert "pip install 'pyspark-kafkaproto[spark]'" in done.output


# Tells its own process's number and that of a child that heeds no Ctrl-C, as Spark's JVM.
_JOB = """
import os, signal, subprocess, sys
lead = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "60"], preexec_fn=lead)
print(sys.stdin.read(), os.getpid(), child.pid, flush=True)
child.wait()
"""
_RUN = f"""
import sys
from pyspark_kafkaproto.cli.compare import _run
sys.exit(_run([sys.executable, "-c", {_JOB!r}], "told"))
"""


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind():
    with subprocess.Popen([sys.executable, "-c", _RUN], stdout=subprocess.PIPE, text=True) as run:
        told, *numbers = run.stdout.readline().split()
        run.send_signal(signal.SIGINT)
        run.wait(10)
    assert told == "told"
    assert run.returncode not in {0, None}
    deadline = time.monotonic() + 10
    for number in map(int, numbers):
        while is_alive(number):
            assert time.monotonic() < deadline, number
            time.sleep(0.01)


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_job():
    assert command._run([sys.executable, "-c", "import sys; sys.exit(len(input()))"], "abc") == 3
