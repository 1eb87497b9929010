"""`kafkaproto dissect` as users call it."""

import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest
from click.testing import CliRunner
from rich.console import Console

from pyspark_kafkaproto.capture import Note, open_capture, read_messages
from pyspark_kafkaproto.cli import dissect as dissect_module
from pyspark_kafkaproto.cli.root import kafkaproto as kafkaproto_command
from tests.examples import first
from tests.unit.capture.talks import fetch_request
from tests.unit.capture.wire import Talk
from tests.unit.cli.processes import command, kafkaproto

PIPES = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
}
# Says when the capture has been read as far as it goes, and its pipe is open still.
WATCHED = """
import sys
from pyspark_kafkaproto.capture.selection import Selection
from pyspark_kafkaproto.cli import main
choose, count = Selection.choose, 0
def counted(self, message):
    global count
    count += 1
    if count == 40:
        print("40 read", file=sys.stderr, flush=True)
    return choose(self, message)
Selection.choose = counted
main()
"""
CAPTURE = Path(__file__).parents[2] / "golden" / "captures" / "java.pcap"


def run(*arguments, code=0, **options):
    done = CliRunner().invoke(kafkaproto_command, ["dissect", *map(str, arguments)], **options)
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


def test_several_captures_are_merged_by_time(tmp_path):
    """Each process writes a file of its own."""
    talks = [Talk(client=("10.0.0.1", port)).open() for port in (50001, 50002)]
    for correlation_id, talk in enumerate(talks * 2):
        talk.time_ns = Talk().time_ns + correlation_id * 1_000_000_000
        talk.say(0, fetch_request(correlation_id))
    paths = [tmp_path / f"{number}.pcap" for number in (1, 2)]
    for path, talk in zip(paths, talks, strict=True):
        path.write_bytes(talk.pcap())
    shown = [json.loads(text) for text in run(*paths, "--json").stdout.splitlines()]
    assert [message["correlation_id"] for message in shown] == [0, 1, 2, 3]
    assert [message["connection"] for message in shown] == [1, 2, 1, 2]
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    assert f"ends early: {paths[1]}: the file ends inside a packet" in run(*paths).stderr
    assert "it is the capture itself" in run(*paths, "--html", paths[1], code=2).stderr


@pytest.mark.slow
def test_json_is_a_line_per_message():
    messages = [json.loads(text) for text in run(CAPTURE, "--json", "--detail").stdout.splitlines()]
    assert [message["number"] for message in messages] == [*range(1, 41)]
    assert {message["problem"] for message in messages} == {None}


def test_statistics_as_a_table_and_as_json():
    assert "Produce" in run(CAPTURE, "--stats").stdout
    shown = json.loads(run(CAPTURE, "--stats", "--json").stdout)
    assert shown["apis"]["Fetch"]["requests"] == 3
    assert shown["errors"][0]["error"] == "MEMBER_ID_REQUIRED"


def test_statistics_in_a_pipe_are_plain_columns():
    lines = run(CAPTURE, "--stats").stdout.splitlines()
    rows = [text.split() for text in lines if text]
    heads = ["API", "Requests", "Sent", "Responses", "Received", "p50", "ms", "p95", "p99", "max"]
    assert rows[0] == heads
    (fetch,) = (row for row in rows if row[0] == "Fetch" and row[1] == "3")
    assert [fetch[1], fetch[4]] == ["3", "3"]
    assert len(fetch) == 11  # sizes have a unit
    assert not any("─" in cell or "│" in cell or "…" in cell for row in rows for cell in row)


@pytest.mark.slow
def test_a_page(tmp_path):
    done = run(CAPTURE, "--html", tmp_path / "report.html")
    assert "40 messages" in done.stderr
    assert "MEMBER_ID_REQUIRED" in (tmp_path / "report.html").read_text()


def test_a_page_of_a_capture_whose_name_is_no_text(tmp_path):
    capture = tmp_path / os.fsdecode(b"caf\xe9.pcap")
    capture.write_bytes(CAPTURE.read_bytes())
    page = tmp_path / "report.html"
    assert "40 messages in" in run(capture, "--html", page).stderr
    assert "caf\ufffd.pcap" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_page_on_standard_output(tmp_path):
    run(CAPTURE, "--html", tmp_path / "report.html")
    done = kafkaproto("dissect", CAPTURE, "--html", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "report.html").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert "40 messages" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", ["no/such/report.html", "file/report.html", ""])
