"""How long to rest between fetches from a broker whose quota we are at.

A broker that throttles a ShareFetch answers without records, but has given us some all the same:
nobody gets them until their lock runs out, and each time counts as a delivery, of which a record
has but a few (`group.share.delivery.count.limit`). So it is asked no faster than its throttles show
that it allows. Knows nothing of sessions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark_kafkaproto.net import Endpoint

_MORE: Final = 1.25  # of a rest that was too short
_LESS: Final = 0.995  # of one that was long enough: the quota may be a larger one by now
_MOST: Final = 2.0  # of the longest throttle, which is as long as its answer would have taken
_LONGEST_S: Final = 30.0


@dataclass(slots=True)
class _Quota:
    """What is known of a broker's.

    `size` is that of the last records that came, `s_per_byte` what a byte of them costs,
    `throttle_s` the longest throttle, and `rest_s` the last rest since records came.
    """

    size: int
    s_per_byte: float = 0.0
    throttle_s: float = 0.0
    rest_s: float = 0.0


class Pace:
    """The quota of each broker, as far as it shows."""

    def __init__(self) -> None:
        self._quotas: dict[Endpoint, _Quota] = {}

    def rest_after(self, broker: Endpoint, size: int) -> float:
        """Seconds to rest after an answer with `size` bytes of records: 0 without a quota."""
        if not size:
            return 0.0
        quota = self._quotas.setdefault(broker, _Quota(size))
        quota.size, quota.rest_s = size, 0.0
        quota.s_per_byte = min(quota.s_per_byte * _LESS, _MOST * quota.throttle_s / size)
        return quota.s_per_byte * size

    def rest_throttled(self, broker: Endpoint, throttle_s: float) -> float:
        """Seconds to rest after an answer with a throttle in place of records.

        Brokers count by the second, and tell how long it would take if all had come at one pace:
        where it had not, it takes longer than they say, again and again.
        """
        quota = self._quotas.get(broker)
        if quota is None:
            return throttle_s  # nothing has come yet: others are at the quota
        if not quota.rest_s:
            quota.s_per_byte = quota.s_per_byte * _MORE or throttle_s / quota.size
        quota.throttle_s = max(quota.throttle_s, throttle_s)
        quota.rest_s = max(throttle_s, min(2 * quota.rest_s, _LONGEST_S))
        return quota.rest_s
