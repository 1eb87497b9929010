"""Offsets at the leaders: what is asked, in which isolation, and what -1 means."""

from contextlib import closing
from datetime import UTC, datetime

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, Router, TopicPartition
from pyspark_kafkaproto.cluster.offsets import list_bounds, list_epoch_ends
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.list_offsets import ListOffsetsResponse
from pyspark_kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochResponse as Ends,
)
from tests.fake_broker import DEFAULT

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
P = ListOffsetsResponse.Topic.Partition


def listed(first, second):
    found = (P(partition_index=0, offset=first), P(partition_index=1, offset=second))
    topic = ListOffsetsResponse.Topic(name="orders", partitions=found)
    return ListOffsetsResponse(topics=(topic,))


def only(call, end):
    """What is asked for once more, and no other partition, ends at `end`."""
    (topic,) = call.request.topics
    (item,) = topic.partitions
    found = P(partition_index=item.partition_index, offset=end)
    told = ListOffsetsResponse.Topic(name=topic.name, partitions=(found,))
    return ListOffsetsResponse(topics=(told,))


def answer(brokers, first, second):
    brokers.on("ListOffsets", listed(first, second))


@pytest.fixture(autouse=True)
def answers(brokers):
    answer(brokers, 5, 7)


@pytest.mark.parametrize(
    ("ask", "timestamp"),
    [
        (lambda kafka, both: kafka.get_earliest_leader_offsets(both), -2),
        (lambda kafka, both: kafka.get_latest_leader_offsets(both), -1),
        (lambda kafka, both: kafka.get_leader_offsets(both, 1_700_000_000_000), 1_700_000_000_000),
        (lambda kafka, both: kafka.get_leader_offsets(both, 0), 0),
    ],
    ids=["earliest", "latest", "timestamp", "the first of times"],
)
def test_asks_with_the_timestamp_that_kafka_means(brokers, kafka, ask, timestamp):
    assert ask(kafka, {FIRST, SECOND})[FIRST] == 5
    (request,) = brokers.asked("ListOffsets")
    (topic,) = request.topics
    assert {item.timestamp for item in topic.partitions} == {timestamp}
    assert request.replica_id == -1


@pytest.mark.parametrize("timestamp", [0, 1_700_000_000_000])
def test_a_topic_of_the_oldest_format_has_no_times_and_that_is_told(brokers, kafka, timestamp):
    """A broker of 3.9 with a topic whose message.format.version is 0.9.0 says just the code."""
    refused = (P(partition_index=0, error_code=43), P(partition_index=1, error_code=43))
    topic = ListOffsetsResponse.Topic(name="orders", partitions=refused)
    brokers.on("ListOffsets", ListOffsetsResponse(topics=(topic,)))
    told = r"orders-0 .* UNSUPPORTED_FOR_MESSAGE_FORMAT \(43\): .*message.format.version.*an offset"
    with pytest.raises(BrokerError, match=told):
        kafka.get_leader_offsets({FIRST, SECOND}, timestamp)


def test_a_record_that_is_too_large_decompressed_to_look_by_time_is_told(brokers, kafka):
    """Brokers of Kafka 4.4 open compressed batches for it, and say just the code."""
    topic = ListOffsetsResponse.Topic(
        name="orders", partitions=(P(partition_index=0, error_code=87),)
    )
    brokers.on("ListOffsets", ListOffsetsResponse(topics=(topic,)))
    told = r"orders-0 .* INVALID_RECORD \(87\): .*max.decompressed.message.bytes.*an offset"
    with pytest.raises(BrokerError, match=told):
        kafka.get_leader_offsets({FIRST}, 1_700_000_000_000)


def test_an_error_without_a_name_is_no_last_word(brokers, kafka):
    """As of a broker whose tiered storage does not answer: Java's client asks again, too."""
    refused = P(partition_index=1, error_code=-1)
    topic = ListOffsetsResponse.Topic(name="orders", partitions=(P(offset=5), refused))
    brokers.on("ListOffsets", ListOffsetsResponse(topics=(topic,)), lambda call: only(call, 7))
    assert kafka.get_latest_leader_offsets({FIRST, SECOND}) == {FIRST: 5, SECOND: 7}


