"""What is wrong with a partition: the worst of it, and nothing where all is well."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster.health import find_problems
from pyspark_kafkaproto.cluster.topology import read_topology
from pyspark_kafkaproto.messages.metadata import MetadataResponse

NODES = tuple(
    MetadataResponse.Broker(node_id=number, host=f"b-{number}", port=9092) for number in (1, 2)
)


def problems(**partition):
    """Of a topic with one partition, which broker 1 leads if nothing else is said."""
    given = {"leader_id": 1, "replica_nodes": (1, 2), "isr_nodes": (1, 2)} | partition
    topic = MetadataResponse.Topic(
        name="orders", partitions=(MetadataResponse.Topic.Partition(partition_index=0, **given),)
    )
    return find_problems(read_topology(MetadataResponse(brokers=NODES, topics=(topic,))))


def test_of_a_partition_that_is_well_nothing_is_said():
    assert problems() == []


@pytest.mark.parametrize(
    ("partition", "what"),
    [
        ({"leader_id": -1, "isr_nodes": ()}, "no leader"),
        ({"leader_id": 7, "isr_nodes": (7,)}, "no leader"),
        ({"isr_nodes": (), "offline_replicas": (2,)}, "no replica in sync"),
        ({"isr_nodes": (1,), "offline_replicas": (2,)}, "replicas offline"),
        ({"offline_replicas": (2,)}, "replicas offline"),
        ({"isr_nodes": (1,)}, "too few replicas in sync"),
    ],
)
def test_of_several_things_the_worst_is_said(partition, what):
    (found,) = problems(**partition)
    assert (found.subject, found.what) == ("partition orders-0", what)
