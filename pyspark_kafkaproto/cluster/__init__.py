"""The window on a cluster: metadata, offsets at the leaders, offsets of groups.

`topology` is what a cluster looks like (values only), `routing` finds the broker to ask, `offsets`
and `groups` ask it, `kafka_cluster` is the face that users see. This room knows nothing of records,
Arrow or Spark.
"""

from pyspark_kafkaproto.cluster.kafka_cluster import KafkaCluster
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import (
    Broker,
    Leader,
    Partition,
    Topic,
    TopicPartition,
    Topology,
)

__all__ = [
    "Broker",
    "KafkaCluster",
    "Leader",
    "Partition",
    "Router",
    "Topic",
    "TopicPartition",
    "Topology",
]
