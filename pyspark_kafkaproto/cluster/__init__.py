"""The window on a cluster: metadata, offsets at the leaders, groups, and changes to all of them.

`topology` is what a cluster looks like (values only), `contacts` reaches brokers, `routing` and
`coordinators` find the one to ask, `advertised` says why it cannot be reached, `asking` puts
questions about many things to many brokers at once, `changing` makes changes and tells what is in
doubt, `controller` what the controller alone can do. `offsets`, `log_sizes`, `topics`, `configs`
and `transactions` each ask about their subject; in `groups` is what groups commit and who they are,
and in `admin` all that those who keep a cluster ask and change. `health` and `diagnosis` say what
is wrong. `kafka_cluster`, with `group_window`, `topic_window`, `access_window`, `broker_window` and
`transaction_window`, is the face that users see; `given` and `names` check what they pass in.
`capturing`, `ring` and `topic_ids` keep what is said on connections, for errors and captures;
`silence` tells whoever waits for a cluster that does not answer. This room knows nothing of
records, Arrow or Spark.

Executors import it at every start: what they ask nothing of, `admin` and most of `groups`, is
loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.cluster.capturing import capture_observer, error_observer
from pyspark_kafkaproto.cluster.configs import Change, ConfigChange, ConfigEntry, ConfigResource
from pyspark_kafkaproto.cluster.diagnosis import Finding
from pyspark_kafkaproto.cluster.groups.committed import CommittedOffset
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

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.groups.described import GROUP_STATES as GROUP_STATES
    from pyspark_kafkaproto.cluster.groups.described import GROUP_TYPES as GROUP_TYPES
    from pyspark_kafkaproto.cluster.groups.described import DescribedGroup as DescribedGroup
    from pyspark_kafkaproto.cluster.groups.described import ListedGroup as ListedGroup
    from pyspark_kafkaproto.cluster.groups.described import Member as Member
    from pyspark_kafkaproto.cluster.groups.described import StreamsTopology as StreamsTopology
    from pyspark_kafkaproto.cluster.groups.described import Subtopology as Subtopology
    from pyspark_kafkaproto.cluster.groups.described import Task as Task
    from pyspark_kafkaproto.cluster.groups.described import Tasks as Tasks
    from pyspark_kafkaproto.cluster.groups.lag import Lag as Lag
    from pyspark_kafkaproto.cluster.groups.lag import lag_text as lag_text
    from pyspark_kafkaproto.cluster.groups.reset import BackBy as BackBy
    from pyspark_kafkaproto.cluster.groups.reset import Moved as Moved
    from pyspark_kafkaproto.cluster.groups.reset import ResetTo as ResetTo
    from pyspark_kafkaproto.cluster.groups.reset import ShiftBy as ShiftBy
    from pyspark_kafkaproto.cluster.groups.reset import ToEarliest as ToEarliest
    from pyspark_kafkaproto.cluster.groups.reset import ToLatest as ToLatest
    from pyspark_kafkaproto.cluster.groups.reset import ToOffsets as ToOffsets
    from pyspark_kafkaproto.cluster.groups.reset import ToTime as ToTime
    from pyspark_kafkaproto.cluster.groups.share_offsets import ShareOffset as ShareOffset

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

# Names that no executor uses: the module of `groups` that has them, loaded on first use.
_LATER = {
    "GROUP_STATES": "described",
    "GROUP_TYPES": "described",
    "DescribedGroup": "described",
    "ListedGroup": "described",
    "Member": "described",
    "StreamsTopology": "described",
    "Subtopology": "described",
    "Task": "described",
    "Tasks": "described",
    "Lag": "lag",
    "lag_text": "lag",
    "BackBy": "reset",
    "Moved": "reset",
    "ResetTo": "reset",
    "ShiftBy": "reset",
    "ToEarliest": "reset",
    "ToLatest": "reset",
    "ToOffsets": "reset",
    "ToTime": "reset",
    "ShareOffset": "share_offsets",
}


def __getattr__(name: str) -> Any:
    """Load a name of `_LATER` (PEP 562)."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.groups.{_LATER[name]}"), name)
    globals()[name] = value
    return value


observe_connections(capture_observer)
observe_connections(error_observer)
