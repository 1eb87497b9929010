"""A member's fetch sessions (KIP-227) with real brokers, of the oldest line and of the newest."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import Consumer, KafkaCluster, TopicPartition
from pyspark_kafkaproto.client.group.sessions import FetchSession
from pyspark_kafkaproto.cluster import NewTopic
from pyspark_kafkaproto.devbroker import DEFAULT_VERSION, DevBroker
from pyspark_kafkaproto.net import Deadline
from tests.broker.filling import fill
from tests.polled import polled_rows

pytestmark = pytest.mark.broker

PARTITIONS = 300
TURNS = 20


@pytest.fixture(params=["3.9.1", DEFAULT_VERSION])
def servers(request):
    with DevBroker(version=request.param) as broker:
        yield {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def named(monkeypatch):
    """(epoch, how many partitions) of each Fetch."""
    seen = []
    next_scope = FetchSession.next_scope

    def noted(session, terms, *, is_by_id):
        made = next_scope(session, terms, is_by_id=is_by_id)
        seen.append((made.session_epoch, len(made.terms)))
        return made

    monkeypatch.setattr(FetchSession, "next_scope", noted)
    return seen


def test_each_row_comes_once_and_a_fetch_names_those_that_moved(servers, named):
    partitions = [TopicPartition("many", number) for number in range(PARTITIONS)]
    config = {"group.id": "g", "auto.offset.reset": "earliest", "fetch.max.wait.ms": 50}
    with KafkaCluster(servers) as kafka:
        kafka.create_topics([NewTopic("many", PARTITIONS, 1)])
        fill(kafka, dict.fromkeys(partitions, 2))
        with Consumer(servers | config, {"many"}, columns=["partition", "offset"]) as consumer:
            expected = [(item.partition, at) for item in partitions for at in range(2)]
            assert sorted(polled_rows(consumer, 2 * PARTITIONS)) == expected
            quiet = Deadline.after(30)
            while named[-1][1]:
                quiet.check("a Fetch that names nothing")
                consumer.poll(0.1)
            since = len(named)
            for turn in range(TURNS):
                some = partitions[turn::TURNS]
                fill(kafka, dict.fromkeys(some, 1))
                expected = [(item.partition, 2) for item in some]
                assert sorted(polled_rows(consumer, len(some))) == expected
    assert all(epoch > 0 for epoch, _ in named[since:])
    assert max(count for _, count in named[since:]) <= PARTITIONS // TURNS
