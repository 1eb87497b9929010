"""A broker's quota is met by rests, as what it throttles is a delivery to nobody."""

from __future__ import annotations

import random
import time

import pytest

from pyspark_kafkaproto.client.share.pace import Pace
from pyspark_kafkaproto.net import Endpoint
from tests.fake_sessions import with_values
from tests.unit.client.share.polling import poll_rows

ONE, OTHER = Endpoint("b-1", 9092), Endpoint("b-2", 9092)
SAMPLES = 11


class FakeQuota:
    """Bytes a second as brokers count them: in eleven samples of a second each.

    What is throttled is not counted.
    """

    def __init__(self, rate):
        self.rate = rate
        self._samples = []  # [when it began, bytes]

    def throttle_s(self, now, size):
        """0: they are let through."""
        self._samples = [sample for sample in self._samples if sample[0] > now - SAMPLES]
        if not self._samples or self._samples[-1][0] <= now - 1:
            self._samples.append([now, 0])
        elapsed_s = now - self._samples[0][0]
        window_s = elapsed_s + max(0, SAMPLES - 1 - int(elapsed_s))
        over = (sum(counted for _, counted in self._samples) + size) / window_s - self.rate
        if over > 0:
            return over / self.rate * window_s
        self._samples[-1][1] += size
        return 0.0


def read(quota, pace, sizes, now=0.0):
    """The answers that were throttled, by their number, and when all had come."""
    throttled = []
    for number, size in enumerate(sizes):
        while throttle_s := quota.throttle_s(now, size):
            throttled.append(number)
            now += pace.rest_throttled(ONE, throttle_s)
        now += 0.005 + pace.rest_after(ONE, size)
    return throttled, now


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rate", [20_000, 1_000_000])
def test_few_answers_are_throttled_and_little_time_is_lost(rate, seed):
    """Without rests it is a third of them, and up to forty in a row behind a first burst."""
    chance = random.Random(seed)
    sizes = [int(chance.uniform(0.1, 0.4) * rate) for _ in range(400)]
    throttled, took_s = read(FakeQuota(rate), Pace(), sizes)
    assert len(throttled) <= 70
    assert max(map(throttled.count, throttled)) <= 6
    assert took_s <= 1.7 * sum(sizes) / rate


def test_who_is_under_no_quota_never_rests():
    pace = Pace()
    assert pace.rest_throttled(ONE, 5.0) == 5.0  # before anything came: others have used it up
    assert [pace.rest_after(ONE, size) for size in (1, 10**7, 0)] == [0, 0, 0]


def test_small_answers_hardly_rest_and_no_rest_is_longer_than_twice_a_throttle():
    pace = Pace()
    pace.rest_after(ONE, 10)
    pace.rest_throttled(ONE, 4.0)  # for an answer that nobody has seen, and may have been large
    assert pace.rest_after(ONE, 100_000) <= 8.0
    assert pace.rest_after(ONE, 100) <= 0.008
    assert pace.rest_after(ONE, 0) == 0
    assert pace.rest_after(OTHER, 100_000) == 0


def test_a_larger_quota_is_found_in_time():
    pace, quota = Pace(), FakeQuota(20_000)
    throttled, _ = read(quota, pace, [5_000] * 100)
    assert throttled
    quota.rate *= 4
    _, began = read(quota, pace, [5_000] * 400, now=1_000.0)
    _, ended = read(quota, pace, [5_000] * 100, now=began)
    assert ended - began < 2 * 100 * 5_000 / quota.rate


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_a_member_rests_so_that_little_of_what_it_is_given_is_withheld(
    filled, shares, member_of, mode
):
    """Each such answer, be it also to what was acknowledged, was as many deliveries to nobody."""
    every_s, throttled, last = 0.03, [], [0.0]

    def fetch(call):
        answer, now = shares.fetch(call), time.monotonic()
        has_rows = any(part.records for topic in answer.responses for part in topic.partitions)
        if has_rows and now < last[0] + every_s:
            throttled.append(now)
            answer = withheld(answer, every_s)
            shares.expire()
        elif has_rows:
            last[0] = now
        return answer

    filled.on("ShareFetch", fetch)
    for partition in range(2):
        filled.logs["orders", partition].fill(20)
    accepts = {"share_acknowledgement_mode": mode, "max_poll_records": 10}
    consumer = member_of(share_acquire_mode="record_limit", **accepts)
    then = consumer.acknowledge if mode == "explicit" else (lambda: None)
    rows = poll_rows(consumer, 440, then)
    assert sorted({row[:2] for row in rows}) == [(p, n) for p in range(2) for n in range(220)]
    assert len(throttled) <= 10  # of 44 or more


def withheld(answer, throttle_s):
    """What is left of it over a quota: what became of acknowledgements."""
    topics = []
    for topic in answer.responses:
        parts = tuple(
            with_values(part, records=b"", acquired_records=()) for part in topic.partitions
        )
        topics.append(with_values(topic, partitions=parts))
    return with_values(answer, responses=tuple(topics), throttle_time_ms=round(1000 * throttle_s))
