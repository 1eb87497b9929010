"""`kafkaproto tokens` over fake brokers: what is printed, and where the secret goes."""

from __future__ import annotations

import json
import os
import stat

import pytest

from pyspark_kafkaproto.cli import tokens
from pyspark_kafkaproto.messages.create_delegation_token import CreateDelegationTokenResponse
from pyspark_kafkaproto.messages.renew_delegation_token import RenewDelegationTokenResponse
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.net.properties_file import read_properties
from tests.unit.cluster.token_keeper import TokenKeeper, hmac_text

NOW_MS = 1_795_651_200_000
MADE, EXPIRES = "2026-11-26T00:00:00.000Z", "2026-11-27T00:00:00.000Z"
ENDS = "2026-12-03T00:00:00.000Z"
HMAC = hmac_text("id-1")
ROW = {
    "token_id": "id-1",
    "owner": "User:reports",
    "requester": "User:reports",
    "renewers": [],
    "issued": MADE,
    "expires": EXPIRES,
    "ends": ENDS,
}


@pytest.fixture
def keeper(brokers):
    return TokenKeeper(now_ms=NOW_MS).keep(brokers)


@pytest.fixture
def made(keeper, command):
    """There is one already."""
    assert command("tokens", "create", "--json").exit_code == 0
    return keeper


def test_create_prints_what_logs_in(keeper, command, tmp_path):
    done = command("tokens", "create")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"created: id-1 of User:reports, expires {EXPIRES}\n"
    (tmp_path / "p").write_text(done.stdout + "security.protocol=SASL_SSL\n")
    config = ClientConfig.parse(
        {"bootstrap.servers": "b:1"} | read_properties(tmp_path / "p", "file")
    )
    assert config.logs_in_with_token
    assert dict(config.login_module().options) == {
        "username": "id-1",
        "password": HMAC,
        "tokenauth": "true",
    }


def test_create_into_a_file_of_ones_own(keeper, command, tmp_path):
    file = tmp_path / "token.properties"
    words = ("--mechanism", "scram-sha-256", "--to", str(file))
    done = command("tokens", "create", *words)
    assert (done.exit_code, done.stdout) == (0, "")
    assert HMAC not in done.output
    assert HMAC in file.read_text()
    assert file.read_text().startswith("sasl.mechanism=SCRAM-SHA-256\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    again = command("tokens", "create", *words)
    assert again.exit_code == 2
    assert "File exists" in again.stderr
    assert file.read_text() == before
    assert len(keeper.tokens) == 1


def test_a_refused_token_leaves_no_file(brokers, command, tmp_path):
    file = tmp_path / "token.properties"
    done = command("tokens", "create", "--owner", "reports", "--to", str(file))
    assert done.exit_code == 2
    assert not file.exists()
    assert command("tokens", "create", "--to", str(tmp_path / "no" / "f")).exit_code == 2
    assert brokers.asked("CreateDelegationToken") == []


def test_token_whose_file_cannot_be_written_is_told(keeper, command, tmp_path, monkeypatch):
    """It is made by then: nobody would know that there is one, nor by which id it ends."""
    file = tmp_path / "token.properties"

    def on_a_full_disk(file):
        file.touch()
        return os.open("/dev/full", os.O_WRONLY)

    monkeypatch.setattr(tokens, "_new_file", on_a_full_disk)
    done = command("tokens", "create", "--to", str(file))
    assert done.exit_code == 1
    assert f"{file} cannot be written: No space left on device" in done.stderr
    assert "id-1 of User:reports is made" in done.stderr
    assert HMAC not in done.output
    assert not file.exists()


def test_create_for_others_and_for_a_time(brokers, keeper, rows):
    words = ("--owner", "User:a", "--renewer", "User:x", "--renewer", "User:y")
    (row,) = rows("tokens", "create", *words, "--max-lifetime", "7d")
    assert row["owner"] == "User:a"
    assert row["renewers"] == ["User:x", "User:y"]
    assert (row["hmac"], row["result"]) == (HMAC, "created")
    assert brokers.asked("CreateDelegationToken")[0].max_lifetime_ms == 7 * 86_400_000


def test_list(made, command, rows):
    assert rows("tokens", "list") == [ROW]
    assert rows("tokens", "list", "--owner", "User:nobody") == []
    shown = command("tokens", "list").stdout
    heading, line = shown.splitlines()
    assert heading.split("  ")[0] == "Token"
    assert line.split() == ["id-1", "User:reports", "User:reports", "-", EXPIRES, ENDS]
    assert HMAC not in shown
    assert rows("tokens", "list", "--hmac") == [ROW | {"hmac": HMAC}]
    assert HMAC in command("tokens", "list", "--hmac").stdout


def test_renew(made, command, rows):
    made.now_ms += 3_600_000
    done = command("tokens", "renew", "id-1")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "renewed: id-1 of User:reports, expires 2026-11-27T01:00:00.000Z\n"
    assert rows("tokens", "renew", "id-1", "id-1", "--for", "1h") == [
        {
            "token_id": "id-1",
            "owner": "User:reports",
            "expires": "2026-11-26T02:00:00.000Z",
            "result": "renewed",
        }
    ]


def test_what_was_renewed_is_told_where_the_rest_is_refused(brokers, made, command):
    command("tokens", "create")
    brokers.on("RenewDelegationToken", made.renew, RenewDelegationTokenResponse(error_code=63))
    done = command("tokens", "renew", "id-1", "id-2", "--json")
    assert done.exit_code == 1
    assert [row["token_id"] for row in json.loads(done.stdout)] == ["id-1"]
    assert "token 'id-2'" in done.stderr
    assert "its owner and its renewers alone" in done.stderr


@pytest.mark.slow
def test_a_token_that_is_not_there(made, command):
    done = command("tokens", "renew", "id-1", "id-9")
    assert done.exit_code == 1
    assert "there is no token id-9 that you may see" in done.stderr
    assert command("tokens", "expire", "id-9", "--yes").exit_code == 1


def test_expire_asks(made, command, rows):
    words = ("tokens", "expire", "id-1")
    refused = command(*words, input="n\n")
    assert refused.exit_code == 1
    assert "Have id-1 of User:reports expire now?" in refused.stderr
    assert command(*words, input="").exit_code == 2
    assert len(made.tokens) == 1
    later = command(*words, "--in", "1h", "--yes")
    assert later.stderr == "expires 2026-11-26T01:00:00.000Z: id-1 of User:reports\n"
    assert rows(*words, "--yes") == [
        {"token_id": "id-1", "owner": "User:reports", "expires": None, "result": "expired"}
    ]
    assert made.tokens == {}


@pytest.mark.parametrize(
    "words",
    [
        ("create", "--max-lifetime", "soon"),
        ("renew", "id-1", "--for", "0s"),
        ("expire", "id-1", "--in", "-1h", "--yes"),
        ("create", "--mechanism", "PLAIN"),
        ("list", "--owner", "reports"),
        ("renew",),
    ],
)
def test_wrong_usage(made, command, words):
    done = command("tokens", *words)
    assert done.exit_code == 2
    assert "_s'" not in done.stderr  # what was given has another name
    assert len(made.tokens) == 1


def test_not_allowed(brokers, command):
    brokers.on("CreateDelegationToken", CreateDelegationTokenResponse(error_code=65))
    done = command("tokens", "create", "--owner", "User:a")
    assert done.exit_code == 5
    assert "CREATE_TOKENS on the user" in done.stderr
