"""`kafkaproto users` over fake brokers: where the password comes from, and where it never is."""

from __future__ import annotations

import hashlib
import json
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.cli import users
from tests.unit.cluster.admin.test_users import BOTH, altered, described, well

PASSWORD = "gehéim ☃"


@pytest.fixture
def terminal(monkeypatch):
    """Somebody sits there, and types what is given as input."""
    monkeypatch.setattr(users, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))


def set_password(brokers, call=-1):
    """Whether the last upsertion is of PASSWORD."""
    (item,) = brokers.asked("AlterUserScramCredentials")[call].upsertions
    algorithm = {1: "sha256", 2: "sha512"}[item.mechanism]
    return item.salted_password == hashlib.pbkdf2_hmac(
        algorithm, PASSWORD.encode(), item.salt, item.iterations
    )


@pytest.mark.slow
def test_list(brokers, command, rows):
    brokers.on("DescribeUserScramCredentials", described(b=BOTH, a={"SCRAM-SHA-512": 4096}))
    assert rows("users", "list") == [
        {"user": "a", "mechanism": "SCRAM-SHA-512", "iterations": 4096},
        {"user": "b", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"user": "b", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]
    brokers.on("DescribeUserScramCredentials", described(c=91))
    done = command("users", "list", "c")
    assert done.exit_code == 1
    assert "there is no such credential" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_password_from_a_file_and_from_standard_input(brokers, command, tmp_path, end):
    brokers.on("AlterUserScramCredentials", well)
    file = tmp_path / "password"
    file.write_bytes(PASSWORD.encode() + end)
    done = command("users", "set", "reports", "--password-file", str(file))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "set: reports, SCRAM-SHA-512\n"
    assert set_password(brokers)
    words = ("--mechanism", "scram-sha-256", "--iterations", "5000", "--password-file", "-")
    done = command("users", "set", "reports", *words, "--json", input=file.read_bytes())
    assert json.loads(done.stdout) == [
        {"user": "reports", "mechanism": "SCRAM-SHA-256", "result": "set"}
    ]
    assert set_password(brokers)
    assert brokers.asked("AlterUserScramCredentials")[-1].upsertions[0].iterations == 5000


@pytest.mark.usefixtures("terminal")
def test_password_is_asked_for_twice_and_not_shown(brokers, command):
    brokers.on("AlterUserScramCredentials", well)
    done = command("users", "set", "reports", input=f"{PASSWORD}\nother\n{PASSWORD}\n{PASSWORD}\n")
    assert done.exit_code == 0, done.output
    assert set_password(brokers)
    assert "do not match" in done.output
    assert PASSWORD not in done.output


@pytest.mark.usefixtures("terminal")
def test_ctrl_c_at_the_question(brokers, command):
    assert command("users", "set", "reports", input="").exit_code == 130
    assert brokers.asked("AlterUserScramCredentials") == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expected one line, the password"),
        (b"\n", "expected one line"),
        (b"geh\neim\n", "expected one line"),
        (b"geh\xff", "is not text in UTF-8"),
        (b"g" * 65_537, "expected one line"),
    ],
)
def test_file_that_holds_no_password(brokers, command, data, said):
    done = command("users", "set", "reports", "--password-file", "-", input=data)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "geh" not in done.output
    assert brokers.asked("AlterUserScramCredentials") == []


def test_without_a_terminal_a_file_is_needed(command):
    done = command("users", "set", "reports")
    assert done.exit_code == 2
    assert "--password-file is needed" in done.stderr
    assert command("users", "set", "reports", "--password-file", "nowhere").exit_code == 2
    assert command("users", "set", "reports", "secret").exit_code == 2  # no argument takes it


def test_what_was_set_is_told_where_the_rest_is_refused(brokers, command):
    brokers.on("AlterUserScramCredentials", altered(reports=0), altered(reports=93))
    words = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    done = command("users", "set", "reports", *words, "--password-file", "-", input=PASSWORD)
    assert done.exit_code == 1
    assert done.stderr.startswith("set: reports, SCRAM-SHA-256\nError: ")
    assert PASSWORD not in done.output


@pytest.mark.slow
def test_delete_asks(brokers, command):
    brokers.on("DescribeUserScramCredentials", described(b=BOTH))
    brokers.on("AlterUserScramCredentials", well)
    words = ("users", "delete", "b")
    refused = command(*words, input="n\n")
    assert refused.exit_code == 1
    assert "the credentials of b, SCRAM-SHA-256; b, SCRAM-SHA-512?" in refused.stderr
    assert command(*words, input="").exit_code == 2
    assert brokers.asked("AlterUserScramCredentials") == []
    done = command(*words, "--yes")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "deleted: b, SCRAM-SHA-256; b, SCRAM-SHA-512\n"
    done = command(*words, "--mechanism", "SCRAM-SHA-256", "--yes", "--json")
    assert json.loads(done.stdout) == [
        {"user": "b", "mechanism": "SCRAM-SHA-256", "result": "deleted"}
    ]


def test_nothing_is_deleted_where_a_user_has_not_got_the_mechanism(brokers, command):
    own = {"SCRAM-SHA-512": 4096}
    brokers.on("DescribeUserScramCredentials", described(a=BOTH, b=own, c=own))
    words = ("users", "delete", "a", "b", "c", "--mechanism", "SCRAM-SHA-256", "--yes")
    done = command(*words)
    assert (done.exit_code, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert "user 'b', SCRAM-SHA-256: RESOURCE_NOT_FOUND (91): there is no such" in first
    assert "user 'c', SCRAM-SHA-256: RESOURCE_NOT_FOUND (91): there is no such" in second
    assert brokers.asked("AlterUserScramCredentials") == []


def test_mechanism_that_one_broker_has_yet_to_hear_of_is_deleted(brokers, command):
    own = {"SCRAM-SHA-512": 4096}
    brokers.on("DescribeUserScramCredentials", described(b=own), described(b=BOTH))
    brokers.on("AlterUserScramCredentials", well)
    done = command("users", "delete", "b", "--mechanism", "SCRAM-SHA-256", "--yes")
    assert (done.exit_code, done.stderr) == (0, "deleted: b, SCRAM-SHA-256\n")


def test_names_of_anybody_move_no_cursor(brokers, command):
    brokers.on("DescribeUserScramCredentials", described(**{"a\x1b[2J": BOTH}))
    brokers.on("AlterUserScramCredentials", well)
    done = command("users", "delete", "a\x1b[2J", input="y\n")
    assert "\x1b" not in done.output
