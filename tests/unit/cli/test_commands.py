"""Commands over fake brokers: tables, JSON, exit codes, confirmation, Ctrl-C, lost readers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import click
import pytest

from pyspark_kafkaproto.cli import connection, consume, output
from pyspark_kafkaproto.cli import lag as lag_command
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import routing, silence
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConfigError,
    ConnectionFailed,
    CorruptRecords,
    DeadlineExceeded,
)
from pyspark_kafkaproto.exit_codes import exit_code_of
from pyspark_kafkaproto.messages.create_partitions import CreatePartitionsResponse
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from pyspark_kafkaproto.messages.delete_groups import DeleteGroupsResponse
from pyspark_kafkaproto.messages.delete_records import DeleteRecordsResponse
from pyspark_kafkaproto.messages.delete_topics import DeleteTopicsResponse
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from pyspark_kafkaproto.messages.list_config_resources import ListConfigResourcesResponse
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.offset_commit import OffsetCommitResponse
from pyspark_kafkaproto.messages.offset_delete import OffsetDeleteResponse
from pyspark_kafkaproto.records.layout import CONTROL
from pyspark_kafkaproto.spark.option_table import OPTIONS
from pyspark_kafkaproto.wire.ids import id_text
from tests.clock import stop_clock
from tests.fake_broker import DEFAULT, close, topic_id_of
from tests.fake_past import lead_in_the_past
from tests.unit.cli.processes import kafkaproto as kafkaproto_process
from tests.unit.cluster.committing import FakeCoordinator, committing
from tests.unit.cluster.fake_groups import assigned, classic, describing, listed
from tests.unit.cluster.sharing import FakeShareCoordinator

WHOLE = [f"{offset} ".encode().ljust(10, b".") for offset in range(30)]


@pytest.fixture
def at_each_look(monkeypatch):
    """Has something happen in place of each rest of a follower."""

    def have(happen):
        monkeypatch.setattr(consume, "time", SimpleNamespace(sleep=lambda _: happen()))

    return have


@pytest.mark.slow
def test_every_command_has_help_with_examples(command):
    for name in kafkaproto.list_commands(None):
        shown = command(name, "--help")
        assert shown.exit_code == 0
        assert "Examples:\n" in shown.output, name
        for inner in getattr(kafkaproto.get_command(None, name), "commands", {}):
            shown = command(name, inner, "--help")
            assert shown.exit_code == 0
            _, _, examples = shown.output.partition("Examples:\n")
            assert f"kafkaproto {name} {inner}" in examples, inner


def options_of_all_commands():
    commands = [("kafkaproto", kafkaproto)]
    while commands:
        name, command = commands.pop()
        if isinstance(command, click.Group):
            words = command.list_commands(None)
            commands += [(f"{name} {word}", command.get_command(None, word)) for word in words]
        for item in command.params:
            if isinstance(item, click.Option):
                yield f"{name} {item.opts[-1]}", item


def test_every_option_says_what_it_is_for():
    assert not [name for name, item in options_of_all_commands() if not item.help]


def test_every_option_says_what_holds_without_it():
    silent = []
    for name, item in options_of_all_commands():
        has_default = isinstance(item.default, (str, int, float, list)) or callable(item.default)
        is_shown = item.show_default or "[default: " in item.help
        if has_default and not item.is_flag and not is_shown:
            silent.append(name)
    assert not silent


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BrokerError(36, "CreateTopics", "topic 't'"), 1),
        (CorruptRecords("damaged"), 1),
        (ConfigError("a", "b", "c"), 2),
        (ConnectionFailed("b:1", "connect", "refused"), 4),
        (DeadlineExceeded("fetch", 1), 4),
        (AuthenticationFailed("b:1", "PLAIN", "no"), 5),
        (BrokerError(29, "Metadata", "topic 't'"), 5),
        (BrokerError(30, "OffsetFetch", "group 'g'"), 5),
    ],
)
def test_exit_codes(error, code):
    assert exit_code_of(error) == code


@pytest.mark.slow
@pytest.mark.usefixtures("known_at_once")
def test_errors_are_a_line_and_a_code(command):
    done = command("metadata", "-b", "127.0.0.1:1", "-X", "socket.connection.setup.timeout.ms=50")
    assert done.exit_code == 4
    assert done.stderr.startswith("Error: broker 127.0.0.1:1: connect failed")
    assert "Traceback" not in done.output
    assert command("topics", "describe", "odrers").exit_code == 1
    assert command("offsets", "orders", "--at", "soon").exit_code == 2
    assert command("topics", "nonsense").exit_code == 2
    assert command("lag", "--watch", "0s").exit_code == 2


@pytest.mark.slow
def test_what_is_waited_for_is_said(command, monkeypatch):
    """Whoever types a wrong address should not look at nothing for ten seconds."""
    monkeypatch.setattr(silence, "QUIET_S", 0.7)
    patience = "socket.connection.setup.timeout.ms=2000"
    done = command("metadata", "-b", "127.0.0.1:1,127.0.0.1:2", "-X", patience)
    assert done.exit_code == 4
    waits, error, *_ = done.stderr.splitlines()
    assert waits.startswith("no broker has answered yet, still trying 127.0.0.1:1 (")
    assert waits.count("onnection refused") == 2
    assert error.startswith("Error: ")


def test_a_broker_that_says_nothing_is_waited_for_aloud(brokers, command, moment):
    brokers.on("ApiVersions", moment)
    done = command("metadata", "orders")
    assert done.exit_code == 0
    places = brokers.bootstrap_servers.replace(",", ", ")
    assert done.stderr.splitlines()[0] == f"no broker has answered yet, still trying {places}"


def test_where_a_broker_has_answered_nothing_is_said(brokers, command, moment):
    brokers.on("ListOffsets", moment)
    assert command("offsets", "orders").stderr == ""


@pytest.mark.usefixtures("known_at_once")
def test_metadata_of_a_topic_that_is_not_there_shows_no_empty_table(command):
    done = command("metadata", "odrers")
    assert done.exit_code == 1
    assert done.stdout.endswith("0 topics, 0 partitions\n")
    assert "topic 'odrers': UNKNOWN_TOPIC_OR_PARTITION (3)" in done.stderr


def test_metadata_as_table_and_as_json(command, rows):
    shown = command("metadata", "orders").stdout
    assert "cluster fake, 2 brokers" in shown
    found = rows("metadata")
    assert [item["id"] for item in found["brokers"]] == [1, 2]
    ids = {item["name"]: item["topic_id"] for item in found["topics"]}
    assert ids == {name: id_text(topic_id_of(name)) for name in ("orders", "empty")}
    assert found["problems"][0]["what"] == "too few replicas in sync"


def test_one_is_singular(brokers, command):
    del brokers.topics["orders"]
    shown = command("metadata").stdout
    assert "2 brokers\n" in shown
    assert "\n1 topic, 1 partition\n" in shown


def test_a_misspelt_command_is_told_which_was_meant(command):
    done = command("lagg")
    assert done.exit_code == 2
    assert "No such command 'lagg'. Did you mean 'lag'?" in done.stderr
    assert "Did you mean" not in command("nonsense").stderr
    assert "Did you mean" not in command("--lagg").stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("list", "nightly"), ("recover", "nightly", "--yes")])
def test_where_no_topic_of_decisions_is_nothing_was_decided(command, words):
    done = command("transactions", *words)
    assert done.exit_code == 1
    assert "there is no topic 'kafkaproto-decisions'" in done.stderr
    assert "nothing was decided there; --decision-topic " in done.stderr
    assert "UNKNOWN_TOPIC" not in done.stderr


def test_decisions_are_looked_for_where_writers_make_them(command):
    (option,) = [option for option in OPTIONS if option.name == "decisionTopic"]
    assert f"[default: {option.default}]" in " ".join(
        command("transactions", "list", "--help").stdout.split()
    )


def test_pipe_gets_plain_columns(command):
    first, second = command("offsets", "orders").stdout.splitlines()[:2]
    assert first.split() == ["Topic", "Partition", "Earliest", "Latest", "Offsets"]
    assert second.split() == ["orders", "0", "0", "30", "30"]
    assert "\x1b" not in command("offsets", "orders", color=True).stdout


@pytest.mark.slow
def test_offsets_at(rows):
    assert [row["offset"] for row in rows("offsets", "orders:0", "--at", "latest")] == [30]
    assert [row["offset"] for row in rows("offsets", "orders:0", "--at", "last-stable")] == [30]
    assert [row["offset"] for row in rows("offsets", "orders:0", "--at=-1h")] == [0]


@pytest.mark.slow
@pytest.mark.parametrize("at", [(), ("--at", "latest"), ("--at=-1h",)], ids=str)
def test_offsets_of_what_somebody_leads_are_shown(brokers, command, at):
    brokers.topics["orders"].move(1, -1)
    soon = ("--json", "-X", "default.api.timeout.ms=1500")
    done = command("offsets", "orders", "empty", *at, *soon)
    shown = [(row["topic"], row["partition"]) for row in json.loads(done.stdout)]
    assert shown == [("empty", 0), ("orders", 0)]
    assert done.exit_code
    assert "orders-1: LEADER_NOT_AVAILABLE" in done.stderr
    assert command("offsets", "orders:1", *at, *soon).stdout == ""


@pytest.mark.slow
def test_consume_prints_what_somebody_leads_and_tells_of_the_rest(brokers, command):
    """For a group, too: what it has committed of the others is left as it was."""
    coordinator = FakeCoordinator(brokers, g={("orders", 1): (4, "")})
    brokers.topics["orders"].move(1, -1)
    soon = ("--format", "raw", "-X", "default.api.timeout.ms=1500")
    for words in ((), ("--group", "g", "--commit")):
        done = command("consume", "orders", *words, *soon)
        assert done.stdout_bytes.splitlines() == WHOLE
        assert done.exit_code
        assert "orders-1: LEADER_NOT_AVAILABLE" in done.stderr
        assert done.stderr.startswith("nobody leads orders-1: waiting\n")
    assert coordinator.offsets["g"] == {("orders", 0): (30, ""), ("orders", 1): (4, "")}
    done = command("consume", "orders", "-n", "30", *soon)
    assert (done.exit_code, done.stderr) == (0, ""), "there is nothing to wait for"


@pytest.mark.parametrize("words", [(), ("--group", "g", "--commit")])
def test_consume_waits_for_a_leader_once_the_others_are_printed(
    brokers, command, monkeypatch, words
):
    coordinator = FakeCoordinator(brokers, g={("orders", 1): (4, "")})
    brokers.logs["orders", 1].fill(1)
    topic = brokers.topics["orders"]
    topic.move(1, -1)
    printed = []

    def elect(text, **_):
        printed.append(text)
        topic.move(1, node_id=2)

    monkeypatch.setattr(consume.click, "echo", elect)
    done = command("consume", "orders", "--format", "raw", *words)
    later = WHOLE[4:10] if words else WHOLE[:10]
    assert (done.exit_code, done.stdout_bytes.splitlines()) == (0, WHOLE + later)
    assert printed == ["nobody leads orders-1: waiting"]
    if words:
        assert coordinator.offsets["g"] == {("orders", 0): (30, ""), ("orders", 1): (10, "")}


@pytest.mark.parametrize(
    ("start", "seen"), [("earliest", WHOLE[:10]), ("latest", []), ("9", WHOLE[9:10])]
)
def test_a_follower_reads_what_nobody_leads_once_somebody_does(
    brokers, command, monkeypatch, at_each_look, start, seen
):
    stop_clock(monkeypatch, routing)
    brokers.logs["orders", 1].fill(1)
    brokers.topics["orders"].move(1, -1)

    def happen():
        brokers.logs["orders", 0].append(b"meanwhile")
        yield
        brokers.topics["orders"].move(1, node_id=2)
        yield
        brokers.logs["orders", 1].append(b"later")
        yield
        raise KeyboardInterrupt

    at_each_look(happen().__next__)
    done = command("consume", "orders", "--follow", "--format", "raw", "--from", start)
    first = {"earliest": WHOLE, "latest": [], "9": WHOLE[9:]}[start]
    assert done.stdout_bytes.splitlines() == [*first, b"meanwhile", *seen, b"later"]
    assert done.exit_code == 130


@pytest.mark.slow
@pytest.mark.parametrize("from_the_start", [True, False])
@pytest.mark.parametrize("words", [[], ["--group", "g", "--commit"]])
def test_a_follower_outlasts_a_leader_that_is_lost_in_the_midst_of_reading(
    brokers, command, at_each_look, from_the_start, words
):
    coordinator = FakeCoordinator(brokers)
    topic, log = brokers.topics["orders"], brokers.logs["orders", 1]
    topic.move(1, node_id=2)

    def fill():
        log.fill(3)
        # A batch at a time, of which the second never comes.
        brokers.on("Fetch", DEFAULT, lose, node=2)

    def lose(call):
        topic.move(1, -1)
        brokers.on("ListOffsets", close(), node=2)
        return close()

    def happen():
        if not from_the_start:
            fill()
            yield
        brokers.logs["orders", 0].append(b"meanwhile")
        yield
        for api in ("Fetch", "ListOffsets"):
            brokers.on(api, DEFAULT, node=2)
        topic.move(1, node_id=2)
        yield
        log.append(b"later")
        yield
        raise KeyboardInterrupt

    if from_the_start:
        fill()
    at_each_look(happen().__next__)
    soon = ["-X", "default.api.timeout.ms=1500", "-X", "max.partition.fetch.bytes=100"]
    done = command("consume", "orders", "--follow", "--format", "raw", *soon, *words)
    assert done.exit_code == 130
    printed = done.stdout_bytes.splitlines()
    assert printed == [*WHOLE, *WHOLE[:10], b"meanwhile", *WHOLE[10:], b"later"]
    assert "orders-1" in done.stderr
    assert done.stderr.count("tried again as long as it is followed") == 1
    if words:
        assert coordinator.offsets["g"] == {("orders", 0): (31, ""), ("orders", 1): (31, "")}


def test_a_follower_ends_where_nobody_tells_of_the_cluster(brokers, command, at_each_look):
    at_each_look(lambda: brokers.on("Metadata", close()) or brokers.on("ListOffsets", close()))
    soon = ["-X", "default.api.timeout.ms=1000"]
    done = command("consume", "orders", "--follow", "--format", "raw", *soon)
    assert done.exit_code == 4
    assert "the broker closed the connection" in done.stderr


def test_a_follower_notices_a_cut_off_of_what_it_began_with(brokers, command, at_each_look):
    """Though it has grown again since: its leader's epoch is that of the look at its end."""

    def cut_off():
        brokers.topics["orders"].move(0, node_id=2)
        brokers.logs["orders", 0].cut_off(10)
        brokers.logs["orders", 0].fill(3)

    at_each_look(cut_off)
    done = command("consume", "orders", "--follow", "--format", "raw")
    assert "orders-0 was cut off at offset 10" in done.stderr


