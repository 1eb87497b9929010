"""read_committed beside Spark's own connector: histories that Java's own producers wrote."""

from __future__ import annotations

import json

import pytest

from tests.differential.transactions import java_transactions
from tests.spark.rival import assert_same_rows

pytestmark = pytest.mark.spark

PARTITIONS = 2
LEVELS = ("read_committed", "read_uncommitted")


@pytest.fixture(scope="module")
def history(broker, new_topic):
    """A topic; its last transactions are open."""
    topic = new_topic(PARTITIONS)
    with java_transactions(broker) as java:
        open_ = java.write_history(topic, PARTITIONS, 150, seed=3)
        assert open_
        yield topic
        for producer in open_:
            java.do("abort", producer)


def test_the_rows_of_both_levels(spark, broker, history):
    servers = broker.bootstrap_servers
    of_level = ({"subscribe": history, "kafka.isolation.level": level} for level in LEVELS)
    counts = [len(assert_same_rows(spark, servers, **options)) for options in of_level]
    assert 80 < counts[0] < counts[1]


def test_ranges_that_begin_and_end_inside_transactions(spark, broker, history):
    committed = {"subscribe": history, "kafka.isolation.level": "read_committed"}
    for start, stop in ((1, 60), (17, 41), (33, 34)):
        bounds = {
            "startingOffsets": json.dumps({history: {"0": start, "1": start + 3}}),
            "endingOffsets": json.dumps({history: {"0": stop, "1": stop + 5}}),
        }
        for options in ({}, {"minPartitions": 9, "kafka.max.partition.fetch.bytes": 500}):
            assert_same_rows(spark, broker.bootstrap_servers, **committed, **bounds, **options)
