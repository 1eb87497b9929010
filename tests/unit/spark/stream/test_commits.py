"""Commits of a stream to a group: forward, again when they failed, and never in the way."""

import json
import logging
from types import SimpleNamespace

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.net import ClientConfig
from pyspark_kafkaproto.spark.stream.commits import GroupCommits
from pyspark_kafkaproto.spark.stream.listener import BehindLatest, OffsetCommitListener

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
CONFIG = ClientConfig.parse({"bootstrap.servers": "b-1:9092"})


@pytest.fixture
def kafka(monkeypatch):
    """What a cluster was told, and what it says."""
    told = SimpleNamespace(committed={ONE: 5}, commits=[], error=None, members=())

    def fetch(self, group, partitions):
        return {item: at for item, at in told.committed.items() if item in partitions}

    def commit(self, group, offsets):
        if told.error:
            raise told.error
        told.commits.append({item: tuple(at) for item, at in offsets.items()})

    def describe(self, groups):
        return {group: SimpleNamespace(members=told.members) for group in groups}

    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", fetch)
    monkeypatch.setattr(KafkaCluster, "set_consumer_offsets", commit)
    monkeypatch.setattr(KafkaCluster, "describe_groups", describe)
    return told


@pytest.fixture
def commits(kafka, clock):
    return GroupCommits(CONFIG, "g")


def test_offsets_never_move_backwards(kafka, commits):
    commits.commit({ONE: 4, TWO: 3})
    commits.commit({ONE: 6, TWO: 2})
    assert kafka.commits == [{TWO: (3, "")}, {ONE: (6, "")}]


def test_nothing_new_is_not_committed(kafka, commits):
    commits.commit({ONE: 6})
    commits.commit({ONE: 6})
    assert len(kafka.commits) == 1


def test_commit_that_fails_is_tried_again_and_stops_nobody(kafka, commits, clock, caplog):
    kafka.error = BrokerError(15, "OffsetCommit", "group 'g'")
    with caplog.at_level(logging.WARNING):
        commits.commit({ONE: 6})
    assert "commit to group 'g' failed" in caplog.text
    kafka.error = None
    commits.keep_alive()
    assert kafka.commits == [], "not at every question of the engine"
    clock.now += 11
    commits.keep_alive()
    assert kafka.commits == [{ONE: (6, "")}]


def test_idle_stream_commits_again_before_its_offsets_expire(kafka, commits, clock):
    commits.commit({ONE: 6})
    clock.now += 601
    commits.keep_alive()
    commits.keep_alive()
    assert kafka.commits == [{ONE: (6, "")}] * 2


def test_group_with_members_is_refused(kafka, commits):
    kafka.members = (SimpleNamespace(host="/10.0.0.7"),)
    with pytest.raises(ConfigError, match=r"commitGroupId.*'g'.*1 members \(at /10.0.0.7\)"):
        commits.check_free()


def progress(offsets, latest=None, *, batch=3, name="orders"):
    source = SimpleNamespace(
        endOffset=json.dumps(offsets), latestOffset=json.dumps(latest or offsets)
    )
    other = SimpleNamespace(endOffset="17", latestOffset=None)
    seen = SimpleNamespace(id="some-id", name=name, batchId=batch, sources=[source, other])
    return SimpleNamespace(progress=seen)


def test_listener_commits_the_batch_that_was_read(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g")
    listener.onQueryProgress(progress({"orders": {"0": 8}}, {"orders": {"0": 20}}))
    (((offset, text),),) = (each.values() for each in kafka.commits)
    assert (offset, json.loads(text)) == (8, {"queryId": "some-id", "batchId": 3})
    assert listener.behind == BehindLatest(12, 12, 12.0)


def test_listener_leaves_other_queries_alone(kafka, clock):
    listener = OffsetCommitListener(CONFIG, "g", query_name="orders")
    listener.onQueryProgress(progress({"orders": {"0": 8}}, name="another"))
    assert kafka.commits == []