@pytest.mark.usefixtures("brokers")
def test_offsets_at_a_misspelt_word_names_all_that_there_are(command):
    said = command("offsets", "orders", "--at", "last-stabel").stderr
    assert "expected earliest, latest, last-stable, max-timestamp, 2026-" in said


def test_an_offset_whose_record_is_gone_is_told_of_as_one_behind_the_end(brokers, command):
    brokers.logs["orders", 0].start = 28
    words = ("consume", "orders:0", "--format", "raw", "--from")
    done = command(*words, "5")
    assert (done.exit_code, done.stdout_bytes.splitlines()) == (0, WHOLE[28:])
    assert done.stderr == "orders-0: offsets 5 to 27 are gone, it begins at 28 now\n"
    for where in ("28", "earliest", "last:9"):
        assert command(*words, where).stderr == ""


@pytest.mark.slow
def test_consume_formats_and_bounds(command):
    def values(*words):
        done = command("consume", "orders", "--format", "raw", *words)
        assert done.exit_code == 0, done.output
        return done.stdout_bytes.splitlines()

    assert values() == WHOLE
    assert values("--from", "27") == WHOLE[27:]
    assert values("--from", "last:2") == WHOLE[28:]
    assert values("--from", "5", "--to", "8") == WHOLE[5:8]
    assert values("--from", "latest") == []
    assert values("--from", "30") == []
    done = command("consume", "orders:0", "--from", "31")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "orders-0: it ends at offset 30\n"
    assert command("consume", "orders:0", "--from", "30").stderr == ""
    done = command("consume", "orders:0", "--from", "8", "--to", "5")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "orders-0: --to is offset 5, before the start 8\n"
    assert values("-n", "4") == WHOLE[:4]
    assert values("--from", "-10m", "-n", "1", "--follow") == WHOLE[:1]
    first = json.loads(command("consume", "orders", "-n", "1").stdout)
    assert (first["topic"], first["partition"], first["offset"]) == ("orders", 0, 0)


