"""Offsets of the group that something holds back for a while: when to ask again, and to say so.

Knows nothing of partitions: what they are is asked elsewhere, and what came of it is told here.
"""

from __future__ import annotations

import logging
from typing import Final

from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.error_codes import (
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNSTABLE_OFFSET_COMMIT,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline

_log = logging.getLogger(__name__)

_WHY: Final = {
    STALE_MEMBER_EPOCH: "the coordinator knows this member in another epoch: %s",
    UNKNOWN_MEMBER_ID: "the coordinator does not know this member: %s",
    UNSTABLE_OFFSET_COMMIT: "an open transaction holds the group's offsets: %s",
}


class HeldOffsets:
    """Whether they are held back, since when, and when to ask about them again.

    Args:
        router: who asks.
        timeout_s: how long that may last before it is said, and said again.
    """

    def __init__(self, router: Router, timeout_s: float) -> None:
        self._router = router
        self._timeout_s = timeout_s
        self._said_at = self._again = Deadline.after(0)
        self.tries = 0  # in vain, since they could be had last

    @property
    def are_resting(self) -> bool:
        """Whether the coordinator is left alone for now."""
        return self.tries > 0 and not self._again.has_passed

    def sooner(self, turn: Deadline) -> Deadline:
        """When to ask again, or the end of `turn` where that is before."""
        return turn.sooner(self._again.remaining_s) if self.tries else turn

    def bears(self, error: BrokerError) -> bool:
        """Whether it is a reason that passes: the coordinator rests, and what lasts is said."""
        if error.code not in _WHY:
            return False
        if error.code != UNSTABLE_OFFSET_COMMIT:
            self._router.forget_for(error)  # the keeper may speak with another one
        if not self.tries:
            self._said_at = Deadline.after(self._timeout_s)
        self.tries += 1
        self._again = Deadline.after(self._router.config.backoff.wait_s(self.tries))
        if self._said_at.has_passed:
            self._said_at = Deadline.after(self._timeout_s)
            _log.warning(f"no rows yet, {_WHY[error.code]}", error)
        return True

    def are_had(self) -> None:
        """The next time that they are held is a wait of its own."""
        self.tries = 0
