"""The main job's parts without Spark: which ranges, which folder."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from pyspark_kafkaproto import KafkaCluster, OffsetRange
from pyspark_kafkaproto.devbroker.processes import ProcessId
from pyspark_kafkaproto.errors import DeadlineExceeded
from pyspark_kafkaproto.jobs import offset_ranges
from pyspark_kafkaproto.jobs.folders import Folders
from tests.fake_broker import FakeCluster


def test_servers_come_from_the_environment_or_the_arguments(monkeypatch):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "b-1:9092")
    assert offset_ranges._parse([]).bootstrap_servers == "b-1:9092"
    given = offset_ranges._parse(["--bootstrap-servers", "b-2:9092", "--group", "mine"])
    assert (given.bootstrap_servers, given.group) == ("b-2:9092", "mine")


@pytest.mark.parametrize("flag", ["--events", "--broker-data"])
def test_what_is_for_the_dev_broker_is_refused_beside_a_cluster(monkeypatch, capsys, flag):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "b-1:9092")
    with pytest.raises(SystemExit):
        offset_ranges._parse([flag, "5"])
    assert f"{flag} is for the dev broker: this is b-1:9092" in capsys.readouterr().err


def test_what_is_wrong_is_said_in_a_line(capsys):
    assert offset_ranges.run(["--bootstrap-servers", "nonsense"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Error: option 'bootstrap.servers' is 'nonsense': ")
    assert said.err.count("\n") == 1


@pytest.mark.usefixtures("known_at_once")
def test_a_broker_that_says_nothing_is_waited_for_aloud(moment, capsys, tmp_path):
    with FakeCluster({"orders": 1}) as brokers:
        brokers.on("ApiVersions", moment)
        servers = brokers.bootstrap_servers
        words = ["--bootstrap-servers", servers, "--topic", "ghost", "--out", str(tmp_path)]
        assert offset_ranges.run(words) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"no broker has answered yet, still trying {servers}\nError: ")


@pytest.mark.slow
def test_driver_ends_with_the_spark_submit_that_started_it():
    """It would hold the dev broker's data and the folder of rows: the next start was refused."""
    submit = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        program = (
            "import os; from pyspark_kafkaproto.jobs import offset_ranges; "
            "print(os.getpid(), flush=True); "
            f"offset_ranges.run(['--bootstrap-servers', {address!r}])"
        )
        environ = os.environ | {
            "PYSPARK_GATEWAY_PORT": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        command = [sys.executable, "-c", submit, "-c", program]
        with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as starter:
            driver = ProcessId.of(int(starter.stdout.readline()))
            connection, _ = silent.accept()  # it is at work, and waits for us
            starter.kill()
            starter.wait()
            with connection:
                assert driver.wait(3)


def test_run_after_a_failed_commit_goes_on_whatever_came_meanwhile(tmp_path, monkeypatch):
    """With --max-records what came takes from the share of a partition that was read before."""
    planned = [((0, 30), (0, 30)), ((0, 8), (0, 52))]
    committed = []

    def plan(*_, **__):
        return [OffsetRange("t", number, *item) for number, item in enumerate(planned.pop(0))]

    @contextmanager
    def commit(_cluster, _group, ranges):
        yield
        if planned:
            raise DeadlineExceeded("commit offsets", 60)
        committed.extend(ranges)

    def keep(folders, _servers, ranges, _check):
        rows = SimpleNamespace(write=SimpleNamespace(mode=lambda _: writer))
        writer = SimpleNamespace(parquet=lambda folder: Path(folder).mkdir())
        folders.write(rows, ranges)
        return 0

    monkeypatch.setattr(offset_ranges, "KafkaCluster", lambda _: nullcontext(MagicMock()))
    for name, stand_in in {
        "origin": lambda *_: {"topic": "t"},
        "check_origin": lambda *_: None,
        "plan_ranges": plan,
        "committing": commit,
        "_keep": keep,
        "lag_text": lambda _: "",
    }.items():
        monkeypatch.setattr(offset_ranges, name, stand_in)
    given = ["--bootstrap-servers", "b-1:9092", "--max-records", "60", "--out", str(tmp_path)]
    assert [offset_ranges.run(given), offset_ranges.run(given)] == [1, 0]
    assert [(item.start, item.stop) for item in committed] == [(0, 30), (0, 52)]
    assert [path.name for path in tmp_path.glob("*/*/ranges-*")] == ["ranges-0.0-30_1.0-52"]


@pytest.mark.parametrize("moment", ["plan_ranges", "committing", "read"])
def test_a_topic_that_is_made_again_under_a_run_replaces_nothing(
    tmp_path, monkeypatch, capsys, moment
):
    """Its ranges begin at 0 again, and would take the place of what was committed of the old."""
    rows = SimpleNamespace(write=SimpleNamespace(mode=lambda _: writer))
    writer = SimpleNamespace(parquet=lambda folder: Path(folder).mkdir())
    with FakeCluster({"orders": 1}) as brokers:
        servers = brokers.bootstrap_servers
        with KafkaCluster({"bootstrap.servers": servers}) as cluster:
            belongs_to = offset_ranges.origin(cluster, "orders")
        place = tmp_path / "orders" / "offset-ranges"
        old = Folders(place, belongs_to)
        with old.locked():
            old.write(rows, [OffsetRange("orders", 0, 0, 50)])

        def answering(name, answer):
            def stand_in(*_, **__):
                if name == moment:
                    brokers.make_again("orders")
                return answer

            return stand_in

        for name, answer in {
            "plan_ranges": [OffsetRange("orders", 0, 0, 100)],
            "committing": nullcontext(),
            "read": rows,
            "summarise": 0,
            "lag_text": "",
        }.items():
            monkeypatch.setattr(offset_ranges, name, answering(name, answer))
        monkeypatch.setattr(offset_ranges, "SparkSession", MagicMock())
        given = ["--bootstrap-servers", servers, "--topic", "orders", "--out", str(tmp_path)]
        assert offset_ranges.run(given) == 1
    said = capsys.readouterr().err
    assert "Error: option '--topic' is 'orders': it was deleted and made again since this" in said
    assert [path.name for path in place.glob("ranges-*")] == ["ranges-0.0-50"]


def test_each_group_has_a_folder_of_its_own_name():
    names = ["reports", "..", ".", "../other", "a:b", "rep*", "100%", "a b", "組" * 60, "組" * 61]
    folders = [offset_ranges.folder_name(name) for name in names]
    assert folders[:2] == ["reports", "%2E%2E"]
    assert len(set(folders)) == len(names)
    for folder in folders:
        assert not set(folder) & set("/:*")
        assert folder.strip(".")
        assert len(folder) < 255


def test_sample_events_are_keyed_lines():
    lines = offset_ranges._sample_events(12)
    assert len(lines) == 12
    for number, line in enumerate(lines):
        key, _, value = line.partition(":")
        assert key == f"device-{number % 10}"
        assert json.loads(value)["number"] == number


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--max-records", "0"),
        ("--max-records", "1e6"),
        ("--max-records", "9" * 30),
        ("--events", "-5"),
        ("--events", "1e3"),
        ("--group", ""),
        ("--out", ""),
        ("--broker-data", ""),
        ("--bootstrap-servers", ""),  # of a variable that is not set: no dev broker is meant
    ],
)
def test_a_bad_value_names_its_flag(capsys, flag, value):
    with pytest.raises(SystemExit):
        offset_ranges._parse([flag, value])
    assert f"argument {flag}: expected" in capsys.readouterr().err