def test_the_last_records_are_not_the_markers_behind_them(brokers, command):
    brokers.logs["orders", 0].append(b"", key=bytes(4), attributes=CONTROL)
    done = command("consume", "orders", "--from", "last:2", "--format", "raw")
    assert done.stdout_bytes.splitlines() == WHOLE[28:]


@pytest.mark.usefixtures("brokers")
def test_a_follower_has_no_end(command):
    """It printed, and committed, what lies behind it."""
    done = command("consume", "orders:0", "--to", "5", "-n", "9", "--follow")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--to does not go with it" in done.stderr
    assert command("consume", "orders:0", "--to", "latest", "-n", "9", "--follow").exit_code == 0


@pytest.mark.slow
def test_consume_says_that_no_record_is_as_new_as_its_start(command, brokers):
    brokers.logs["orders", 0].newest_ms = 1_000_000
    done = command("consume", "orders:0", "--from", "2001-01-01")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "orders-0: no record is as new as 2001-01-01\n"
    done = command("consume", "orders:0", "--from", "27", "--to", "2001-01-01", "--format", "raw")
    assert (done.stdout_bytes.splitlines(), done.stderr) == (WHOLE[27:], "")


@pytest.mark.slow
def test_consume_says_how_the_last_records_are_asked_for(command):
    done = command("consume", "orders", "--from", "latest-1")
    assert done.exit_code == 2
    assert "'latest-1'" in done.stderr
    assert "last:1 for the last record of each partition" in done.stderr
    done = command("consume", "orders", "--from", "-10")
    assert done.exit_code == 2
    assert "'--from' is '-10': write last:10 for the last 10 records" in done.stderr
    assert "or -10m" in done.stderr


@pytest.mark.parametrize(
    ("given", "there"),
    [("orders:9", "orders has the partitions 0 to 1"), ("empty:1", "empty has partition 0 alone")],
)
def test_a_partition_that_is_not_there_is_told_which_are(command, given, there):
    done = command("consume", given)
    assert done.exit_code == 2
    assert f"there is no {given.replace(':', '-')}: {there}\n" in done.stderr


@pytest.mark.slow
def test_consume_for_a_group_commits_what_was_printed_and_only_when_told(brokers, command):
    coordinator = FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    words = ("consume", "orders", "--group", "g", "--format", "raw")
    assert command(*words, "-n", "3").stdout_bytes.splitlines() == WHOLE[20:23]
    assert coordinator.offsets["g"] == {("orders", 0): (20, "")}
    assert command(*words, "-n", "3", "--commit").stdout_bytes.splitlines() == WHOLE[20:23]
    assert coordinator.offsets["g"] == {("orders", 0): (23, "")}
    assert command(*words, "--commit").stdout_bytes.splitlines() == WHOLE[23:]
    assert coordinator.offsets["g"] == {("orders", 0): (30, "")}
    assert command("consume", "orders", "--commit").exit_code == 2


