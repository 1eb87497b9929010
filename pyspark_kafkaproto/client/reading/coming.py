"""An answer to a Fetch that is read while it comes.

A large answer is mostly the records of its first partition. They are decoded piece by piece: while
the processor's own cache has a piece, and while the broker sends the next. Decoding needs only what
the answer says before those records. What comes behind them (tagged fields, other partitions) is
known at the end, when the whole answer is read as any other is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark_kafkaproto.client.reading.block import Block
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.net import Arrival, Connection, Deadline


class SentFetch(NamedTuple):
    """A Fetch under way.

    Attributes:
        connection: where it was sent.
        asked: what it asks for.
        names: those of the ids that it has.
        is_whole: whether the answer has to be about all that is asked for. Within a session it says
            nothing of what has nothing new.
    """

    connection: Connection
    asked: Mapping[TopicPartition, RangeProgress]
    names: Mapping[bytes, str]
    is_whole: bool

    def named(self, topic: FetchResponse.Topic) -> str:
        """The name of a topic of the answer, "" for one that was not asked for."""
        return topic.topic or self.names.get(topic.topic_id, "")


@dataclass(slots=True, eq=False)
class Coming:
    """An answer of which the first records have begun to come.

    Attributes:
        sent: what it answers.
        data: what it says about its first partition, without the records.
        block: those.
        others: blocks of the partitions behind, once all is there.
    """

    sent: SentFetch
    data: FetchResponse.Topic.Partition
    block: Block
    arrival: Arrival
    _pos: int  # of the first records in the answer
    others: list[Block] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        sent: SentFetch,
        arrival: Arrival,
        receive: Callable[[Block], None],
    ) -> Coming | None:
        """An answer that can be read while it comes, if it is one.

        It is none if it is there already, tells of an error, or is about something else: then all
        of it has to be looked at.

        Args:
            sent: what it answers.
            arrival: how much of it is there.
            receive: for the block: waits for more of it.
        """
        if arrival.front is None or arrival.front.message.error_code:
            return None
        answer, pos, size = arrival.front
        (topic,) = answer.responses
        (data,) = topic.partitions
        progress = sent.asked.get(TopicPartition(sent.named(topic), data.partition_index))
        if progress is None or data.error_code or size > len(arrival.payload) - pos:
            return None
        block = Block(progress, arrival.payload[pos : pos + size], aborted_in(data), receive)
        block.source = arrival.inflow
        coming = cls(sent, data, block, arrival, pos)
        coming._note_arrived()
        return coming

    def receive_piece(self, piece_bytes: int, timeout_s: float) -> bool:
        """Wait for another piece; whether that was the last.

        Args:
            piece_bytes: how much to wait for.
            timeout_s: how long to wait for all pieces of this answer together, not counting what
                is done in between.
        """
        began = time.monotonic()
        deadline = Deadline(began + timeout_s - self.arrival.waited_s, timeout_s)
        try:
            self.sent.connection.more(self.arrival, piece_bytes, deadline)
        finally:
            self.arrival.note_waited(time.monotonic() - began)
        self._note_arrived()
        return self.arrival.is_whole

    def _note_arrived(self) -> None:
        if self.block.source is None:
            self.block.note_arrived(self.arrival.arrived - self._pos)


def aborted_in(data: FetchResponse.Topic.Partition) -> list[tuple[int, int]]:
    """(producer id, first offset) of a partition's aborted transactions."""
    return [(item.producer_id, item.first_offset) for item in data.aborted_transactions or ()]
