"""The window on a cluster: metadata, offsets at the leaders, groups, and changes to all of them.

`topology` is what a cluster looks like (values only), `routing` and `coordinators` find the broker
to ask, `advertised` says why it cannot be reached, `asking` puts questions about many things to
many brokers at once, `controller` what the controller alone can do. `offsets`, `log_sizes`,
`topics`, `configs` and `transactions` each ask about their subject; in `groups` is what groups
commit and who they are, and in `admin` all that those who keep a cluster ask and change. `health`
and `diagnosis` say what is wrong. `kafka_cluster`, with `group_window`, `topic_window`,
`access_window` and `broker_window`, is the face that users see; `given` and `names` check what they
pass in. `capturing`, `ring` and `topic_ids` keep what is said on connections, for errors and
captures. This room knows nothing of records, Arrow or Spark.
"""

from pyspark_kafkaproto.cluster.capturing import capture_observer, error_observer
from pyspark_kafkaproto.cluster.configs import Change, ConfigChange, ConfigEntry, ConfigResource
from pyspark_kafkaproto.cluster.diagnosis import Finding
from pyspark_kafkaproto.cluster.groups.committed import CommittedOffset
from pyspark_kafkaproto.cluster.groups.described import (
    GROUP_STATES,
    GROUP_TYPES,
    DescribedGroup,
    ListedGroup,
    Member,
    StreamsTopology,
    Subtopology,
    Task,
    Tasks,
)
from pyspark_kafkaproto.cluster.groups.lag import Lag, lag_text
from pyspark_kafkaproto.cluster.groups.reset import (
    BackBy,
    Moved,
    ResetTo,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    ToTime,
)
from pyspark_kafkaproto.cluster.groups.share_offsets import ShareOffset
from pyspark_kafkaproto.cluster.health import Problem
from pyspark_kafkaproto.cluster.kafka_cluster import KafkaCluster
from pyspark_kafkaproto.cluster.offsets import Found
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topics import NewTopic
from pyspark_kafkaproto.cluster.topology import (
    Broker,
    Leader,
    Partition,
    Topic,
    TopicPartition,
    Topology,
)
from pyspark_kafkaproto.net.observing import observe_connections

__all__ = [
    "GROUP_STATES",
    "GROUP_TYPES",
    "BackBy",
    "Broker",
    "Change",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "DescribedGroup",
    "Finding",
    "Found",
    "KafkaCluster",
    "Lag",
    "Leader",
    "ListedGroup",
    "Member",
    "Moved",
    "NewTopic",
    "Partition",
    "Problem",
    "ResetTo",
    "Router",
    "ShareOffset",
    "ShiftBy",
    "StreamsTopology",
    "Subtopology",
    "Task",
    "Tasks",
    "ToEarliest",
    "ToLatest",
    "ToOffsets",
    "ToTime",
    "Topic",
    "TopicPartition",
    "Topology",
    "lag_text",
]

observe_connections(capture_observer)
observe_connections(error_observer)
