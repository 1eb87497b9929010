"""Records that a broker has given to us alone, and what is to become of each. Pure.

One byte per offset of an acquired range says it: no object per record. What an offset goes through:

    COMING ──give──▶ GIVEN ──mark──▶ a type of acknowledgement ──say──▶ DONE
                       ▲                                        └─RENEW─▶ KEPT, to be marked again
    an offset without a record is marked a gap at once
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from pyspark_kafkaproto.cluster import TopicPartition


class Acknowledge(IntEnum):
    """What becomes of a record, with Kafka's numbers.

    ACCEPT: it was worked off. RELEASE: it is given out again, to whichever member. REJECT: nobody
    gets it again. RENEW: it stays ours for another time of the lock (Kafka 4.2).
    """

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acquired(NamedTuple):
    """Offsets of a partition that are ours, from the first to the last; how often each came out."""

    partition: TopicPartition
    first: int
    last: int
    delivery_count: int


class Said(NamedTuple):
    """Acknowledgements of neighbouring offsets: a type for each, or one for all."""

    first: int
    last: int
    types: tuple[int, ...]


_GAP: Final = 0
_KEPT, _DONE, _COMING, _GIVEN = 0xFC, 0xFD, 0xFE, 0xFF
_UNSAID: Final = re.compile(rb"[\x00-\x04]+")
# Not by a back reference, for which `re` keeps some 70 bytes for each byte of a run.
_RUN: Final = re.compile(rb"\x00+|\x01+|\x02+|\x03+|\x04+")
_RUN_BYTES: Final = 18  # what a run of its own takes in a request, beside one for each offset


def _becomes(changes: dict[int, int]) -> bytes:
    """A table for `translate`."""
    return bytes(changes.get(mark, mark) for mark in range(256))


_TO_BE_MARKED: Final = (*Acknowledge, _KEPT, _GIVEN)
_MARKS: Final = {how: _becomes(dict.fromkeys(_TO_BE_MARKED, how)) for how in Acknowledge}
_ACCEPTS: Final = _becomes({_GIVEN: Acknowledge.ACCEPT})
_GIVES: Final = _becomes({_COMING: _GIVEN})
_TAKES_BACK: Final = _becomes({_GIVEN: _COMING})
_RELEASES_COMING: Final = _becomes({_COMING: Acknowledge.RELEASE})
_DROPS_COMING: Final = _becomes({_COMING: _DONE, _GAP: _DONE})
_SAYS: Final = _becomes(dict.fromkeys((_GAP, 1, 2, 3), _DONE) | {Acknowledge.RENEW: _KEPT})


class Held:
    """A range that was acquired, of a topic with this id."""

    __slots__ = ("_marks", "acquired", "topic_id")

    def __init__(self, acquired: Acquired, topic_id: bytes) -> None:
        self.acquired = acquired
        self.topic_id = topic_id
        self._marks = bytearray([_COMING]) * (acquired.last - acquired.first + 1)

    @property
    def is_open(self) -> bool:
        """Whether some of it was handed out and is not marked."""
        return _GIVEN in self._marks

    @property
    def is_coming(self) -> bool:
        """Whether some of it may still be handed out."""
        return _COMING in self._marks

    @property
    def has_unsaid(self) -> bool:
        """Whether some of it is marked, and to be said."""
        return _UNSAID.search(self._marks) is not None

    @property
    def has_renewals(self) -> bool:
        """Whether some of what is to be said is a renewal."""
        return Acknowledge.RENEW in self._marks

    @property
    def is_done(self) -> bool:
        """Whether nothing is left of it."""
        return not self._marks.strip(bytes([_DONE]))

    def note_gaps(self, first: int, last: int) -> None:
        """These offsets have no record (markers of transactions, compaction)."""
        begin, end = self._span(first, last)
        self._marks[begin:end] = bytes(end - begin)

    def give(self, first: int, last: int) -> None:
        """Those of them that have records are handed out."""
        self._change(_GIVES, first, last)

    def take_back(self, first: int, last: int) -> None:
        """They did not arrive: they come again."""
        self._change(_TAKES_BACK, first, last)

    def mark(self, how: Acknowledge, first: int, last: int) -> bool:
        """Have these acknowledged so; False: none of them is ours to acknowledge."""
        begin, end = self._span(first, last)
        part = self._marks[begin:end]
        is_any = any(mark in part for mark in _TO_BE_MARKED)
        self._marks[begin:end] = part.translate(_MARKS[how])
        return is_any

    def accept_given(self) -> None:
        """All that was handed out was worked off."""
        self._marks = self._marks.translate(_ACCEPTS)

    def release_coming(self) -> None:
        """What was not handed out goes back to the group."""
        self._marks = self._marks.translate(_RELEASES_COMING)

    def drop_coming(self) -> None:
        """What was not handed out is not ours any more."""
        self._marks = self._marks.translate(_DROPS_COMING)

    def forget(self, first: int, last: int) -> None:
        """These were given out anew: what we had of them ran out."""
        begin, end = self._span(first, last)
        self._marks[begin:end] = bytes([_DONE]) * (end - begin)

    def kept(self) -> Iterator[Acquired]:
        """What was handed out and is not acknowledged for good yet."""
        for found in re.finditer(rb"[\x01-\x04\xfc\xff]+", self._marks):
            first = self.acquired.first + found.start()
            last = self.acquired.first + found.end() - 1
            yield self.acquired._replace(first=first, last=last)

    def say(self) -> list[Said]:
        """What is marked, as it goes into a request; it counts as said from here on."""
        said = [
            Said(self.acquired.first + begin, self.acquired.first + end - 1, types)
            for found in _UNSAID.finditer(self._marks)
            for begin, end, types in _packed(found.start(), found[0])
        ]
        self._marks = self._marks.translate(_SAYS)
        return said

    def _change(self, table: bytes, first: int, last: int) -> None:
        begin, end = self._span(first, last)
        self._marks[begin:end] = self._marks[begin:end].translate(table)

    def _span(self, first: int, last: int) -> tuple[int, int]:
        """Where the offsets from `first` to `last` stand, as far as they belong to it."""
        begin = max(first - self.acquired.first, 0)
        return begin, max(begin, min(last - self.acquired.first + 1, len(self._marks)))


def _packed(start: int, marks: bytes) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Marks from `start` on as (begin, end, types): as few bytes as it takes."""
    runs = [found.span() for found in _RUN.finditer(marks)]
    if len(runs) * _RUN_BYTES < len(marks) or len(runs) == 1:
        for begin, end in runs:
            yield start + begin, start + end, (marks[begin],)
    else:
        yield start, start + len(marks), tuple(marks)
