"""Brokers that give nothing but a throttle: said now and then, as it may be so for good.

Over its quota for requests a client is told to wait, and gets no records. Where its requests alone
exceed the quota that never ends, and looks as if nothing were written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.asking import listed
from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.net import ClientConfig, Deadline, Endpoint

_log = logging.getLogger(__name__)


class Withheld:
    """Since when which broker has withheld everything.

    Args:
        config: the client's; a warning comes each default.api.timeout.ms.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._every_s = config.default_api_timeout_s
        self._until: dict[Endpoint, Deadline] = {}

    def note(
        self,
        broker: Endpoint,
        asked: Iterable[TopicPartition],
        answer: FetchResponse | ShareFetchResponse,
    ) -> bool:
        """`broker` has answered about `asked`; whether with nothing but a throttle."""
        until = self._until.pop(broker, None)
        if not answer.throttle_time_ms or _tells_something(answer):
            return False
        if until is not None and until.has_passed:
            _log.warning(
                "nothing of %s has come for %g s: broker %s throttles this client, over a quota of "
                "its user or id (kafkaproto quotas list)",
                listed(sorted(map(str, asked))),
                self._every_s,
                broker,
            )
            until = None
        self._until[broker] = until or Deadline.after(self._every_s)
        return True


def _tells_something(answer: FetchResponse | ShareFetchResponse) -> bool:
    """Of a partition; an acknowledgement that was taken is nothing."""
    return any(
        data.records or data.error_code for topic in answer.responses for data in topic.partitions
    )
