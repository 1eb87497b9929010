"""The metadata quorum: what its leader tells of each node, in old and new versions."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from pyspark_kafkaproto.messages.describe_quorum import DescribeQuorumResponse, ReplicaState
from pyspark_kafkaproto.net import Endpoint

API = "DescribeQuorum"
Topic = DescribeQuorumResponse.Topic


def state(node_id, end, **more):
    directory = more.pop("replica_directory_id", bytes(16))
    return ReplicaState(
        replica_id=node_id, log_end_offset=end, replica_directory_id=directory, **more
    )


def answer(voters, observers=(), leader=1, code=0, **more):
    partition = Topic.Partition(
        error_code=code,
        leader_id=leader,
        leader_epoch=7,
        high_watermark=90,
        current_voters=tuple(voters),
        observers=tuple(observers),
    )
    topic = Topic(topic_name="__cluster_metadata", partitions=(partition,))
    return DescribeQuorumResponse(topics=(topic,), **more)


def test_each_node_is_told_with_its_lag_and_times(brokers, kafka):
    node = DescribeQuorumResponse.Node
    listener = node.Listener(name="CONTROLLER", host="one", port=9093)
    brokers.on(
        API,
        answer(
            [
                state(1, 100, last_fetch_timestamp=5, last_caught_up_timestamp=4),
                state(2, 90, replica_directory_id=bytes(15) + b"\x01"),
            ],
            [state(3, -1)],
            nodes=(node(node_id=1, listeners=(listener,)),),
        ),
    )
    found = kafka.describe_quorum()
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 7, 90)
    first, second = found.voters
    assert (first.node_id, first.lag, first.last_fetch_ms, first.last_caught_up_ms) == (1, 0, 5, 4)
    assert first.endpoints == {"CONTROLLER": Endpoint("one", 9093)}
    assert (second.lag, second.last_fetch_ms, second.endpoints) == (10, None, {})
    assert (first.directory_id, second.directory_id) == (None, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert [(item.node_id, item.lag) for item in found.observers] == [(3, None)]
    (request,) = brokers.asked(API)
    assert [item.topic_name for item in request.topics] == ["__cluster_metadata"]


def test_leader_that_leaves_the_voters_is_an_observer(brokers, kafka):
    brokers.on(API, answer([state(2, 90)], [state(1, 100)]))
    assert [item.lag for item in kafka.describe_quorum().voters] == [10]


def test_brokers_of_the_first_version_tell_no_times(brokers, kafka):
    brokers.versions[API] = (0, 0)
    brokers.on(API, answer([state(1, 100)]))
    (voter,) = kafka.describe_quorum().voters
    assert (voter.last_fetch_ms, voter.directory_id) == (None, None)


def test_leader_that_moved_is_asked_for_again(brokers, kafka, clock):
    brokers.on(API, answer([], code=6), answer([state(1, 100)]))
    assert kafka.describe_quorum().leader_id == 1


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(API, DescribeQuorumResponse(error_code=31))
    with pytest.raises(BrokerError, match="needs the right DESCRIBE on the cluster"):
        kafka.describe_quorum()


def test_cluster_with_zookeeper_has_none(brokers, kafka):
    del brokers.versions[API]
    with pytest.raises(UnsupportedVersion, match=r"does not offer DescribeQuorum: .*ZooKeeper"):
        kafka.describe_quorum()