@pytest.mark.slow
def test_consume_for_a_share_group_is_refused_before_anything_is_printed(brokers, command):
    FakeShareCoordinator(brokers, workers={("orders", 0): (20, 0)})
    for words in ([], ["--commit"]):
        done = command("consume", "orders", "--group", "workers", *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "'workers': it is a share group, to which nothing is committed" in done.stderr
    # A group that there is not yet begins at the earliest.
    done = command("consume", "orders", "--group", "new", "--format", "raw")
    assert done.stdout_bytes.splitlines() == WHOLE


@pytest.mark.parametrize("offsets", [{}, {("orders", 0): (20, "")}])
def test_consume_for_a_group_with_members_commits_nothing_and_so_prints_nothing(
    brokers, command, offsets
):
    """Whoever takes what is printed would get it again."""
    FakeCoordinator(brokers, g=offsets)
    describing(brokers, classic("g", assigned(0)))
    words = ("consume", "orders", "--group", "g", "--format", "raw", "-n", "1")
    done = command(*words, "--commit")
    assert (done.exit_code, done.stdout_bytes) == (1, b"")
    assert "group 'g': NON_EMPTY_GROUP (68): it has members (1: " in done.stderr
    assert command(*words).exit_code == 0


@pytest.mark.slow
def test_consume_for_a_group_says_what_was_committed_for_and_is_gone(brokers, command):
    brokers.logs["orders", 0].start = 10
    coordinator = FakeCoordinator(brokers, g={("orders", 0): (4, "")})
    words = ("consume", "orders", "--group", "g", "--format", "raw")
    done = command(*words, "-n", "2")
    assert done.stdout_bytes.splitlines() == WHOLE[10:12]
    assert "orders-0: offsets 4 to 9 are gone, it begins at 10 now" in done.stderr
    coordinator.offsets["g"] = {("orders", 0): (31, "")}
    done = command(*words, "--commit")
    assert done.exit_code == 2
    assert "'g' has committed 31 for orders-0, which ends at 30" in done.stderr
    assert coordinator.offsets["g"] == {("orders", 0): (31, "")}
    # Its last stable offset may well lie before what was committed.
    done = command(*words, "--commit", "-X", "isolation.level=read_committed")
    assert (done.exit_code, done.stdout_bytes) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize(("start", "printed"), [("earliest", WHOLE), ("latest", [])])
def test_a_follower_does_not_go_on_in_a_topic_of_the_same_name(
    brokers, command, monkeypatch, at_each_look, start, printed
):
    stop_clock(monkeypatch, routing)

    def made_anew():
        brokers.topics["orders"].topic_id = bytes(range(16))
        brokers.logs["orders", 0].fill(2)

    at_each_look(made_anew)
    coordinator = FakeCoordinator(brokers)
    if start == "latest":
        coordinator.offsets["g"] = {("orders", 0): (30, "")}
    before = dict(coordinator.offsets)
    words = ("--format", "raw", "-n", "40", "--group", "g", "--commit")
    done = command("consume", "orders", "--follow", *words)
    assert done.stdout_bytes.splitlines() == printed
    assert coordinator.offsets == before
    assert done.exit_code == 1
    assert "topic 'orders' was deleted and made anew" in done.stderr
    assert "option" not in done.stderr


def test_records_that_are_gone_by_the_time_they_are_read_are_told_without_python(
    brokers, command, monkeypatch
):
    """Who typed a command was advised to use an argument of ReadSettings."""
    begin = consume.Following.begin

    def then_deleted(following, starts):
        begin(following, starts)
        brokers.logs["orders", 0].start = 20

    monkeypatch.setattr(consume.Following, "begin", then_deleted)
    done = command("consume", "orders", "--format", "raw")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "it holds the offsets 20 to 30 now. Who starts anew reads" in done.stderr
    assert "ReadSettings" not in done.stderr


@pytest.mark.slow
def test_what_was_printed_of_a_topic_made_anew_since_is_not_committed(
    brokers, command, monkeypatch
):
    """A commit goes by name: who reads the new one for the group would pass over as much of it."""
    stop_clock(monkeypatch, routing)
    note_read = consume.Following.note_read

    def then_made_anew(following, record):
        note_read(following, record)
        if record["offset"] == 29:
            brokers.topics["orders"].topic_id = bytes(range(16))

    monkeypatch.setattr(consume.Following, "note_read", then_made_anew)
    coordinator = FakeCoordinator(brokers)
    done = command("consume", "orders", "--format", "raw", "--group", "g", "--commit")
    assert done.stdout_bytes.splitlines() == WHOLE
    assert "topic 'orders' was deleted and made anew" in done.stderr
    assert (done.exit_code, coordinator.offsets) == (1, {})


def test_a_commit_that_fails_does_not_hide_what_ended_the_reading(
    brokers, command, monkeypatch, at_each_look
):
    """Of a topic that was deleted all that was said was that nothing can be committed for it."""
    coordinator = FakeCoordinator(brokers)
    brokers.on("OffsetCommit", committing(29))

    def deleted(_):
        raise BrokerError(3, "ListOffsets", "partition orders-0")

    at_each_look(lambda: None)
    monkeypatch.setattr(consume.Following, "newer_ends", deleted)
    words = ("--format", "raw", "--group", "g", "--commit")
    done = command("consume", "orders", "--follow", *words)
    assert done.stdout_bytes.splitlines() == WHOLE
    assert done.exit_code == 1
    first, second = done.stderr.splitlines()[:2]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in first
    assert "what was printed is not committed: " in second
    assert not coordinator.offsets.get("g")


def test_a_follower_notices_an_end_that_came_back(brokers, command, monkeypatch, at_each_look):
    stop_clock(monkeypatch, routing)

    def happen():
        brokers.logs["orders", 0].cut_off(20)
        yield

    at_each_look(happen().__next__)
    done = command("consume", "orders", "--follow", "--format", "raw")
    assert done.stdout_bytes.splitlines() == WHOLE
    assert done.exit_code == 1
    assert "orders-0 ended at offset 30 and ends at 20 now" in done.stderr


@pytest.mark.usefixtures("opinions_at_once")
def test_a_follower_asks_others_before_it_believes_that_an_end_came_back(
    brokers, command, at_each_look
):
    def happen():
        lead_in_the_past(brokers, "orders", end=20)
        yield
        brokers.logs["orders", 0].append(b"later")
        yield
        raise KeyboardInterrupt

    at_each_look(happen().__next__)
    done = command("consume", "orders", "--follow", "--format", "raw")
    assert done.stdout_bytes.splitlines() == [*WHOLE, b"later"]
    assert done.exit_code == 130


@pytest.mark.slow
def test_groups(brokers, rows, command):
    FakeCoordinator(brokers, g={("orders", 0): (20, "by me")})
    describing(brokers, classic("g", assigned(0)))
    brokers.on("ListGroups", listed(("g", "Classic", "Stable")))
    assert [row["group"] for row in rows("groups", "list", "--state", "stable")] == ["g"]
    assert rows("groups", "offsets", "g")[0]["metadata"] == "by me"
    (described,) = rows("groups", "describe", "g")
    assert described["members"][0]["assignment"] == ["orders-0"]
    assert described["members"][0]["target"] == ["orders-0"]
    assert (described["protocol_type"], described["epoch"]) == ("consumer", None)
    assert "m0" in command("groups", "describe", "g").stdout
    assert [(row["lag"], row["owner"]) for row in rows("lag", "g")] == [(10, "m0")]
    refused = command("groups", "reset", "g", "--to-earliest", "--yes")
    assert refused.exit_code == 1
    assert "NON_EMPTY_GROUP" in refused.stderr


@pytest.mark.slow
def test_offsets_of_a_group_that_is_not_there_say_so(brokers, rows, command):
    FakeCoordinator(brokers, silent={("orders", 0): (20, "")})
    describing(brokers, classic("new", assigned(0)))
    assert [row["offset"] for row in rows("groups", "offsets", "silent")] == [20]
    assert rows("groups", "offsets", "new") == []
    refused = command("groups", "offsets", "ghost")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "group 'ghost': GROUP_ID_NOT_FOUND" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "after"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 30),
        (["--shift=-5"], 15),
        (["--shift=0"], 20),
        (["--to", "orders:0=7"], 7),
        (["--to-time", "-1h"], 0),
        (["--back-by", "1h"], 0),
    ],
)
def test_reset_moves_after_a_yes(brokers, command, way, after):
    coordinator = FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    words = ("groups", "reset", "g", *way)
    assert command(*words, "--dry-run").exit_code == 0
    assert command(*words, input="n\n").exit_code == 1
    assert command(*words, input="").exit_code == 2
    assert coordinator.offsets["g"] == {("orders", 0): (20, "")}
    done = command(*words, input="y\n")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split() == ["orders", "0", "20", str(after)]
    assert coordinator.offsets["g"] == {("orders", 0): (after, "")}


