"""The questions of PySpark 4.0 and 4.1 to a stream, in the order in which they come."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import StructType

from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DataLoss
from pyspark_kafkaproto.spark.stream.unlimited import UnlimitedStreamReader
from tests.fake_broker import FakeTopic, topic_id_of
from tests.fake_log import FakeLog
from tests.unit.spark.stream.partitions import add_partition, ranges

BEGINNING = {"orders": {"0": 10, "1": 0}}
END = {"orders": {"0": 100, "1": 30}}
LATER = {"orders": {"0": 100, "1": 31}}
ALL_READ = {TopicPartition("orders", 0): 100, TopicPartition("orders", 1): 30}


@pytest.fixture
def stream_class():
    return UnlimitedStreamReader


def resumed(make, logged, **options):
    """A run from a checkpoint: the engine says by a plan of nothing what was logged last."""
    reader = make(**options)
    assert reader.partitions(logged, logged) == []
    return reader


def test_fresh_query_reads_from_its_start_to_where_all_ends(stream, caplog):
    reader = stream(startingOffsets="earliest")
    assert reader.latestOffset() == END
    assert reader.initialOffset() == BEGINNING
    assert ranges(reader.partitions(BEGINNING, END)) == [(0, 10, 100), (1, 0, 30)]
    assert "logged by an earlier run" not in caplog.text


def test_group_with_members_is_refused_before_there_is_a_batch(stream, group_with_members):
    reader = stream(startingOffsets="earliest", commitGroupId="g")
    with pytest.raises(ConfigError, match=r"'commitGroupId' is 'g': the group has 1 members"):
        reader.latestOffset()


def test_where_a_batch_0_with_records_begins_has_to_be_found_again(stream):
    """The options were changed since; to take it for empty would leave all of it out."""
    again = resumed(stream, END, startingOffsets='{"orders":{"0":10}}')
    with pytest.raises(ConfigError, match=r"startingOffsets.*all partitions that are read"):
        again.partitions(again.initialOffset(), END)


def test_fresh_query_from_the_latest_offsets_logs_them_as_an_empty_batch(brokers, stream):
    """Else records that come between a kill in batch 0 and the restart would be left out."""
    reader = stream()
    assert reader.latestOffset() == END
    brokers.logs["orders", 1].stop = 31
    assert reader.initialOffset() == END
    assert reader.partitions(END, END) == []
    again = resumed(stream, END)
    assert again.initialOffset() == LATER
    assert again.partitions(LATER, END) == [], "batch 0, once more"
    assert again.latestOffset() == LATER
    assert ranges(again.partitions(END, LATER)) == [(1, 30, 31)]


def test_what_a_group_commits_after_the_ends_were_asked_for_is_where_the_query_starts(
    brokers, stream, monkeypatch
):
    def commits_beyond(*_):
        brokers.logs["orders", 0].stop = 110
        return {TopicPartition("orders", 0): 105, TopicPartition("orders", 1): 20}

    monkeypatch.setattr(KafkaCluster, "get_consumer_offsets", commits_beyond)
    reader = stream(startingOffsets="committed", **{"kafka.group.id": "g"})
    end = {"orders": {"0": 105, "1": 30}}
    assert reader.latestOffset() == end
    assert ranges(reader.partitions(reader.initialOffset(), end)) == [(1, 20, 30)]


def test_batch_0_is_run_again_from_its_start(stream):
    again = resumed(stream, END, startingOffsets="earliest")
    start = again.initialOffset()
    assert ranges(again.partitions(start, END)) == [(0, 10, 100), (1, 0, 30)]
    assert again.latestOffset() == END


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("which", [{"subscribe": "orders,other"}, {"subscribePattern": "o.*"}])
def test_batch_0_is_not_run_again_without_a_topic_that_is_away(
    brokers, stream, caplog, which, strict
):
    """Its records would be left out for good, also where the topic is there a moment later."""
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    given = which | {"startingOffsets": "earliest", "failOnDataLoss": strict}
    logged = stream(**given).latestOffset()
    del brokers.topics["other"]
    again = resumed(stream, logged, **given)
    start = again.initialOffset()
    if strict == "true":
        with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND.*other-0"):
            again.partitions(start, logged)
    else:
        assert ranges(again.partitions(start, logged)) == [(0, 10, 100), (1, 0, 30)]
        assert "INITIAL_OFFSET_NOT_FOUND" in caplog.text


def test_batch_0_that_was_deleted_up_to_its_end_is_warned_of(brokers, stream, caplog):
    """Nothing is left of it, and the start that is resolved anew is where it ends."""
    brokers.logs["orders", 0].start = 100
    again = resumed(stream, END, startingOffsets="earliest")
    assert ranges(again.partitions(again.initialOffset(), END)) == [(1, 0, 30)]
    assert "before orders-0 at 100 is not read" in caplog.text


@pytest.mark.parametrize("start", ["latest", '{"orders":{"0":-1,"1":30}}'])
def test_batch_0_that_was_empty_for_sure_is_not_warned_of(stream, caplog, start):
    again = resumed(stream, END, startingOffsets=start)
    assert again.partitions(again.initialOffset(), END) == []
    assert not caplog.records


def test_start_that_fits_no_more_does_not_keep_batch_0_from_being_run_again(brokers, stream):
    numbers = '{"orders":{"0":50,"1":-2}}'
    add_partition(brokers, stop=7)
    again = resumed(stream, END, startingOffsets=numbers)
    assert ranges(again.partitions(again.initialOffset(), END)) == [(0, 50, 100), (1, 0, 30)]
    end = again.latestOffset()
    assert ranges(again.partitions(END, end)) == [(2, 0, 7)]


def test_start_that_cannot_be_is_refused_before_anything_is_logged(stream):
    with pytest.raises(ConfigError, match="START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        stream(startingOffsets='{"orders":{"0":50}}').latestOffset()
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        stream(subscribe="misspelt").latestOffset()


def test_restarted_query_goes_on_where_it_was_and_never_looks_at_its_start(brokers, stream):
    brokers.logs["orders", 1].stop = 31
    reader = resumed(stream, END, startingOffsets='{"orders":{"0":0}}')
    assert reader.latestOffset() == LATER
    assert ranges(reader.partitions(END, LATER)) == [(1, 30, 31)]
    assert reader.latestOffset() == LATER, "nothing has come: no batch"


def test_idle_stream_asks_at_a_sensible_pace(stream, clock):
    reader = resumed(stream, END)
    reader.latestOffset()
    began = clock.now
    reader.latestOffset()
    assert clock.now - began == pytest.approx(0.1)


def test_end_that_came_back_fails_the_query_before_it_is_logged(brokers, stream, clock):
    reader = resumed(stream, END)
    brokers.logs["orders", 1].stop = 29
    with pytest.raises(DataLoss, match="orders-1 offset was changed from 30 to 29"):
        reader.latestOffset()


def test_what_is_done_is_committed_though_no_batch_follows(stream, group):
    reader = stream(commitGroupId="g", startingOffsets="earliest")
    reader.latestOffset()
    assert group == {}, "the batch is still to be run"
    reader.latestOffset()
    assert group == ALL_READ


def test_what_a_run_of_one_batch_has_read_is_committed_by_the_next(stream, group):
    """Trigger.Once, and AvailableNow here: their runs ask once, before their only batch."""
    reader = resumed(stream, END, commitGroupId="g")
    assert reader.latestOffset() == END
    assert group == ALL_READ


def test_reader_that_is_pickled_reads_alike(stream):
    made = pickle.loads(pickle.dumps(stream()))
    assert type(made) is UnlimitedStreamReader
    assert made._schema == StructType()


def test_what_is_named_from_now_on_and_not_there_fails_a_query_as_at_its_start(stream):
    reader = resumed(stream, BEGINNING, subscribe="orders,odrers")
    with pytest.raises(BrokerError, match="topic 'odrers': UNKNOWN_TOPIC_OR_PARTITION"):
        reader.latestOffset()
