"""Errors name what was typed, and no argument of Python's."""

from __future__ import annotations

import re

import click
import pytest

from pyspark_kafkaproto.cli.typed import as_typed
from pyspark_kafkaproto.errors import ConfigError
from tests.unit.cluster.admin.test_hanging import PRODUCERS, all_told
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import classic, describing

_NAMED = re.compile(r"option '([^']*)'")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("acls list --topic=", "--topic"),
        ("acls list --user-principal=", "--user-principal"),
        ("acls list --host=", "--host"),
        ("acls add --principal User:a --operation read --topic or*", "--topic"),
        ("consume orders --group=", "--group"),
        ("groups describe ''", "GROUP"),
        ("groups offsets ''", "GROUP"),
        ("groups reset '' --to-earliest", "GROUP"),
        ("groups reset reports --shift=5 --topic empty", "--shift"),
        ("groups delete '' -y", "GROUP"),
        ("lag ''", "GROUP"),
        ("loadtest orders --size 1", "--size"),
        ("loadtest orders --seconds 0", "--seconds"),
        ("loadtest orders --rate 0", "--rate"),
        ("quorum --capture-to /proc/none", "--capture-to"),
        ("quorum -b nowhere", "--bootstrap-servers"),
        ("quotas list --client-id=", "--client-id"),
        ("quotas set pace --user u", "QUOTA=VALUE"),
        ("quotas set pace=a --user u", "QUOTA=VALUE"),
        ("tokens list --owner=", "--owner"),
        ("tokens create --owner=", "--owner"),
        ("tokens create --renewer=", "--renewer"),
        ("topics create new --assign 0=1 --partitions 3", "--partitions"),
        ("topics create new --assign 0=1 -r 3", "--replication-factor"),
        ("transactions abort orders:0 --start-offset 5 -y", "--start-offset"),
        ("transactions list --state=", "--state"),
        ("transactions list --pattern=", "--pattern"),
        ("users list ''", "USER"),
        ("users delete '' -y", "USER"),
    ],
)
def test_a_wrong_value_is_told_by_what_was_typed(brokers, command, words, option):
    FakeCoordinator(brokers, reports={("orders", 0): (20, "")})
    describing(brokers, classic("reports"))
    brokers.on(PRODUCERS, all_told({}))
    done = command(*("" if word == "''" else word for word in words.split()))
    assert done.exit_code == 2, done.output
    assert _NAMED.findall(done.stderr) == [option], done.stderr


@pytest.mark.parametrize(
    ("words", "option", "more"),
    [
        ("--kafka-version 1", "--kafka-version", ""),
        ("--listener A:B", "--listener", ""),
        ("--listener A:PLAINTEXT@x:y", "--listener", ""),
        ("--property log.dirs=a", "--property", "use --data-dir"),
        ("--property node.id=a", "--property", "use --nodes"),
        ("--property listeners=a", "--property", "use --listener"),
        ("--data-dir a,b", "--data-dir", ""),
    ],
)
def test_so_is_that_of_a_dev_broker(command, tmp_path, monkeypatch, words, option, more):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    done = command("devbroker", "start", "--data-dir", "here", *words.split())
    assert done.exit_code == 2, done.output
    assert _NAMED.findall(done.stderr) == [option], done.stderr
    assert done.stderr.endswith(f"{more}\n")


def test_what_goes_with_no_address(command):
    """Its value was Python's, <QuotaName.DEFAULT: 'default'>."""
    done = command("quotas", "set", "connection_creation_rate=1", "--default-ip", "--user", "u")
    assert done.exit_code == 2
    assert "neither a user nor a client id goes with an address" in done.stderr


def test_ids_of_producers_are_none_below_0(command):
    done = command("transactions", "list", "--producer-id=-1")
    assert done.exit_code == 2
    assert "'--producer-id': -1 is not in the range" in done.stderr


def test_a_level_that_no_feature_has(command):
    done = command("features", "upgrade", "group.version=99999", "--validate-only")
    assert done.exit_code == 2
    assert "is 99999: expected a whole number from 0 to 32767" in done.stderr


def test_what_the_command_has_not_stays_as_it_is():
    @click.command()
    @click.option("--from", "start")
    @as_typed()
    def run(**_):
        raise ConfigError("client.id", "a", "expected b")

    with pytest.raises(ConfigError, match=r"^option 'client\.id' is 'a': expected b$"):
        run.main(["--from", "a"], standalone_mode=False)