def test_a_page_that_cannot_be_made_is_refused_before_anything_is_read(tmp_path, where):
    (tmp_path / "file").touch()
    path = str(tmp_path / where) if where else str(tmp_path)
    with subprocess.Popen(command("dissect", "-", "--html", path), **PIPES) as process:
        try:  # its standard input is open still
            assert process.wait(timeout=20) == 2
            said = process.stderr.read()
        finally:
            process.kill()
    assert path in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    first(1, [[], ["--detail"], ["--stats"], ["--html", "-"], ["--html", "/dev/full"]]),
)
def test_a_full_disk_is_a_line(options):
    with Path("/dev/full").open("w") as full:
        is_page = "/dev/full" in options
        done = kafkaproto("dissect", CAPTURE, *options, **{} if is_page else {"stdout": full})
    assert done.returncode == 1
    assert ("/dev/full" if is_page else "standard output") in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_page_that_standard_output_takes_in_part_is_a_line(tmp_path, unbuffered):
    with (tmp_path / "page").open("wb") as out:
        done = kafkaproto(
            "dissect", CAPTURE, "--html", "-",
            stdout=out,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
        )  # fmt: skip
    assert (tmp_path / "page").stat().st_size == 1 << 16
    assert done.returncode == 1
    assert "standard output cannot be written: File too large" in done.stderr


@pytest.mark.slow
def test_a_page_that_a_disk_takes_in_part_is_not_left(tmp_path):
    page = tmp_path / "page.html"
    done = kafkaproto(
        "dissect", CAPTURE, "--html", page,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
    )  # fmt: skip
    assert (done.returncode, page.exists()) == (1, False)
    assert f"{page} cannot be written: File too large" in done.stderr


@pytest.mark.slow
def test_what_is_no_file_is_not_removed(tmp_path):
    link = tmp_path / "page.html"
    link.symlink_to("/dev/full")
    done = kafkaproto("dissect", CAPTURE, "--html", link)
    assert (done.returncode, link.is_symlink()) == (1, True)
    assert Path("/dev/full").is_char_device()


