"""Share and streams groups of a real broker, beside what Kafka's own tools print of them."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from pyspark_kafkaproto.cli.root import kafkaproto
from pyspark_kafkaproto.cluster import (
    CommittedOffset,
    ConfigChange,
    ConfigResource,
    Moved,
    NewTopic,
    ShiftBy,
    Task,
    ToEarliest,
    ToLatest,
    TopicPartition,
)
from pyspark_kafkaproto.cluster.groups.committed import GroupMember, commit_offsets
from pyspark_kafkaproto.devbroker.jars import version_key
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.streams_group_heartbeat import TopicInfo
from tests.broker.filling import make_keyed_topic
from tests.broker.members import Subtopology, share_members, streams_members

pytestmark = pytest.mark.broker

RECORDS = 30


@pytest.fixture(scope="module")
def topic(broker, kafka, new_name):
    """RECORDS records over two partitions."""
    return make_keyed_topic(broker, kafka, new_name(), RECORDS)


@pytest.fixture(scope="module")
def command(broker):
    """Runs a command; gives click's result."""

    def run(*words):
        environ = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
        return CliRunner(env=environ).invoke(kafkaproto, words)

    return run


@pytest.fixture(scope="module")
def rows(command):
    """Runs a command with --json and gives what it printed."""

    def run(*words):
        done = command(*words, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return run


def columns(text):
    """What a tool prints, below the last line that begins with GROUP: the words of each line."""
    *_, table = re.split(r"^GROUP\b.*$", text, flags=re.MULTILINE)
    return [line.split() for line in table.splitlines() if line.strip()]


# Share groups


@pytest.fixture(scope="module")
def share_tool(kafka_tool):
    def run(*arguments):
        return kafka_tool("consumer.group.ShareGroupCommand", *arguments)

    return run


@pytest.fixture(scope="module")
def shared(kafka, kafka_tool, new_name, topic):
    """A share group of which Kafka's console consumer has read a few records."""
    group = new_name("share")
    earliest = ConfigChange("share.auto.offset.reset", "earliest")
    kafka.alter_configs({ConfigResource("group", group): [earliest]})
    words = ("--topic", topic, "--group", group, "--max-messages", "5")
    assert len(kafka_tool("consumer.ConsoleShareConsumer", *words).split()) == 5
    return group


def starts_of(share_tool, group):
    """{(topic, partition): (start offset, lag)} as Kafka's tool has them."""
    told = columns(share_tool("--describe", "--group", group, "--offsets"))
    return {
        (topic, int(number)): tuple(None if cell == "-" else int(cell) for cell in cells)
        for _, topic, number, *cells in told
    }


def test_where_a_share_group_is_we_tell_as_the_tool_does(kafka, share_tool, shared, topic, rows):
    told = starts_of(share_tool, shared)
    assert told.keys() == kafka.get_partitions({topic})
    assert sum(lag for _, lag in told.values() if lag is not None) <= RECORDS - 5
    found = kafka.get_share_group_offsets({shared})[shared]
    assert {item: (at.offset, at.lag) for item, at in found.items()} == {
        item: at for item, at in told.items() if at[0] is not None
    }
    lag = {
        (row["topic"], row["partition"]): (row["offset"], row["lag"]) for row in rows("lag", shared)
    }
    assert lag == told
    shown = {
        (row["topic"], row["partition"]): row["offset"] for row in rows("groups", "offsets", shared)
    }
    assert shown == {item: at.offset for item, at in found.items()}
    assert [row for row in kafka.lag() if row.group == shared] == kafka.lag({shared})
    (listed,) = [item for item in kafka.list_groups(types=["share"]) if item.group == shared]
    assert (listed.state, listed.protocol_type) == ("Empty", "share")


def test_a_share_group_with_members_is_described_and_left_alone(
    kafka, share_tool, new_name, topic, rows
):
    group, partitions = new_name("share"), kafka.get_partitions({topic})
    kafka.reset_share_group_offsets(group, ToEarliest(), partitions)
    with share_members(kafka, group, topic, 3) as members:
        found = kafka.describe_groups({group})[group]
        assert (found.type, found.state) == ("share", "Stable")
        assert {item.member_id for item in found.members} == set(members)
        told = columns(share_tool("--describe", "--group", group, "--members", "--verbose"))
        assert {line[1]: (int(line[4]), int(line[5]), line[6]) for line in told} == {
            item.member_id: (len(item.assignment), item.epoch, as_told(item.assignment))
            for item in found.members
        }
        read = [place for item in found.members for place in item.assignment]
        assert set(read) == partitions
        assert len(read) > len(partitions), "several read the same"
        told = columns(share_tool("--describe", "--group", group, "--state", "--verbose"))
        assert told[0][-4:] == ["Stable", str(found.epoch), str(found.assignment_epoch), "3"]
        (shown,) = rows("groups", "describe", group)
        assert {item["protocol"] for item in shown["members"]} == {"share"}
        assert {row["owner"] for row in rows("lag", group)} == {None}
        with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them"):
            kafka.reset_share_group_offsets(group, ToLatest())
        with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them"):
            kafka.delete_share_group_offsets(group, {topic})
        with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them"):
            kafka.delete_groups({group})
    assert {at.offset for at in kafka.get_share_group_offsets({group})[group].values()} == {0}


def as_told(partitions):
    """`orders:0,1`, as the tool has it."""
    (topic,) = {item.topic for item in partitions}
    return f"{topic}:{','.join(str(item.partition) for item in sorted(partitions))}"


def test_what_we_move_and_forget_the_tool_sees_and_the_reverse(
    kafka, broker, share_tool, new_name, topic, rows
):
    group, partitions = new_name("share"), kafka.get_partitions({topic})
    # Kafka 4.2 counts from what members acknowledge: of a start that was moved it tells no lag.
    tells = version_key(broker.version) >= (4, 3)
    latest = kafka.get_latest_leader_offsets(partitions)
    kafka.reset_share_group_offsets(group, ToLatest(), partitions)
    zero, four = (0, 4) if tells else (None, None)
    assert starts_of(share_tool, group) == {item: (end, zero) for item, end in latest.items()}
    found = kafka.get_share_group_offsets({group})[group]
    assert {at.lag for at in found.values()} == {zero}
    assert kafka.reset_share_group_offsets(group, ShiftBy(-4)) == {
        item: Moved(end, end - 4) for item, end in latest.items()
    }
    assert starts_of(share_tool, group) == {item: (end - 4, four) for item, end in latest.items()}
    share_tool("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert {(row["offset"], row["log_size"]) for row in rows("lag", group)} == {
        (0, end) for end in latest.values()
    }
    moved = rows("groups", "reset", group, "--to-latest", "--topic", topic, "--yes")
    assert {row["before"] for row in moved} == {0}
    rows("groups", "delete", group, "--topic", topic, "--yes")
    assert kafka.get_share_group_offsets({group}) == {group: {}}
    kafka.delete_share_group_offsets(group, {topic})
    kafka.delete_groups({group})
    assert group not in share_tool("--list").split()
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        kafka.describe_groups({group})


def test_where_a_share_group_has_nothing_we_say_what_the_tool_says(
    kafka, share_tool, new_name, topic, command
):
    group, other_topic = new_name("share"), new_name()
    kafka.create_topics([NewTopic(other_topic)])
    kafka.reset_share_group_offsets(group, ToEarliest(), kafka.get_partitions({topic}))
    words = "There is no offset information to delete"
    told = share_tool("--delete-offsets", "--group", group, "--topic", other_topic)
    assert words in told
    refused = command("groups", "delete", group, "--topic", other_topic, "--yes")
    assert refused.exit_code == 1
    assert words.lower() in refused.stderr.lower()
    assert kafka.get_share_group_offsets({group})[group].keys() == kafka.get_partitions({topic})


def test_commits_for_a_share_group_are_refused_with_what_to_use(kafka, shared, topic):
    with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*reset_share_group_offsets"):
        kafka.set_consumer_offsets(shared, {(topic, 0): 0})
    with pytest.raises(BrokerError, match=r"GROUP_ID_NOT_FOUND.*delete_share_group_offsets"):
        kafka.delete_consumer_offsets(shared, {(topic, 0)})


# Streams groups


@pytest.fixture(scope="module")
def streams_tool(kafka_tool):
    def run(*arguments):
        return kafka_tool("streams.StreamsGroupCommand", *arguments)

    return run


def subtopology(number, *sources, **topics):
    """What a member tells: source topics, and internal ones with a number of partitions each."""
    internal = {
        kind: tuple(
            TopicInfo(name=name, partitions=count, replication_factor=1)
            for name, count in own.items()
        )
        for kind, own in topics.items()
        if kind != "sinks"
    }
    sinks = topics.get("sinks", ())
    return Subtopology(
        subtopology_id=number, source_topics=sources, repartition_sink_topics=sinks, **internal
    )


def settle_at_once(kafka, group, **settings):
    changes = {"streams.initial.rebalance.delay.ms": "0"} | settings
    kafka.alter_configs(
        {ConfigResource("group", group): [ConfigChange(*item) for item in changes.items()]}
    )


def test_a_streams_group_is_described_as_the_tool_does(kafka, streams_tool, new_name, topic, rows):
    group = new_name("streams")
    settle_at_once(kafka, group, **{"streams.num.standby.replicas": "1"})
    repartition, changelog = f"{group}-repartition", f"{group}-changelog"
    parts = (
        subtopology("0", topic, sinks=(repartition,)),
        subtopology(
            "1", repartition_source_topics={repartition: 2}, state_changelog_topics={changelog: 0}
        ),
    )

    def found():
        return kafka.describe_groups({group})[group]

    def is_shared():
        one = found()
        return one.state == "Stable" and all(item.tasks.standby for item in one.members)

    with streams_members(kafka, group, parts, is_shared, 2) as members:
        group_now = found()
        assert (group_now.type, group_now.topology.problems) == ("streams", ())
        assert {item.member_id for item in group_now.members} == set(members)
        active = [task for item in group_now.members for task in item.tasks.active]
        assert sorted(active) == [Task(number, n) for number in "01" for n in (0, 1)]
        told = streams_tool("--describe", "--group", group, "--members", "--verbose")
        assert {line[3]: (line[5], " ".join(line[8:])) for line in columns(told)} == {
            item.member_id: (str(item.epoch), as_assigned(item)) for item in group_now.members
        }
        first, second = group_now.topology.subtopologies
        assert (first.source_topics, first.repartition_sinks) == ({topic}, {repartition})
        assert (second.repartition_sources, second.changelogs) == ({repartition: 2}, {changelog: 2})
        (shown,) = rows("groups", "describe", group)
        assert shown["topology"]["subtopologies"][1]["changelogs"] == [changelog]

        rows_now = kafka.lag({group})
        owned = {TopicPartition(name, n) for name in (topic, repartition) for n in (0, 1)}
        assert {TopicPartition(row.topic, row.partition): row.owner for row in rows_now} == {
            item: group_now.owners[item].member_id for item in owned
        }
        with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them"):
            kafka.reset_consumer_offsets(group, ToEarliest())
        # What it commits is as of any other group.
        partitions = kafka.get_partitions({topic})
        one = group_now.members[0]
        committed = {group: dict.fromkeys(partitions, CommittedOffset(3))}
        commit_offsets(kafka._router, committed, GroupMember(one.member_id, one.epoch))
        told = columns(streams_tool("--describe", "--group", group, "--offsets", "--verbose"))
        of_topic = [row for row in kafka.lag({group}) if row.topic == topic]
        assert {(*line[1:4], *line[5:]) for line in told if line[1] == topic} == {
            tuple(map(str, row[1:6])) for row in of_topic
        }
    assert {row["offset"] for row in rows("groups", "offsets", group)} == {3}
    assert kafka.reset_consumer_offsets(group, ToEarliest()).keys() == partitions
    kafka.delete_consumer_offsets(group, partitions)
    assert kafka.get_group_offsets({group}) == {group: {}}
    kafka.delete_groups({group})
    assert group not in streams_tool("--list").split()
    kafka.delete_topics({repartition, changelog})


def as_assigned(member):
    """`ACTIVE: 0:[0]; STANDBY: 1:[1]; …`, as the tool has it."""

    def shown(name, tasks):
        parts = sorted({task.subtopology for task in tasks})
        numbers = {
            part: ",".join(
                str(task.partition) for task in sorted(tasks) if task.subtopology == part
            )
            for part in parts
        }
        return (
            f"{name}: {'; '.join(f'{part}:[{numbers[part]}]' for part in parts)};" if parts else ""
        )

    now, then = member.tasks, member.target_tasks
    texts = [
        shown("ACTIVE", now.active),
        shown("STANDBY", now.standby),
        shown("WARMUP", now.warmup),
        shown("TARGET-ACTIVE", then.active),
        shown("TARGET-STANDBY", then.standby),
        shown("TARGET-WARMUP", then.warmup),
    ]
    return " ".join(filter(None, texts))


def test_what_keeps_a_streams_group_from_working_is_said(kafka, new_name, topic, rows):
    group, missing = new_name("streams"), new_name("missing")
    settle_at_once(kafka, group)

    def is_not_ready():
        return kafka.describe_groups({group})[group].state == "NotReady"

    with streams_members(kafka, group, (subtopology("0", topic, missing),), is_not_ready):
        (shown,) = rows("groups", "describe", group)
        assert shown["topology"]["problems"] == [f"source topic '{missing}' is not there"]
        assert rows("lag", group) == []

    group, wide = new_name("streams"), new_name()
    settle_at_once(kafka, group)
    kafka.create_topics([NewTopic(wide, 3, 1)])
    joined = Subtopology.CopartitionGroup(source_topics=(0, 1))
    part = Subtopology(
        subtopology_id="0", source_topics=(topic, wide), copartition_groups=(joined,)
    )
    with streams_members(kafka, group, (part,), is_not_ready):
        (problem,) = kafka.describe_groups({group})[group].topology.problems
        assert f"different numbers of partitions, {topic!r} 2, {wide!r} 3" in problem or (
            f"different numbers of partitions, {wide!r} 3, {topic!r} 2" in problem
        )


def test_a_source_with_fewer_partitions_than_tasks_has_no_rows_for_what_is_not_there(
    kafka, new_name, topic
):
    group, wide = new_name("streams"), new_name()
    settle_at_once(kafka, group)
    kafka.create_topics([NewTopic(wide, 3, 1)])

    def is_stable():
        return kafka.describe_groups({group})[group].state == "Stable"

    with streams_members(kafka, group, (subtopology("0", topic, wide),), is_stable):
        rows = kafka.lag({group})
        expected = kafka.get_partitions({topic, wide})
        assert {TopicPartition(row.topic, row.partition) for row in rows} == expected
