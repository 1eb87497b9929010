"""Which logs were cut off between two looks at their ends: what who reads on has to know.

What was written there since hides it from whoever compares ends alone. Whose loss that is, and what
is done about it, is the reader's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.recent import with_latest
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.kafka_cluster import KafkaCluster
    from pyspark_kafkaproto.cluster.topology import TopicPartition

# So many partitions that nobody reads any more are known, if they come again: they may come and go
# for years.
_MOST_GONE = 10_000


class CutOffs:
    """Looks again whenever the leaders that tell ends have changed.

    Args:
        cluster: which is asked for the ends.
    """

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self._epochs: dict[TopicPartition, int] = {}  # of what is read or told, and lately was
        self._last: Mapping[TopicPartition, int] | None = None  # None: the next look is to be made
        self.learn()

    def learn(self) -> None:
        """Take the ends that were told last for those of the last look."""
        told = self._last = self._cluster.end_epochs
        self._epochs |= told

    def recall(self, epochs: Mapping[TopicPartition, int]) -> None:
        """Take what was told before this object was there for the last look at those."""
        self._epochs = self._epochs | dict(epochs)
        self._last = None

    def find(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where logs were cut off below `positions` since the last look.

        Nothing where one of their topics is deleted by now: the caller's next look at topics says
        so, and this one is made again then.

        Args:
            positions: the next offsets to read, no further than the ends that were told before the
                last ones.
        """
        if self._cluster.end_epochs is self._last:
            return {}
        try:
            found = self._cluster.find_cut_off(positions, self._epochs)
        except BrokerError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return {}
        self.learn()
        self._forget_others(positions.keys() | self._cluster.end_epochs.keys())
        return found

    def _forget_others(self, kept: Collection[TopicPartition]) -> None:
        """Know no more than the latest of what is neither read nor told."""
        epochs = {item: epoch for item, epoch in self._epochs.items() if item in kept}
        self._epochs = with_latest(epochs, self._epochs, _MOST_GONE)
