"""`kafkaproto acls` over fake brokers: what the words of its options stand for."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from pyspark_kafkaproto.cli import output
from pyspark_kafkaproto.cluster.admin import Acl
from pyspark_kafkaproto.messages.create_acls import CreateAclsResponse
from tests.pages import DOCS
from tests.unit.cluster.admin.test_acls import NUMBERS, READ, created, deleted, described, matching

MINE = ("--principal", "User:reports")
WRITES = Acl("topic", "t", principal="User:w", operation="write")


@pytest.fixture
def authorizer(brokers):
    """Takes every ACL and filter; (type, name, pattern, operation, permission) of what was made."""

    def create(call):
        made.extend(call.request.creations)
        return created(*[0] * len(call.request.creations))

    made = []
    brokers.on("CreateAcls", create)
    brokers.on("DescribeAcls", described())
    return made


def shown(made):
    return sorted(
        (
            item.resource_type,
            item.resource_name,
            item.resource_pattern_type,
            item.operation,
            item.permission_type,
        )
        for item in made
    )


def test_each_operation_on_each_resource_for_each_principal(command, authorizer):
    words = ("--operation", "READ", "--operation", "DescribeConfigs", "--topic", "t", "--group")
    done = command("acls", "add", *MINE, *words, "g", "--principal", "User:b", "--host", "10.0.0.1")
    assert done.exit_code == 0, done.output
    assert done.stderr == "8 ACLs added\n"
    assert len(done.stdout.splitlines()) == 9
    assert {(item.principal, item.host) for item in authorizer} == {
        ("User:reports", "10.0.0.1"),
        ("User:b", "10.0.0.1"),
    }
    assert set(shown(authorizer)) == {
        (kind, name, 3, operation, 3)
        for kind, name in ((2, "t"), (3, "g"))
        for operation in (3, 10)
    }


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["--producer", "--topic", "t"], [(2, "t", 3, n, 3) for n in (4, 5, 8)]),
        (
            ["--producer", "--idempotent", "--topic", "t", "--transactional-id", "x", "--prefixed"],
            [
                *[(2, "t", 4, n, 3) for n in (4, 5, 8)],
                (4, "kafka-cluster", 3, 12, 3),
                *[(5, "x", 4, n, 3) for n in (4, 8)],
            ],
        ),
        (
            ["--consumer", "--topic", "t", "--group", "*"],
            [(2, "t", 3, 3, 3), (2, "t", 3, 8, 3), (3, "*", 3, 3, 3)],
        ),
        (
            ["--producer", "--consumer", "--topic", "t", "--group", "g"],
            [*[(2, "t", 3, n, 3) for n in (3, 4, 5, 8)], (3, "g", 3, 3, 3)],
        ),
        (
            ["--deny", "--operation", "all", "--cluster"],
            [(4, "kafka-cluster", 3, 2, 2)],
        ),
        (
            ["--operation", "create-tokens", "--user-principal", "User:x"],
            [(7, "User:x", 3, 13, 3)],
        ),
    ],
)
def test_what_kafka_acls_means_by_its_words(command, authorizer, words, made):
    done = command("acls", "add", *MINE, *words)
    assert done.exit_code == 0, done.output
    assert shown(authorizer) == made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--operation", "read", "--topic", "t"], "say whose"),
        ([*MINE, "--operation", "read"], "say of what"),
        ([*MINE, "--topic", "t"], "say what: --operation, --producer or --consumer"),
        (["--principal", "reports"], "'reports': expected User:reports"),
        (["--principal", ":reports"], "':reports': expected User:reports"),
        (["--principal", "User:"], "'User:': expected User:reports"),
        ([*MINE, "--operation", "read", "--cluster"], "read means nothing for a cluster"),
        ([*MINE, "--operation", "write", "--topic", "*", "--prefixed"], "'*' is every name"),
        ([*MINE, "--operation", "alter", "--cluster", "--prefixed"], "--prefixed goes with names"),
        ([*MINE, "--producer", "--group", "g"], "--producer takes a --topic"),
        ([*MINE, "--producer", "--topic", "t", "--group", "g"], "gives no rights on a group"),
        ([*MINE, "--producer", "--topic", "t", "--cluster"], "gives no rights on a cluster"),
        ([*MINE, "--consumer", "--topic", "t"], "--consumer a --topic and a --group"),
        ([*MINE, "--producer", "--topic", "t", "--deny"], "neither --operation nor --deny"),
        ([*MINE, "--producer", "--topic", "t", "--operation", "read"], "neither --operation nor"),
        ([*MINE, "--idempotent", "--topic", "t"], "--idempotent goes with --producer"),
        ([*MINE, "--operation", "look", "--topic", "t"], "'look' is not one of 'all', 'read'"),
        ([*MINE, "--operation", "read", "--topic", ""], "'--topic' is ''"),
        (["--user", "reports", "--operation", "read", "--topic", "t"], "No such option"),
    ],
)
def test_what_does_not_go_together_is_refused(command, authorizer, words, said):
    done = command("acls", "add", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert authorizer == []


@pytest.mark.parametrize(
    "words",
    [
        shlex.split(text)
        for page in sorted(DOCS.glob("*.md"))
        for text in re.findall(r"`kafkaproto (acls\s+add\s[^`]+)`", page.read_text())
    ],
)
def test_what_pages_say_in_a_sentence_can_be_said(command, authorizer, words):
    assert command(*words).exit_code == 0
    assert authorizer


def test_what_was_made_is_told_where_the_rest_is_refused(brokers, command):
    part = CreateAclsResponse.Result
    brokers.on("CreateAcls", CreateAclsResponse(results=(part(), part(error_code=42))))
    words = ("--operation", "read", "--operation", "write", "--topic", "t", "--json")
    done = command("acls", "add", *MINE, *words)
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)
    assert (row["operation"], row["result"]) == ("read", "added")
    assert "1 ACL added" in done.stderr


def test_list_asks_for_what_bears_upon_a_name(brokers, command, rows):
    brokers.on("DescribeAcls", described(READ))
    assert rows("acls", "list", "--topic", "orders", "--principal", "User:reports") == [
        {
            "resource_type": "topic",
            "resource_name": "orders",
            "pattern_type": "literal",
            "principal": "User:reports",
            "host": "*",
            "operation": "read",
            "permission": "allow",
        }
    ]
    command("acls", "list", "--topic", "orders", "--prefixed", "--deny")
    command("acls", "list")
    patterns = [item.pattern_type_filter for item in brokers.asked("DescribeAcls")]
    assert patterns == [2, 4, 1]
    assert brokers.asked("DescribeAcls")[1].permission_type == 2


def test_several_filters_find_each_acl_once(brokers, rows):
    brokers.on("DescribeAcls", described(READ))
    assert len(rows("acls", "list", "--topic", "a", "--topic", "b", "--group", "c")) == 1
    assert len(brokers.asked("DescribeAcls")) == 3


def test_delete_shows_asks_and_deletes_just_what_was_shown(brokers, command):
    brokers.on("DescribeAcls", described(READ))
    brokers.on("DeleteAcls", deleted((matching(READ),)))
    words = ("acls", "delete", "--topic", "orders")
    refused = command(*words, input="n\n")
    assert refused.exit_code == 1
    assert "User:reports" in refused.stderr
    assert command(*words, input="").exit_code == 2
    assert brokers.asked("DeleteAcls") == []
    done = command(*words, "--yes", "--json")
    assert done.exit_code == 0
    assert [row["result"] for row in json.loads(done.stdout)] == ["deleted"]
    described_by = brokers.asked("DescribeAcls")[-1]
    assert (described_by.pattern_type_filter, described_by.principal_filter) == (3, None)
    (request,) = brokers.asked("DeleteAcls")
    (wanted,) = request.filters
    assert (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    ) == NUMBERS[READ]
    assert (wanted.resource_name_filter, wanted.principal_filter, wanted.host_filter) == (
        "orders",
        "User:reports",
        "*",
    )


def test_what_was_shown_before_the_question_is_not_shown_again_on_a_terminal(
    brokers, command, monkeypatch
):
    brokers.on("DescribeAcls", described(READ))
    brokers.on("DeleteAcls", deleted((matching(READ),)))
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    done = command("acls", "delete", "--topic", "orders", input="y\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith("1 ACL deleted\n")
    assert done.stderr.count("User:reports") == 1


def test_delete_of_a_right_that_is_newer_than_we_are_is_by_its_number(brokers, command):
    newer = Acl("topic", "orders", principal="User:reports", operation="(99)")
    NUMBERS[newer] = (2, 3, 99, 3)
    brokers.on("DescribeAcls", described(newer))
    brokers.on("DeleteAcls", deleted((matching(newer),)))
    done = command("acls", "delete", "--topic", "orders", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)[0]["operation"] == "(99)"
    assert brokers.asked("DeleteAcls")[0].filters[0].operation == 99


def test_delete_takes_back_what_a_role_gave(brokers, command):
    brokers.on("DescribeAcls", described(READ))
    brokers.on("DeleteAcls", deleted((matching(READ),)))
    words = ("--consumer", "--topic", "orders", "--group", "g")
    assert command("acls", "delete", *MINE, *words, "--yes").exit_code == 0
    asked = {
        (item.resource_type_filter, item.resource_name_filter, item.operation, item.permission_type)
        for item in brokers.asked("DescribeAcls")
    }
    assert asked == {(2, "orders", 3, 3), (2, "orders", 8, 3), (3, "g", 3, 3)}


@pytest.mark.slow
def test_delete_of_nothing_is_an_error(brokers, command):
    brokers.on("DescribeAcls", described())
    assert "say which" in command("acls", "delete", "--yes").stderr
    done = command("acls", "delete", *MINE, "--yes")
    assert done.exit_code == 1
    assert "there is no such ACL" in done.stderr
    # One that was made just now is news to some brokers.
    brokers.on("DescribeAcls", described(), described(READ))
    brokers.on("DeleteAcls", deleted([matching(READ)]))
    done = command("acls", "delete", *MINE, "--yes")
    assert (done.exit_code, done.stderr) == (0, "1 ACL deleted\n")


def test_what_was_deleted_is_told_where_the_rest_is_refused(brokers, command):
    other = Acl("topic", "zoo", principal="User:reports", operation="read")
    NUMBERS[other] = NUMBERS[READ]
    brokers.on("DescribeAcls", described(READ, other))
    brokers.on("DeleteAcls", deleted((matching(READ),), 42))
    done = command("acls", "delete", *MINE, "--yes", "--json")
    assert done.exit_code == 1
    assert [row["resource_name"] for row in json.loads(done.stdout)] == ["orders"]


@pytest.mark.slow
def test_a_cluster_without_an_authorizer_and_a_missing_right_have_their_exit_codes(
    brokers, command
):
    brokers.on("DescribeAcls", described(code=54), described(code=31))
    first, second = command("acls", "list"), command("acls", "list")
    assert (first.exit_code, second.exit_code) == (1, 5)
    assert "has no authorizer" in first.stderr
