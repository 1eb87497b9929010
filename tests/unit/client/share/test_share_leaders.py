"""Who leads what a member of a share group reads, as metadata has it."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.client.share.leaders import Leaders
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.net import ClientConfig, Deadline


@pytest.fixture
def leaders(brokers, clock):  # of its time, too
    router = Router(ClientConfig.parse({"bootstrap.servers": brokers.bootstrap_servers}))
    yield Leaders(router)
    router.close()


def test_of_topics_that_are_gone_no_epoch_is_kept_for_ever(brokers, leaders, clock):
    """A topic that is made again has another id each time."""
    orders = TopicPartition("orders", 0)
    for number in range(3):
        brokers.topics["orders"].topic_id = ours = bytes(15) + bytes([number + 1])
        leaders.forget([orders])
        leaders.of([orders], Deadline.after(5))
    clock.now += 301
    leaders.of([orders], Deadline.after(5))
    assert leaders._newest.keys() == {(ours, 0)}
