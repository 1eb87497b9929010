"""Active producers: leaders are asked, and what is not known is None."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import ActiveProducer
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_producers import DescribeProducersResponse

API = "DescribeProducers"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
Topic = DescribeProducersResponse.Topic


def told(number, *producers, code=0):
    partition = Topic.Partition(partition_index=number, error_code=code, active_producers=producers)
    return DescribeProducersResponse(topics=(Topic(name="orders", partitions=(partition,)),))


def producer(producer_id, **more):
    given = {"producer_epoch": 2, "coordinator_epoch": -1} | more
    return Topic.Partition.ActiveProducer(producer_id=producer_id, **given)


def test_leaders_tell_of_their_producers_by_id(brokers, kafka):
    brokers.topics["orders"].move(1, node_id=2)
    writing = producer(
        4, last_sequence=9, last_timestamp=70, coordinator_epoch=0, current_txn_start_offset=0
    )
    brokers.on(API, told(0, producer(8), writing), node=1)
    brokers.on(API, told(1), node=2)
    assert kafka.describe_producers([("orders", 0), SECOND]) == {
        FIRST: (
            ActiveProducer(4, 2, 9, 70, 0, 0),
            ActiveProducer(8, 2, None, None, None, None),
        ),
        SECOND: (),
    }


def test_leader_that_moved_is_looked_up_again(brokers, kafka, clock):
    def move(call):
        brokers.topics["orders"].move(0, node_id=2)
        return told(0, code=6)

    brokers.on(API, move, node=1)
    brokers.on(API, told(0), node=2)
    assert kafka.describe_producers([FIRST]) == {FIRST: ()}


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(API, told(0, code=29))
    with pytest.raises(BrokerError, match=r"orders-0.*needs the right READ on the topic"):
        kafka.describe_producers([FIRST])
