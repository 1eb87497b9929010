"""Groups against a real broker, and beside what Kafka's own ConsumerGroupCommand prints."""

from __future__ import annotations

import re
import time

import pytest

from pyspark_kafkaproto.cluster import (
    CommittedOffset,
    Moved,
    NewTopic,
    ShiftBy,
    ToEarliest,
    TopicPartition,
    ToTime,
)
from pyspark_kafkaproto.errors import BrokerError
from tests.broker.filling import fill, make_keyed_topic
from tests.broker.members import classic_member, consumer_member
from tests.waiting import until

pytestmark = pytest.mark.broker

RECORDS = 30


@pytest.fixture(scope="module")
def topic(broker, kafka, new_name):
    """RECORDS records over two partitions."""
    return make_keyed_topic(broker, kafka, new_name(), RECORDS)


@pytest.fixture(scope="module")
def group_tool(kafka_tool):
    def run(*arguments):
        return kafka_tool("consumer.group.ConsumerGroupCommand", *arguments)

    return run


@pytest.fixture(scope="module")
def four_ends(kafka, new_name):
    """A topic of four partitions that end at 9000, 598134, 0 and 91000."""
    name = new_name()
    kafka.create_topics([NewTopic(name, 4, 1)])
    fill(
        kafka, {TopicPartition(name, at): end for at, end in enumerate((9000, 598_134, 0, 91_000))}
    )
    return name


def test_classic_recipe_fetch_add_ten_capped_by_latest_commit(kafka, new_name, four_ends):
    group = new_name("test-consumer-group")
    partitions = sorted(kafka.get_partitions({four_ends}))
    before = dict(zip(partitions, (9000, 26_886, 0, 18_296), strict=True))
    kafka.set_consumer_offsets(group, before)

    committed = kafka.get_consumer_offsets(group, partitions)
    latest = kafka.get_latest_leader_offsets(partitions)
    wanted = {item: min(offset + 10, latest[item]) for item, offset in committed.items()}
    kafka.set_consumer_offsets(group, wanted)

    after = kafka.get_consumer_offsets(group, partitions)
    assert [after[item] for item in partitions] == [9000, 26_896, 0, 18_306]
    rows = kafka.lag({group})
    assert [row.log_size for row in rows] == [9000, 598_134, 0, 91_000]
    assert [row.lag for row in rows] == [0, 571_238, 0, 72_694]


def test_many_groups_are_committed_for_and_fetched_in_few_requests(kafka, new_name, topic):
    prefix, partitions = new_name("many"), kafka.get_partitions({topic})
    groups = [f"{prefix}-{number}" for number in range(250)]
    offsets = {
        group: {item: CommittedOffset(at, f"text {at}") for item in partitions}
        for at, group in enumerate(groups)
    }
    kafka.set_group_offsets(offsets)
    assert kafka.get_group_offsets(groups) == offsets
    rows = kafka.lag(groups)
    assert len(rows) == 250 * len(partitions)
    assert {row.offset for row in rows} == set(range(250))
    kafka.delete_groups(groups)
    assert kafka.get_group_offsets(groups[:3]) == {group: {} for group in groups[:3]}


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_group_with_a_member_is_described_and_left_alone(kafka, group_tool, new_name, topic, kind):
    group = new_name(kind)
    partitions = kafka.get_partitions({topic})
    kafka.set_consumer_offsets(group, dict.fromkeys(partitions, 3))
    entered = (
        classic_member(kafka, group, topic, 0, 1)
        if kind == "classic"
        else consumer_member(kafka, group, topic)
    )
    with entered as member_id:
        found = kafka.describe_groups({group})[group]
        assert (found.type, found.state, len(found.members)) == (kind, "Stable", 1)
        assert {item: member.member_id for item, member in found.owners.items()} == dict.fromkeys(
            partitions, member_id
        )
        (listed,) = [item for item in kafka.list_groups(types=[kind]) if item.group == group]
        assert (listed.state, listed.protocol_type) == ("Stable", "consumer")
        rows = kafka.lag({group})
        assert {(row.offset, row.owner) for row in rows} == {(3, member_id)}
        assert sum(row.lag for row in rows) == RECORDS - 6
        assert _described(group_tool, group) == {
            (row.topic, row.partition): (row.offset, row.log_size, row.lag, member_id)
            for row in rows
        }
        with pytest.raises(BrokerError, match=r"NON_EMPTY_GROUP.*stop them"):
            kafka.reset_consumer_offsets(group, ToEarliest())
        with pytest.raises(BrokerError, match=r"UNKNOWN_MEMBER_ID.*live members"):
            kafka.set_consumer_offsets(group, dict.fromkeys(partitions, 0))
        with pytest.raises(BrokerError, match="GROUP_SUBSCRIBED_TO_TOPIC"):
            kafka.delete_consumer_offsets(group, partitions)
        with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
            kafka.delete_groups({group})
    assert kafka.get_consumer_offsets(group, partitions) == dict.fromkeys(partitions, 3)