def test_reset_shows_a_terminal_its_table_once(brokers, command, monkeypatch):
    coordinator = FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    done = command("groups", "reset", "g", "--to-earliest", input="y\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.count("orders") == 1
    assert done.stderr.endswith("moved the offsets of group g\n")
    assert coordinator.offsets["g"] == {("orders", 0): (0, "")}
    assert "orders" in command("groups", "reset", "g", "--to-latest", "--yes").stdout


def test_reset_of_a_group_that_is_new_asks_for_topics_by_their_option(brokers, command):
    FakeCoordinator(brokers)
    done = command("groups", "reset", "new", "--to-earliest", "--yes")
    assert done.exit_code == 2
    assert "group new has no offsets: name what to reset, --topic TOPIC" in done.stderr
    assert "partitions" not in done.stderr


def test_reset_takes_one_way(brokers, command):
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    two, beside = ["--to-earliest", "--to-latest"], ["--to-latest", "--shift=0"]
    for ways in ([], two, beside, ["--to", "orders:0=1", "--topic", "orders"]):
        assert command("groups", "reset", "g", *ways, "--dry-run").exit_code == 2


@pytest.mark.slow
def test_nothing_is_deleted_without_a_yes(brokers, command):
    part = DeleteTopicsResponse.Topic
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=(part(name="orders"),)))
    assert command("topics", "delete", "orders", input="n\n").exit_code == 1
    unasked = command("topics", "delete", "orders")
    assert unasked.exit_code == 2
    assert "[y/N]: \nUsage: " in unasked.stderr
    assert "Error: nobody answers the question: --yes is needed" in unasked.stderr
    assert command("topics", "alter", "orders", "--delete-records", "0=1").exit_code == 2
    assert brokers.asked("DeleteTopics") == brokers.asked("DeleteRecords") == []
    assert command("topics", "delete", "orders", "--yes").exit_code == 0
    assert len(brokers.asked("DeleteTopics")) == 1


def test_configs_of_all_that_have_any_are_listed_and_shown(brokers, command, rows):
    listed = ListConfigResourcesResponse.ConfigResource
    groups = tuple(listed(resource_name=name, resource_type=32) for name in ("b", "a"))
    brokers.on("ListConfigResources", ListConfigResourcesResponse(config_resources=groups))
    told = [{"type": "group", "name": "a"}, {"type": "group", "name": "b"}]
    assert rows("configs", "list", "group", "topic") == rows("configs", "list") == told
    asked = brokers.asked("ListConfigResources")
    assert [request.resource_types for request in asked] == [(2, 32), ()]

    part = DescribeConfigsResponse.Resource
    entries = (
        part.Config(name="x", value="5", config_source=8),
        part.Config(name="y", value="6", config_source=5),
    )
    found = (part(resource_type=32, resource_name=name, configs=entries) for name in "ba")
    brokers.on("DescribeConfigs", DescribeConfigsResponse(results=tuple(found)))
    assert command("configs", "describe", "group").stdout.splitlines() == [
        "Of  Setting  Value  Set by  Read-only",
        "a   x        5      group   no",
        "b   x        5      group   no",
    ]
    assert len(rows("configs", "describe", "group", "--all")) == 4
    assert {row["resource"] for row in rows("configs", "describe", "group")} == {"a", "b"}
    assert command("configs", "list", "groups").exit_code == 2


@pytest.mark.slow
def test_configs_are_shown_and_altered(brokers, rows, command):
    part = DescribeConfigsResponse.Resource
    entries = (
        part.Config(name="retention.ms", value="5", config_source=1),
        part.Config(name="default", value="6", config_source=5),
        part.Config(name="password", value=None, config_source=4, is_sensitive=True),
    )
    found = part(resource_type=2, resource_name="orders", configs=entries)
    brokers.on("DescribeConfigs", DescribeConfigsResponse(results=(found,)))
    told = rows("configs", "describe", "topic", "orders")
    assert {row["name"]: row["value"] for row in told} == {
        "retention.ms": "5",
        "password": "(secret)",
    }
    assert [row["is_sensitive"] for row in told] == [True, False]
    assert len(rows("configs", "describe", "topic", "orders", "--all")) == 3
    assert rows("topics", "describe", "orders")["configs"][0]["name"] == "retention.ms"

    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    words = ("configs", "alter", "topic", "orders")
    assert command(*words, "--set", "a=1", "--unset", "default", "--append", "c=x").exit_code == 0
    (request,) = brokers.asked("IncrementalAlterConfigs")
    assert [
        (item.name, item.config_operation, item.value) for item in request.resources[0].configs
    ] == [("a", 0, "1"), ("c", 2, "x"), ("default", 1, None)]
    assert command(*words).exit_code == 2
    assert command("configs", "alter", "broker", "1", "--set", "a=1").exit_code == 2  # unconfirmed
    assert len(brokers.asked("IncrementalAlterConfigs")) == 1


def having(brokers, *settings, error_code=0):
    """Topic orders has these settings."""
    part = DescribeConfigsResponse.Resource
    entries = tuple(part.Config(name=name, value="1", config_source=5) for name in settings)
    found = part(error_code=error_code, resource_type=2, resource_name="orders", configs=entries)
    brokers.on("DescribeConfigs", DescribeConfigsResponse(results=(found,)))


@pytest.mark.parametrize(
    "words",
    [
        ("configs", "alter", "topic", "orders", "--set", "a=1"),
        ("configs", "alter", "topic", "orders", "--validate-only"),
        ("topics", "alter", "orders", "--partitions", "3", "--delete-records", "0=1"),
    ],
)
def test_a_setting_to_unset_that_there_is_not_is_refused(brokers, command, words):
    having(brokers, "max.message.bytes", "retention.ms")
    done = command(*words, "--unset", "retenton.ms", "--yes")
    assert done.exit_code == 2
    assert (
        "option '--unset' is 'retenton.ms': topic 'orders' has no such setting; "
        "did you mean retention.ms?"
    ) in done.stderr
    for api in ("IncrementalAlterConfigs", "CreatePartitions", "DeleteRecords"):
        assert brokers.asked(api) == []


def lists(*settings):
    """Whoever is asked has these settings, of the broker or client metrics asked about."""

    def described(call):
        (asked,) = call.request.resources
        part = DescribeConfigsResponse.Resource
        # Of all brokers together what is set alone is told.
        names = settings if asked.resource_name else ()
        entries = tuple(part.Config(name=name, value="1", config_source=5) for name in names)
        found = part(
            resource_type=asked.resource_type, resource_name=asked.resource_name, configs=entries
        )
        return DescribeConfigsResponse(results=(found,))

    return described


@pytest.mark.parametrize(
    ("kind", "name"), [("broker", "1"), ("broker", ""), ("client-metrics", "m")]
)
def test_settings_of_brokers_and_client_metrics_are_refused_as_those_of_topics(
    brokers, command, kind, name
):
    brokers.on("DescribeConfigs", lists("interval.ms"))
    done = command("configs", "alter", kind, name, "--unset", "intervall.ms", "--yes")
    assert done.exit_code == 2
    assert "has no such setting; did you mean interval.ms?" in done.stderr
    assert not brokers.asked("IncrementalAlterConfigs")


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize("setting", ["interval.ms", "leader.replication.throttled.rate"])
def test_settings_of_brokers_are_unset_that_these_do_not_list(brokers, command, name, setting):
    brokers.on("DescribeConfigs", lists("interval.ms"))
    well = IncrementalAlterConfigsResponse.Resource(resource_type=4, resource_name=name)
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    done = command("configs", "alter", "broker", name, "--unset", setting, "--yes")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("refused", [29, 30], ids=["topic", "group"])
def test_a_setting_is_unset_by_one_who_may_not_see_it(brokers, command, refused):
    having(brokers, error_code=refused)
    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    done = command("configs", "alter", "topic", "orders", "--unset", "max.message.bytes")
    assert done.exit_code == 0, done.output


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["retention.ms", "local.retention.bytes", "cleanup.policy"])
def test_what_brokers_delete_records_by_is_asked_about(brokers, command, setting):
    having(brokers, setting)
    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    ways = (
        ("configs", "alter", "topic", "orders", "--set", f"{setting}=1"),
        ("configs", "alter", "topic", "orders", "--unset", setting),
        ("topics", "alter", "orders", "--config", f"{setting}=1"),
        ("topics", "alter", "orders", "--unset", setting),
    )
    for words in ways:
        done = command(*words)
        assert done.exit_code == 2, done.output
        assert f"Change {setting} of topic orders? Brokers may delete records" in done.stderr
    assert not brokers.asked("IncrementalAlterConfigs")
    for words in ways:
        assert command(*words, "--yes").exit_code == 0
    assert brokers.asked("IncrementalAlterConfigs")


