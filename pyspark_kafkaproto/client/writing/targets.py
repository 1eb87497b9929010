"""The topics that a producer writes to: their partitions, and who leads these.

They are looked up when first written to, and again every metadata.max.age.ms, or when a row names a
partition that was not there: topics grow. That one does not exist is believed for a while too: each
look at it takes the second in which it could have been created. One that is found to be gone again
and again is forgotten: who writes to a new one each day would ask for all that ever were.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark_kafkaproto.client.writing.accumulate import batch_limit_bytes
from pyspark_kafkaproto.client.writing.placement import Placement
from pyspark_kafkaproto.client.writing.queues import PartitionQueue
from pyspark_kafkaproto.cluster import Leader, Router, Topic, TopicPartition, Topology
from pyspark_kafkaproto.error_codes import INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import Deadline, ProducerConfig

_log = logging.getLogger(__name__)

# What says of a topic that nothing can ever be written to it: UNKNOWN_TOPIC_OR_PARTITION and
# INVALID_TOPIC_EXCEPTION. All else is about this user, or passes.
_NO_SUCH_TOPIC = frozenset({UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION})
_MOST_DISBELIEF_S = 60.0  # a topic may be created while rows for it come
# One that is deleted may be made again, and brokers hear of either one by one.
_GONE_AFTER_S = 60.0


@dataclass(slots=True)
class Target:
    """A topic that is written to, and who leads its partitions as far as somebody does.

    Attributes:
        missed_since: when it was first found not to be there, of all looks since; monotonic.
        is_gone: whether that is believed.
    """

    topic: Topic
    placement: Placement
    leaders: dict[int, Leader]
    queues: dict[int, PartitionQueue] = field(default_factory=dict)
    missed_since: float | None = None
    is_gone: bool = False

    @property
    def is_idle_and_gone(self) -> bool:
        """The same, and nothing was written to it since somebody has asked."""
        return self.is_gone and not any(queue.written.batches for queue in self.queues.values())

    @property
    def led(self) -> list[int]:
        """The partitions that somebody leads; without those where rows wait, if others are left."""
        waiting = {
            number
            for number, queue in self.queues.items()
            if queue.leader is None and queue.head is not None
        }
        return sorted(self.leaders.keys() - waiting or self.leaders)

    def take(self, topic: Topic, leaders: dict[int, Leader]) -> None:
        """Go by what a broker says of it, unless that one has not heard of all partitions yet."""
        was = self.topic
        is_another = None not in (was.topic_id, topic.topic_id) and was.topic_id != topic.topic_id
        if len(topic.partitions) < len(was.partitions) and not is_another:
            return
        self.topic, self.leaders = topic, leaders
        for number, queue in self.queues.items():
            _follow(queue, leaders.get(number), topic.topic_id)

    def miss(self, now: float) -> None:
        """It is not there, by one look more."""
        if self.missed_since is None:
            self.missed_since = now
        self.is_gone = now - self.missed_since >= _GONE_AFTER_S


class Targets:
    """All of them, by name.

    Args:
        config: of the producer.
        router: asks for metadata.
    """

    def __init__(self, config: ProducerConfig, router: Router) -> None:
        self._config = config
        self._router = router
        self._by_name: dict[str, Target] = {}
        self._absent: dict[str, tuple[str, float]] = {}  # why, and until when that is believed
        self._look_at = math.inf  # when they are looked up again
        self._believed: dict[str, float] = {}  # until when, that a topic has not grown

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Target:
        return self._by_name[name]

    def queues(self) -> Iterator[PartitionQueue]:
        """What waits for each partition that was written to."""
        for target in self._by_name.values():
            yield from target.queues.values()

    def forget_queues(self) -> None:
        """Nothing was sent to any of them yet; what they have learned of their leaders stays."""
        for target in self._by_name.values():
            before = target.topic.topic_id
            for number, queue in target.queues.items():
                if queue.leader is not None:
                    target.leaders[number] = queue.leader
                if queue.topic_id != before:  # some may not have heard of the new one
                    target.topic = replace(target.topic, topic_id=queue.topic_id)
            target.queues.clear()

    def forget(self) -> None:
        """Look up all topics anew when they are next written to. Nothing waits for any of them."""
        self._by_name.clear()

    @property
    def has_gone(self) -> bool:
        """Whether there are topics that `forget_gone` would forget."""
        return any(target.is_idle_and_gone for target in self._by_name.values())

    def forget_gone(self) -> list[PartitionQueue]:
        """Forget topics that are gone, where nothing is to be told of them; their queues.

        Nothing waits for any of them. A topic may be there all the same: what is written to it from
        now on is not to look to its leader as if it were written already.
        """
        gone = [name for name, target in self._by_name.items() if target.is_idle_and_gone]
        return [queue for name in gone for queue in self._by_name.pop(name).queues.values()]

    def find(self, names: Collection[str]) -> None:
        """Look up topics that were not met before.

        Raises:
            BrokerError: one does not exist or may not be seen.
        """
        for error in self.absent(names).values():
            raise error

    def absent(self, names: Collection[str]) -> dict[str, BrokerError]:
        """As `find`, in one request; those that do not exist, with the error of each."""
        return self._look_up(set(names) - self._by_name.keys())

    def find_existing(self, names: Collection[str]) -> None:
        """As `find`, in one request; of topics that do not exist `fault` tells afterwards.

        Raises:
            BrokerError: one may not be seen, or cannot be looked up.
        """
        now = time.monotonic()
        self._absent = {name: kept for name, kept in self._absent.items() if now < kept[1]}
        absent = self._look_up(set(names) - self._by_name.keys() - self._absent.keys())
        until = time.monotonic() + min(self._config.metadata_max_age_s, _MOST_DISBELIEF_S)
        self._absent |= {name: (str(error), until) for name, error in absent.items()}

    def fault(self, name: str) -> str | None:
        """Why nothing can be written to a topic that was looked up; None where it exists."""
        kept = self._absent.get(name)
        return None if kept is None or name in self._by_name else kept[0]

    def _look_up(self, missing: Collection[str]) -> dict[str, BrokerError]:
        """Look up topics, in one request for all; those of them that do not exist, and why."""
        absent: dict[str, BrokerError] = {}
        if not missing:
            return absent
        deadline = self._router.deadline()

        def attempt() -> None:
            absent.clear()
            unknown = sorted(set(missing) - self._by_name.keys())
            topology = self._router.topology(unknown, deadline)
            for name in unknown:
                try:
                    self._add(topology, name)
                except BrokerError as error:
                    if error.code not in _NO_SUCH_TOPIC:
                        raise
                    absent[name] = error
            for fault in absent.values():
                if fault.error.is_retriable:  # created a moment ago, perhaps
                    raise fault

        try:
            self._router.retrying("find topics", attempt, deadline)
        except BrokerError as error:
            if error not in absent.values():  # those are told to whoever asked
                raise
        return absent

    def _add(self, topology: Topology, name: str) -> None:
        topic = topology.topic(name)
        placement = Placement(self._config.partitioner, batch_limit_bytes(self._config))
        self._by_name[name] = Target(topic, placement, _leaders(topology, topic))
        self._look_at = min(self._look_at, self._next_look())

    def refresh(self) -> None:
        """Look again where the last look is older than metadata.max.age.ms."""
        if time.monotonic() >= self._look_at:
            self._look_at = self._next_look()
            self.look_again(set(self._by_name))

    def find_partitions(self, name: str, has_all: Callable[[int], bool]) -> None:
        """See whether a topic has grown, as rows name partitions that it did not have.

        Brokers hear of that one by one, and a row is refused for good: so several are asked. What
        they agree on is believed for a while, in which one of them will do.

        Args:
            name: of a topic that was looked up.
            has_all: whether so many partitions are enough.

        Raises:
            KafkaProtoError: nobody tells.
        """

        def count() -> int:
            deadline = self._router.deadline()
            look = partial(self._look, {name}, deadline)
            self._router.retrying("find partitions", look, deadline)
            return len(self._by_name[name].topic.partitions)

        now = time.monotonic()
        self._believed = {name: until for name, until in self._believed.items() if now < until}
        if name in self._believed:
            count()
        elif not has_all(self._router.believed(count, has_all)):
            disbelief_s = min(self._config.metadata_max_age_s, _MOST_DISBELIEF_S)
            self._believed[name] = time.monotonic() + disbelief_s

    def look_again(self, names: Collection[str]) -> None:
        """See whether topics have grown, and who leads now. One try: nothing depends on it.

        With acks=0 hardly anything else says that a leader has moved.
        """
        try:
            self._look(names, Deadline.after(self._config.client.request_timeout_s))
        except KafkaProtoError as error:
            _log.debug("topics are not looked up again: %s", error)

    def _look(self, names: Collection[str], deadline: Deadline) -> None:
        topology = self._router.topology(names, deadline)
        is_dated = False  # one broker may be behind for hours: then another is asked the next time
        for name in names:
            try:
                topic = topology.topic(name)
            except BrokerError as error:  # told to whoever writes to it
                _log.debug("%s is not looked up again: %s", name, error)
                if error.code == UNKNOWN_TOPIC_OR_PARTITION:
                    self._by_name[name].miss(time.monotonic())
                    is_dated = True
                continue
            target = self._by_name[name]
            target.missed_since, target.is_gone = None, False
            target.take(topic, _leaders(topology, topic))
        if is_dated:
            self._router.distrust_last()

    def _next_look(self) -> float:
        return time.monotonic() + self._config.metadata_max_age_s


def _follow(queue: PartitionQueue, leader: Leader | None, topic_id: bytes | None) -> None:
    """Send to the leader that metadata names, unless a newer one is known; none is looked up.

    Not while anything is in flight: the answer to that says who leads, and a leader that has lost
    what it knew of the producer would take later batches before it.
    """
    if queue.in_flight or queue.leader is None:
        return
    if topic_id is not None and queue.topic_id != topic_id:  # whose epochs begin anew
        queue.topic_id, queue.leader = topic_id, leader
    elif leader is None or leader.epoch >= queue.leader.epoch:
        queue.leader = leader


def _leaders(topology: Topology, topic: Topic) -> dict[int, Leader]:
    """The leader of each partition that has one."""
    return {
        number: topology.leader(TopicPartition(topic.name, number))
        for number, partition in topic.partitions.items()
        if partition.leader_id in topology.brokers
    }
