"""Partitions that nothing is fetched from for a failure: for how long, and what is said of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container
from typing import Final

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import KafkaProtoError
from pyspark_kafkaproto.net import ClientConfig

_log = logging.getLogger(__name__)

# An election is over by then, most of the time.
_WORTH_A_WORD_S: Final = 5.0


class Failing:
    """Since when there was no answer about a partition, or an error."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._since: dict[TopicPartition, float] = {}
        self._warned: set[TopicPartition] = set()

    def note(self, failed: set[TopicPartition], error: KafkaProtoError, tried_at: float) -> None:
        """They have failed, tried since `tried_at` (time.monotonic); says once what lasts.

        Raises:
            KafkaProtoError: `error`, where it has lasted for default.api.timeout.ms, or for longer
                than it is to be borne with.
        """
        now = time.monotonic()
        since = max(tried_at, now - self._config.request_timeout_s)  # whenever we are polled
        lasted_s = now - min(self._since.setdefault(item, since) for item in failed)
        if lasted_s >= min(self._config.default_api_timeout_s, error.patience_s):
            raise error
        if lasted_s >= _WORTH_A_WORD_S and not failed <= self._warned:
            self._warned |= failed
            names = ", ".join(map(str, sorted(failed)))
            _log.warning("nothing fetched from %s for %.0f s: %s", names, lasted_s, error)

    def note_answered(
        self, asked: Container[TopicPartition], failed: Container[TopicPartition]
    ) -> None:
        """Of `asked` all but `failed` fail no more."""
        for partition in self._since.keys() | self._warned:
            if partition in asked and partition not in failed:
                self._since.pop(partition, None)
                self._warned.discard(partition)

    def forget(self, is_in_vain: Callable[[TopicPartition], bool]) -> None:
        """Those that nobody is asked about fail no longer."""
        for partition in [item for item in self._since if is_in_vain(item)]:
            del self._since[partition]
