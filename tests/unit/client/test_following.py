"""Records up to where partitions end, what a commit may say of them, and ends that came back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafkaproto.client.following import Following
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition, routing
from pyspark_kafkaproto.errors import DataLoss
from pyspark_kafkaproto.net import deadline, retry
from pyspark_kafkaproto.records.layout import CONTROL
from pyspark_kafkaproto.wire.declaration import NO_ID
from tests.clock import stop_clock
from tests.fake_broker import DEFAULT, close
from tests.fake_past import behind

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def cluster(brokers):
    """20 records in each partition of `orders`."""
    for partition in range(2):
        brokers.logs["orders", partition].fill(2)
    with KafkaCluster({"bootstrap.servers": brokers.bootstrap_servers}) as opened:
        yield opened


def offsets_of(records):
    return [(record["partition"], record["offset"]) for record in records]


def test_records_come_by_partition_and_then_what_is_newer(brokers, cluster):
    following = Following(cluster, {FIRST: 18, SECOND: 19})
    stops = {FIRST: 20, SECOND: 20}
    assert following.count_until(stops) == 3
    assert offsets_of(following.records_until(stops)) == [(0, 18), (0, 19), (1, 19)]
    assert following.moved == stops
    assert following.count_until(stops) == 0
    brokers.logs["orders", 1].append(b"later")
    assert offsets_of(following.records_until(following.newer_ends())) == [(1, 20)]
    assert following.moved == {FIRST: 20, SECOND: 21}


def test_only_what_is_noted_counts_as_read_until_all_were_taken(cluster):
    following = Following(cluster, {FIRST: 0})
    records = following.records_until({FIRST: 3})
    following.note_read(next(records))
    next(records)
    records.close()
    assert following.moved == {FIRST: 1}
    assert offsets_of(following.records_until({FIRST: 3})) == [(0, 1), (0, 2)]


def test_offsets_without_a_record_are_behind_us_all_the_same(brokers, cluster):
    brokers.logs["orders", 0].append(b"", key=bytes(4), attributes=CONTROL)
    following = Following(cluster, {FIRST: 15})
    assert len(list(following.records_until({FIRST: 21}))) == 5
    assert following.moved == {FIRST: 21}


def test_nothing_may_be_committed_once_the_end_came_back(brokers, cluster, monkeypatch):
    stop_clock(monkeypatch, routing)
    following = Following(cluster, {FIRST: 0})
    for record in following.records_until({FIRST: 20}):
        following.note_read(record)
    brokers.logs["orders", 0].cut_off(10)
    with pytest.raises(
        DataLoss, match=r"orders-0 ended at offset 20 and ends at 10 now.*anew reads"
    ):
        following.newer_ends()
    assert following.moved == {}


def test_an_id_that_some_brokers_do_not_know_yet_makes_no_other_topic(
    brokers, cluster, monkeypatch
):
    """Brokers before Kafka 2.8 know none: while they are upgraded it comes, and goes again."""
    stop_clock(monkeypatch, routing)
    following, topic = Following(cluster, {FIRST: 0}), brokers.topics["orders"]
    for stop, known in (5, NO_ID), (10, topic.topic_id), (15, NO_ID):
        topic.topic_id = known
        assert offsets_of(following.records_until({FIRST: stop})) == [
            (0, offset) for offset in range(stop - 5, stop)
        ]
    topic.topic_id = bytes(range(16))
    with pytest.raises(DataLoss, match="'orders' was deleted and made anew"):
        list(following.records_until({FIRST: 20}))


def test_an_end_that_was_cut_off_and_has_grown_since_is_seen_as_well(brokers, cluster):
    """An unclean election: what was written at offsets that were read would be passed over."""
    log = brokers.logs["orders", 0]
    following = Following(cluster, {FIRST: 0})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST})))
    log.append(b"later")
    list(following.records_until(following.newer_ends()))
    log.cut_off(10)
    log.fill(3)
    with pytest.raises(DataLoss, match=r"orders-0 was cut off at offset 10 .* read, up to 21"):
        following.newer_ends()
    assert following.moved == {}


def test_another_leader_that_has_all_of_it_is_no_loss(brokers, cluster):
    log = brokers.logs["orders", 0]
    stops = cluster.get_latest_leader_offsets({FIRST})
    list((following := Following(cluster, {FIRST: 15})).records_until(stops))
    log.cut_off(20)
    assert following.newer_ends() == {FIRST: 20}
    log.append(b"later")
    log.cut_off(20)  # what nobody has read
    assert following.newer_ends() == {FIRST: 20}
    assert len(brokers.asked("OffsetForLeaderEpoch")) == 2


def test_who_cannot_tell_where_epochs_end_is_read_on(brokers, cluster):
    del brokers.versions["OffsetForLeaderEpoch"]
    following = Following(cluster, {FIRST: 0})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST})))
    assert following.newer_ends() == {FIRST: 20}
    brokers.logs["orders", 0].cut_off(20)
    assert following.newer_ends() == {FIRST: 20}


def die(brokers, partition):
    """Node 2, that leads a partition, is gone."""
    brokers.on("ListOffsets", close(), node=2)
    brokers.topics["orders"].leaders[partition] = -1


def test_a_partition_that_nobody_leads_holds_up_no_other_and_is_read_on(
    brokers, cluster, monkeypatch, caplog
):
    clock = stop_clock(monkeypatch, routing, retry, deadline)
    brokers.topics["orders"].move(1, node_id=2)
    following = Following(cluster, {FIRST: 20, SECOND: 20})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST, SECOND})))
    die(brokers, 1)
    brokers.logs["orders", 0].append(b"meanwhile")
    for _ in range(2):
        assert following.newer_ends() == {FIRST: 21, SECOND: 20}
    assert sum(clock.slept) < 2
    assert caplog.text.count("orders-1") == 1  # once, however often it is looked
    brokers.topics["orders"].move(1, node_id=1)
    brokers.logs["orders", 1].append(b"later")
    ends = following.newer_ends()
    assert offsets_of(following.records_until(ends)) == [(0, 20), (1, 20)]


def test_a_broker_that_has_not_heard_of_a_leader_is_not_all_that_is_asked(
    brokers, cluster, monkeypatch
):
    """It was, each time, and the partition was not read on for as long as it was behind."""
    stop_clock(monkeypatch, routing, retry, deadline)
    brokers.topics["orders"].move(1, node_id=2)
    following = Following(cluster, {FIRST: 20, SECOND: 20})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST, SECOND})))
    brokers.on("ListOffsets", close(), DEFAULT, node=2)  # so that it is looked up
    then = replace(brokers.topics["orders"], leaders=[1, -1])
    brokers.on("Metadata", behind(brokers, "orders", then), node=1)
    brokers.logs["orders", 1].append(b"later")
    for _ in range(3):
        ends = following.newer_ends()
    assert ends == {FIRST: 20, SECOND: 21}


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_no_end(brokers, cluster, monkeypatch):
    """News of it may travel yet: it is asked again, for a second, where no leader is waited for."""
    stop_clock(monkeypatch, routing, retry, deadline)
    following = Following(cluster, {FIRST: 20})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST})))
    brokers.on("ListOffsets", close(), DEFAULT)  # so that its leader is looked up
    brokers.on("Metadata", behind(brokers, "orders", None), DEFAULT)
    assert following.newer_ends() == {FIRST: 20}


def test_who_leads_no_more_is_not_asked_each_time(brokers, cluster, monkeypatch):
    """What was learned as it failed was forgotten: a host that is down was waited for each time."""
    stop_clock(monkeypatch, routing, retry, deadline)
    brokers.topics["orders"].move(1, node_id=2)
    following = Following(cluster, {FIRST: 20, SECOND: 20})
    list(following.records_until(cluster.get_latest_leader_offsets({FIRST, SECOND})))
    brokers.on("ListOffsets", close(), node=2)
    brokers.topics["orders"].move(1, node_id=1)
    for _ in range(3):
        following.newer_ends()
        asked = len(brokers.asked("ListOffsets", 2))
    assert asked == 2, "as it led, and once more"


def test_a_cut_off_is_seen_behind_a_time_without_a_leader(brokers, cluster):
    log = brokers.logs["orders", 0]
    brokers.topics["orders"].move(0, node_id=2)
    ends = cluster.get_latest_leader_offsets({FIRST, SECOND})
    following = Following(cluster, {FIRST: 0, SECOND: 20})
    list(following.records_until(ends))
    die(brokers, 0)
    following.newer_ends()
    brokers.topics["orders"].move(0, node_id=1)
    log.cut_off(10)
    log.fill(3)
    with pytest.raises(DataLoss, match=r"orders-0 was cut off at offset 10"):
        following.newer_ends()


@pytest.mark.parametrize("start", [0, 20], ids=["with records", "from the end on"])
def test_nothing_may_be_committed_in_a_topic_that_was_made_anew(
    brokers, cluster, monkeypatch, start
):
    stop_clock(monkeypatch, routing)
    following = Following(cluster, {FIRST: start})
    list(following.records_until({FIRST: 20}))
    brokers.topics["orders"].topic_id = bytes(range(16))
    brokers.logs["orders", 0].fill(1)
    with pytest.raises(DataLoss, match="'orders' was deleted and made anew"):
        list(following.records_until(following.newer_ends()))
    assert following.moved == {}


@pytest.fixture
def by_few(brokers, cluster):
    """The same, with another 100 records of which an answer holds ten."""
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    few = {"max.partition.fetch.bytes": 30_000, "request.timeout.ms": 1000}
    with KafkaCluster({"bootstrap.servers": brokers.bootstrap_servers} | few) as opened:
        opened.get_latest_leader_offsets({FIRST})  # who leads is known
        yield opened


def _amid_reading(brokers, cluster, happens):
    """Reads 20 records, and then the reading meets what `happens`."""
    log = brokers.logs["orders", 0]
    following = Following(cluster, {FIRST: 0})
    records = following.records_until({FIRST: log.stop})
    for _ in range(20):
        following.note_read(next(records))
    happens()
    return following, records


def test_nothing_may_be_committed_in_a_topic_that_was_made_anew_amid_reading(
    brokers, by_few, monkeypatch
):
    """It is the reader that meets it, whose own words are for others."""
    stop_clock(monkeypatch, routing, deadline, retry)

    def made_anew():
        brokers.topics["orders"].topic_id = bytes(range(16))

    following, records = _amid_reading(brokers, by_few, made_anew)
    with pytest.raises(DataLoss, match=r"'orders' was deleted and made anew.*anew reads") as caught:
        list(records)
    assert "ReadSettings" not in str(caught.value)
    assert following.moved == {}


def test_nothing_may_be_committed_in_a_log_that_was_cut_off_amid_reading(
    brokers, by_few, monkeypatch
):
    stop_clock(monkeypatch, routing, deadline, retry)
    log = brokers.logs["orders", 0]

    def cut_off():
        brokers.topics["orders"].move(0, node_id=2)
        log.cut_off(10)
        log.fill(12, size_bytes=3000)

    following, records = _amid_reading(brokers, by_few, cut_off)
    with pytest.raises(DataLoss, match="orders-0 was cut off at offset 10"):
        list(records)
    assert following.moved == {}


def test_what_was_read_before_records_aged_out_may_be_committed(brokers, by_few, monkeypatch):
    stop_clock(monkeypatch, routing, deadline, retry)
    log = brokers.logs["orders", 0]

    def age_out():
        log.start = log.stop - 10

    following, records = _amid_reading(brokers, by_few, age_out)
    with pytest.raises(DataLoss, match="it holds the offsets 110 to 120 now"):
        list(records)
    assert following.moved == {FIRST: 20}
