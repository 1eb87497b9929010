"""What docs/cluster.md shows is what the commands print: they are run in the page's order."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from pyspark_kafkaproto import KafkaCluster, Producer
from pyspark_kafkaproto.cluster import (
    CommittedOffset,
    ConfigChange,
    ConfigResource,
    NewTopic,
    ToOffsets,
)
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.messages.streams_group_heartbeat import TopicInfo
from tests.broker.members import Subtopology, streams_members
from tests.pages import check_prints, commands_of, examples

pytestmark = pytest.mark.broker

# What other tests look at: other words each time.
ELSEWHERE = {"doctor", "loadtest"}
ENDS = (9000, 598134, 0, 91000)
COMMITTED = (9000, CommittedOffset(26886, "run 4711"), 0, 18296)


INTERNAL = ("word-counts-repartition", "word-counts-changelog")


def topology():
    """Two subtopologies of an application, and the internal topics between and behind them."""
    repartition, changelog = (
        TopicInfo(name=name, partitions=count, replication_factor=1)
        for name, count in zip(INTERNAL, (4, 0), strict=True)
    )
    return (
        Subtopology(
            subtopology_id="0", source_topics=("orders",), repartition_sink_topics=INTERNAL[:1]
        ),
        Subtopology(
            subtopology_id="1",
            repartition_source_topics=(repartition,),
            state_changelog_topics=(changelog,),
        ),
    )


def make_streams_group(cluster, group):
    """An application that comes, works and goes."""
    at_once = ConfigChange("streams.initial.rebalance.delay.ms", "0")
    cluster.alter_configs({ConfigResource("group", group): [at_once]})

    def is_stable():
        return cluster.describe_groups({group})[group].state == "Stable"

    with streams_members(cluster, group, topology(), is_stable):
        assert cluster.describe_groups({group})[group].topology.problems == ()


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """The broker of the page: its topic, and its groups."""
    properties = {"message.max.bytes": "64000000"}
    with DevBroker(tmp_path_factory.mktemp("page"), properties=properties) as broker:
        config = {"bootstrap.servers": broker.bootstrap_servers}
        with KafkaCluster(config) as cluster, Producer(config, topic="orders") as producer:
            cluster.create_topics([NewTopic("orders", 4, 1, {"retention.ms": "86400000"})])
            for number, end in enumerate(ENDS):
                values = [f"order {n}" for n in range(end)]
                where = pa.array([number] * end, pa.int32())
                producer.send(pa.record_batch({"value": values, "partition": where}))
            offsets = {("orders", number): offset for number, offset in enumerate(COMMITTED)}
            cluster.set_consumer_offsets("test-consumer-group", offsets)
            producer.flush()
            cluster.reset_share_group_offsets("workers", ToOffsets({("orders", 1): 598_000}))
            make_streams_group(cluster, "word-counts")
            cluster.delete_topics(INTERNAL)
        yield broker.bootstrap_servers


def plain(text):
    """Without what is another each time."""
    text = re.sub(r"127\.0\.0\.1:\d{5}", "ADDRESS", text)
    text = re.sub(r"cluster [\w-]{22},", "cluster ID,", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text).strip("\n")


def test_each_command_prints_what_the_page_shows(servers):
    shown = [item for item in examples("cluster.md") if not ELSEWHERE & set(item[0].split())]
    assert {"metadata", "topics", "groups", "consume", "produce", "lag"} <= commands_of(shown)
    for line, text in shown:
        check_prints(line, text, servers, plain)
