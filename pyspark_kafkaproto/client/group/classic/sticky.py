"""Partitions that stay where they are: the sticky assignors.

Shares are even and no more moves than that needs: the laws of the Java client's, not its very
choices, so a group whose leader becomes another client moves nothing that is even already. The
cooperative one (KIP-429) gives away nothing that somebody may still be reading: its reader is told
first that it is not its own any more, joins again without it, and then it goes to the next one.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from pyspark_kafkaproto.client.group.classic.subscriber import (
    Assignment,
    Subscriber,
    in_order,
    numbered,
)
from pyspark_kafkaproto.cluster import TopicPartition

_UNEVEN = 2


def assign_sticky(members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """Even shares, in which each member keeps what it claims, as far as that can be.

    Who has two partitions more than another one has none that the other wants. Where all members
    want the same topics, no share in which less moves is as even.

    Args:
        members: with the topics that each wants, and what it has from before.
        partitions: how many each topic has; topics that are not there are left out.

    Returns:
        Partitions by member id, for every member.
    """
    shares = _Shares(in_order(members), partitions)
    holders = {item: who for item, who in _holders(members).items() if shares.may_have(who, item)}
    for item in sorted(holders):  # whoever leads the group decides alike: the last ones go first
        shares.give(holders[item], item)
    shares.give_out(shares.wanted - holders.keys())
    shares.level()
    return shares.assignment


def assign_cooperatively(
    members: Sequence[Subscriber], partitions: Mapping[str, int]
) -> Assignment:
    """The same without what somebody else may still be reading: that is nobody's for now."""
    claims: dict[TopicPartition, dict[str, int]] = {}
    for member in members:
        for item in member.claim.partitions:
            claims.setdefault(item, {})[member.member_id] = member.claim.generation
    return {
        who: [item for item in own if _is_free(claims.get(item, {}), who)]
        for who, own in assign_sticky(members, partitions).items()
    }


def _is_free(claims: Mapping[str, int], who: str) -> bool:
    """Whether nobody but `who` claims it, or those who do have not heard of a later generation."""
    others = [generation for other, generation in claims.items() if other != who]
    return not others or (who in claims and claims[who] > max(others))


def _holders(members: Iterable[Subscriber]) -> dict[TopicPartition, str]:
    """Who has each partition from before: the claim of the latest generation, if it is one."""
    found: dict[TopicPartition, str] = {}
    by_generation = groupby(sorted(members, key=_generation), _generation)
    for _, together in by_generation:
        claimed: dict[TopicPartition, list[str]] = {}
        for member in together:
            for item in member.claim.partitions:
                claimed.setdefault(item, []).append(member.member_id)
        for item, several in claimed.items():
            found.pop(item, None)
            if len(several) == 1:
                found[item] = several[0]
    return found


def _generation(member: Subscriber) -> int:
    return member.claim.generation


class _Shares:
    """What each member has so far, by topic."""

    def __init__(self, ordered: Sequence[Subscriber], partitions: Mapping[str, int]) -> None:
        self._topics = {member.member_id: frozenset(member.topics) for member in ordered}
        self._readers = {
            topic: [who for who, topics in self._topics.items() if topic in topics]
            for topic in partitions
        }
        self.wanted = {
            item
            for topic, count in partitions.items()
            for item in (numbered(topic, 0, count) if self._readers[topic] else ())
        }
        self._own: dict[str, dict[str, list[int]]] = {who: {} for who in self._topics}
        self._sizes = dict.fromkeys(self._topics, 0)
        self._stuck: set[str] = set()  # who has found nobody to give to, and may not now

    @property
    def assignment(self) -> Assignment:
        """The partitions of each, sorted."""
        return {
            who: [TopicPartition(topic, at) for topic in sorted(own) for at in sorted(own[topic])]
            for who, own in self._own.items()
        }

    def may_have(self, who: str, item: TopicPartition) -> bool:
        """Whether it is there, and wanted by `who`."""
        return item in self.wanted and item.topic in self._topics[who]

    def give(self, who: str, item: TopicPartition) -> None:
        """It is `who`'s now."""
        self._own[who].setdefault(item.topic, []).append(item.partition)
        self._sizes[who] += 1

    def give_out(self, free: Iterable[TopicPartition]) -> None:
        """Each to who has fewest; first those that few want, who have no other choice."""
        for item in sorted(free, key=lambda item: (len(self._readers[item.topic]), item)):
            self.give(min(self._readers[item.topic], key=self._sizes.__getitem__), item)

    def level(self) -> None:
        """Move partitions, one by one, until no move makes two members more even.

        Each makes the sum of the squares of all sizes smaller, so there is an end to it.
        """
        while (move := self._next_move()) is not None:
            giver, taker, topic = move
            numbers = self._own[giver][topic]
            # The last one: what was given out just now is behind what was held before.
            self.give(taker, TopicPartition(topic, numbers.pop()))
            self._sizes[giver] -= 1
            if not numbers:
                del self._own[giver][topic]
            # The taker has more to give, and the giver may take from those who want what it wants.
            self._stuck.discard(taker)
            if self._stuck:
                there = self._topics[giver] & self._readers.keys()
                self._stuck.difference_update(*(self._readers[topic] for topic in there))

    def _next_move(self) -> tuple[str, str, str] | None:
        """(giver, taker, topic): from who has most to who has fewest, as far as they share one."""
        by_size = sorted(self._sizes, key=self._sizes.__getitem__)
        for giver in reversed(by_size):
            if giver in self._stuck:
                continue
            for taker in by_size:
                if self._sizes[giver] - self._sizes[taker] < _UNEVEN:
                    break
                shared = (topic for topic in self._own[giver] if topic in self._topics[taker])
                if (topic := next(shared, None)) is not None:
                    return giver, taker, topic
            self._stuck.add(giver)
        return None
