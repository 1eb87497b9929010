"""`kafkaproto quotas` over fake brokers: entities by options, tables, JSON, refusals."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto.cluster.admin import QuotaEntity, QuotaName
from tests.unit.cluster.admin.test_quotas import ADDRESSES, LOADER, REPORTS, altered, described

QUOTAS = {
    LOADER: {"producer_byte_rate": 1_000_000.0},
    REPORTS: {"request_percentage": 12.5, "consumer_byte_rate": 5.0},
    ADDRESSES: {"connection_creation_rate": 20.0},
}


def test_list(brokers, command, rows):
    brokers.on("DescribeClientQuotas", described(QUOTAS))
    assert [line.split() for line in command("quotas", "list").stdout.splitlines()[1:]] == [
        ["(default)", "loader", "-", "producer_byte_rate", "1000000"],
        ["reports", "-", "-", "consumer_byte_rate", "5"],
        ["reports", "-", "-", "request_percentage", "12.5"],
        ["-", "-", "(default)", "connection_creation_rate", "20"],
    ]
    assert [row["entity"] for row in rows("quotas", "list")] == [
        {"user": None, "client_id": "loader"},
        {"user": "reports"},
        {"ip": None},
    ]


def test_list_of_some(brokers, command):
    brokers.on("DescribeClientQuotas", described({}))
    words = ("--user", "reports", "--default-client-id", "--strict")
    assert command("quotas", "list", *words).exit_code == 0
    (request,) = brokers.asked("DescribeClientQuotas")
    assert [(item.entity_type, item.match) for item in request.components] == [
        ("user", "reports"),
        ("client-id", None),
    ]
    assert request.strict
    assert command("quotas", "list", "--strict").exit_code == 2
    assert command("quotas", "list", "--user", "a", "--default-user").exit_code == 2


@pytest.mark.parametrize(
    ("words", "entity", "quota"),
    [
        (["--user", "reports"], REPORTS, "consumer_byte_rate"),
        (["--user", ""], None, "consumer_byte_rate"),
        (["--user", "(default)"], QuotaEntity("(default)"), "consumer_byte_rate"),
        (["--default-user", "--client-id", "loader"], LOADER, "producer_byte_rate"),
        (["--default-ip"], ADDRESSES, "connection_creation_rate"),
        (["--ip", "10.0.0.1"], QuotaEntity(ip="10.0.0.1"), "connection_creation_rate"),
    ],
)
def test_set(brokers, command, words, entity, quota):
    if entity is None:
        assert command("quotas", "set", f"{quota}=5", *words).exit_code == 2
        return
    brokers.on("AlterClientQuotas", altered({entity: 0}))
    done = command("quotas", "set", f"{quota}=5e3", *words)
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert done.stderr == f"{quota} of {entity} set\n"
    (request,) = brokers.asked("AlterClientQuotas")
    (entry,) = request.entries
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [(quota, 5000.0, False)]
    names = {
        item.entity_type.replace("-", "_"): item.entity_name or QuotaName.DEFAULT
        for item in entry.entity
    }
    assert QuotaEntity(**names) == entity


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["consumer_byte_rate=5"], "say whose"),
        (["consumer_byte_rate", "--user", "a"], "expected QUOTA=VALUE"),
        (["consumer_byte_rate=fast", "--user", "a"], "=fast': expected a number as VALUE"),
        (["consumer_byte_rate=nan", "--user", "a"], "nan: expected a number, 0 or more"),
        (["byte_rate=5", "--user", "a"], "expected one of producer_byte_rate"),
        (["consumer_byte_rate=5", "--ip", "10.0.0.1"], "expected one of connection_creation_rate"),
        (["consumer_byte_rate=5", "--ip", "10.0.0.1", "--user", "a"], "neither a user nor"),
        (["--user", "a"], "Missing argument"),
    ],
)
def test_wrong_quotas(brokers, command, words, said):
    done = command("quotas", "set", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert brokers.asked("AlterClientQuotas") == []


def test_validate_only(brokers, command):
    brokers.on("AlterClientQuotas", altered({REPORTS: 0}))
    words = ("consumer_byte_rate=5", "--user", "reports", "--validate-only", "--json")
    assert json.loads(command("quotas", "set", *words).stdout) == [
        {
            "entity": {"user": "reports"},
            "quotas": {"consumer_byte_rate": 5.0},
            "result": "could be set",
        }
    ]
    (request,) = brokers.asked("AlterClientQuotas")
    assert request.validate_only


@pytest.mark.slow
def test_remove_asks_and_takes_what_is_there(brokers, command):
    brokers.on("DescribeClientQuotas", described({REPORTS: QUOTAS[REPORTS]}))
    brokers.on("AlterClientQuotas", altered({REPORTS: 0}))
    words = ("quotas", "remove", "--user", "reports")
    refused = command(*words, input="n\n")
    assert refused.exit_code == 1
    assert "Remove consumer_byte_rate, request_percentage of user 'reports'?" in refused.stderr
    missing = command(*words, "producer_byte_rate", "--yes")
    assert missing.exit_code == 1
    assert "no producer_byte_rate is set for user 'reports'" in missing.stderr
    assert brokers.asked("AlterClientQuotas") == []
    done = command(*words, "request_percentage", "--yes", "--json")
    assert json.loads(done.stdout) == [
        {"entity": {"user": "reports"}, "quotas": ["request_percentage"], "result": "removed"}
    ]
    (request,) = brokers.asked("AlterClientQuotas")
    assert [(op.key, op.remove) for op in request.entries[0].ops] == [("request_percentage", True)]
    assert all(item.strict for item in brokers.asked("DescribeClientQuotas"))


@pytest.mark.slow
def test_remove_where_nothing_is_set(brokers, command):
    brokers.on("DescribeClientQuotas", described({}))
    done = command("quotas", "remove", "--default-user", "--yes")
    assert done.exit_code == 1
    assert "no quota is set for default user" in done.stderr
    assert command("quotas", "remove", "--yes").exit_code == 2
    # What was set just now is news to some brokers.
    brokers.on("DescribeClientQuotas", described({}), described({REPORTS: QUOTAS[REPORTS]}))
    brokers.on("AlterClientQuotas", altered({REPORTS: 0}))
    assert command("quotas", "remove", "--user", "reports", "--yes").exit_code == 0
