import json

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.group import kafkaproto
from tests.fake_broker import FakeCluster
from tests.fake_produce import values


@pytest.fixture
def brokers():
    with FakeCluster({"orders": 2}) as fake:
        yield fake


@pytest.fixture
def run(brokers):
    def invoke(*arguments, lines=""):
        servers = ("-b", brokers.bootstrap_servers)
        return CliRunner().invoke(kafkaproto, ["produce", *servers, *arguments], input=lines)

    return invoke


def test_each_line_is_a_record_and_offsets_are_printed(run, brokers):
    done = run("orders", "-p", "1", "--json", lines="a\nb\r\n\nc")
    assert values(brokers.logs["orders", 1]) == [b"a", b"b", b"", b"c"]
    assert json.loads(done.stdout) == [
        {"topic": "orders", "partition": 1, "records": 4, "first_offset": 0, "last_offset": 3}
    ]
    assert "4" in run("orders", lines="a\nb\nc\nd\n").stdout


def test_a_file_with_keys_is_written(run, brokers, tmp_path):
    file = tmp_path / "lines"
    file.write_text("k:v\nk:w:x\n")
    assert run("orders", str(file), "-k", ":", "-X", "compression.type=zstd").exit_code == 0
    assert values(brokers.logs["orders", 0]) + values(brokers.logs["orders", 1]) == [b"v", b"w:x"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nothing",), "no such topic"),
        (("orders", "-k", ":"), "line 1 does not have it"),
        (("orders", "-X", "acks"), "expected KEY=VALUE"),
        (("orders", "-X", "acks=9"), "expected all, -1, 0 or 1"),
        (("orders", "-p", "7"), "there is no partition 7: the topic has 2"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, arguments, text):
    done = run(*arguments, lines="a\n")
    assert done.exit_code in (1, 2)
    assert text in done.output
    assert "Traceback" not in done.output
