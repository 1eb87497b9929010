"""What those who keep a cluster ask and change: rights, users, quotas; replicas, leaders, brokers.

`acls`, `users` (and `tokens`, which stand for users) and `quotas` say who may do what, and how
much. `reassignments` moves replicas, to where `placement` proposes (which is pure), as fast as
`throttles` lets it; `elections` makes leaders; `log_dirs`, `producers`, `quorum`, `features` and
`brokers` are about what brokers hold and are; `transactions` and `hanging` are about what holds up
read_committed readers. Nothing here is loaded before it is used: executors
and readers do without all of it.
"""

from pyspark_kafkaproto.cluster.admin.acls import OPERATIONS, RESOURCE_TYPES, Acl, AclFilter
from pyspark_kafkaproto.cluster.admin.features import Direction, Feature, Features
from pyspark_kafkaproto.cluster.admin.hanging import HangingTransaction
from pyspark_kafkaproto.cluster.admin.log_dirs import LogDir, LogReplica, Replica
from pyspark_kafkaproto.cluster.admin.placement import propose_assignment
from pyspark_kafkaproto.cluster.admin.producers import ActiveProducer
from pyspark_kafkaproto.cluster.admin.quorum import Quorum, QuorumReplica
from pyspark_kafkaproto.cluster.admin.quotas import QUOTAS, QuotaEntity, QuotaFilter, QuotaName
from pyspark_kafkaproto.cluster.admin.reassignments import Reassignment
from pyspark_kafkaproto.cluster.admin.throttles import Throttle
from pyspark_kafkaproto.cluster.admin.tokens import DelegationToken
from pyspark_kafkaproto.cluster.admin.users import SCRAM_MECHANISMS, ScramCredential
from pyspark_kafkaproto.cluster.transactions import (
    TRANSACTION_STATES,
    DescribedTransaction,
    ListedTransaction,
    Writer,
)

__all__ = [
    "OPERATIONS",
    "QUOTAS",
    "RESOURCE_TYPES",
    "SCRAM_MECHANISMS",
    "TRANSACTION_STATES",
    "Acl",
    "AclFilter",
    "ActiveProducer",
    "DelegationToken",
    "DescribedTransaction",
    "Direction",
    "Feature",
    "Features",
    "HangingTransaction",
    "ListedTransaction",
    "LogDir",
    "LogReplica",
    "Quorum",
    "QuorumReplica",
    "QuotaEntity",
    "QuotaFilter",
    "QuotaName",
    "Reassignment",
    "Replica",
    "ScramCredential",
    "Throttle",
    "Writer",
    "propose_assignment",
]
