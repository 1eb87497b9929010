"""Folders of brokers, and replicas moved between them."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.admin import LogDir, LogReplica, Replica
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.messages.alter_replica_log_dirs import AlterReplicaLogDirsResponse
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse

DESCRIBE, ALTER = "DescribeLogDirs", "AlterReplicaLogDirs"
FIRST = TopicPartition("orders", 0)
Folder = DescribeLogDirsResponse.LogDir


def folder(path, size=None, code=0, *, is_future=False, **more):
    topics = ()
    if size is not None:
        part = Folder.Topic.Partition(
            partition_index=0, partition_size=size, offset_lag=3, is_future_key=is_future
        )
        topics = (Folder.Topic(name="orders", partitions=(part,)),)
    return Folder(log_dir=path, error_code=code, topics=topics, **more)


def test_each_broker_tells_of_its_own_folders(brokers, kafka):
    space = {"total_bytes": 100, "usable_bytes": 40, "is_cordoned": True}
    mine = DescribeLogDirsResponse(
        results=(folder("/a", 7, **space), folder("/b", 5, is_future=True))
    )
    brokers.on(DESCRIBE, mine, node=1)
    failed = folder("/c", code=56)
    brokers.on(DESCRIBE, DescribeLogDirsResponse(results=(failed,)), node=2)
    assert kafka.describe_log_dirs() == {
        1: {
            "/a": LogDir(None, 100, 40, True, {FIRST: LogReplica(7, 3, False)}),
            "/b": LogDir(None, None, None, False, {FIRST: LogReplica(5, 3, True)}),
        },
        2: {"/c": LogDir("KAFKA_STORAGE_ERROR", None, None, False, {})},
    }
    (request,) = brokers.asked(DESCRIBE, node=1)
    assert request.topics is None


def test_broker_that_is_away_is_named_and_the_others_are_told(brokers, kafka, clock):
    brokers.on(DESCRIBE, DescribeLogDirsResponse(results=(folder("/a"),)))
    with pytest.raises(BrokerError, match=r"broker 9.*the brokers 1, 2") as caught:
        kafka.describe_log_dirs({2, 9})
    assert caught.value.usable.keys() == {2}
    assert len(brokers.asked(DESCRIBE, node=2)) == 1
    with pytest.raises(ConfigError, match=r"brokers.*expected ids"):
        kafka.describe_log_dirs("12")


def test_right_that_is_missing_is_named_by_old_brokers_too(brokers, kafka):
    for answer in (DescribeLogDirsResponse(), DescribeLogDirsResponse(error_code=31)):
        brokers.on(DESCRIBE, answer)
        with pytest.raises(BrokerError, match="needs the right DESCRIBE on the cluster"):
            kafka.describe_log_dirs({1})


def moved(*codes):
    part = AlterReplicaLogDirsResponse.Topic
    partitions = tuple(
        part.Partition(partition_index=number, error_code=code) for number, code in enumerate(codes)
    )
    return AlterReplicaLogDirsResponse(results=(part(topic_name="orders", partitions=partitions),))


def test_each_broker_is_told_what_to_move(brokers, kafka):
    brokers.on(ALTER, moved(0, 0), node=1)
    brokers.on(ALTER, moved(0), node=2)
    wanted = {Replica(1, "orders", 0): "/a", (1, "orders", 1): "/b", (2, "orders", 0): "/a"}
    assert kafka.move_replicas(wanted) == dict.fromkeys(wanted, True)
    (first,) = brokers.asked(ALTER, node=1)
    assert [(item.path, item.topics[0].partitions) for item in first.dirs] == [
        ("/a", (0,)),
        ("/b", (1,)),
    ]
    (second,) = brokers.asked(ALTER, node=2)
    assert [item.path for item in second.dirs] == ["/a"]


def test_folder_that_a_broker_has_not_is_told(brokers, kafka):
    brokers.on(ALTER, moved(57, 0))
    both = {Replica(1, "orders", 0): "/nope", Replica(1, "orders", 1): "/a"}
    with pytest.raises(
        BrokerError, match=r"orders-0 of broker 1.*no such folder.*log-dirs\)"
    ) as caught:
        kafka.move_replicas(both)
    assert caught.value.usable.keys() == {(1, "orders", 1)}


def test_replica_that_comes_later_is_made_there_then(brokers, kafka, clock):
    brokers.on(ALTER, moved(9, 0))
    both = {Replica(1, "orders", 0): "/a", Replica(1, "orders", 1): "/a"}
    assert list(kafka.move_replicas(both).values()) == [False, True]
    assert clock.slept == []


@pytest.mark.parametrize(
    ("code", "most_s", "advice"),
    [
        (3, 1, "no such partition"),
        (39, 0, "cordoned.log.dirs"),
        (56, 0, "`describe_log_dirs` .* names those that have"),
    ],
)
def test_what_no_retry_mends_is_told_soon(brokers, kafka, clock, code, most_s, advice):
    brokers.on(ALTER, moved(code))
    with pytest.raises(BrokerError, match=f"orders-0 of broker 1.*{advice}"):
        kafka.move_replicas({Replica(1, "orders", 0): "/a"})
    assert clock.now - 1000 <= most_s


@pytest.mark.parametrize(
    "wrong",
    [
        {("orders", 0): "/a"},
        {(-1, "orders", 0): "/a"},
        {(1, "orders", "0"): "/a"},
        {(1, "t", 0): ""},
        [(1, "t", 0)],
    ],
)
def test_what_cannot_be_moved_is_refused_here(brokers, kafka, wrong):
    with pytest.raises(ConfigError, match="expected"):
        kafka.move_replicas(wrong)
    assert brokers.calls == []
