"""Waits until what was committed can be seen.

A coordinator answers EndTxn once it has noted the end; the markers that let readers go on are
written after that. Whoever reads at once may still find the last stable offset before it.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.net import Deadline

_WAIT_S = 120.0
_PAUSE_S = 0.01


def wait_until_settled(servers: str, partitions: Collection[TopicPartition]) -> None:
    """Return once no transaction is open in `partitions`, and each one's marker is written."""
    deadline = Deadline.after(_WAIT_S)
    wanted = set(partitions)
    with KafkaCluster({"bootstrap.servers": servers}) as cluster:
        while cluster.get_latest_leader_offsets(wanted) != cluster.get_last_stable_offsets(wanted):
            deadline.check("waiting for transactions that are left open")
            time.sleep(_PAUSE_S)
