"""Sizes of logs: which folder tells of a partition, and what a failed one means."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
Folder = DescribeLogDirsResponse.LogDir
_STORAGE_ERROR = 56


def folder(sizes, code=0, *, is_future=False):
    """A folder with these partitions of `orders`."""
    part = Folder.Topic.Partition
    partitions = tuple(
        part(partition_index=number, partition_size=size, is_future_key=is_future)
        for number, size in sizes.items()
    )
    topics = (Folder.Topic(name="orders", partitions=partitions),) if sizes else ()
    return Folder(log_dir="/data", error_code=code, topics=topics)


@pytest.fixture
def say(brokers):
    """Has brokers tell of these folders."""
    brokers.versions["DescribeLogDirs"] = (1, 4)
    return lambda *folders: brokers.on("DescribeLogDirs", DescribeLogDirsResponse(results=folders))


def test_a_copy_that_is_being_moved_does_not_count(say, kafka):
    say(folder({0: 7}), folder({0: 3}, is_future=True))
    assert kafka.get_log_sizes({FIRST}) == {FIRST: 7}


@pytest.mark.slow
def test_a_failed_folder_keeps_none_of_the_others_from_telling(say, kafka, clock):
    say(folder({}, _STORAGE_ERROR), folder({0: 7}))
    assert kafka.get_log_sizes({FIRST}) == {FIRST: 7}
    with pytest.raises(BrokerError, match=r"orders-1.*KAFKA_STORAGE_ERROR.*/data") as caught:
        kafka.get_log_sizes({FIRST, SECOND})
    assert caught.value.usable == {FIRST: 7}


def test_brokers_that_tell_of_no_folder_refuse(say, kafka):
    say()
    with pytest.raises(BrokerError, match="DESCRIBE on the cluster"):
        kafka.get_log_sizes({FIRST})
