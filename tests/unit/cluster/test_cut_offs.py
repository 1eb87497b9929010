"""Which logs were cut off between two looks, and what is remembered for that."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition, cut_offs
from pyspark_kafkaproto.cluster.cut_offs import CutOffs
from pyspark_kafkaproto.error_codes import (
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from pyspark_kafkaproto.errors import BrokerError


class Cluster:
    """Tells the epochs that it is given, and notes what it is asked about."""

    def __init__(self):
        self.end_epochs = {}
        self.known = []

    def find_cut_off(self, positions, epochs):
        self.known.append(dict(epochs))
        return {}


def test_of_partitions_that_come_and_go_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(cut_offs, "_MOST_GONE", 2)
    cluster = Cluster()
    found = CutOffs(cluster)
    stays, idle = TopicPartition("stays", 0), TopicPartition("idle", 0)
    cluster.end_epochs = {stays: 1, idle: 2}
    found.find({})
    for number in range(5):
        comes = TopicPartition("comes", number)
        cluster.end_epochs = {stays: 1, comes: number}  # of those that were asked
        found.find({stays: 0, idle: 0, comes: 0})
    cluster.end_epochs = {stays: 1}
    found.find({stays: 0, idle: 0})
    cluster.end_epochs = {stays: 2}
    found.find({stays: 0, idle: 0})
    assert cluster.known[-1] == {
        TopicPartition("comes", 3): 3,
        TopicPartition("comes", 4): 4,
        stays: 1,
        idle: 2,
    }


def test_a_topic_deleted_by_now_is_not_told_here_and_the_look_is_made_again():
    cluster = Cluster()
    found = CutOffs(cluster)
    stays = TopicPartition("stays", 0)
    cluster.end_epochs = {stays: 1}
    ask = cluster.find_cut_off

    def refuse(code):
        raise BrokerError(code, "OffsetForLeaderEpoch", "topic 'gone'")

    cluster.find_cut_off = lambda *_: refuse(UNKNOWN_TOPIC_OR_PARTITION)
    assert found.find({stays: 5}) == {}
    cluster.find_cut_off = lambda *_: refuse(TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(BrokerError):
        found.find({stays: 5})
    cluster.find_cut_off = lambda *given: ask(*given) | {stays: 3}
    assert found.find({stays: 5}) == {stays: 3}
    assert found.find({stays: 5}) == {}