@pytest.mark.parametrize(
    ("kind", "number", "is_told", "is_old"),
    [("group", 32, True, True), ("client-metrics", 16, True, False), ("topic", 2, False, False)],
)
def test_settings_that_brokers_of_3_9_lack_are_said_to_be(
    brokers, command, kind, number, is_told, is_old
):
    """Those of groups lack with KRaft, too: it was said that the cluster had ZooKeeper."""
    part = IncrementalAlterConfigsResponse.Resource
    refused = part(
        error_code=42,
        error_message=f"Unknown resource type {number}",
        resource_type=number,
        resource_name="reports",
    )
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(refused,)))
    done = command("configs", "alter", kind, "reports", "--set", "a=1")
    assert (done.exit_code, "ZooKeeper" in done.stderr) == (1, is_told)
    assert ("brokers before Kafka 4.0" in done.stderr) == is_old
    assert f"Unknown resource type {number}" in done.stderr
    part = DescribeConfigsResponse.Resource
    refused = part(error_code=42, resource_type=number, resource_name="reports")
    brokers.on("DescribeConfigs", DescribeConfigsResponse(results=(refused,)))
    done = command("configs", "describe", kind, "reports")
    assert (done.exit_code, "ZooKeeper" in done.stderr) == (1, is_told)


@pytest.mark.usefixtures("known_at_once")
def test_configs_of_a_topic_that_is_not_there_say_so(brokers, command):
    missing = DescribeConfigsResponse.Resource(error_code=3, resource_type=2, resource_name="ghost")
    brokers.on("DescribeConfigs", DescribeConfigsResponse(results=(missing,)))
    done = command("configs", "describe", "topic", "ghost")
    assert done.exit_code == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION (3): there is no such topic" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "alter", "orders", "--delete-records", "0=1", "--config", "x=1", "--unset", "x"),
        ("configs", "alter", "broker", "1", "--set", "x=1", "--append", "x=1"),
    ],
)
def test_two_changes_of_one_setting_are_refused_before_anything_is_asked(brokers, command, words):
    done = command(*words, input="y\n")
    assert done.exit_code == 2
    assert "expected one change of each setting" in done.stderr
    assert "[y/N]" not in done.stderr
    assert brokers.asked("IncrementalAlterConfigs") == []


def test_no_command_has_an_option_of_the_connection_twice():
    for name in kafkaproto.list_commands(None):
        found = kafkaproto.get_command(None, name)
        for each in (found, *getattr(found, "commands", {}).values()):
            names = [item.name for item in each.params]
            assert len(set(names)) == len(names), each.name


@pytest.mark.slow
def test_topics_created_and_altered(brokers, command):
    made = CreateTopicsResponse.Topic(name="new")
    there = CreateTopicsResponse.Topic(name="new", error_code=36)
    brokers.on("CreateTopics", *(CreateTopicsResponse(topics=(item,)) for item in (made, there)))
    words = ("topics", "create", "new")
    assert command(*words, "-p", "3", "-c", "a=b").exit_code == 0
    assert command(*words).exit_code == 1
    assert command(*words, "--if-not-exists").exit_code == 0
    for wrong in ("0=x", "0=2147483648", "2147483648=0", f"0={'9' * 5000}"):
        assert command(*words, "--assign", wrong).exit_code == 2
    assert command(*words, "-p", str(2**31)).exit_code == 2
    assert command(*words, "-r", str(2**15)).exit_code == 2
    assert command("topics", "alter", "new").exit_code == 2
    assert command("topics", "list").stdout.splitlines()[1].split() == ["empty", "1", "2"]


@pytest.mark.slow
def test_topics_alter_does_all_or_nothing_of_what_can_be_asked_before(brokers, command):
    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    part = CreatePartitionsResponse.Topic
    few = part(name="orders", error_code=37, error_message="2 would not be an increase")
    brokers.on("CreatePartitions", CreatePartitionsResponse(results=(few,)))
    words = ("topics", "alter", "orders", "-c", "retention.ms=5", "--yes")

    def asked():
        """Whether each request was only to be validated."""
        apis = ("IncrementalAlterConfigs", "CreatePartitions", "DeleteRecords")
        calls = (call for api in apis for call in brokers.asked(api))
        return [getattr(call, "validate_only", False) for call in calls]

    assert command(*words, "-p", "2").exit_code == 1
    assert command(*words, "--delete-records", "9=5").exit_code == 1
    assert all(asked())
    brokers.on("CreatePartitions", CreatePartitionsResponse(results=(part(name="orders"),)))
    assert command(*words, "-p", "3").exit_code == 0
    assert asked().count(False) == 2


def test_what_was_deleted_is_told_where_the_rest_was_refused(brokers, command):
    part = DeleteTopicsResponse.Topic
    topics = part(name="empty"), part(name="orders", error_code=73)
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=topics))
    done = command("topics", "delete", "empty", "orders", "--yes")
    assert (done.exit_code, "deleted empty\n" in done.stderr) == (1, True)
    describing(brokers, classic("g", assigned(0)), classic("h", assigned(1)))
    part = DeleteGroupsResponse.Group
    groups = part(group_id="g"), part(group_id="h", error_code=68)
    brokers.on("DeleteGroups", DeleteGroupsResponse(results=groups))
    done = command("groups", "delete", "g", "h", "--yes")
    assert (done.exit_code, "deleted g\n" in done.stderr) == (1, True)


@pytest.mark.slow
def test_what_was_done_is_told_to_programs(brokers, rows, command):
    made = CreateTopicsResponse.Topic(name="new")
    brokers.on("CreateTopics", CreateTopicsResponse(topics=(made,)))
    assert rows("topics", "create", "new") == [{"topic": "new", "result": "created"}]
    having(brokers, "a", "b")
    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    part = DeleteRecordsResponse.Topic
    cut = part(name="orders", partitions=(part.Partition(partition_index=0, low_watermark=5),))
    brokers.on("DeleteRecords", DeleteRecordsResponse(topics=(cut,)))
    assert rows(
        "topics", "alter", "orders", "--unset", "a", "--delete-records", "0=5", "--yes"
    ) == [{"topic": "orders", "result": "altered", "earliest": [{"partition": 0, "offset": 5}]}]
    assert rows("configs", "alter", "topic", "orders", "--set", "a=1", "--unset", "b") == [
        {"type": "topic", "name": "orders", "result": "altered", "settings": ["a", "b"]}
    ]
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    describing(brokers, classic("g"))
    assert rows("groups", "delete", "g", "--topic", "orders:0", "--yes") == [
        {"group": "g", "topic": "orders", "partition": 0, "result": "deleted"}
    ]


def test_what_is_named_twice_is_deleted_and_told_once(brokers, rows):
    part = DeleteTopicsResponse.Topic
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=(part(name="empty"),)))
    (done,) = rows("topics", "delete", "empty", "empty", "--yes")
    assert done == {"topic": "empty", "result": "deleted"}
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    describing(brokers, classic("g"))
    (done,) = rows("groups", "delete", "g", "g", "--topic", "orders:0", "--yes")
    assert done["group"] == "g"


