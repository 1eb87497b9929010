"""The command line beside Kafka's own tools: three nodes, oldest and newest line of brokers.

What we create, alter and commit they see, what they do we see; a topic of four partitions with
three replicas each.
"""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import KafkaCluster, NewTopic, TopicPartition
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION, DevBroker
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.broker.members import classic_member
from tests.broker.sharing import PARTITIONS, RECORDS, are_at, is_shared, open_member, poll_all
from tests.brokers import config_command
from tests.waiting import THROUGH_ELECTIONS

pytestmark = pytest.mark.broker

TOPIC, GROUP = "orders", "reports"
ENDS = (90, 5981, 0, 910)


@pytest.fixture(scope="module", params=["3.9.1", DEFAULT_VERSION])
def trio(request):
    # Members that beat often, so that partitions are shared out soon.
    often = dict.fromkeys(
        ("group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms"), "500"
    )
    with DevBroker(nodes=3, version=request.param, properties=often) as broker:
        yield broker


@pytest.fixture(scope="module")
def kafka(trio):
    config = {"bootstrap.servers": trio.bootstrap_servers} | THROUGH_ELECTIONS
    with KafkaCluster(config) as cluster:
        cluster.create_topics([NewTopic(TOPIC, 4, 3, {"retention.ms": "86400000"})])
        fill(cluster, {TopicPartition(TOPIC, at): end for at, end in enumerate(ENDS)})
        # The first question about a group makes the topic of offsets, and waits for it.
        cluster.get_consumer_offsets(GROUP, cluster.get_partitions({TOPIC}))
        yield cluster


@pytest.fixture(scope="module")
def command(trio, kafka):
    """Runs a command of ours and gives its JSON."""

    def run(*words):
        where = ("-b", trio.bootstrap_servers)
        done = CliRunner().invoke(kafkaproto, [*words, *where], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if "--json" in words else done.output

    return run


@pytest.fixture(scope="module")
def tool(trio):
    """Runs one of Kafka's tools."""

    def run(main_class, *words):
        return trio.run_tool(main_class, "--bootstrap-server", trio.bootstrap_servers, *words)

    return run


def test_topic_command_tells_the_same_of_topics(command, tool):
    text = tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", TOPIC)
    lines = re.findall(
        r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)", text
    )
    told = {
        int(number): (int(leader), _ids(replicas), set(_ids(isr)))
        for number, leader, replicas, isr in lines
    }
    found = command("topics", "describe", TOPIC, "--json")
    assert {
        row["partition"]: (row["leader"], row["replicas"], set(row["isr"]))
        for row in found["partitions"]
    } == told
    assert len(told) == 4
    assert all(len(replicas) == 3 for _, replicas, _ in told.values())
    assert "retention.ms=86400000" in text
    assert [(row["name"], row["value"]) for row in found["configs"]][-1:] == [
        ("retention.ms", "86400000")
    ]


def _ids(text):
    return [int(item) for item in text.split(",")]


def test_get_offset_shell_tells_the_same_offsets(command, tool):
    text = tool("org.apache.kafka.tools.GetOffsetShell", "--topic", TOPIC)
    told = {int(at): int(end) for at, end in re.findall(rf"^{TOPIC}:(\d+):(\d+)$", text, re.M)}
    rows = command("offsets", TOPIC, "--json")
    assert {row["partition"]: row["latest"] for row in rows} == told == dict(enumerate(ENDS))


def test_config_command_sees_what_we_set_and_the_reverse(trio, command, tool):
    setting = "max.message.bytes"
    command("configs", "alter", "topic", TOPIC, "--set", f"{setting}=2000000")
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    assert f"{setting}=2000000" in tool(config_command(trio), "--describe", *entity)
    tool(config_command(trio), "--alter", *entity, "--add-config", f"{setting}=3000000")
    deadline = Deadline.after(10)  # the node that we ask hears of it in a moment
    while _settings(command)[setting] != "3000000":
        deadline.check(f"waiting for {setting}")
    command("configs", "alter", "topic", TOPIC, "--unset", setting)
    assert setting not in tool(config_command(trio), "--describe", *entity)


def _settings(command):
    rows = command("configs", "describe", "topic", TOPIC, "--json")
    return {row["name"]: row["value"] for row in rows}


