"""Which producers' batches a read_committed reader leaves out (KIP-98).

A Fetch response lists the aborted transactions that touch its batches as (producer id, first
offset), in no certain order. As the Java client does it: a producer joins the aborted ones when a
batch reaches its first offset, and leaves them at its ABORT marker. Nothing here reads bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy


class AbortedTransactions:
    """The aborted transactions of one block, and how far into the block they were followed.

    `decode` works on a copy: what a caller holds never changes, so a block, or the sound part of
    it, can be decoded again.
    """

    __slots__ = ("_active", "_begun", "_pairs")

    def __init__(self, pairs: Sequence[tuple[int, int]] = ()) -> None:
        self._pairs = tuple(sorted(pairs, key=lambda pair: pair[1]))
        self._begun = 0
        self._active: set[int] = set()

    @classmethod
    def copy_of(
        cls, aborted: AbortedTransactions | Sequence[tuple[int, int]]
    ) -> AbortedTransactions:
        """A state of its own: that of `aborted`, or the first one for a Fetch response's pairs."""
        if not isinstance(aborted, AbortedTransactions):
            return cls(aborted)
        return copy(aborted)

    def __copy__(self) -> AbortedTransactions:
        twin = AbortedTransactions()
        twin._pairs = self._pairs  # never changed, so shared
        twin._begun = self._begun
        twin._active = set(self._active)
        return twin

    def __bool__(self) -> bool:
        """Whether a batch can still be an aborted one."""
        return bool(self._active) or self._begun < len(self._pairs)

    def __repr__(self) -> str:
        pending = list(self._pairs[self._begun :])
        return f"<AbortedTransactions: pending {pending!r}, active {sorted(self._active)!r}>"

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._active

    def reach(self, last_offset: int) -> None:
        """A batch that ends at `last_offset` is met: what began up to there is active now."""
        while self._begun < len(self._pairs) and self._pairs[self._begun][1] <= last_offset:
            self._active.add(self._pairs[self._begun][0])
            self._begun += 1

    def end(self, producer_id: int) -> None:
        """The ABORT marker of `producer_id` is met."""
        self._active.discard(producer_id)
