"""The retry loop, driven by the flags of the error table and always bounded by a deadline.

Nothing in this room tries again beside it: a retry inside a retry multiplies both times and hides
the first error. What to refresh before the next try (metadata, a coordinator) is the caller's
business, told by the error. Who has other work between two tries (a writer's other partitions, a
member's heartbeats) does without the loop, by its `is_retriable`, `Backoff` and `given_up`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyspark_kafkaproto.errors import (
    BrokerError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.net.deadline import Deadline

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# Kafka's clients spread their retries by a fifth either way, so that they do not come in waves.
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries: doubled from `first_s` to `most_s`, each ± 20 %."""

    first_s: float = 0.1
    most_s: float = 1.0

    def wait_s(self, tries: int) -> float:
        """Seconds to wait after `tries` failed tries (1, 2, …)."""
        grown: float = self.first_s * 2.0 ** min(tries - 1, 30)
        return min(self.most_s, grown) * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - jitter, no secret


def is_retriable(error: KafkaProtoError) -> bool:
    """Whether the same request can succeed later: lost connections, slow answers, the table."""
    if isinstance(error, BrokerError):
        return error.error.is_retriable
    return isinstance(error, (ConnectionFailed, DeadlineExceeded))


def retrying(
    what: str,
    attempt: Callable[[], _T],
    deadline: Deadline,
    backoff: Backoff,
    refresh: Callable[[KafkaProtoError], object] = lambda _: None,
) -> _T:
    """Call `attempt` until it gives a result, fails for good, or `deadline` passes.

    Args:
        what: names the work in the error.
        attempt: one try; keeps its own, shorter deadlines.
        deadline: when to give up.
        backoff: the waits between tries.
        refresh: called with a retriable error before the next try, to look things up again.

    Raises:
        KafkaProtoError: the error itself if it cannot be retried, outlasted its patience, or was
            the only one.
        DeadlineExceeded: after several tries, naming each one's error.
    """
    failures: list[str] = []
    first_seen: dict[str, float] = {}
    while True:
        try:
            return attempt()
        except KafkaProtoError as error:
            if not is_retriable(error):
                raise
            failures.append(str(error))
            now = time.monotonic()
            patience_s = first_seen.setdefault(str(error), now) + error.patience_s - now
            if patience_s <= 0:
                raise
            wait_s = min(backoff.wait_s(len(failures)), patience_s)
            if wait_s >= deadline.remaining_s:
                raise given_up(what, deadline, failures, error) from error
            _log.debug("%s: try %d failed, again in %.2f s: %s", what, len(failures), wait_s, error)
            time.sleep(wait_s)
            refresh(error)


def given_up(
    what: str, deadline: Deadline, failures: list[str], error: KafkaProtoError
) -> KafkaProtoError:
    """The error of what was tried until its time ran out.

    Args:
        what: names the work.
        deadline: its time.
        failures: the texts of all errors, in order.
        error: the last one. It is returned where all failures read the same, unless it is a
            DeadlineExceeded; otherwise the result is a DeadlineExceeded that lists them.
    """
    distinct = list(dict.fromkeys(failures))
    if len(distinct) == 1 and not isinstance(error, DeadlineExceeded):
        return error
    return DeadlineExceeded(what, deadline.timeout_s, distinct)