@pytest.mark.usefixtures("known_at_once")
def test_topics_that_are_not_there_are_no_error_on_request(brokers, command):
    part = DeleteTopicsResponse.Topic
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=(part(name="empty"),)))
    words = ("topics", "delete", "--if-exists", "ghost", "empty", "ghost")
    done = command(*words, input="n\n")
    assert (done.exit_code, brokers.asked("DeleteTopics")) == (1, [])
    assert done.stderr.startswith("there is no topic ghost\nDelete empty with all their records?")
    done = command(*words, "--yes", "--json")
    assert (done.exit_code, done.stderr) == (0, "there is no topic ghost\n")
    assert json.loads(done.stdout) == [{"topic": "empty", "result": "deleted"}]
    # Nobody is asked about nothing.
    done = command("topics", "delete", "--if-exists", "ghost")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "there is no topic ghost\nnothing to delete\n"
    done = command("topics", "delete", "--if-exists", "ghost", "--json")
    assert json.loads(done.stdout) == []
    assert len(brokers.asked("DeleteTopics")) == 1


def test_topic_that_may_not_be_seen_is_an_error_though_it_need_not_exist(brokers, command):
    brokers.add_topic("hidden")
    brokers.topics["hidden"].error_code = 29
    done = command("topics", "delete", "--if-exists", "hidden", "empty", "--yes")
    assert (done.exit_code, "TOPIC_AUTHORIZATION_FAILED" in done.stderr) == (5, True)
    assert brokers.asked("DeleteTopics") == []


def test_programs_are_told_what_was_deleted_where_the_rest_was_refused(brokers, command):
    part = DeleteTopicsResponse.Topic
    topics = part(name="empty"), part(name="orders", error_code=73)
    brokers.on("DeleteTopics", DeleteTopicsResponse(responses=topics))
    done = command("topics", "delete", "empty", "orders", "--yes", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == [{"topic": "empty", "result": "deleted"}]


def refusing_second(response, code):
    """An answer about both partitions of orders: the second one's is an error."""
    part = response.Topic.Partition
    both = part(partition_index=0), part(partition_index=1, error_code=code)
    return response(topics=(response.Topic(name="orders", partitions=both),))


@pytest.mark.parametrize("as_json", [False, True])
def test_records_that_were_deleted_are_told_where_other_partitions_refuse(
    brokers, command, as_json
):
    brokers.on("DeleteRecords", refusing_second(DeleteRecordsResponse, 1))
    words = ("topics", "alter", "orders", "--delete-records", "0=0", "--delete-records", "1=99")
    done = command(*words, "--yes", *["--json"] * as_json)
    assert done.exit_code == 1
    assert "orders-0 begins at offset 0 now\n" in done.stderr
    assert "orders-1" in done.stderr.partition("Error: ")[2]
    row = {"topic": "orders", "result": "altered in part"}
    row |= {"earliest": [{"partition": 0, "offset": 0}]}
    assert json.loads(done.stdout or "[]") == [row] * as_json


def test_ends_that_are_known_are_not_told_as_records_that_were_deleted(brokers, command):
    brokers.on("ListOffsets", refusing_second(ListOffsetsResponse, 29))
    words = ("topics", "alter", "orders", "--delete-records", "0=-1", "--delete-records", "1=-1")
    done = command(*words, "--yes", "--json")
    assert (done.exit_code, done.stdout) == (5, "")
    assert "begins at" not in done.stderr


def test_settings_that_were_changed_are_told_where_partitions_are_not_added(brokers, rows, command):
    """Another one may have added some since it was asked whether that can be done."""
    having(brokers, "a")
    well = IncrementalAlterConfigsResponse.Resource(resource_type=2, resource_name="orders")
    brokers.on("IncrementalAlterConfigs", IncrementalAlterConfigsResponse(responses=(well,)))
    part = CreatePartitionsResponse.Topic
    fine, late = part(name="orders"), part(name="orders", error_code=37)
    brokers.on(
        "CreatePartitions", *(CreatePartitionsResponse(results=(item,)) for item in (fine, late))
    )
    done = command("topics", "alter", "orders", "--unset", "a", "-p", "3", "--json")
    assert done.exit_code == 1
    row = {"topic": "orders", "result": "altered in part", "earliest": []}
    assert json.loads(done.stdout) == [row]


@pytest.mark.parametrize("as_json", [False, True])
def test_offsets_that_were_reset_are_told_where_other_partitions_refuse(brokers, command, as_json):
    FakeCoordinator(brokers, g={("orders", 0): (20, ""), ("orders", 1): (0, "")})
    brokers.on("OffsetCommit", refusing_second(OffsetCommitResponse, 29))
    words = ("groups", "reset", "g", "--shift=-5", "--yes", *["--json"] * as_json)
    done = command(*words)
    assert done.exit_code == 5
    assert "orders-1" in done.stderr
    moved = {"topic": "orders", "partition": 0, "before": 20, "after": 15}
    if as_json:
        assert json.loads(done.stdout) == [moved]
    else:
        (_, row) = done.stdout.splitlines()
        assert row.split() == ["orders", "0", "20", "15"]


@pytest.mark.parametrize("as_json", [False, True])
def test_offsets_that_were_deleted_are_told_where_other_partitions_refuse(
    brokers, command, as_json
):
    describing(brokers, classic("g", assigned(1)))
    brokers.on("OffsetDelete", refusing_second(OffsetDeleteResponse, 86))
    words = ("groups", "delete", "g", "--topic", "orders", "--yes", *["--json"] * as_json)
    done = command(*words)
    assert done.exit_code == 1
    assert "deleted offsets of g for orders-0\n" in done.stderr
    row = {"group": "g", "topic": "orders", "partition": 0, "result": "deleted"}
    assert json.loads(done.stdout or "[]") == [row] * as_json


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--help",), ("--version",), ("topics", "--help")])
def test_a_full_disk_is_an_error_for_help_too(words):
    with Path("/dev/full").open("w") as full:
        done = kafkaproto_process(*words, stdout=full)
    assert done.returncode == 1
    assert done.stderr == "Error: standard output cannot be written: No space left on device\n"


def test_as_many_records_as_a_number_can_say_are_all(brokers, command):
    brokers.logs["orders", 0].fill(1)
    done = command("consume", "orders", "--count", str(2**63 - 1))
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 40)
    assert command("consume", "orders", "--count", str(2**63)).exit_code == 2


def test_doctor_says_no_with_its_exit_code(brokers, command):
    assert command("doctor", "--json").exit_code == 0
    brokers.advertised = {2: ("nowhere.invalid", 9092)}
    done = command("doctor")
    assert done.exit_code == 3
    assert "advertised.listeners=" in done.stdout


def test_plot_without_matplotlib_names_the_extra(monkeypatch, command, tmp_path):
    monkeypatch.setattr("pyspark_kafkaproto.cli.plot.find_spec", lambda _: None)
    done = command("lag", "--plot", str(tmp_path / "x.png"))
    assert done.exit_code == 1
    assert "pip install 'pyspark-kafkaproto[plot]'" in done.stderr


