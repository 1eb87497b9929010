"""`kafkaproto dissect` and `tap` as users call them."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.group import kafkaproto
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from tests.fake_broker import FakeCluster
from tests.unit.capture.wire import read

CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "java.pcap"


def run(*arguments, code=0, **options):
    done = CliRunner().invoke(kafkaproto, ["dissect", *map(str, arguments)], **options)
    assert done.exit_code == code, done.output
    return done


def test_a_line_per_message():
    lines = run(CAPTURE).stdout.splitlines()
    assert len(lines) == 40
    assert "Produce v13 request" in lines[8]
    assert "capture-java-" in lines[8]


def test_filters_and_detail():
    shown = run(CAPTURE, "--api", "produce", "--detail").stdout
    assert 'value: "Java 6"' in shown
    assert "Fetch" not in shown
    assert len(run(CAPTURE, "--errors").stdout.splitlines()) == 1
    assert run(CAPTURE, "--follow", 2, "--client", "nobody").stdout == ""
    assert len(run(CAPTURE, "--slow", "400ms").stdout.splitlines()) == 2


def test_json_is_a_line_per_message():
    messages = [json.loads(text) for text in run(CAPTURE, "--json", "--detail").stdout.splitlines()]
    assert [message["number"] for message in messages] == [*range(1, 41)]
    assert {message["problem"] for message in messages} == {None}


def test_statistics_as_a_table_and_as_json():
    assert "Produce" in run(CAPTURE, "--stats").stdout
    shown = json.loads(run(CAPTURE, "--stats", "--json").stdout)
    assert shown["apis"]["Fetch"]["requests"] == 3
    assert shown["errors"][0]["error"] == "MEMBER_ID_REQUIRED"


def test_a_page(tmp_path):
    done = run(CAPTURE, "--html", tmp_path / "report.html")
    assert "40 messages" in done.stderr
    assert "MEMBER_ID_REQUIRED" in (tmp_path / "report.html").read_text()


def test_standard_input():
    assert run("-", input=CAPTURE.read_bytes()).stdout == run(CAPTURE).stdout


def test_a_port_that_nobody_uses():
    assert run(CAPTURE, "--port", 1).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((CAPTURE, "--api", "Ftch"), "did you mean Fetch"),
        ((CAPTURE, "--slow", "soon"), "expected a duration"),
        ((__file__,), "cannot be read as a capture"),
    ],
)
def test_what_cannot_be_is_a_line_and_no_traceback(arguments, text):
    done = CliRunner().invoke(kafkaproto, ["dissect", *map(str, arguments)])
    assert done.exit_code in {1, 2}
    assert text in done.stderr
    assert "Traceback" not in done.output


def test_what_a_cut_capture_holds_is_shown(tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:-10])
    done = run(path)
    assert len(done.stdout.splitlines()) >= 38
    assert "the capture ends early" in done.stderr


def test_tap_records_until_it_is_told_to_end(tmp_path):
    path = tmp_path / "talk.pcapng"
    with FakeCluster({"orders": 1}) as fake:
        code = "from pyspark_kafkaproto.cli import main; main()"
        target = ("--listen", "0", "--to", fake.bootstrap_servers, "-w", str(path))
        command = [sys.executable, "-c", code, "tap", *target]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                address = process.stderr.readline().split()[0]
                with KafkaCluster({"bootstrap.servers": address}) as cluster:
                    cluster.get_partitions(["orders"])
                process.send_signal(signal.SIGINT)
                assert f"kafkaproto dissect {path}" in process.communicate(timeout=30)[1]
                assert process.returncode == 0
            finally:
                process.kill()
    assert path.stat().st_mode & 0o077 == 0
    assert {message.api for message in read(path.read_bytes())[0]} == {"ApiVersions", "Metadata"}


WITHOUT_ROOM = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
from pyspark_kafkaproto.cli import main
main()
"""


def test_a_tap_whose_file_is_full_says_so_and_ends(tmp_path):
    path = tmp_path / "talk.pcapng"
    with FakeCluster({"orders": 1}) as fake:
        target = ("--listen", "0", "--to", fake.bootstrap_servers, "-w", str(path))
        command = [sys.executable, "-c", WITHOUT_ROOM, "tap", *target]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            try:
                address = process.stderr.readline().split()[0]
                properties = {"bootstrap.servers": address, "default.api.timeout.ms": 300}
                with suppress(KafkaProtoError), KafkaCluster(properties) as cluster:
                    cluster.get_partitions(["orders"])
                said = process.communicate(timeout=30)[1]
            finally:
                process.kill()
    assert process.returncode == 2
    assert str(path) in said
    assert "File too large" in said
    assert "Traceback" not in said


def test_a_tap_whose_file_cannot_be_made_names_it(tmp_path):
    path = tmp_path / "no" / "talk.pcapng"
    arguments = ["tap", "--listen", "0", "--to", "localhost:1", "-w", str(path)]
    done = CliRunner().invoke(kafkaproto, arguments)
    assert isinstance(done.exception, (ConfigError, SystemExit))
    assert str(path) in done.output + str(done.exception)
