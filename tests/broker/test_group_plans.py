"""Plans for all groups of a broker of its own, beside those of Kafka's own ConsumerGroupCommand."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto import KafkaCluster
from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import ToEarliest
from pyspark_kafkaproto.devbroker import DevBroker
from tests.broker.filling import make_keyed_topic
from tests.broker.members import classic_member

pytestmark = pytest.mark.broker

TOPIC, RECORDS = "orders", 30


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A broker without any group but those of the test."""
    with DevBroker(tmp_path_factory.mktemp("plans")) as broker:
        with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            make_keyed_topic(broker, cluster, TOPIC, RECORDS)
        yield broker


@pytest.fixture(scope="module")
def cluster(own):
    with KafkaCluster({"bootstrap.servers": own.bootstrap_servers}) as cluster:
        yield cluster


@pytest.fixture
def groups(cluster):
    """Two groups in the middle of the topic, and a share group at its begin; gone afterwards."""
    partitions = cluster.get_partitions({TOPIC})
    for group in ("a", 'b, "x"'):
        cluster.set_consumer_offsets(group, dict.fromkeys(partitions, 5))
    cluster.reset_share_group_offsets("shared", ToEarliest(), partitions)
    yield partitions
    cluster.delete_groups({item.group for item in cluster.list_groups()})


@pytest.fixture
def tool(own):
    def run(*arguments):
        pointed = ("--bootstrap-server", own.bootstrap_servers, *arguments)
        return own.run_tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *pointed)

    return run


@pytest.fixture
def command(own):
    def run(*words, **options):
        environ = {"KAFKA_BOOTSTRAP_SERVERS": own.bootstrap_servers}
        return CliRunner(env=environ).invoke(kafkaproto, words, **options)

    return run


def planned_by(text):
    """{(group, topic, partition): offset} of the tool's table."""
    *_, table = re.split(r"^GROUP\b.*NEW-OFFSET.*$", text, flags=re.MULTILINE)
    rows = re.findall(r"^(\S.*?) +(\S+) +(\d+) +(\d+) *$", table, re.MULTILINE)
    return {(group, topic, int(number)): int(offset) for group, topic, number, offset in rows}


def ours(done):
    return {
        (row["group"], row["topic"], row["partition"]): row["after"]
        for row in json.loads(done.stdout)
    }


def test_all_groups_are_reset_and_deleted_but_those_with_members(groups, cluster, tool, command):
    cluster.set_consumer_offsets("busy", dict.fromkeys(groups, 5))
    words = ("--all-groups", "--topic", TOPIC, "--to-latest", "--dry-run")
    with classic_member(cluster, "busy", TOPIC, 0):
        told = tool("--reset-offsets", *words)
        assert "the group 'busy' is inactive" in told
        done = command("groups", "reset", *words, "--json")
        assert (done.exit_code, "'busy': NON_EMPTY_GROUP" in done.stderr) == (1, True)
        assert ours(done) == planned_by(told)
        assert len(ours(done)) == 2 * len(groups)
        done = command("groups", "delete", "--all-groups", "--yes", "--json")
        assert (done.exit_code, "'busy': NON_EMPTY_GROUP" in done.stderr) == (1, True)
        assert [row["group"] for row in json.loads(done.stdout)] == ["a", 'b, "x"']
        assert [item.group for item in cluster.list_groups()] == ["busy", "shared"]
        told = tool("--delete", "--all-groups")
        assert "'busy' could not be deleted" in told
    shown = command("groups", "describe", "--all-groups", "--json")
    assert [row["group"] for row in json.loads(shown.stdout)] == ["busy", "shared"]


def written(folder, text):
    file = folder / "plan.csv"
    file.write_text(text)
    return str(file)


def lines_of(text):
    """A plan's lines, which Kafka's tool prints in no order and with an empty one behind them."""
    return sorted(filter(None, text.splitlines()))


@pytest.mark.parametrize(
    "names", [("a",), ('b, "x"',), ("a", 'b, "x"')], ids=["one", "quoted", "many"]
)
def test_plans_of_both_are_read_by_both(groups, cluster, tool, command, tmp_path, names):
    named = [word for name in names for word in ("--group", name)]
    words = ("--topic", TOPIC, "--to-latest", "--dry-run", "--export")
    theirs = tool("--reset-offsets", *named, *words)
    done = command("groups", "reset", *names, *words)
    assert done.exit_code == 0
    assert lines_of(done.stdout) == lines_of(theirs)
    assert len(lines_of(theirs)) == len(names) * len(groups)

    latest = cluster.get_latest_leader_offsets(groups)
    wanted = {(name, *item): offset for name in names for item, offset in latest.items()}
    ours_read = tool(
        *("--reset-offsets", *named, "--dry-run"),
        *("--from-file", written(tmp_path, done.stdout)),
    )
    assert planned_by(ours_read) == wanted
    done = command(
        *("groups", "reset", *names, "--yes", "--export"),
        *("--from-file", written(tmp_path, theirs)),
    )
    assert (done.exit_code, lines_of(done.stdout)) == (0, lines_of(theirs))
    for name in names:
        assert cluster.get_consumer_offsets(name, groups) == latest


def test_a_plan_of_all_groups_is_read_by_both(groups, cluster, tool, command, tmp_path):
    """Names as Kafka's own library would quote them, and as it would not."""
    for name in (" blank ", "#" * 30, "é", "a'b", "a;b\tc"):
        cluster.set_consumer_offsets(name, dict.fromkeys(groups, 5))
    theirs = tool("--reset-offsets", "--all-groups", "--all-topics", "--to-current", "--export")
    words = ("groups", "reset", "--dry-run")
    exported = (*words, "--all-groups", "--type", "classic", "--shift=0", "--export")
    done = command(*exported)
    assert done.exit_code == 0
    read = command(*words, "--json", "--from-file", written(tmp_path, theirs))
    assert len(ours(read)) == 7 * len(groups)
    ours_read = command(*words, "--json", "--from-file", written(tmp_path, done.stdout))
    assert ours(ours_read) == ours(read)
    back = tool(
        *("--reset-offsets", "--all-groups", "--dry-run", "--export"),
        *("--from-file", written(tmp_path, done.stdout)),
    )
    assert lines_of(back) == lines_of(theirs)