@pytest.mark.slow
def test_a_plot_that_cannot_be_written_is_named(brokers, command, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra [plot]; CI has it")
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    full = tmp_path / "full.png"
    full.symlink_to("/dev/full")
    done = command("lag", "g", "--plot", str(full))
    assert done.exit_code == 1
    assert f"{full} cannot be written: No space left" in done.stderr
    done = command("lag", "g", "--watch", "1s", "--plot", "lag.nonsense")
    assert (done.exit_code, ".png" in done.stderr) == (2, True)


@pytest.mark.slow
def test_plot_is_drawn_once_and_over_time(monkeypatch, brokers, command, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra [plot]; CI has it")
    evil = r"$\foo$"
    at = {("orders", 0): (20, "")}
    FakeCoordinator(brokers, **{"g": at, evil: at, "_g": at})
    describing(brokers, *(classic(name) for name in ("g", evil, "_g")))
    file = tmp_path / "lag.png"
    assert command("lag", "g", evil, "_g", "--plot", str(file)).exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    _watch_twice(monkeypatch)
    again = tmp_path / "again.svg"
    assert command("lag", "g", "--watch", "1s", "--plot", str(again)).exit_code == 130
    assert b"<svg" in again.read_bytes()
    _watch_twice(monkeypatch)
    assert command("lag", evil, "_g", "--watch", "1s", "--plot", str(again)).exit_code == 130
    for name in (rb"$\foo$", b"_g"):
        assert b"<!-- %s orders-0 -->" % name in again.read_bytes().replace(b"<!--  ", b"<!-- ")


def _watch_twice(monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(lag_command.time, "sleep", nap)
    return naps


def test_watch_prints_again_until_ctrl_c(monkeypatch, brokers, command):
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    naps = _watch_twice(monkeypatch)
    done = command("lag", "g", "--watch", "5s")
    assert done.exit_code == 130
    assert naps == [5.0, 5.0]
    assert done.stdout.count("Group") == 2


@pytest.mark.slow
def test_watch_remembers_nothing_that_is_not_to_be_drawn(monkeypatch, brokers, command):
    """It may run for weeks."""
    FakeCoordinator(brokers, g={("orders", 0): (20, "")})
    _watch_twice(monkeypatch)
    kept = []
    monkeypatch.setattr(lag_command.LagOverTime, "add", lambda _, rows: kept.append(rows))
    assert command("lag", "g", "--watch", "5s").exit_code == 130
    assert kept == []


def test_completion_scripts(command):
    for shell in ("bash", "zsh", "fish"):
        assert "_KAFKAPROTO_COMPLETE" in command("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (["top"], ["topics"]),
        (["topics", ""], ["alter", "create", "delete", "describe", "list"]),
        (["groups", "reset", "--to-"], ["--to-earliest", "--to-latest", "--to-time"]),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_completion_gives_candidates(command, words, candidates):
    """As bash asks for them, by what its script sets."""
    asked = {
        "_KAFKAPROTO_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["kafkaproto", *words]),
        "COMP_CWORD": str(len(words)),
    }
    assert command(env=asked).stdout.split() == [f"plain,{each}" for each in candidates]


def _process(brokers, *words, **options):
    code = "import sys; from pyspark_kafkaproto.cli import main; sys.argv[0] = 'kafkaproto'; main()"
    environ = os.environ | {"KAFKA_BOOTSTRAP_SERVERS": brokers.bootstrap_servers}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environ} | options,
    )


def _said(told):
    """Without a line that comes where a machine at work takes long to answer."""
    return b"".join(line for line in told.splitlines(True) if b"no broker has answered" not in line)


@pytest.mark.slow
def test_reader_that_goes_away_leaves_no_traceback(brokers):
    brokers.logs["orders", 0].fill(100, records=100, size_bytes=100)
    with _process(brokers, "consume", "orders") as process:
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(20) == 141
    assert _said(told) == b""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["consume", "--help"]])
def test_help_that_nobody_reads_is_no_failure(brokers, words):
    end, start = os.pipe()
    os.close(end)
    with _process(brokers, *words, stdout=start) as process:
        os.close(start)
        assert process.stderr.read() == b""
        assert process.wait(20) == 141


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--help",), ("metadata",), ("consume", "orders")])
def test_output_that_takes_nothing_is_a_line(brokers, words):
    """As with `1<file`: it was a traceback, as was a terminal that has gone."""
    with Path(os.devnull).open("rb") as wrong, _process(brokers, *words, stdout=wrong) as process:
        _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert _said(told) == b"Error: standard output cannot be written: Bad file descriptor\n"


@pytest.mark.slow
def test_a_terminal_that_has_gone_is_a_line(brokers):
    terminal, end = os.openpty()
    with _process(brokers, "consume", "orders", "--follow", stdout=end) as process:
        os.close(end)
        os.read(terminal, 10)
        os.close(terminal)
        brokers.logs["orders", 0].fill(1)
        _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert _said(told) == b"Error: standard output cannot be written: Input/output error\n"


@pytest.mark.parametrize(
    ("happens", "error"),
    [(KeyboardInterrupt, KeyboardInterrupt), (EOFError, click.UsageError)],
    ids=["a signal", "the end of a pipe"],
)
def test_a_signal_at_a_question_is_no_missing_answer(monkeypatch, happens, error):
    """Where a pipe was to answer it was told that --yes is needed, as wrong usage."""
    monkeypatch.setattr("click.termui.visible_prompt_func", Mock(side_effect=happens))
    monkeypatch.setattr(os, "isatty", lambda _: False)
    with pytest.raises(error):
        connection.confirmed("Delete orders?", is_sure=False)


@pytest.mark.slow
def test_streams_that_are_closed_are_empty(brokers):
    def closed(number, *words):
        with _process(brokers, *words, preexec_fn=lambda: os.close(number)) as process:
            _, told = process.communicate(timeout=20)
            return process.returncode, _said(told)

    assert closed(0, "produce", "orders") == (0, b"")
    code, told = closed(0, "topics", "delete", "orders")
    assert (code, b"--yes is needed" in told) == (2, True)
    assert closed(1, "topics", "list") == (0, b"")
    assert closed(2, "topics", "describe", "nosuch")[0] == 1


def test_ctrl_c_while_it_commits_says_that_it_may_not_be_done(brokers, command, monkeypatch):
    FakeCoordinator(brokers)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(consume.Following, "commit_for", interrupted)
    done = command("consume", "orders", "--format", "raw", "--group", "g", "--commit")
    assert (done.exit_code, done.stdout_bytes.splitlines()) == (130, WHOLE)
    assert "what was printed may not be committed" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--group", "g", "--commit"), ("--share-group", "s")])
def test_what_goes_to_a_closed_output_is_neither_committed_nor_accepted(brokers, words):
    """`>&-` closes it; who wants records thrown away says so, with `>/dev/null`."""
    coordinator = FakeCoordinator(brokers)
    FakeShareCoordinator(brokers)
    words = ("consume", "orders", "--count", "5", *words)
    with _process(brokers, *words, stdout=None, preexec_fn=lambda: os.close(1)) as process:
        _, told = process.communicate(timeout=20)
    assert (process.returncode, b"standard output is closed" in told) == (2, True)
    assert "g" not in coordinator.offsets


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_follower_cleanly(brokers, number, code):
    coordinator = FakeCoordinator(brokers)
    words = ("--follow", "--format", "raw", "--group", "g", "--commit")
    with _process(brokers, "consume", "orders", *words) as process:
        assert [process.stdout.readline().rstrip(b"\n") for _ in range(30)] == WHOLE
        process.send_signal(number)
        _, told = process.communicate(timeout=20)
        assert process.returncode == code
    assert coordinator.offsets["g"] == {("orders", 0): (30, "")}
    assert _said(told).strip() == b""
