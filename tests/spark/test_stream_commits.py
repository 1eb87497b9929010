"""Groups that a stream commits to, as Kafka's own command and ours show them."""

from __future__ import annotations

import json

import pytest

from pyspark_kafkaproto import KafkaCluster, OffsetCommitListener, TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from tests.broker.members import classic_member
from tests.spark.streaming import Place, failure_of, is_at, numbered, put, wait_until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(broker):
    with KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as opened:
        yield opened


def described(kafka_tool, group):
    """Per partition what Kafka's own command prints: (current offset, log end, lag)."""
    text = kafka_tool("consumer.group.ConsumerGroupCommand", "--describe", "--group", group)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header = next(line for line in lines if "LAG" in line)
    rows = [dict(zip(header, line, strict=False)) for line in lines if line[0] == group]
    return {
        int(row["PARTITION"]): tuple(
            int(row[name]) for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
        )
        for row in rows
    }


def test_lag_of_a_query_is_seen_by_kafkas_own_command(
    spark, broker, cluster, new_topic, new_name, tmp_path, kafka_tool
):
    topic, behind, exact = new_topic(partitions=2), new_name("behind"), new_name("exact")
    servers = broker.bootstrap_servers
    put(servers, topic, 0, numbered(0, 60))
    put(servers, topic, 1, numbered(0, 20))
    here = Place(spark, servers, tmp_path / "query")
    listener = OffsetCommitListener({"bootstrap.servers": servers}, exact)
    spark.streams.addListener(listener)
    try:
        progress = here.run(
            subscribe=topic,
            startingOffsets="earliest",
            maxOffsetsPerTrigger=40,
            commitGroupId=behind,
        )
        ends = [json.loads(each["sources"][0]["endOffset"])[topic] for each in progress]
        assert ends == [{"0": 0, "1": 0}, {"0": 30, "1": 10}, {"0": 60, "1": 20}]
        partitions = {TopicPartition(topic, number) for number in range(2)}
        wait_until(
            "the listener's last commit",
            lambda: set(cluster.get_consumer_offsets(exact, partitions).values()) == {60, 20},
        )
    finally:
        spark.streams.removeListener(listener)
    # Exact, too, as the run has ended with a look that found no more.
    assert described(kafka_tool, behind) == {0: (60, 60, 0), 1: (20, 20, 0)}
    assert described(kafka_tool, exact) == {0: (60, 60, 0), 1: (20, 20, 0)}
    assert [row.lag for row in cluster.lag([behind])] == [0, 0]
    at = cluster.get_group_offsets({exact})[exact][TopicPartition(topic, 0)]
    assert json.loads(at.metadata) == {"queryId": progress[0]["id"], "batchId": 2}
    assert (listener.behind.least, listener.behind.most) == (0, 0)


def test_group_with_members_is_refused_and_a_running_query_commits_as_it_goes(
    spark, broker, cluster, new_topic, new_name, tmp_path
):
    topic, group = new_topic(), new_name("group")
    servers = broker.bootstrap_servers
    put(servers, topic, 0, numbered(0, 10))
    running = Place(spark, servers, tmp_path / "running").start(
        subscribe=topic, startingOffsets="earliest", commitGroupId=group
    )
    partition = TopicPartition(topic, 0)
    try:
        wait_until("the first batch", lambda: is_at(running, 10), running)
        put(servers, topic, 0, numbered(10, 15))
        wait_until(
            "a commit of the first batch",
            lambda: cluster.get_consumer_offsets(group, {partition}) == {partition: 10},
            running,
        )
    finally:
        running.stop()
    taken = new_name("taken")
    with classic_member(cluster, taken, topic, 0):
        refused = Place(spark, servers, tmp_path / "refused")
        text = failure_of(refused.start(subscribe=topic, commitGroupId=taken))
        with pytest.raises(ConfigError, match=f"option 'group' is '{taken}': .* 1 members"):
            OffsetCommitListener({"bootstrap.servers": servers}, taken)
    assert f"option 'commitGroupId' is '{taken}': the group has 1 members" in text