def test_nor_is_one_about_where_a_log_was_cut_off(brokers, kafka):
    refused = Ends.Topic.Partition(partition=0, error_code=-1)
    trouble = Ends(topics=(Ends.Topic(topic="orders", partitions=(refused,)),))
    brokers.on("OffsetForLeaderEpoch", trouble, DEFAULT)
    with closing(Router(kafka.config)) as router:
        assert list_epoch_ends(router, {FIRST: 0}) == {FIRST: 0}


def test_no_record_that_late_is_none(brokers, kafka):
    answer(brokers, 5, -1)
    assert kafka.get_leader_offsets({FIRST, SECOND}, 5) == {FIRST: 5, SECOND: None}


@pytest.mark.parametrize(
    ("ask", "bound"),
    [
        (lambda kafka, both: kafka.get_earliest_leader_offsets(both), "begins"),
        (lambda kafka, both: kafka.get_latest_leader_offsets(both), "ends"),
    ],
    ids=["earliest", "latest"],
)
def test_a_log_without_a_bound_is_an_error(brokers, kafka, ask, bound):
    answer(brokers, 5, -1)
    with pytest.raises(RemoteProtocolError, match=f"where partition orders-1 {bound}"):
        ask(kafka, {FIRST, SECOND})


@pytest.mark.parametrize("timestamp", [0, 1_700_000_000_000], ids=["the first", "another"])
def test_where_no_record_is_that_late_the_end_is_the_bound(brokers, kafka, timestamp):
    brokers.on("ListOffsets", listed(8, 9), listed(5, -1))
    with closing(Router(kafka.config)) as router:
        assert list_bounds(router, {FIRST, SECOND}, timestamp) == {FIRST: 5, SECOND: 9}


@pytest.mark.parametrize(
    "timestamp", [-1, -2, -5, 1.5, "now", 2**63, datetime(2026, 11, 1, tzinfo=UTC)]
)
def test_what_is_no_timestamp_for_a_user_is_not_passed_on(kafka, timestamp):
    with pytest.raises(ConfigError, match="milliseconds since 1970"):
        kafka.get_leader_offsets({FIRST}, timestamp)


@pytest.mark.parametrize(("level", "number"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_isolation_level_is_asked_for(brokers, kafka_at, level, number):
    kafka = kafka_at(brokers.address(1), **{"isolation.level": level})
    kafka.get_latest_leader_offsets({FIRST, SECOND})
    assert brokers.asked("ListOffsets")[0].isolation_level == number


def test_broker_may_look_into_tiered_storage_as_long_as_we_wait(brokers, kafka_at):
    kafka = kafka_at(brokers.address(1), **{"request.timeout.ms": 7000})
    kafka.get_latest_leader_offsets({FIRST, SECOND})
    assert brokers.asked("ListOffsets")[0].timeout_ms == 7000


def test_nothing_asked_is_nothing_sent(brokers, kafka):
    assert kafka.get_latest_leader_offsets(set()) == {}
    assert kafka.get_partitions(set()) == set()
    assert kafka.find_leaders(set()) == {}
    assert brokers.calls == []


def test_largest_timestamp_is_not_asked_of_brokers_that_do_not_know_the_question(brokers, kafka):
    """To them it is a time long ago, and they would name the first record."""
    assert kafka.get_max_timestamp_offsets({FIRST, SECOND})[FIRST].offset == 5
    brokers.versions["ListOffsets"] = (1, 6)
    with KafkaCluster(kafka.config) as again, pytest.raises(UnsupportedVersion, match="1 to 6"):
        again.get_max_timestamp_offsets({FIRST, SECOND})


def test_last_stable_offset_that_is_not_told_is_an_error(brokers, kafka):
    answer(brokers, 5, -1)
    with pytest.raises(RemoteProtocolError, match="where partition orders-1 ends"):
        kafka.get_last_stable_offsets({FIRST, SECOND})


def test_what_is_refused_is_not_passed_over_beside_what_nobody_leads(brokers, kafka):
    """It was told as one that nobody leads, where that was the first of them."""
    brokers.topics["orders"].leaders[0] = -1
    refused = P(partition_index=1, error_code=29)
    topic = ListOffsetsResponse.Topic(name="orders", partitions=(refused,))
    brokers.on("ListOffsets", ListOffsetsResponse(topics=(topic,)))
    with pytest.raises(BrokerError, match=r"orders-1.*TOPIC_AUTHORIZATION_FAILED"):
        kafka.get_latest_leader_offsets({FIRST, SECOND}, waits_for_leaders=False)
