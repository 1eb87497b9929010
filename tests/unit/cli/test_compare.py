"""`kafkaproto compare` runs its job in a process of its own, with what it was told."""

import json
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli import compare as command
from pyspark_kafkaproto.cli.group import kafkaproto


@pytest.fixture
def ran(monkeypatch):
    """What was run, with its standard input; it ends with exit code 3."""
    calls = []

    def run(words, *, input, text, check):  # noqa: A002 - subprocess' own name
        calls.append((words, json.loads(input)))
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr(command.subprocess, "run", run)
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


def test_spark_that_is_not_there_is_said_in_a_line(monkeypatch, ran):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = invoke("-b", "b:9092", "x")
    assert (done.exit_code, ran) == (1, [])
    assert "pip install 'pyspark-kafkaproto[spark]'" in done.output