def test_consumer_group_command_tells_the_same_lag(kafka, command, tool):
    kafka.set_consumer_offsets(
        GROUP, {TopicPartition(TOPIC, at): at_ for at, at_ in enumerate((90, 268, 0, 182))}
    )
    with classic_member(kafka, GROUP, TOPIC, 0, 1, 2, 3) as member_id:
        text = tool(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *("--describe", "--group", GROUP),
        )
        rows = command("lag", GROUP, "--json")
        (described,) = command("groups", "describe", GROUP, "--json")
    told = re.findall(
        rf"^{GROUP}\s+{TOPIC}\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S+)", text, re.M
    )
    assert [
        (row["partition"], row["offset"], row["log_size"], row["lag"], row["owner"], row["host"])
        for row in rows
    ] == [(*map(int, numbers), owner, host) for *numbers, owner, host in sorted(told)]
    assert {row["owner"] for row in rows} == {member_id}
    assert described["members"][0]["assignment"] == [f"{TOPIC}-{at}" for at in range(4)]
    assert [row["lag"] for row in rows] == [0, 5713, 0, 728]


def test_groups_of_all_nodes_are_listed(kafka, command):
    groups = {f"spread-{number}" for number in range(12)}
    first = TopicPartition(TOPIC, 0)
    kafka.set_group_offsets({group: {first: 1} for group in groups})
    assert len({str(place) for place in _coordinators(kafka, groups).values()}) > 1
    assert groups <= {row["group"] for row in command("groups", "list", "--json")}
    assert {row["lag"] for row in command("lag", *groups, "--json")} == {89}
    command("groups", "delete", *groups, "--yes")
    assert not groups & {row["group"] for row in command("groups", "list", "--json")}


def _coordinators(kafka, groups):
    return kafka._router.coordinators(groups, kafka._router.deadline())


def test_topics_are_made_grown_cut_and_deleted(kafka, command):
    place = ("--assign", "0=2,3", "--assign", "1=3,1")
    command("topics", "create", "placed", *place, "--validate-only")
    command("topics", "create", "placed", *place)
    assert {
        number: partition.replicas
        for number, partition in kafka.describe({"placed"}, must_exist=True)
        .topic("placed")
        .partitions.items()
    } == {0: (2, 3), 1: (3, 1)}
    command("topics", "alter", "placed", "--partitions", "3")
    assert len(kafka.get_partitions({"placed"})) in (2, 3)  # news travels
    command("topics", "alter", TOPIC, "--delete-records", "3=100", "--yes")
    rows = command("offsets", f"{TOPIC}:3", "--at", "earliest", "--json")
    assert [row["offset"] for row in rows] == [100]
    command("topics", "delete", "placed", "--yes")


def test_doctor_finds_every_node_well(command):
    rows = command("doctor", "--topic", TOPIC, "--group", GROUP, "--json")
    assert {row["result"] for row in rows} == {"ok", "not used"}
    assert sum(row["hop"] == "advertised address" for row in rows) == 3
    shown = command("metadata", TOPIC)
    assert "3 brokers" in shown
    assert "1 topic, 4 partitions" in shown


def test_members_read_on_when_their_coordinator_dies(trio, kafka, new_name):
    """By the newest protocol that the brokers speak; what is read is committed at the next one."""
    by_old = {"group_protocol": "classic", "heartbeat_interval_ms": 200}
    properties = by_old if trio.version == "3.9.1" else {"group_protocol": "consumer"}
    group, topic, lost = new_name("group"), new_name(), []
    kafka.create_topics([NewTopic(topic, PARTITIONS, 3)])
    partitions = {TopicPartition(topic, number) for number in range(PARTITIONS)}
    members = [
        open_member(trio, group, topic, {"on_lost": lost.append}, **properties) for _ in range(2)
    ]
    rows = poll_all(members, is_shared(*members), "two members")
    fill(kafka, dict.fromkeys(partitions, RECORDS))
    rows += poll_all(members, are_at(members, RECORDS), "all rows")
    coordinator = _coordinators(kafka, {group})[group]
    brokers = kafka.describe(set()).brokers
    (node,) = (number for number, at in brokers.items() if at.endpoint == coordinator)
    trio.kill(node)
    try:
        fill(kafka, dict.fromkeys(partitions, RECORDS))
        rows += poll_all(members, are_at(members, 2 * RECORDS), "all rows after that")
        for one in members:
            one.commit()
            one.close()
        assert kafka.get_consumer_offsets(group, partitions) == dict.fromkeys(
            partitions, 2 * RECORDS
        )
    finally:
        trio.restart(node)
    assert rows == 2 * PARTITIONS * RECORDS, "nothing is read twice"
    assert not lost