def _described(group_tool, group):
    """(topic, partition): (offset, end, lag, member id), as Kafka's tool prints them."""
    text = group_tool("--describe", "--group", group)
    rows = re.findall(
        rf"^{re.escape(group)}\s+(\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\S+)", text, re.MULTILINE
    )
    return {
        (topic, int(number)): (int(offset), int(end), int(lag), member)
        for topic, number, offset, end, lag, member in rows
    }


def test_what_we_reset_and_delete_the_tool_sees_and_the_reverse(kafka, group_tool, new_name, topic):
    group = new_name("group")
    partitions = sorted(kafka.get_partitions({topic}))
    latest = kafka.get_latest_leader_offsets(partitions)
    kafka.set_consumer_offsets(group, latest)

    assert kafka.reset_consumer_offsets(group, ShiftBy(-4)) == {
        item: Moved(end, end - 4) for item, end in latest.items()
    }
    told = _described(group_tool, group)
    assert {key: row[:3] for key, row in told.items()} == {
        tuple(item): (end - 4, end, 4) for item, end in latest.items()
    }

    topics = ("--topic", topic, "--to-earliest", "--execute")
    group_tool("--reset-offsets", "--group", group, *topics)
    assert kafka.get_consumer_offsets(group, partitions) == dict.fromkeys(partitions, 0)

    later = ToTime(int(time.time() * 1000) + 3_600_000)
    assert kafka.reset_consumer_offsets(group, later) == {
        item: Moved(0, end) for item, end in latest.items()
    }
    kafka.delete_consumer_offsets(group, partitions[:1])
    assert kafka.get_consumer_offsets(group, partitions) == {partitions[1]: latest[partitions[1]]}

    assert group in group_tool("--list").split()
    group_tool("--delete", "--group", group)
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        kafka.describe_groups({group})


def test_lag_of_a_deleted_topic_keeps_its_row(kafka, new_name):
    name, group = new_name(), new_name("group")
    kafka.create_topics([NewTopic(name, 1, 1)])
    only = TopicPartition(name, 0)
    kafka.set_consumer_offsets(group, {only: 0})
    assert [(row.log_size, row.lag) for row in kafka.lag({group})] == [(0, 0)]
    kafka.delete_topics({name})
    until(lambda: not kafka.describe({name}).has(name), what="the topic's end")
    # The broker deletes the offsets with the topic, in its own time; until then the row stays.
    try:
        rows = kafka.lag({group})
    except BrokerError as error:
        rows = []
        gone = error.error.name
    else:
        gone = "GROUP_ID_NOT_FOUND"
    assert (gone, [row.lag for row in rows]) in [
        ("GROUP_ID_NOT_FOUND", []),
        ("GROUP_ID_NOT_FOUND", [None]),
    ]
