"""Our side of a share session with one leader: what it is asked for, and what we hold of it.

A session is the broker's, by group and member: it knows which partitions we fetch, and each request
of it has the next epoch, 0 begins one and -1 ends it. It ends with its connection, too, and with it
all that was acquired in it: nothing of a session is ever said in the next one, where it might be of
records that were given to us again since. Which broker is asked, and when, is `exchange`'s.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from pyspark_kafkaproto.client.share.held import Held, Said
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.messages.share_acknowledge import ShareAcknowledgeRequest
from pyspark_kafkaproto.messages.share_fetch import ShareFetchRequest
from pyspark_kafkaproto.net import Connection, Endpoint, ShareConfig

_Named = TypeVar("_Named", ShareFetchRequest.Topic, ShareAcknowledgeRequest.Topic)

FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
_MOST_EPOCH: Final = 2**31 - 1
_TAKES_FEW: Final = 1  # of ShareAcquireMode

Topic = tuple[TopicPartition, bytes]
"""A partition with the id of its topic."""


class Pending(NamedTuple):
    """A request that is not answered yet.

    Attributes:
        is_fetch: or else it acknowledges and nothing more.
        said: what it acknowledges.
        since: when it was sent (time.monotonic).
    """

    is_fetch: bool
    said: Mapping[Topic, list[Said]]
    since: float


class ShareSession:
    """One session, for one connection.

    Attributes:
        endpoint: the broker.
        connection: to it, ours alone.
        epoch: of the next request.
        pending: what is not answered.
        lost: why it is over, if it is.
        names: the topics, by their ids, of what it is asked for and of what is held.
        helds: what was acquired in it and is not done with.
        spoke_at: when the last request was made (time.monotonic).
    """

    def __init__(self, endpoint: Endpoint, connection: Connection, who: tuple[str, str]) -> None:
        self.endpoint = endpoint
        self.connection = connection
        self.epoch = FIRST_EPOCH
        self.pending: Pending | None = None
        self.lost: KafkaProtoError | None = None
        self.names: dict[bytes, str] = {}
        self.helds: list[Held] = []
        self.spoke_at = 0.0
        self._group, self._member = who
        self._asked: set[Topic] = set()

    @property
    def is_idle(self) -> bool:
        """Whether a request can be sent."""
        return self.lost is None and self.pending is None

    @property
    def asked(self) -> set[TopicPartition]:
        """What it fetches."""
        return {partition for partition, _ in self._asked}

    @property
    def has_unsaid(self) -> bool:
        """Whether there is something to acknowledge."""
        return any(held.has_unsaid for held in self.helds)

    @property
    def is_cut_off(self) -> bool:
        """Whether what was begun here was interrupted: it is lost, or nobody waits for its answer.

        The request was never sent, or its answer was received and not taken.
        """
        is_begun = self.pending is not None and self.connection.is_open
        return self.lost is not None or (is_begun and not self.connection.in_flight)

    @property
    def unheard(self) -> list[TopicPartition]:
        """The partitions of what is acknowledged and not heard of, said or not."""
        said = () if self.pending is None else self.pending.said
        return [item for item, _ in (*said, *self._unsaid())]

    @property
    def has_renewals(self) -> bool:
        """Whether some of it is a renewal, which no fetch can carry."""
        return any(held.has_renewals for held in self.helds)

    def fetch(
        self, wanted: Collection[Topic], config: ShareConfig, most_wait_s: float
    ) -> ShareFetchRequest:
        """The request for more of `wanted`, and of nothing else, with what is to be said.

        The broker waits for news for fetch.max.wait.ms, but not for longer than `most_wait_s`.
        """
        said = self._say(is_fetch=True)
        named = (set(wanted) - self._asked) | said.keys()
        # What is named for its acknowledgements alone is not to be fetched from then on.
        gone = (self._asked | said.keys()) - set(wanted)
        forgotten = tuple(
            ShareFetchRequest.ForgottenTopic(
                topic_id=topic_id, partitions=tuple(item.partition for item in own)
            )
            for topic_id, own in _by_id(gone)
        )
        self._asked = set(wanted)
        held = ((one.acquired.partition, one.topic_id) for one in self.helds)
        answered = (*wanted, *gone, *held)
        self.names = {topic_id: partition.topic for partition, topic_id in answered}
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=self.epoch,
            max_wait_ms=round(min(config.fetch_max_wait_s, most_wait_s) * 1000),
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.client.fetch_max_bytes,
            max_records=config.max_poll_records,
            batch_size=config.max_poll_records,
            share_acquire_mode=_TAKES_FEW if config.takes_few else 0,
            topics=_topics(ShareFetchRequest.Topic, named, said),
            forgotten_topics_data=forgotten,
        )

    def acknowledge(self, *, is_last: bool = False) -> ShareAcknowledgeRequest:
        """The request that says what is to be said; `is_last` ends the session."""
        has_renewals = self.has_renewals
        said = self._say(is_fetch=False)
        return ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=LAST_EPOCH if is_last else self.epoch,
            is_renew_ack=has_renewals,
            topics=_topics(ShareAcknowledgeRequest.Topic, said, said),
        )

    def answered(self) -> None:
        """The last request was answered, and taken."""
        self.pending = None
        self.epoch = self.epoch % _MOST_EPOCH + 1

    def lose(self, error: KafkaProtoError) -> None:
        """It is over; whoever has acknowledged something was told of `unheard`."""
        self.connection.close()
        self.lost = error
        self.pending = None
        for held in self.helds:
            held.drop_coming()
        self.give_up()

    def give_up(self) -> None:
        """What is marked of what is lost is said to nobody."""
        self._collect({})

    def hold(self, helds: Collection[Held]) -> None:
        """These were acquired."""
        for item in helds:
            _, first, last, _ = item.acquired
            for other in self.helds:
                if (other.acquired.partition, other.topic_id) == (
                    item.acquired.partition,
                    item.topic_id,
                ):
                    other.forget(first, last)
        self.helds += helds

    def _say(self, *, is_fetch: bool) -> dict[Topic, list[Said]]:
        """What is said now; until `answered` nobody knows whether it was heard.

        Where it is pending before it counts as said, an interrupt leaves nothing said to nobody.
        """
        said: dict[Topic, list[Said]] = {topic: [] for topic in self._unsaid()}
        self.spoke_at = time.monotonic()
        self.pending = Pending(is_fetch, said, self.spoke_at)
        self._collect(said)
        return said

    def _unsaid(self) -> list[Topic]:
        """Of which partitions something is marked."""
        return [(one.acquired.partition, one.topic_id) for one in self.helds if one.has_unsaid]

    def _collect(self, said: dict[Topic, list[Said]]) -> None:
        for held in self.helds:
            if batches := held.say():
                said.setdefault((held.acquired.partition, held.topic_id), []).extend(batches)
        self.helds = [held for held in self.helds if not held.is_done]
        for batches in said.values():
            batches.sort()  # ranges that were acquired later may lie before others


def _by_id(topics: Iterable[Topic]) -> list[tuple[bytes, list[TopicPartition]]]:
    grouped = groupby(sorted(topics, key=lambda item: (item[1], item[0])), key=lambda item: item[1])
    return [(topic_id, [partition for partition, _ in own]) for topic_id, own in grouped]


def _topics(
    kind: type[_Named], named: Iterable[Topic], said: Mapping[Topic, list[Said]]
) -> tuple[_Named, ...]:
    """What is named in a request, with what is said of it."""
    part = kind.Partition
    batch = part.AcknowledgementBatch
    return tuple(
        kind(
            topic_id=topic_id,
            partitions=tuple(
                part(
                    partition_index=item.partition,
                    acknowledgement_batches=tuple(
                        batch(
                            first_offset=one.first,
                            last_offset=one.last,
                            acknowledge_types=one.types,
                        )
                        for one in said.get((item, topic_id), ())
                    ),
                )
                for item in own
            ),
        )
        for topic_id, own in _by_id(named)
    )
