"""What a member knows of the logs that its positions are in.

By that it notices that one was cut off, or that a topic was made anew. Nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pyspark_kafkaproto.client.reading.directory import NO_EPOCH
from pyspark_kafkaproto.cluster import CommittedOffset, TopicPartition


@dataclass(slots=True)
class Seen:
    """What positions stand on, and what a log or topic of another past is known by.

    It outlives a `Tail`: one made anew after an error is to notice what the one before would have,
    and so is the first of a new generation, as far as it begins where the member was.

    Attributes:
        topic_ids: of the topics that positions belong to.
        refused_ids: those of them that a leader does not know; metadata alone may be of the past.
        epochs: per partition an offset, and the leader epoch of the batch that ends before it.
        astray: partitions whose position is not there, and that nothing has moved yet.
        outdated: those of them whose position is in a topic that had the name before: nothing was
            read of them as others showed that.
        foreign: partitions at offsets that are not from this member's reading, until a leader has
            answered. Whoever has committed one may have seen before us that the topic was made
            again, or a broker that is behind has named one of before to us.
        sought: those of them that whoever reads has named itself.
        unsure: those of them whose topic was another one than was named first: the group is to be
            asked anew where it is, as it has nothing of a topic that was deleted.
        is_made_again: whether a topic was found to be, and nobody has looked what else it is now.
    """

    topic_ids: dict[str, bytes] = field(default_factory=dict)
    refused_ids: set[bytes] = field(default_factory=set)
    epochs: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    astray: set[TopicPartition] = field(default_factory=set)
    outdated: set[TopicPartition] = field(default_factory=set)
    foreign: set[TopicPartition] = field(default_factory=set)
    sought: set[TopicPartition] = field(default_factory=set)
    unsure: set[TopicPartition] = field(default_factory=set)
    is_made_again: bool = False

    def in_next_generation(
        self, assigned: Collection[TopicPartition], own: Collection[TopicPartition]
    ) -> Seen:
        """What of it is true of `assigned`, of which `own` begin where this member was."""
        # With what no leader has answered about: by its id alone a topic made again is noticed.
        topics = {item.topic for item in own} & self.topic_ids.keys()
        sought = self.sought.intersection(assigned, own)
        unsure = self.unsure.intersection(assigned)
        own = set(own) - self.foreign
        topic_ids = {topic: self.topic_ids[topic] for topic in topics}
        return Seen(
            topic_ids=topic_ids,
            refused_ids=self.refused_ids.intersection(topic_ids.values()),
            epochs={item: known for item, known in self.epochs.items() if item in own},
            astray=self.astray & own | unsure,
            outdated=self.outdated & own,
            foreign=set(assigned) - own,
            sought=sought,
            unsure=unsure,
        )

    def note_answered(self, partitions: Collection[TopicPartition]) -> None:
        """A leader knows the topics of these by the ids that are known here."""
        self.foreign.difference_update(partitions)
        self.sought.difference_update(partitions)

    def note_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> None:
        """What whoever committed these offsets knew of the records before; the later counts."""
        for item, (offset, _, epoch) in committed.items():
            if epoch > self.epoch_before(item, offset):
                self.epochs[item] = (offset, epoch)

    def epoch_before(self, partition: TopicPartition, position: int) -> int:
        """The leader epoch of the batch that ends before `position`; -1 where it is not known."""
        offset, epoch = self.epochs.get(partition, (position, NO_EPOCH))
        return epoch if offset == position else NO_EPOCH
