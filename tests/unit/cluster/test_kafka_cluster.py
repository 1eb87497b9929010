"""The face that users see: metadata, pickling, closing."""

import pickle
from functools import partial

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, Moved, ToLatest, ToOffsets, TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_broker import DEFAULT, metadata
from tests.unit.cluster.committing import FakeCoordinator

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_nothing_is_opened_before_it_is_needed():
    KafkaCluster({"bootstrap.servers": "nowhere.invalid:9092"}).close()


def test_configuration_is_checked_at_once():
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        KafkaCluster({})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("b:9092", r"'config' is 'b:9092': .* \{'bootstrap.servers': 'b:9092'\}"),
        ("ssl.key.password=hunter2", r"\(not shown\).* \{'bootstrap.servers': 'host:9092'\}"),
        ([("ssl.key.password", "hunter2")], r"\(not shown\)"),
        (None, "is missing: expected client properties"),
    ],
)
def test_configuration_that_is_no_mapping_is_told_how_it_looks(config, told):
    with pytest.raises(ConfigError, match=told) as caught:
        KafkaCluster(config)
    assert "hunter2" not in str(caught.value)


def test_configuration_may_have_been_read_before(brokers):
    config = ClientConfig.parse({"bootstrap.servers": brokers.address(1)})
    with KafkaCluster(config) as kafka:
        assert kafka.config is config


def test_describe_without_names_asks_for_all_topics(brokers, kafka):
    assert set(kafka.describe().topics) == {"orders", "empty"}
    assert brokers.asked("Metadata")[0].topics is None


def test_describe_of_no_topics_asks_for_the_brokers_alone(brokers, kafka):
    found = kafka.describe(set())
    assert (set(found.brokers), found.topics) == ({1, 2}, {})
    assert brokers.asked("Metadata")[0].topics == ()


def test_describe_keeps_a_missing_topics_error_beside_its_name(kafka):
    found = kafka.describe({"orders", "odrers"})
    assert found.topics["odrers"].error_code == 3
    assert set(found.topics["orders"].partitions) == {0, 1}


def test_describe_of_a_topic_that_must_exist_fails_soon(kafka, clock):
    with pytest.raises(BrokerError, match=r"topic 'odrers'.*no such topic"):
        kafka.describe({"orders", "odrers"}, must_exist=True)
    assert clock.now - 1000 <= 1


def test_topic_created_a_moment_ago_is_found(brokers, kafka, clock):
    missing = brokers.topics.pop("orders")

    def create(call):
        answer = metadata(brokers, call)
        brokers.topics["orders"] = missing
        return answer

    brokers.on("Metadata", create, DEFAULT)
    assert kafka.get_partitions({"orders"}) == {FIRST, SECOND}


def test_partitions_and_leaders(brokers, kafka):
    brokers.topics["orders"].move(1, node_id=2)
    assert kafka.get_partitions({"orders"}) == {FIRST, SECOND}
    leaders = kafka.find_leaders({FIRST, SECOND})
    assert {part: (leader.node_id, leader.epoch) for part, leader in leaders.items()} == {
        FIRST: (1, 0),
        SECOND: (2, 1),
    }
    assert str(leaders[SECOND].endpoint) == brokers.address(2)


def test_leaders_are_looked_up_anew_each_time(brokers, kafka):
    kafka.find_leaders({FIRST})
    brokers.topics["orders"].move(0, node_id=2)
    assert kafka.find_leaders({FIRST})[FIRST].node_id == 2


def test_copy_in_another_process_has_the_configuration_alone(brokers, kafka):
    kafka.describe()
    with pickle.loads(pickle.dumps(kafka)) as copy:
        assert copy.config == kafka.config
        assert set(copy.describe().topics) == {"orders", "empty"}


def test_closed_cluster_opens_again(kafka):
    kafka.describe()
    kafka.close()
    kafka.close()
    assert set(kafka.describe().topics) == {"orders", "empty"}


@pytest.mark.parametrize("names", ["orders", 3])
def test_what_is_no_set_of_names_is_refused(brokers, kafka, names):
    for call in (
        kafka.get_partitions,
        kafka.describe,
        kafka.diagnose,
        partial(kafka.diagnose, ()),
        partial(kafka.lag, {"g"}),
    ):
        with pytest.raises(ConfigError, match="expected a set of names"):
            call(names)
    assert brokers.calls == []


@pytest.mark.parametrize("topics", ["", None])
def test_no_set_of_names_is_not_an_empty_one(brokers, kafka, topics):
    with pytest.raises(ConfigError, match="expected a set of names"):
        kafka.get_partitions(topics)
    assert kafka.get_partitions([]) == set()
    assert brokers.calls == []


def test_what_gives_its_names_once_is_refused(brokers, kafka):
    """It would look empty the second time: no partitions, no groups, no error."""
    for call in (kafka.get_partitions, kafka.describe, kafka.describe_groups, kafka.lag):
        with pytest.raises(ConfigError, match=r"option '(topics|groups)' is .*expected a set of"):
            call(name for name in ["orders"])
    assert brokers.calls == []


@pytest.mark.slow
def test_plain_tuples_are_partitions_wherever_these_are_asked_for(brokers, kafka):
    coordinator = FakeCoordinator(brokers)
    brokers.logs[FIRST].stop = 5
    plain = [("orders", 0)]
    assert kafka.find_leaders(plain)[FIRST].node_id == 1
    assert kafka.get_earliest_leader_offsets(plain) == {FIRST: 0}
    assert kafka.get_latest_leader_offsets(plain) == {FIRST: 5}
    assert kafka.get_last_stable_offsets(plain) == {FIRST: 5}
    assert kafka.get_high_watermarks(plain) == {FIRST: 5}
    assert kafka.get_leader_offsets(plain, 0).keys() == {FIRST}
    kafka.set_consumer_offsets("g", {("orders", 0): 3})
    assert coordinator.offsets["g"] == {FIRST: (3, "")}
    assert kafka.get_consumer_offsets("g", plain) == {FIRST: 3}
    assert kafka.get_group_offsets(["g"], plain)["g"].keys() == {FIRST}
    assert kafka.reset_consumer_offsets("g", ToLatest(), plain) == {FIRST: Moved(3, 5)}
    to = ToOffsets({("orders", 0): 4})
    assert kafka.reset_consumer_offsets("g", to) == {FIRST: Moved(5, 4)}
    kafka.delete_consumer_offsets("g", plain)
    assert coordinator.offsets["g"] == {}
    for given in (*kafka.find_leaders(plain), *kafka.get_latest_leader_offsets(plain)):
        assert str(given) == "orders-0"


@pytest.mark.parametrize("partition", ["orders", ("orders", "0"), ("orders", -1), ("orders", 0, 1)])
def test_what_is_no_partition_is_named(brokers, kafka, partition):
    told = r"'partition' is .*: expected TopicPartition\(topic, number\)"
    for call in (
        kafka.find_leaders,
        kafka.get_log_sizes,
        kafka.get_latest_leader_offsets,
        kafka.get_max_timestamp_offsets,
    ):
        with pytest.raises(ConfigError, match=told):
            call([partition])
    for call in (kafka.get_leader_offsets_at, kafka.delete_records):
        with pytest.raises(ConfigError, match=told):
            call({partition: 1})
    with pytest.raises(ConfigError, match=told):
        kafka.set_consumer_offsets("g", {partition: 1})
    assert brokers.calls == []
