import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.root import kafkaproto
from tests.fake_broker import FakeCluster


@pytest.fixture
def brokers():
    with FakeCluster({"orders": 2}) as fake:
        yield fake


@pytest.fixture
def run(brokers):
    def invoke(*arguments):
        servers = ("-b", brokers.bootstrap_servers)
        return CliRunner().invoke(kafkaproto, ["loadtest", *servers, *arguments])

    return invoke


@pytest.mark.slow
def test_the_result_is_a_table_or_json(run):
    done = run("orders", "--seconds", "0.05", "--size", "100")
    assert done.exit_code == 0, done.output
    assert "latency p99" in done.stdout
    found = json.loads(run("orders", "--seconds", "0.05", "--json").stdout)
    assert found["is_sound"]
    assert found["valid"] == found["acknowledged"] > 0


@pytest.mark.slow
def test_a_broker_that_says_nothing_is_waited_for_aloud(run, brokers, moment):
    brokers.on("ApiVersions", moment)
    done = run("orders", "--seconds", "0.05", "--size", "100")
    assert done.exit_code == 0
    assert done.stderr == (
        f"no broker has answered yet, still trying {brokers.bootstrap_servers}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param(("nothing",), 1, "no such topic", marks=pytest.mark.slow),
        (("orders", "--size", "8"), 2, "expected 32 or more"),
        (("orders", "--seconds", "nan"), 2, "expected more than 0"),
        (("orders", "--capture-to", ""), 2, "--capture-to"),
        (("orders", "-X", "acks=9"), 2, "expected all, -1, 0 or 1"),
        (("orders", "-X", "transactional.id=t"), 2, "'t': nothing is written in transactions"),
        (("orders", "--size", "2000000"), 2, "max.request.size"),
        (("orders", "--size", "99999999999"), 2, "max.request.size"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, arguments, code, text):
    done = run(*arguments)
    assert done.exit_code == code
    assert text in done.output
    assert "Traceback" not in done.output
    assert "onInvalidRecord" not in done.output  # no command has it


@pytest.mark.slow
def test_ctrl_c_ends_the_writing_and_shows_the_result(brokers):
    command = "from pyspark_kafkaproto.cli import main; main()"
    words = ("loadtest", "orders", "--seconds", "250", "--rate", "500", "--json")
    running = subprocess.Popen(
        [sys.executable, "-c", command, *words],
        env=os.environ | {"KAFKA_BOOTSTRAP_SERVERS": brokers.bootstrap_servers},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while "no broker has answered" in (line := running.stderr.readline()):
            pass  # a machine at work takes long to answer
        assert "sent/s" in line
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert json.loads(out)["is_sound"]
    assert "Traceback" not in err
