"""The window on a cluster: metadata, offsets at the leaders, groups, and changes to all of them.

`topology` is what a cluster looks like (values only), `routing` and `coordinators` find the broker
to ask, `advertised` says why it cannot be reached, `asking` puts questions about many things to
many brokers at once, `controller` what the controller alone can do. `offsets`, `log_sizes`,
`groups`, `members`, `reset`, `lag`, `topics`, `configs`, `acls`, `users`, `quotas` and
`transactions` each ask about their subject; `health` and `diagnosis` say what is wrong.
`kafka_cluster`, with `group_window`, `admin_window` and `access_window`, is the face that users
see; `given` and `names` check what they pass in. `capturing`, `ring` and `topic_ids` keep what is
said on connections, for errors and captures. This room knows nothing of records, Arrow or Spark.

Names of `acls`, `users` and `quotas` are loaded on first use: executors import this room.
`groups`, `members`, `reset`, `lag`, `topics`, `configs`, `transactions`, `producers`,
`reassignments` (with `placement`, which is pure, and `throttles`), `elections`, `log_dirs`,
`quorum`, `features` and `brokers` each ask about their subject; `health` and `diagnosis` say what
is wrong. `kafka_cluster`, with `group_window`, `admin_window` and `broker_window`, is the face that
users see; `given` and `names` check what they pass in. `capturing`, `ring` and `topic_ids` keep
what is said on connections, for errors and captures. This room knows nothing of records, Arrow or
Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_kafkaproto.cluster.capturing import capture_observer, error_observer
from pyspark_kafkaproto.cluster.configs import Change, ConfigChange, ConfigEntry, ConfigResource
from pyspark_kafkaproto.cluster.diagnosis import Finding
from pyspark_kafkaproto.cluster.features import Direction, Feature, Features
from pyspark_kafkaproto.cluster.groups import CommittedOffset
from pyspark_kafkaproto.cluster.health import Problem
from pyspark_kafkaproto.cluster.kafka_cluster import KafkaCluster
from pyspark_kafkaproto.cluster.lag import Lag, lag_text
from pyspark_kafkaproto.cluster.log_dirs import LogDir, LogReplica, Replica
from pyspark_kafkaproto.cluster.members import (
    GROUP_STATES,
    GROUP_TYPES,
    DescribedGroup,
    ListedGroup,
    Member,
)
from pyspark_kafkaproto.cluster.offsets import Found
from pyspark_kafkaproto.cluster.placement import propose_assignment
from pyspark_kafkaproto.cluster.producers import ActiveProducer
from pyspark_kafkaproto.cluster.quorum import Quorum, QuorumReplica
from pyspark_kafkaproto.cluster.reassignments import Reassignment
from pyspark_kafkaproto.cluster.reset import (
    BackBy,
    Moved,
    ResetTo,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffsets,
    ToTime,
)
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
    from pyspark_kafkaproto.cluster.acls import OPERATIONS as OPERATIONS
    from pyspark_kafkaproto.cluster.acls import RESOURCE_TYPES as RESOURCE_TYPES
    from pyspark_kafkaproto.cluster.acls import Acl as Acl
    from pyspark_kafkaproto.cluster.acls import AclFilter as AclFilter
    from pyspark_kafkaproto.cluster.quotas import QUOTAS as QUOTAS
    from pyspark_kafkaproto.cluster.quotas import QuotaEntity as QuotaEntity
    from pyspark_kafkaproto.cluster.quotas import QuotaFilter as QuotaFilter
    from pyspark_kafkaproto.cluster.quotas import QuotaName as QuotaName
    from pyspark_kafkaproto.cluster.users import SCRAM_MECHANISMS as SCRAM_MECHANISMS
    from pyspark_kafkaproto.cluster.users import ScramCredential as ScramCredential

__all__ = [
    "GROUP_STATES",
    "GROUP_TYPES",
    "OPERATIONS",
    "QUOTAS",
    "RESOURCE_TYPES",
    "SCRAM_MECHANISMS",
    "Acl",
    "AclFilter",
    "ActiveProducer",
    "BackBy",
    "Broker",
    "Change",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "DescribedGroup",
    "Direction",
    "Feature",
    "Features",
    "Finding",
    "Found",
    "KafkaCluster",
    "Lag",
    "Leader",
    "ListedGroup",
    "LogDir",
    "LogReplica",
    "Member",
    "Moved",
    "NewTopic",
    "Partition",
    "Problem",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaName",
    "Quorum",
    "QuorumReplica",
    "Reassignment",
    "Replica",
    "ResetTo",
    "Router",
    "ScramCredential",
    "ShiftBy",
    "ToEarliest",
    "ToLatest",
    "ToOffsets",
    "ToTime",
    "Topic",
    "TopicPartition",
    "Topology",
    "lag_text",
    "propose_assignment",
]

# name -> the module of this room that has it
_LATER = {
    "OPERATIONS": "acls",
    "QUOTAS": "quotas",
    "RESOURCE_TYPES": "acls",
    "SCRAM_MECHANISMS": "users",
    "Acl": "acls",
    "AclFilter": "acls",
    "QuotaEntity": "quotas",
    "QuotaFilter": "quotas",
    "QuotaName": "quotas",
    "ScramCredential": "users",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value


observe_connections(capture_observer)
observe_connections(error_observer)
