import json
import os
import signal
import subprocess
import threading
from array import array
from fcntl import ioctl
from termios import FIONREAD

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli import produce as cli_produce
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.messages.produce import ProduceResponse
from tests.fake_broker import STALL, FakeCluster
from tests.fake_produce import produce, values
from tests.unit.cli.processes import command
from tests.waiting import until


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


def test_a_broker_that_says_nothing_is_waited_for_aloud(run, brokers, moment):
    """Whoever typed a wrong address looked at nothing for ten seconds, and took it for reading."""
    brokers.on("ApiVersions", moment)
    done = run("orders", lines="a\n")
    assert done.exit_code == 0
    assert done.stderr == (
        f"no broker has answered yet, still trying {brokers.bootstrap_servers}\n"
    )


def test_a_file_with_keys_is_written(run, brokers, tmp_path):
    file = tmp_path / "lines"
    file.write_text("k:v\nk:w:x\n")
    assert run("orders", str(file), "-k", ":", "-X", "compression.type=zstd").exit_code == 0
    assert values(brokers.logs["orders", 0]) + values(brokers.logs["orders", 1]) == [b"v", b"w:x"]


def test_lines_before_one_without_a_key_are_written_and_told(run, brokers):
    done = run("orders", "-k", ":", "-p", "1", "--json", lines="k:a\nk:b\nbad\nk:c\n")
    assert done.exit_code == 2
    assert values(brokers.logs["orders", 1]) == [b"a", b"b"]
    assert json.loads(done.stdout) == [
        {"topic": "orders", "partition": 1, "records": 2, "first_offset": 0, "last_offset": 1}
    ]
    assert "line 3 does not have it; those before it are written" in done.stderr


@pytest.mark.parametrize("refused", [0, 1])
def test_what_is_written_is_told_though_another_partition_refuses(run, brokers, refused):
    """Whoever writes all of it again wrote those lines twice, and nothing said which."""

    def answer(call):
        part = ProduceResponse.Topic
        (said,) = produce(brokers, call).responses
        parts = tuple(
            part.Partition(
                index=item.index,
                error_code=87 if item.index == refused else 0,
                base_offset=item.base_offset,
            )
            for item in said.partition_responses
        )
        one = part(name=said.name, topic_id=said.topic_id, partition_responses=parts)
        return ProduceResponse(responses=(one,))

    brokers.on("Produce", answer)
    done = run("orders", "-k", ":", "--json", lines="".join(f"{key}:v\n" for key in range(8)))
    count = len(values(brokers.logs["orders", 1 - refused]))
    (told,) = json.loads(done.stdout)
    assert (told["partition"], told["records"], told["last_offset"]) == (
        *(1 - refused, count, count - 1),
    )
    assert (done.exit_code, "INVALID_RECORD" in done.stderr) == (1, True)


def test_a_line_that_no_record_can_be_is_not_read_to_its_end(run, brokers):
    limited = ("-p", "1", "-X", "max.request.size=1000")
    done = run("orders", *limited, lines="a\nb\n" + "x" * (5 << 20))
    assert done.exit_code == 2
    assert values(brokers.logs["orders", 1]) == [b"a", b"b"]
    assert "'max.request.size' is 1000: line 3 has more bytes" in done.stderr


@pytest.mark.parametrize("cuts", [1, 2, 3, 7])
def test_lines_are_whole_however_they_come(cuts):
    data = b"a\n\nbb\r\n" + b"c" * 20 + b"\n\nd"
    pieces = [data[at : at + cuts] for at in range(0, len(data), cuts)]
    lines = cli_produce._lines([*pieces, b""], cli_produce._Interrupts(), 20, 1)
    assert [line for some in lines for line in some] == data.split(b"\n")


@pytest.fixture
def piped(run):
    """Runs the command on a pipe; meanwhile `write` writes to it, given the pipe's two ends."""

    def invoke(write, *arguments):
        reading, writing = os.pipe()

        def work():
            try:
                write(reading, writing)
            finally:
                os.close(writing)

        other = threading.Thread(target=work)
        other.start()
        try:
            return run("orders", f"/dev/fd/{reading}", "-p", "0", "--json", *arguments)
        finally:
            other.join()
            os.close(reading)

    return invoke


@pytest.mark.slow
def test_what_has_come_is_written_while_a_pipe_is_quiet(piped, brokers):
    log, seen = brokers.logs["orders", 0], []

    def write(_, writing):
        for lines in (b"a\nb\nhal", b"f\n"):
            os.write(writing, lines)
            before = log.stop
            until(lambda before=before: log.stop > before)
            seen.append(log.stop)
        os.write(writing, b"last")

    done = piped(write, "-X", "linger.ms=50")
    assert seen == [2, 3]
    assert values(log) == [b"a", b"b", b"half", b"last"]
    (row,) = json.loads(done.stdout)
    assert (row["records"], row["first_offset"], row["last_offset"]) == (4, 0, 3)


