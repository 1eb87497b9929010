"""Where a reader finds its partitions: what the driver told it, until an error says otherwise.

Leader epochs order what brokers say: an older leader than one that was heard of is never asked, and
the epoch of the last batch read lets the leader tell that its log was cut off since (KIP-320).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable

from pyspark_kafkaproto.client.reading.gone import note_there
from pyspark_kafkaproto.client.reading.loss import data_loss
from pyspark_kafkaproto.client.reading.ranges import ReadTask
from pyspark_kafkaproto.cluster import Leader, Router, TopicPartition
from pyspark_kafkaproto.cluster.routing import OPINIONS
from pyspark_kafkaproto.cluster.topic_ids import note_topic_ids
from pyspark_kafkaproto.cluster.topology import Topology
from pyspark_kafkaproto.error_codes import (
    FENCED_LEADER_EPOCH,
    LEADER_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.wire.ids import id_text

_log = logging.getLogger(__name__)

_NO_REPLICA = -1
NO_EPOCH = -1
"""Of a leader nobody knows, or of a reader who has read nothing."""

# By topic id: each topic of a name has its own, and a broker that is behind may name one before.
_Epochs = dict[tuple[bytes | None, TopicPartition], int]


class Directory:
    """Leaders, their epochs and topic ids of one read task.

    A reader that meets no error never asks for metadata: the driver has looked it up.

    Attributes:
        missing: topics that were planned by id, and that the broker asked last does not know.
        lost: partitions that the topic which has the name of theirs by now has not got, as far as
            the broker knows that was asked last.
        refused: topics that a broker has refused to tell of, for want of a right say.
    """

    def __init__(self, task: ReadTask, router: Router, *, fail_on_data_loss: bool) -> None:
        self.router = router
        self._leaders = dict(task.leaders)
        self._planned_ids = task.topic_ids
        self._topic_ids = dict(task.topic_ids)
        note_topic_ids(task.topic_ids)
        self._followed: set[TopicPartition] = set()
        self._newest: _Epochs = {
            self._place(partition): leader.epoch for partition, leader in task.leaders.items()
        }
        self._read_epochs: _Epochs = {}
        self.missing: set[str] = set()
        self.lost: set[TopicPartition] = set()
        self.refused: set[str] = set()
        self._gone: set[str] = set()  # the same, and those without an id: said once
        self._rack_id = router.config.client_rack
        self._led: set[TopicPartition] = set()  # no follower is to be named for these
        self._renamed: Counter[str] = Counter()  # tries in a row that named another id
        self._in_vain: dict[TopicPartition, Deadline] = {}  # looked up: not again before
        self._fail_on_data_loss = fail_on_data_loss
        self._old: set[TopicPartition] = set()  # leaders learned too long ago

    def topic_id(self, topic: str) -> bytes | None:
        """The id under which the topic was planned; None where the broker knows none."""
        return self._topic_ids.get(topic)

    def insist_on(self, topic: str, topic_id: bytes) -> None:
        """Have `topic` asked for by this id, whatever metadata named last.

        Where that was another one, its leaders are those of another topic.
        """
        if self._topic_ids.get(topic) not in {None, topic_id}:
            self.forget([item for item in self._leaders if item.topic == topic])
        self._topic_ids[topic] = topic_id

    def leaders(
        self, partitions: Iterable[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, Leader]:
        """The leader of each, or the follower that it named; one try where they must be asked.

        Partitions without a leader at the moment are left out, and not asked about again for
        retry.backoff.ms while there are others.

        Raises:
            BrokerError: none of them has one, or a topic is gone and that is to fail the read.
        """
        wanted = list(partitions)
        if not self._old.isdisjoint(wanted):
            # Of the others a Fetch is under way: they are learned anew once they are asked about.
            self._old.difference_update(wanted)
            self._try_to_learn(wanted, deadline)
        missing = [partition for partition in wanted if partition not in self._leaders]
        if len(missing) < len(wanted):
            missing = [partition for partition in missing if not self.is_in_vain(partition)]
        waiting = self._learn(missing, deadline) if missing else None
        found = {item: self._leaders[item] for item in wanted if item in self._leaders}
        if waiting is not None and not found:
            raise waiting
        return found

    def is_in_vain(self, partition: TopicPartition) -> bool:
        """Whether it had no leader, or was not there, a moment ago."""
        again = self._in_vain.get(partition)
        return again is not None and not again.has_passed

    def is_up_to_date(self, partition: TopicPartition) -> bool:
        """Whether the partition is, by metadata of now, that of the topic and leader known here."""
        topology = self.router.described({partition.topic})
        try:
            found, leader = topology.topic(partition.topic), topology.leader(partition)
        except BrokerError:
            return False
        # Where nobody has looked up the id there is no other topic to take it for.
        is_same_topic = self._topic_ids.get(partition.topic) in {None, found.topic_id}
        return is_same_topic and leader.epoch == self._newest_epoch(partition)

    def read_epoch(self, partition: TopicPartition) -> int:
        """The leader epoch of the last batch that was read, for the broker to compare; else -1."""
        return self._read_epochs.get(self._place(partition), NO_EPOCH)

    def note_read(self, partition: TopicPartition, epoch: int) -> None:
        """The last batch that was read was written in `epoch`; -1 to have nothing compared."""
        self._read_epochs[self._place(partition)] = epoch

    def note_failure(self, partition: TopicPartition, data: FetchResponse.Topic.Partition) -> None:
        """Learn from a partition's error how new its leader must be; metadata may lag behind it."""
        newest = data.current_leader.leader_epoch
        if data.error_code == FENCED_LEADER_EPOCH and partition in self._leaders:
            newest = max(newest, self._leaders[partition].epoch + 1)
        self._newest[self._place(partition)] = max(newest, self._newest_epoch(partition))

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask anew for the leaders of `partitions` when they are next needed."""
        for partition in partitions:
            self._leaders.pop(partition, None)
            self._followed.discard(partition)

    def rack_for(self, partition: TopicPartition) -> str:
        """The rack to name when `partition` is asked for, so that its follower there is told."""
        return "" if partition in self._led else self._rack_id

    def begin_anew(self) -> None:
        """What was learned is old: who leads, and which followers are not to be asked.

        For who reads without an end. A leader that the others have left behind, and a follower that
        is stuck, answer as if nothing was written; who failed once may be well again. Leaders stay
        until new ones are told: whoever is asked may be behind.
        """
        self.router.forget_leaders()
        self.forget(list(self._followed))
        self._old = set(self._leaders)
        self._led.clear()
        self._rack_id = self.router.config.client_rack

    def doubt(self, partition: TopicPartition) -> None:
        """Records that should be there do not come: ask who leads, and no follower any more.

        Another broker, where there is one: the leader may take itself for it.
        """
        self._led.add(partition)
        self.router.distrust_last()
        self.router.forget_leaders()
        self.forget([partition])

    def moves(self, partition: TopicPartition, data: FetchResponse.Topic.Partition) -> bool:
        """Whether an answer says to ask another broker, who is asked from now on (KIP-392).

        A leader names the follower in our rack and sends no records. If that follower does not have
        the offset, or names yet another broker, the partition is read from its leader from then on;
        once a follower has failed, so are all partitions of this task.
        """
        sends_on = data.preferred_read_replica != _NO_REPLICA and not data.records
        # A follower that has lost its end says that what was read is gone: the leader knows.
        lacks_it = data.error_code == OFFSET_OUT_OF_RANGE or data.diverging_epoch.end_offset >= 0
        if partition in self._followed and (sends_on or lacks_it):
            self._led.add(partition)
            self.forget([partition])
            return True
        leader = self._leaders.get(partition)  # none: forgotten since it was asked
        if not sends_on or leader is None or not self.rack_for(partition):
            return sends_on and leader is None
        try:
            follower = self.router.broker(data.preferred_read_replica, self.router.deadline())
        except BrokerError:
            self._led.add(partition)  # nobody knows that replica: the leader has the records too
            return True
        self._leaders[partition] = Leader(follower.node_id, follower.endpoint, leader.epoch)
        self._followed.add(partition)
        return True

    def forget_for(self, error: KafkaProtoError) -> None:
        """Forget all leaders, and what the router knows, if `error` says that they moved."""
        if self.router.forget_for(error):
            self._leaders.clear()
            self._rack_id = "" if self._followed else self._rack_id
            self._followed.clear()

    def _try_to_learn(self, partitions: list[TopicPartition], deadline: Deadline) -> None:
        try:
            self._learn(partitions, deadline)
        except KafkaProtoError as error:
            _log.debug("leaders stay as they were: %s", error)

    def _learn(self, partitions: list[TopicPartition], deadline: Deadline) -> BrokerError | None:
        """Look up who leads; the error of one that nobody leads for the moment."""
        topics = {partition.topic for partition in partitions}
        topology = self.router.topology(topics, deadline)
        waiting = self._find_topics(topics, topology)
        self._place_epochs()
        planned = self._planned_ids
        self.lost.difference_update(partitions)
        self.lost |= {
            item for item in partitions if topology.has_lost(item, planned.get(item.topic))
        }
        for partition in partitions:
            try:
                self._leaders[partition] = self._not_older(partition, topology.leader(partition))
            except BrokerError as error:
                if not error.error.is_retriable:
                    raise
                self._in_vain[partition] = Deadline.after(self.router.config.retry_backoff_s)
                waiting = error
        if waiting is not None:
            self.router.distrust_last()  # it may be behind
        return waiting

    def _find_topics(self, topics: set[str], topology: Topology) -> BrokerError | None:
        """Each topic is there, and is the one that was planned; the error of one that is not.

        One that is gone keeps the others from being read only where that is to fail the read.
        """
        gone = None
        for topic in topics:
            try:
                found = topology.topic(topic)
            except BrokerError as error:
                if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                    if not error.error.is_retriable:
                        self.refused.add(topic)
                    raise
                if self._topic_ids.get(topic):
                    self.missing.add(topic)
                if self._fail_on_data_loss:
                    self.router.distrust_last()
                    raise
                if topic not in self._gone:
                    _log.warning("%s; other topics are read meanwhile", error)
                self._gone.add(topic)
                gone = error
            else:
                note_there(found.topic_id)
                self.missing.discard(topic)
                self._gone.discard(topic)
                self._check_same_topic(topic, found.topic_id)
        return gone

    def _not_older(self, partition: TopicPartition, leader: Leader) -> Leader:
        """The leader, unless it is one of the past: brokers hear of elections one by one.

        Raises:
            BrokerError: it was replaced already; another broker will be asked.
        """
        newest = self._newest_epoch(partition)
        if leader.epoch == NO_EPOCH or leader.epoch >= newest:
            self._newest[self._place(partition)] = leader.epoch
            return leader
        self.router.distrust_last()
        raise of_the_past(partition, leader.epoch, newest)

    def _check_same_topic(self, topic: str, found: bytes | None) -> None:
        """A topic with another id is another topic: its offsets mean other records.

        A broker that is behind may name one that was deleted long ago, so another is asked next;
        where another id is to fail the read, it is believed at the third try.
        """
        planned = self._topic_ids.get(topic)
        if planned is not None and found != planned:
            self.router.distrust_last()
            if self._fail_on_data_loss:
                self._refuse_another(topic, planned, found)
        self._renamed[topic] = 0
        self._topic_ids[topic] = found

    def _place_epochs(self) -> None:
        """Epochs from before an id was known, as committed with offsets, are of the topic found."""
        for item in [item for topic_id, item in self._read_epochs if topic_id is None]:
            epoch = self._read_epochs.pop((None, item))
            self._read_epochs[self._place(item)] = epoch

    def _place(self, partition: TopicPartition) -> tuple[bytes | None, TopicPartition]:
        """Where its epochs stand."""
        return self._topic_ids.get(partition.topic), partition

    def _newest_epoch(self, partition: TopicPartition) -> int:
        """The latest one that was heard of."""
        return self._newest.get(self._place(partition), NO_EPOCH)

    def _refuse_another(self, topic: str, planned: bytes, found: bytes | None) -> None:
        """Raise: an error that passes at first, DataLoss when all tries named another id."""
        text = (
            f"Topic {topic} was deleted and created again since this read was planned "
            f"(topic id {id_text(planned)}, now {id_text(found) if found else None}); "
            "plan it anew."
        )
        self._renamed[topic] += 1
        if self._renamed[topic] < OPINIONS:
            raise BrokerError(UNKNOWN_TOPIC_ID, "Metadata", f"topic {topic!r}", text)
        raise data_loss("PARTITIONS_DELETED", text, self.router.config)


def of_the_past(partition: TopicPartition, epoch: int, newest: int) -> BrokerError:
    """The error of a leader that was replaced already: whoever names it has not heard of that."""
    text = f"its leader is said to be that of epoch {epoch}, but epoch {newest} has begun"
    return BrokerError(LEADER_NOT_AVAILABLE, "Metadata", f"partition {partition}", text)
