"""Who leads the partitions of a member, and by which ids their topics go.

Looked up in metadata, until an answer of a leader tells of the next one (KIP-951).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import inf
from typing import Final, NamedTuple

from pyspark_kafkaproto.client.reading.directory import NO_EPOCH, of_the_past
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline, Endpoint
from pyspark_kafkaproto.wire.declaration import NO_ID

_MOST_AGE_S: Final = 300.0  # metadata.max.age.ms, as the Java client has it


class Led(NamedTuple):
    """Where a partition is fetched from, and the id of its topic."""

    endpoint: Endpoint
    topic_id: bytes


class Leaders:
    """What is known of them. One try at a time: whoever asks does so again."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._known: dict[TopicPartition, Led] = {}
        self._newest: dict[tuple[bytes, int], int] = {}  # epochs that have begun, by topic id
        self._good_until = Deadline.after(_MOST_AGE_S)

    def of(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> tuple[dict[TopicPartition, Led], dict[TopicPartition, BrokerError]]:
        """The leader of each, or why there is none (at the moment, or for us).

        Raises:
            KafkaProtoError: nobody could be asked.
        """
        if self._good_until.has_passed:
            self._good_until = Deadline.after(_MOST_AGE_S)
            there = {led.topic_id for led in self._known.values()}
            self._newest = {at: epoch for at, epoch in self._newest.items() if at[0] in there}
            self._known.clear()
        missing = [item for item in partitions if item not in self._known]
        failures = self._learn(missing, deadline) if missing else {}
        return {item: self._known[item] for item in partitions if item in self._known}, failures

    def knows_all(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether nobody needs to be asked about these."""
        return all(item in self._known for item in partitions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask anew, and somebody else: what was said of these is out of date."""
        self.drop(partitions)
        self._router.distrust_last()

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask anew: what was said of these may be out of date."""
        for partition in partitions:
            self._known.pop(partition, None)

    def note_moved(self, partition: TopicPartition, to: Endpoint | None, epoch: int) -> None:
        """A broker says who leads instead of it, in which epoch; None: it does not say where."""
        before = self._known.pop(partition, None)
        if before is None or epoch == NO_EPOCH:
            return
        place = before.topic_id, partition.partition
        if epoch < self._newest.get(place, NO_EPOCH):
            return
        self._newest[place] = epoch
        if to is not None and to != before.endpoint:
            self._known[partition] = before._replace(endpoint=to)

    def _learn(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, BrokerError]:
        topology = self._router.topology({item.topic for item in partitions}, deadline)
        failures = {}
        for partition in partitions:
            try:
                leader = topology.leader(partition)
                topic_id = topology.topic(partition.topic).topic_id or NO_ID
            except BrokerError as error:
                if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                    error.patience_s = inf  # it was assigned: if it is gone, a heartbeat says so
                failures[partition] = error
                continue
            place = topic_id, partition.partition
            if leader.epoch >= self._newest.get(place, NO_EPOCH):
                self._newest[place] = leader.epoch
                self._known[partition] = Led(leader.endpoint, topic_id)
            else:
                failures[partition] = of_the_past(partition, leader.epoch, self._newest[place])
        if failures:
            self._router.distrust_last()  # it may be behind
        return failures
