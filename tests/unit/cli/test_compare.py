"""`kafkaproto compare` runs its job in a process of its own, with what it was told."""

import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli import compare as command
from pyspark_kafkaproto.cli.group import kafkaproto


@pytest.mark.parametrize("code", [0, 1])
def test_arguments_are_handed_on_and_the_exit_code_back(monkeypatch, code):
    ran = []

    def run(words, *, check):
        ran.append(words)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(command.subprocess, "run", run)
    words = ["compare", "--bootstrap-servers", "b:9092", "--option", "subscribe=a", "--runs", "3"]
    done = CliRunner().invoke(kafkaproto, [*words, "--option", "includeHeaders=true", "--json"])
    assert done.exit_code == code, done.output
    assert ran == [
        [
            *(sys.executable, "-m", "pyspark_kafkaproto.jobs.compare"),
            *("--master", "local[*]", "--runs", "3", "--bootstrap-servers", "b:9092"),
            *("--option=subscribe=a", "--option=includeHeaders=true", "--json"),
        ]
    ]


def test_spark_that_is_not_there_is_said_in_a_line(monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = CliRunner().invoke(kafkaproto, ["compare", "--option", "subscribe=a"])
    assert done.exit_code == 1
    assert "pip install 'pyspark-kafkaproto[spark]'" in done.output
