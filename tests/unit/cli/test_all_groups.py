"""`--all-groups`, and several groups: those with members stay, and are told."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto.cli import output
from pyspark_kafkaproto.messages.delete_groups import DeleteGroupsResponse
from pyspark_kafkaproto.messages.list_groups import ListGroupsResponse
from tests.unit.cluster.committing import FakeCoordinator, committing_each
from tests.unit.cluster.fake_groups import assigned, classic, describing, listed, share
from tests.unit.cluster.sharing import FakeShareCoordinator

FIRST = ("orders", 0)
ALL = ("--all-groups",)


@pytest.fixture
def groups(brokers):
    """Two groups that have committed, a busy one, one that has nothing, a share group, workers."""
    share_groups = FakeShareCoordinator(brokers, shared={FIRST: (25, 4)})
    offsets = {"a": {FIRST: (20, "")}, "b": {FIRST: (10, "")}, "busy": {FIRST: (5, "")}}
    coordinator = FakeCoordinator(brokers, **offsets)
    coordinator.shared = share_groups.starts["shared"]
    names = ("a", "b", "silent")
    busy = classic("busy", assigned(0), assigned(1))
    workers = classic("workers", state="Empty", protocol_type="connect")
    idle = (classic(name, state="Empty") for name in names)
    describing(brokers, *idle, busy, share("shared"), workers)
    part = ListGroupsResponse.Group
    connect = part(group_id="workers", group_type="Classic", protocol_type="connect")
    empty = ((name, "Classic", "Empty") for name in names)
    told = listed(*empty, ("busy", "Classic", "Stable"), ("shared", "Share", "Empty"))

    def answer(call):
        wanted = {kind.lower() for kind in call.request.types_filter}
        found = (*told.groups, connect)
        chosen = (item for item in found if not wanted or item.group_type.lower() in wanted)
        return ListGroupsResponse(groups=tuple(chosen))

    brokers.on("ListGroups", answer)
    brokers.on("DeleteGroups", delete)
    return coordinator


def delete(call):
    part = DeleteGroupsResponse.Group
    results = (part(group_id=name) for name in call.request.groups_names)
    return DeleteGroupsResponse(results=tuple(results))


@pytest.mark.slow
def test_all_are_described(groups, rows, command):
    told = rows("groups", "describe", *ALL)
    assert {row["group"] for row in told} == {"a", "b", "busy", "shared", "silent", "workers"}
    assert [row["group"] for row in rows("groups", "describe", *ALL, "--type", "share")] == [
        "shared"
    ]
    assert rows("groups", "describe", *ALL, "--type", "streams") == []
    assert command("groups", "describe", *ALL, "--type", "streams").exit_code == 0


@pytest.mark.slow
def test_all_are_reset_but_those_with_members(groups, command):
    words = ("groups", "reset", *ALL, "--to-earliest")
    shown = command(*words, "--dry-run")
    assert shown.exit_code == 1
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["Group", "Topic", "Partition", "Before", "After"],
        ["a", "orders", "0", "20", "0"],
        ["b", "orders", "0", "10", "0"],
    ]
    assert "group 'busy': NON_EMPTY_GROUP (68): it has members (2: " in shown.stderr
    assert command(*words, input="n\n").exit_code == 1
    assert groups.offsets["a"] == {FIRST: (20, "")}
    done = command(*words, input="y\n")
    assert (done.exit_code, done.stdout) == (1, shown.stdout)
    assert "Move the offsets of groups a, b?" in done.stderr
    assert "'busy'" in done.stderr
    moved = {FIRST: (0, "")}
    assert groups.offsets == {"a": moved, "b": moved, "busy": {FIRST: (5, "")}}
    assert groups.shared == {FIRST: (25, 4)}, "it is of another tool, in Kafka's words"


def test_a_terminal_is_shown_the_table_once(groups, command, monkeypatch):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    done = command("groups", "reset", *ALL, "--type", "share", "--to-earliest", input="y\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith("moved the offsets of group shared\n")


def test_groups_of_a_type_alone(groups, rows, brokers):
    told = rows("groups", "reset", *ALL, "--type", "share", "--to-latest", "--yes")
    row = {"topic": "orders", "partition": 0, "before": 25, "after": 30}
    assert told == [{"group": "shared", **row}]
    assert rows("groups", "reset", *ALL, "--type", "streams", "--to-latest", "--yes") == []
    assert brokers.asked("OffsetCommit") == []


@pytest.mark.slow
def test_topics_are_those_of_each_group(groups, command, rows):
    words = ("groups", "reset", *ALL, "--type", "classic", "--to-latest", "--dry-run", "--json")
    done = command(*words, "--topic", "orders:1")
    assert [row["group"] for row in json.loads(done.stdout)] == ["a", "b", "silent"]
    nothing = command("groups", "reset", *ALL, "--shift=1", "--topic", "orders:1", "--yes")
    assert (nothing.exit_code, nothing.stdout) == (2, "")
    assert "nothing for orders-1" in nothing.stderr
    assert groups.offsets["a"] == {FIRST: (20, "")}


def test_what_is_refused_keeps_no_other_group_from_being_reset(groups, brokers, command):
    refusing = committing_each(lambda *_: 29)
    commit = groups.commit
    brokers.on(
        "OffsetCommit",
        lambda call: refusing(call) if call.request.group_id == "a" else commit(call),
    )
    done = command("groups", "reset", "a", "b", "--to-earliest", "--yes", "--json")
    assert done.exit_code == 5
    assert [row["group"] for row in json.loads(done.stdout)] == ["b"]
    assert "group 'a'" in done.stderr


def test_of_groups_that_are_named_all_are_reset_or_none(groups, brokers, command):
    done = command("groups", "reset", "a", "busy", "b", "--to-earliest", "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "group 'busy': NON_EMPTY_GROUP" in done.stderr
    assert command("groups", "reset", "a", "silent", "--to-earliest", "--yes").exit_code == 2
    assert brokers.asked("OffsetCommit") == []


@pytest.mark.slow
def test_all_are_deleted_but_those_with_members(groups, brokers, command):
    assert command("groups", "delete", *ALL, input="n\n").exit_code == 1
    assert brokers.asked("DeleteGroups") == []
    done = command("groups", "delete", *ALL, "--json", input="y\n")
    assert done.exit_code == 1
    deleted = ["a", "b", "silent"]
    assert [row["group"] for row in json.loads(done.stdout)] == deleted
    assert f"Delete the groups {', '.join(deleted)}?" in done.stderr
    assert "group 'busy': NON_EMPTY_GROUP (68): it has members (2), and stays" in done.stderr
    asked = [name for request in brokers.asked("DeleteGroups") for name in request.groups_names]
    assert sorted(asked) == deleted
    done = command("groups", "delete", *ALL, "--type", "share", "--yes")
    assert (done.exit_code, done.stderr) == (0, "deleted shared\n")


def test_those_with_members_are_told_where_another_is_refused(groups, brokers, command):
    part = DeleteGroupsResponse.Group
    told = (part(group_id="a"), part(group_id="b", error_code=30), part(group_id="silent"))
    brokers.on("DeleteGroups", DeleteGroupsResponse(results=told))
    done = command("groups", "delete", *ALL, "--type", "classic", "--yes")
    assert done.exit_code == 1
    assert done.stderr.startswith("deleted a, silent\n")
    assert "'busy'" in done.stderr
    assert "group 'b'" in done.stderr


@pytest.mark.parametrize("words", [("delete",), ("reset", "--to-latest")], ids=" ".join)
def test_names_of_anybody_move_no_cursor(brokers, command, monkeypatch, words):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    name = "a\x1b[2J"
    FakeCoordinator(brokers, **{name: {FIRST: (20, "")}})
    describing(brokers, classic(name, state="Empty"))
    brokers.on("ListGroups", listed((name, "Classic", "Empty")))
    brokers.on("DeleteGroups", delete)
    done = command("groups", *words, *ALL, input="y\n")
    assert done.exit_code == 0
    assert "\x1b[2J" not in done.output
    assert "a\\x1b[2J" in done.stderr


def test_of_no_group_none_is_deleted(groups, brokers, command, rows):
    words = ("groups", "delete", *ALL, "--type", "streams")
    done = command(*words)
    assert (done.exit_code, done.stderr) == (0, "there is no group\n")
    assert rows(*words) == []
    assert brokers.asked("DeleteGroups") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("describe",), "name groups, or give --all-groups"),
        (("delete", "--yes"), "name groups, or give --all-groups"),
        (("reset", "--to-latest"), "name groups, or give --all-groups"),
        (("delete", "--all-groups", "a", "b"), "--all-groups goes without names: a, b"),
        (("describe", "--type", "share", "a"), "--type goes with --all-groups"),
        (("delete", "--all-groups", "--topic", "orders"), "--topic goes with names of groups"),
    ],
)
def test_what_does_not_go_together(groups, command, words, said):
    done = command("groups", *words)
    assert (done.exit_code, said in done.stderr) == (2, True)
