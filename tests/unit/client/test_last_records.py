"""Where the last records begin: markers, and what compaction has taken, are none of them."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.last_records import find_last
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.records.layout import CONTROL

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def cluster(brokers):
    with KafkaCluster({"bootstrap.servers": brokers.bootstrap_servers}) as opened:
        yield opened


def last(brokers, cluster, count):
    logs = {item: brokers.logs[item] for item in (FIRST, SECOND)}
    first = {item: log.start for item, log in logs.items()}
    ends = {item: log.stop for item, log in logs.items()}
    found = find_last(cluster, first, ends, count)
    return found[FIRST], found[SECOND]


def mark(log):
    log.append(b"", key=bytes(4), attributes=CONTROL)


@pytest.mark.parametrize(
    ("count", "starts"),
    [(0, (8, 3)), (1, (6, 2)), (2, (4, 1)), (3, (2, 0)), (4, (0, 0)), (10**18, (0, 0))],
)
def test_markers_are_no_records(brokers, cluster, count, starts):
    for _ in range(4):
        brokers.logs[FIRST].append(b"one of a transaction")
        mark(brokers.logs[FIRST])
    brokers.logs[SECOND].append(b"a", b"b", b"c")
    assert last(brokers, cluster, count) == starts


def test_what_was_compacted_is_passed_over_however_much_it_is(brokers, cluster):
    log = brokers.logs[FIRST]
    log.append(b"a", b"b", b"c")
    log.stop += 100_000
    log.append(b"d")
    assert last(brokers, cluster, 3) == (1, 0)
    assert len(brokers.asked("Fetch")) < 30


def test_what_is_gone_is_not_looked_for(brokers, cluster):
    log = brokers.logs[FIRST]
    log.append(b"gone")
    log.start = log.stop
    mark(log)
    assert last(brokers, cluster, 1) == (1, 0)


def test_a_log_without_gaps_is_read_once_and_a_short_one_not_at_all(brokers, cluster):
    brokers.logs[FIRST].fill(3)
    assert last(brokers, cluster, 30) == (0, 0)
    assert not brokers.asked("Fetch")
    assert last(brokers, cluster, 12) == (18, 0)
    asked = [part.fetch_offset for call in brokers.asked("Fetch") for part in _parts(call)]
    assert min(asked) == 18


def _parts(call):
    return [part for topic in call.topics for part in topic.partitions]


def test_a_damaged_batch_is_left_to_who_reads(brokers, cluster):
    log = brokers.logs[FIRST]
    log.append(b"sound")
    log.append(b"damaged")
    batch = log.batches[-1]
    log.batches[-1] = batch._replace(data=batch.data[:-1] + b"?")
    log.append(b"sound")
    mark(log)
    assert last(brokers, cluster, 2) == (1, 0)
