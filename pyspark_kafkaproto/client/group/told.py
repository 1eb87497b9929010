"""Partitions that an error was raised for: the rows of others come before it is raised again.

Knows nothing of what they give, nor of which others there are.
"""

from __future__ import annotations

import time
from collections.abc import Set as AbstractSet
from typing import Final

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.net import ClientConfig, Deadline

_AGAIN_S: Final = 5.0  # however much the others have: the error may have passed


class Told:
    """Of which partitions whoever polls knows that they are an error.

    Attributes:
        partitions: those.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.partitions: set[TopicPartition] = set()
        self._backoff_s = config.retry_backoff_s
        self._until = self._ask_again = Deadline.after(0)

    @property
    def is_long_ago(self) -> bool:
        """Whether some are to be asked about once more, whatever the others have."""
        return bool(self.partitions) and self._until.has_passed

    def note_raised(self, refused: AbstractSet[TopicPartition]) -> None:
        """An error goes out; `refused` is what brokers refuse, whether it is about that or not."""
        self.partitions |= refused
        self._until = Deadline.after(_AGAIN_S)
        if refused:  # who polls again and again is not to ask so
            self._ask_again = Deadline.after(self._backoff_s)

    def wait_to_ask(self, deadline: Deadline) -> bool:
        """Whether brokers may be asked again by `deadline`; waits for that."""
        if not self._ask_again.has_passed:
            time.sleep(min(self._ask_again.remaining_s, deadline.remaining_s))
        return self._ask_again.has_passed
