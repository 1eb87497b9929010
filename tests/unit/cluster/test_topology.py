"""What a Metadata answer means: leaders, and what to say where there is none."""

import pytest

from pyspark_kafkaproto.cluster.topology import Leader, TopicPartition, read_topology
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import Endpoint

T = MetadataResponse.Topic
P = MetadataResponse.Topic.Partition

ANSWER = MetadataResponse(
    cluster_id="c",
    controller_id=2,
    brokers=(
        MetadataResponse.Broker(node_id=1, host="b-1", port=9092, rack="a"),
        MetadataResponse.Broker(node_id=2, host="b-2", port=9093),
    ),
    topics=(
        T(
            name="orders",
            topic_id=b"0123456789abcdef",
            partitions=(
                P(partition_index=0, leader_id=2, leader_epoch=7, replica_nodes=(2, 1)),
                P(partition_index=1, leader_id=-1, error_code=5, replica_nodes=(3,), isr_nodes=()),
                P(partition_index=2, leader_id=9),
                P(partition_index=3, leader_id=-1, error_code=72),
                # A replica that is away takes nothing from the leader that is there.
                P(partition_index=4, leader_id=1, error_code=9, offline_replicas=(2,)),
            ),
        ),
        T(name="__state", is_internal=True),
        T(name="secret", error_code=29),
        T(name="a b", error_code=17),
        T(name="missing", error_code=3),
        T(name="strange", error_code=999),
    ),
)


@pytest.fixture(scope="module")
def topology():
    return read_topology(ANSWER)


def test_brokers_and_topics_are_read(topology):
    assert topology.cluster_id == "c"
    assert topology.controller_id == 2
    assert topology.brokers[1].endpoint == Endpoint("b-1", 9092)
    assert (topology.brokers[1].rack, topology.brokers[2].rack) == ("a", None)
    assert topology.topic("orders").topic_id == b"0123456789abcdef"
    assert topology.topic("__state").is_internal
    assert topology.topic("__state").topic_id is None


@pytest.mark.parametrize(
    ("partition", "leader"),
    [
        (0, Leader(2, Endpoint("b-2", 9093), 7)),
        (4, Leader(1, Endpoint("b-1", 9092), -1)),
    ],
)
def test_leader_is_found(topology, partition, leader):
    assert topology.leader(TopicPartition("orders", partition)) == leader


@pytest.mark.parametrize(
    ("partition", "code", "text"),
    [
        (
            1,
            5,
            r"LEADER_NOT_AVAILABLE \(5\): no leader; replicas \[3\], in sync \[\], offline \[\]",
        ),
        (2, 5, "no leader; replicas"),
        (3, 72, "LISTENER_NOT_FOUND.*its leader has no listener like"),
    ],
)
def test_partition_without_leader_says_why_and_can_be_retried(topology, partition, code, text):
    with pytest.raises(BrokerError, match=text) as caught:
        topology.leader(TopicPartition("orders", partition))
    assert caught.value.code == code
    assert caught.value.error.refreshes_metadata


@pytest.mark.parametrize(
    ("topic", "code", "text"),
    [
        ("missing", 3, "topic 'missing'.*nothing here creates one"),
        ("never-asked", 3, "topic 'never-asked'.*check its name"),
        ("secret", 29, "topic 'secret'.*DESCRIBE"),
        ("a b", 17, "topic 'a b'.*1 to 249"),
        ("strange", 999, r"UNKNOWN_ERROR_CODE_999 \(999\)"),
    ],
)
def test_topic_with_an_error_says_what_to_do(topology, topic, code, text):
    with pytest.raises(BrokerError, match=text) as caught:
        topology.leader(TopicPartition(topic, 0))
    assert caught.value.code == code


def test_missing_partition_names_those_that_there_are(topology):
    with pytest.raises(BrokerError, match=r"partition orders-7.*\[0, 1, 2, 3, 4\]") as caught:
        topology.partition(TopicPartition("orders", 7))
    assert caught.value.code == 3
    assert caught.value.patience_s <= 1


def test_topic_partition_reads_as_kafka_writes_it():
    assert str(TopicPartition("orders", 3)) == "orders-3"