@pytest.mark.slow
def test_a_closed_output_takes_nothing_and_is_no_error():
    done = kafkaproto("dissect", CAPTURE, stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    first(1, [["--stats"], ["--stats", "--json"], ["--html", "-"]]),
)
def test_ctrl_c_shows_what_there_is(options):
    words = command("dissect", "-", *options, code=WATCHED)
    with subprocess.Popen(words, **PIPES | {"text": False}) as process:
        # As people do: Python does not see one that comes between its last look for signals and a
        # read that waits.
        again = Timer(5, process.send_signal, [signal.SIGINT])
        try:
            process.stdin.write(CAPTURE.read_bytes())
            process.stdin.flush()
            assert process.stderr.readline() == b"40 read\n"
            process.send_signal(signal.SIGINT)
            again.start()
            out, err = process.stdout.read(), process.stderr.read()
            assert process.wait(timeout=20) == 130
        finally:
            again.cancel()
            process.kill()
    assert b"Produce" in out
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "pair", ["--html x --json", "--html x --stats", "--html x --detail", "--stats --detail"]
)
def test_what_excludes_each_other_is_refused_with_both_names(pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(kafkaproto_command, ["dissect", str(CAPTURE), *pair.split()])
    assert done.exit_code == 2
    names = [word for word in pair.split() if word.startswith("--")]
    assert all(name in done.stderr.splitlines()[-1] for name in names)
    assert list(tmp_path.iterdir()) == []


def test_a_page_does_not_replace_its_capture(tmp_path):
    capture = tmp_path / "talk.pcap"
    capture.write_bytes(CAPTURE.read_bytes())
    link = tmp_path / "page.html"
    link.symlink_to(capture)
    for page in (capture, link):
        assert "it is the capture itself" in run(capture, "--html", page, code=2).stderr
    assert capture.read_bytes() == CAPTURE.read_bytes()


@pytest.mark.slow
def test_a_line_names_the_connection_to_follow():
    lines = run(CAPTURE).stdout.splitlines()
    numbers = {re.search(r"  conn (\d+)  127", text)[1] for text in lines}
    assert len(numbers) > 1
    for number in numbers:
        followed = run(CAPTURE, "--follow", number).stdout.splitlines()
        assert followed == [text for text in lines if f"  conn {number}  " in text]


def test_it_says_when_nothing_is_shown():
    assert (
        "none of 40 messages is what the filters want"
        in run(CAPTURE, "--api", "Fetch", "--topic", "x").stderr
    )
    assert "no Kafka message" in run(CAPTURE, "--port", 1).stderr
    assert "no" not in run(CAPTURE, "--api", "Fetch").stderr.split()
    said = run(CAPTURE, "--topic", "x", "--json").stderr
    assert json.loads(said)["note"].startswith("none of 40")


@pytest.mark.parametrize(
    ("filters", "is_said"),
    [
        ([], True),
        (["--api", "Metadata", "--errors"], False),
        (["--api", "Fetch"], True),
        (["--api", "InitProducerId"], False),
        (["--topic", "nobody's"], False),
        (["--slow", "1m"], False),
        (["--client", "127.0.0.1:51046"], True),
        (["--client", "127.0.0.1:1"], False),
        (["--follow", "4"], True),
        (["--follow", "4", "--api", "InitProducerId"], True),
        (["--follow", "1"], False),
        (["--errors"], True),
    ],
)
def test_notes_are_of_the_connections_that_the_filters_let_through(filters, is_said):
    said = run(CAPTURE.with_name("librdkafka.pcap"), *filters).stderr
    assert ("connection 4, " in said) == is_said


@pytest.mark.parametrize("name", ["fetch", "FETCH", "1"])
def test_an_api_is_known_by_its_name_in_any_case_and_by_its_number(name):
    assert run(CAPTURE, "--api", name).stdout == run(CAPTURE, "--api", "Fetch").stdout != ""


def test_standard_input():
    assert run("-", input=CAPTURE.read_bytes()).stdout == run(CAPTURE).stdout


def test_a_port_that_nobody_uses():
    assert run(CAPTURE, "--port", 1).stdout == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((CAPTURE, "--api", "Ftch"), "did you mean Fetch"),
        ((CAPTURE, "--api", "Metadta"), "did you mean Metadata"),
        ((CAPTURE, "--slow", "soon"), "expected a span such as 100ms"),
        ((__file__,), "cannot be read as a capture"),
    ],
)
def test_what_cannot_be_is_a_line_and_no_traceback(arguments, text):
    done = CliRunner().invoke(kafkaproto_command, ["dissect", *map(str, arguments)])
    assert done.exit_code in {1, 2}
    assert text in done.stderr
    assert "Traceback" not in done.output


def test_what_a_cut_capture_holds_is_shown(tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:-10])
    done = run(path)
    assert len(done.stdout.splitlines()) >= 38
    assert "the capture ends early" in done.stderr


@pytest.mark.slow
def test_an_output_of_few_characters():
    done = kafkaproto("dissect", CAPTURE, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r" \u2192 127.0.0.1" in done.stdout


def test_progress_of_a_file_on_standard_input(tmp_path, monkeypatch):
    """Its name is no file's."""
    path = tmp_path / "talk.pcap"
    path.write_bytes(Talk().open().say(0, fetch_request(1)).pcap())
    raw = io.FileIO(path)
    raw.name = "<stdin>"
    shown = io.StringIO()
    monkeypatch.setattr(
        dissect_module, "Console", lambda **_: Console(file=shown, force_terminal=True)
    )
    with io.BufferedReader(raw) as stream:
        reader = open_capture(stream)
        with dissect_module._progress(reader, [stream], read_messages(reader)) as items:
            assert [item.api for item in items if not isinstance(item, Note)] == ["Fetch"]
    assert shown.getvalue()


def test_progress_leaves_standard_output_alone(monkeypatch, capsys):
    """On a terminal, with the messages sent to a file, they arrived at the terminal."""
    monkeypatch.setattr(
        dissect_module, "Console", lambda **_: Console(file=io.StringIO(), force_terminal=True)
    )
    with CAPTURE.open("rb") as stream:
        reader = open_capture(stream)
        with dissect_module._progress(reader, [stream], read_messages(reader)):
            sys.stdout.write("a message\n")
    assert capsys.readouterr().out == "a message\n"
