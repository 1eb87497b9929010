"""What is missing is passed over no sooner than a broker may lag, and no further than it is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.client import OffsetRange
from pyspark_kafkaproto.client.reading import loss
from pyspark_kafkaproto.client.reading.loss import LossPolicy
from pyspark_kafkaproto.client.reading.progress import RangeProgress
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from pyspark_kafkaproto.error_codes import (
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError, DataLoss
from pyspark_kafkaproto.net import ClientConfig

CONFIG = ClientConfig.parse({"bootstrap.servers": "b-1:9092", "request.timeout.ms": "30000"})
GONE = BrokerError(3, "Metadata", "topic 'orders'")
ID = b"the id of orders"


@pytest.fixture
def progress():
    """At offset 10 of a range up to 50."""
    return RangeProgress(OffsetRange("orders", 0, 0, 50), 0, 10, 50)


def policy(*, fail):
    return LossPolicy(SimpleNamespace(config=CONFIG), fail_on_data_loss=fail)


def bounds(earliest, latest):
    found = {EARLIEST_TIMESTAMP: earliest, LATEST_TIMESTAMP: latest}
    return SimpleNamespace(of=lambda partition, timestamp: found[timestamp])


def test_a_topic_that_is_gone_is_passed_over_once_no_broker_has_known_it_for_long(progress, clock):
    lenient = policy(fail=False)
    for away_s in (0, 29):
        clock.now += away_s
        lenient.topic_missing(progress, GONE, ID)
        assert (progress.position, progress.report.passed_over) == (10, 0)
    clock.now += 1
    lenient.topic_missing(progress, GONE, ID)
    assert (progress.position, progress.report.passed_over) == (50, 40)


def test_a_topic_that_is_gone_is_a_loss_at_once_where_that_is_to_fail(progress, clock):
    with pytest.raises(DataLoss, match="PARTITIONS_DELETED"):
        policy(fail=True).topic_missing(progress, GONE, ID)


def test_what_comes_behind_a_hole_is_waited_for_anew(progress, clock):
    """What stood still before was something else."""
    lenient = policy(fail=False)
    lenient.wait_or_give_up(progress, bounds(0, 50))
    clock.now += 29
    lenient.reset(progress, bounds(20, 50))
    assert (progress.position, progress.report.passed_over) == (20, 10)
    clock.now += 2
    lenient.wait_or_give_up(progress, bounds(20, 20))
    assert (progress.position, progress.report.passed_over) == (20, 10)
    clock.now += 30
    lenient.wait_or_give_up(progress, bounds(20, 20))
    assert (progress.position, progress.report.passed_over) == (50, 40)


def test_an_end_before_the_position_is_passed_over_once_it_is_said_for_long(progress, clock):
    """A leader of the past says so, too, for a moment; and what was read is not read again."""
    lenient = policy(fail=False)
    for away_s in (0, 2, 27):
        clock.now += away_s
        lenient.reset(progress, bounds(0, 5))
        assert (progress.position, progress.report.passed_over) == (10, 0)
    clock.now += 1
    lenient.reset(progress, bounds(0, 5))
    assert (progress.position, progress.report.passed_over) == (50, 40)


def test_a_hole_is_no_larger_than_the_range(progress, clock):
    policy(fail=False).reset(progress, bounds(60, 80))
    assert (progress.position, progress.report.passed_over) == (50, 40)


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize(("earliest", "latest"), [(0, 10), (10, 20), (10, 10)])
def test_an_offset_at_either_end_of_the_log_is_not_gone(progress, clock, fail, earliest, latest):
    """Whoever denies it knows an older one."""
    policy(fail=fail).reset(progress, bounds(earliest, latest))
    assert (progress.position, progress.report.passed_over) == (10, 0)


class Refusing:
    """Bounds that nobody tells."""

    def __init__(self, code):
        self._code = code

    def of(self, partition, timestamp):
        raise BrokerError(self._code, "ListOffsets", "partition orders-0")


@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize(
    ("call", "waits_s"),
    # What does not come is given up once it has waited for that long: it waits as long again.
    [(LossPolicy.reset, (0, 29)), (LossPolicy.wait_or_give_up, (0, 30, 29))],
)
def test_a_topic_that_cannot_be_asked_for_its_bounds_is_told_by_what_looks_for_its_leader(
    progress, clock, fail, call, waits_s
):
    """Once it stands still for longer the topic is there, and it is the answer that is wrong."""
    chosen = policy(fail=fail)
    for away_s in waits_s:
        clock.now += away_s
        call(chosen, progress, Refusing(UNKNOWN_TOPIC_OR_PARTITION))
        assert (progress.position, progress.report.passed_over) == (10, 0)
    clock.now += 1
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        call(chosen, progress, Refusing(UNKNOWN_TOPIC_OR_PARTITION))


def test_bounds_that_are_refused_are_told_at_once(progress, clock):
    lenient = policy(fail=False)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        lenient.reset(progress, Refusing(TOPIC_AUTHORIZATION_FAILED))
    lenient.wait_or_give_up(progress, bounds(0, 50))
    clock.now += 30
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        lenient.wait_or_give_up(progress, Refusing(TOPIC_AUTHORIZATION_FAILED))


def test_what_nobody_tells_of_one_is_not_asked_for_again_of_the_next(monkeypatch):
    """Each would wait as long; each has its error, as what it says is added to it."""
    asked = []

    def refuse(router, partitions, timestamp):
        asked.append((partitions, timestamp))
        raise BrokerError(UNKNOWN_TOPIC_OR_PARTITION, "ListOffsets", "partition orders-0")

    monkeypatch.setattr(loss, "list_bounds", refuse)
    both = [RangeProgress(OffsetRange("orders", place, 0, 50), 0, 10, 50) for place in (0, 1)]
    bounds = loss.Bounds(SimpleNamespace(config=CONFIG), both)
    errors = []
    for item, timestamp in zip(both, (EARLIEST_TIMESTAMP, LATEST_TIMESTAMP), strict=True):
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION") as caught:
            bounds.of(item.topic_partition, timestamp)
        errors.append(caught.value)
    assert asked == [([item.topic_partition for item in both], EARLIEST_TIMESTAMP)]
    assert errors[0] is not errors[1]