@pytest.fixture(params=["its thread", "another thread"])
def interrupted(request):
    """Which thread the kernel tells of Ctrl-C; the call that the main one is in may not notice.

    That is so, too, for a signal that comes just before such a call begins.
    """
    if request.param == "its thread":
        yield lambda: None
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_ctrl_c_ends_the_reading_and_writes_what_was_read(piped, brokers, interrupted):
    def write(reading, writing):
        interrupted()
        os.write(writing, b"a\nb\nhal")
        left = array("i", [1])

        def is_read():
            ioctl(reading, FIONREAD, left)
            return not left[0]

        until(is_read)
        os.kill(os.getpid(), signal.SIGINT)
        until(lambda: brokers.logs["orders", 0].stop)  # and not because the pipe has ended

    before = signal.getsignal(signal.SIGINT)
    done = piped(write, "-X", "linger.ms=600000")
    assert done.exit_code == 130
    assert values(brokers.logs["orders", 0]) == [b"a", b"b"]
    assert json.loads(done.stdout)[0]["records"] == 2
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
def test_a_second_ctrl_c_tells_what_is_written_before_it_ends(piped, brokers, monkeypatch):
    """Nothing was told; who tries again has to know."""
    noted, note = [], cli_produce.note
    monkeypatch.setattr(cli_produce, "note", lambda number: noted.append(number) or note(number))
    brokers.on("Produce", lambda call: produce(brokers, call), STALL)

    def write(_, writing):
        os.write(writing, b"a\n")
        until(lambda: brokers.logs["orders", 0].stop)
        os.write(writing, b"b\n")
        brokers.wait_for_call("Produce", 2)
        for count in (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            until(lambda at_least=count: len(noted) >= at_least)

    done = piped(write, "-X", "linger.ms=50")
    assert done.exit_code == 130
    assert json.loads(done.stdout)[0]["records"] == 1
    assert "written or not" in done.stderr


def test_bytes_of_any_encoding_stand_between_keys_and_values(run, brokers):
    words = ("-p", "0", "-k", "\udcff", "--null-marker", "\udcfe", "-H", "h=\udcfd")
    assert run("orders", *words, lines=b"k\xffv\nl\xff\xfe\n").exit_code == 0
    assert values(brokers.logs["orders", 0]) == [b"v", b""]  # no value


@pytest.mark.slow
def test_sigterm_ends_the_reading_and_writes_what_was_read(brokers):
    words = ("produce", "orders", "-p", "0", "-b", brokers.bootstrap_servers)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command(*words, "-X", "linger.ms=600000"), **pipes) as process:
        process.stdin.write(b"a\nb\n")
        process.stdin.flush()
        left = array("i", [1])

        def is_read():
            ioctl(process.stdin, FIONREAD, left)
            return not left[0]

        until(is_read)
        process.send_signal(signal.SIGTERM)
        process.wait(20)  # and not because the pipe has ended
        assert process.returncode == 143
    assert values(brokers.logs["orders", 0]) == [b"a", b"b"]


def test_ctrl_c_ends_the_wait_for_brokers_at_once(piped, brokers):
    brokers.on("Metadata", STALL)

    def write(*_):
        brokers.wait_for_call("Metadata")
        os.kill(os.getpid(), signal.SIGINT)

    done = piped(write, "-X", "request.timeout.ms=4000", "-X", "default.api.timeout.ms=4000")
    assert done.exit_code == 130


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(("nothing",), "no such topic", marks=pytest.mark.slow),
        (("orders", "-k", ":"), "line 1 does not have it"),
        (("orders", "-k", ""), "--key-separator"),
        (("orders", "-H", "k\udcff=v"), r"'--header' is 'k\udcff=v': its key cannot be UTF-8"),
        (("orders", "-X", "acks"), "expected KEY=VALUE"),
        (("orders", "-X", "acks=9"), "expected all, -1, 0 or 1"),
        (("orders", "-p", "7"), "topic orders has no partition 7: it has 2, from 0 on"),
        (("orders", "-p", "99999999999"), "--partition"),
        (("orders", "-X", "transactional.id=t"), "'transactional.id' is 't': nothing is written"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, arguments, text):
    done = run(*arguments, lines="a\n")
    assert done.exit_code in (1, 2)
    assert text in done.output
    assert "Traceback" not in done.output


def test_a_separator_is_taken_as_it_stands_and_the_help_says_so(run, brokers):
    assert run("orders", "-p", "0", "-k", r"\t", lines="a\\tb\n").exit_code == 0
    assert run("orders", "-p", "0", "-k", "\t", lines="c\td\\te\n").exit_code == 0
    assert values(brokers.logs["orders", 0]) == [b"b", rb"d\te"]
    assert "$'\\t'" in run("--help").stdout
    shown = CliRunner().invoke(kafkaproto, ["consume", "--help"]).stdout
    assert r"\t is a tab, \n a line break and \0 a zero byte" in shown
