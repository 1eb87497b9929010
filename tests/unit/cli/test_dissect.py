"""`kafkaproto dissect` as users call it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.group import kafkaproto

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
