"""The engine's questions to a stream, and its answers."""

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.cluster.offsets import EARLIEST_TIMESTAMP
from pyspark_kafkaproto.cluster.routing import OPINIONS
from pyspark_kafkaproto.errors import BrokerError, ConfigError, DataLoss, KafkaProtoError
from pyspark_kafkaproto.messages.describe_groups import DescribeGroupsResponse
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from pyspark_kafkaproto.spark.stream import tail
from pyspark_kafkaproto.spark.stream.available_now import AvailableNowFailed
from pyspark_kafkaproto.spark.stream.limits import MOST
from tests.fake_broker import DEFAULT, FakeTopic, cut, metadata, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_past import behind, lead_in_the_past, listed
from tests.unit.spark.stream.partitions import add_partition, ranges

NO_LIMIT = ReadMaxRows(MOST)
BEGINNING = {"orders": {"0": 10, "1": 0}}
END = {"orders": {"0": 100, "1": 30}}


def refused(code):
    """An answer to ListOffsets with this error of each partition."""
    return lambda call: listed(call, error_code=code)


def started(reader):
    """Where the query starts, logged as its batch 0."""
    return reader.latestOffset(reader.initialOffset(), NO_LIMIT)


# Starts


def test_start_is_latest_unless_something_else_is_said(stream):
    assert stream().initialOffset() == END
    assert stream(startingOffsets="earliest").initialOffset() == BEGINNING
    assert stream(startingOffsets='{"orders":{"0":50,"1":-2}}').initialOffset() == {
        "orders": {"0": 50, "1": 0}
    }


def test_partition_that_is_assigned_and_not_there_is_an_error_at_the_start(stream):
    """Later it is a loss, and failOnDataLoss has its say."""
    reader = stream(assign='{"orders":[0,7]}', failOnDataLoss="false")
    with pytest.raises(BrokerError, match=r"partition orders-7.*\[0, 1\]"):
        started(reader)


def test_start_is_the_same_however_often_it_is_asked_for(brokers, stream):
    reader = stream()
    first = reader.initialOffset()
    brokers.logs["orders", 1].stop = 31
    assert reader.initialOffset() == first


NUMBERS = '{"orders":{"0":50,"1":-2}}'


@pytest.mark.parametrize("fails", ["true", "false"])
def test_offsets_that_are_there_are_the_start_though_a_broker_that_has_been_away_names_an_old_end(
    brokers, stream, fails
):
    lead_in_the_past(brokers, "orders", end=20)
    given = '{"orders":{"0":50,"1":25}}'
    assert started(stream(startingOffsets=given, failOnDataLoss=fails)) == json.loads(given)


@pytest.mark.parametrize(
    ("given", "first"),
    [("latest", END), ("earliest", BEGINNING), (NUMBERS, {"orders": {"0": 50, "1": 0}})],
)
def test_start_is_logged_as_an_empty_batch(brokers, stream, given, first):
    reader = stream(startingOffsets=given)
    start = reader.initialOffset()
    brokers.logs["orders", 1].stop = 31
    assert reader.latestOffset(start, NO_LIMIT) == start == first
    assert reader.latestOffset(start, NO_LIMIT) == {"orders": {"0": 100, "1": 31}}


def test_records_lost_between_a_kill_in_batch_0_and_the_restart_are_a_loss(brokers, stream):
    """Not left out: the batch after the empty one starts where the first run has started."""
    first = stream(startingOffsets="earliest")
    logged = started(first)
    brokers.logs["orders", 0].start = 15
    again = stream(startingOffsets="earliest")
    assert again.partitions(again.initialOffset(), logged) == []
    end = again.latestOffset(logged, NO_LIMIT)
    assert ranges(again.partitions(logged, end)) == [(0, 10, 100), (1, 0, 30)]


@pytest.mark.parametrize("given", ["latest", '{"orders":{"0":50,"1":-1}}'], ids=["all", "one"])
def test_records_before_latest_are_not_read_where_a_broker_that_has_been_away_names_an_old_end(
    brokers, stream, given
):
    """The start was logged, and the run killed before its empty batch 0 was done."""
    logged = started(stream(startingOffsets=given))
    lead_in_the_past(brokers, "orders", end=20)
    again = stream(startingOffsets=given, failOnDataLoss="false")
    assert ranges(again.partitions(again.initialOffset(), logged)) == []


def test_a_logged_batch_0_starts_at_the_numbers_given_though_the_log_is_said_to_end_before(
    brokers, stream
):
    logged = started(stream(startingOffsets=NUMBERS))
    again = stream(startingOffsets=NUMBERS, failOnDataLoss="false")
    brokers.logs["orders", 0].stop = 20  # all say so for the moment
    first = again.initialOffset()
    brokers.logs["orders", 0].stop = 100
    assert first == {"orders": {"0": 20, "1": 0}}
    assert ranges(again.partitions(first, logged)) == []


@pytest.mark.parametrize("fails", ["true", "false"])
def test_what_a_group_has_committed_beyond_the_end_is_refused_as_numbers_are(
    stream, group, clock, fails
):
    group.update({TopicPartition("orders", 0): 150, TopicPartition("orders", 1): 7})
    reader = stream(startingOffsets="committed", failOnDataLoss=fails, **{"kafka.group.id": "g"})
    if fails == "true":
        with pytest.raises(ConfigError, match=r"'orders-0': 150.*orders-0 holds 10 to 100"):
            started(reader)
    else:
        assert started(reader) == {"orders": {"0": 100, "1": 7}}


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": "earliest"},
        {"startingOffsets": "latest"},
        {"startingOffsets": NUMBERS},
        {"startingOffsetsByTimestamp": '{"orders":{"0":1,"1":1}}'},
    ],
    ids=lambda start: next(iter(start.values()))[:9],
)
def test_partition_added_before_batch_0_is_run_again_belongs_to_the_next(
    brokers, stream, clock, start
):
    logged = {"orders": {"0": 60, "1": 30}}
    before = stream(**start).initialOffset()
    add_partition(brokers, stop=7)
    again = stream(**start)
    planned = again.partitions(again.initialOffset(), logged)
    starts = {number: min(at, logged["orders"][number]) for number, at in before["orders"].items()}
    assert ranges(planned) == [
        (int(number), at, logged["orders"][number])
        for number, at in starts.items()
        if at < logged["orders"][number]
    ]
    end = again.latestOffset(logged, NO_LIMIT)
    assert ranges(again.partitions(logged, end)) == [(0, 60, 100), (2, 0, 7)]


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": "earliest"},
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders":{"0":50,"1":-2},"other":{"0":-2}}'},
        {"startingOffsetsByTimestamp": '{"orders":{"0":1,"1":1},"other":{"0":1}}'},
    ],
    ids=lambda start: next(iter(start.values()))[:9],
)
def test_topic_deleted_before_batch_0_is_run_again_is_a_loss_to_the_next(
    brokers, stream, clock, start
):
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    given = start | {"subscribe": "orders,other"}
    logged = started(stream(**given))
    del brokers.topics["other"]
    strict, lenient = stream(**given), stream(failOnDataLoss="false", **given)
    for reader in (strict, lenient):
        assert reader.partitions(reader.initialOffset(), logged) == []
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*other-0"):
        strict.latestOffset(logged, NO_LIMIT)
    assert lenient.latestOffset(logged, NO_LIMIT) == END


@pytest.mark.parametrize("which", [{"subscribe": "orders,other"}, {"subscribePattern": "o.*"}])
def test_topic_that_is_away_while_a_batch_0_with_records_is_run_again_is_a_loss(
    brokers, stream, caplog, which
):
    """Trigger.Once logs such; the records would be left out for good, were it but one."""
    logged = END | {"other": {"0": 1}}
    given = which | {"startingOffsets": "earliest"}
    strict, lenient = stream(**given), stream(failOnDataLoss="false", **given)
    with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND.*other-0"):
        strict.partitions(strict.initialOffset(), logged)
    planned = lenient.partitions(lenient.initialOffset(), logged)
    assert ranges(planned) == [(0, 10, 100), (1, 0, 30)]
    assert "INITIAL_OFFSET_NOT_FOUND" in caplog.text


def test_topic_deleted_before_batch_0_is_run_again_is_a_loss_under_available_now_too(
    brokers, stream
):
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    logged = started(stream(subscribe="orders,other"))
    del brokers.topics["other"]
    strict = stream(subscribe="orders,other")
    lenient = stream(subscribe="orders,other", failOnDataLoss="false")
    for again in (strict, lenient):
        again.prepareForTriggerAvailableNow()
        assert again.partitions(again.initialOffset(), logged) == []
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*other-0"):
        strict.latestOffset(logged, NO_LIMIT)
    assert lenient.latestOffset(logged, NO_LIMIT) == END


@pytest.mark.parametrize(
    "start",
    [
        {"startingOffsets": '{"orders":{"0":50,"1":-2},"other":{"0":-2}}'},
        {"startingOffsetsByTimestamp": '{"orders":{"0":1,"1":1},"other":{"0":1}}'},
    ],
    ids=["offsets", "times"],
)
def test_a_start_that_names_a_deleted_topic_begins_a_batch_0_with_records(
    brokers, stream, clock, start
):
    """What Spark's own connector has logged has them; that the topic is gone is a loss alone."""
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    given = start | {"subscribe": "orders,other"}
    begun = stream(**given).initialOffset()["orders"]
    del brokers.topics["other"]
    again = stream(failOnDataLoss="false", **given)
    planned = again.partitions(again.initialOffset(), END | {"other": {"0": 5}})
    assert ranges(planned) == [(0, begun["0"], 100), (1, begun["1"], 30)]


def test_start_that_is_not_found_any_more_is_not_needed_behind_an_empty_batch_0(
    brokers, stream, caplog
):
    """All records that are so late were deleted since: a loss to the next batch, if it reads."""
    given = {"startingTimestamp": "1"}
    logged = started(stream(**given))
    for number in (0, 1):
        log = brokers.logs["orders", number]
        log.start, log.newest_ms = log.stop, 0
    again = stream(**given)
    assert again.partitions(again.initialOffset(), logged) == []
    assert "taken to start where it ends" in caplog.text
    end = again.latestOffset(logged, NO_LIMIT)
    assert ranges(again.partitions(logged, end)) == [(0, 10, 100), (1, 0, 30)]


def test_start_that_does_not_name_what_a_logged_empty_batch_0_has_is_not_needed(stream, caplog):
    """The options were changed since: what they say is of no query that has begun."""
    again = stream(startingOffsets='{"orders":{"0":50}}')
    assert again.partitions(again.initialOffset(), END) == []
    assert "taken to start where it ends" in caplog.text
    assert again.latestOffset(END, NO_LIMIT) == END


def test_a_query_that_was_not_run_before_warns_of_no_earlier_run(stream, caplog):
    reader = stream(startingOffsets="earliest")
    at = started(reader)
    assert reader.partitions(at, at) == []
    assert reader.latestOffset(at, NO_LIMIT) == END
    assert ranges(reader.partitions(at, END)) == [(0, 10, 100), (1, 0, 30)]
    assert not caplog.records


def test_fresh_query_must_name_all_partitions(brokers, stream):
    reader = stream(startingOffsets='{"orders":{"0":50}}')
    start = reader.initialOffset()
    with pytest.raises(ConfigError, match="START_OFFSET_DOES_NOT_MATCH_ASSIGNED"):
        reader.latestOffset(start, NO_LIMIT)


def test_batch_0_of_the_other_source_is_read_again_from_numbers_without_a_warning(stream, caplog):
    reader = stream(startingOffsets=NUMBERS)
    again = reader.partitions(reader.initialOffset(), END)
    assert ranges(again) == [(0, 50, 100), (1, 0, 30)]
    assert not caplog.records


def test_batch_0_with_records_whose_start_may_have_moved_is_warned_of(stream, caplog):
    reader = stream(startingOffsets="earliest")
    again = reader.partitions(reader.initialOffset(), END)
    assert ranges(again) == [(0, 10, 100), (1, 0, 30)]
    assert "before orders-0 at 10 is not read" in caplog.text, "nothing lies before 0"


def test_logged_start_is_planned_even_if_records_came_meanwhile(brokers, stream):
    reader = stream()
    batch_0 = reader.latestOffset(reader.initialOffset(), NO_LIMIT)
    brokers.logs["orders", 1].stop = 31
    # The engine knows no start yet, and asks for it again.
    assert reader.partitions(reader.initialOffset(), batch_0) == []


@pytest.mark.parametrize("start", ["latest", "latest-2"])
def test_empty_batch_0_that_is_run_again_after_a_restart_stays_empty(
    brokers, stream, start, caplog
):
    logged = {"orders": {"0": 97, "1": 25}}
    reader = stream(startingOffsets=start)
    assert reader.partitions(reader.initialOffset(), logged) == []
    assert "batch 0" in caplog.text
    assert "before orders-0 at 97" in caplog.text
    assert reader.latestOffset(logged, NO_LIMIT) == END


def test_empty_batch_0_is_run_again_from_where_it_stands_without_a_warning(stream, caplog):
    reader = stream(startingOffsets="earliest")
    assert reader.partitions(reader.initialOffset(), BEGINNING) == []
    assert not caplog.records


def test_batch_0_with_records_is_run_again_from_where_its_start_is_now(stream):
    reader = stream(startingOffsets="latest-20")
    again = reader.partitions(reader.initialOffset(), {"orders": {"0": 95, "1": 30}})
    assert ranges(again) == [(0, 80, 95), (1, 10, 30)]


def test_batch_0_of_trigger_once_is_planned_as_it_was_taken(brokers, stream):
    reader = stream()
    start = reader.initialOffset()
    brokers.logs["orders", 1].stop = 50
    end = reader.latestOffset(start, ReadAllAvailable())
    assert ranges(reader.partitions(reader.initialOffset(), end)) == [(1, 30, 50)]


def test_start_beyond_the_log_is_refused_by_its_option(stream):
    beyond = '{"orders":{"0":101,"1":-2}}'
    told = r"\[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED\].*startingOffsets.*-0': 101.*10 to 100"
    with pytest.raises(ConfigError, match=told):
        started(stream(startingOffsets=beyond))
    lenient = stream(startingOffsets=beyond, failOnDataLoss="false")
    assert lenient.initialOffset() == {"orders": {"0": 100, "1": 0}}


def test_trigger_once_reads_at_once_and_without_limits(brokers, stream):
    reader = stream(maxOffsetsPerTrigger="1")
    start = reader.initialOffset()
    brokers.logs["orders", 1].stop = 50
    assert reader.latestOffset(start, ReadAllAvailable()) == {"orders": {"0": 100, "1": 50}}


def test_restarted_query_never_looks_at_its_start(brokers, stream):
    assert stream(startingOffsets="latest").latestOffset(BEGINNING, NO_LIMIT) == END


def test_topic_that_is_not_there_fails_the_query(stream):
    with pytest.raises(BrokerError, match="no such topic"):
        started(stream(subscribe="odrers"))


# Limits


def test_without_a_limit_there_is_a_number_all_the_same(stream):
    """What says to read all there is means Trigger.Once."""
    assert stream().getDefaultReadLimit() == NO_LIMIT


def test_limit_is_shared_in_proportion(stream):
    reader = stream(maxOffsetsPerTrigger="12")
    assert reader.getDefaultReadLimit() == ReadMaxRows(12)
    assert reader.latestOffset(BEGINNING, ReadMaxRows(12)) == {"orders": {"0": 19, "1": 3}}


@pytest.mark.parametrize(
    ("fails", "taken"), [("true", {"0": 25, "1": 5}), ("false", {"0": 94, "1": 15})]
)
def test_limit_counts_from_behind_what_is_gone_where_that_is_borne(brokers, stream, fails, taken):
    brokers.logs["orders", 0].start = 88
    reader = stream(maxOffsetsPerTrigger="21", failOnDataLoss=fails)
    assert reader.latestOffset(BEGINNING, ReadMaxRows(21)) == {"orders": taken}


@pytest.mark.parametrize("fails", ["true", "false"])
def test_limit_counts_from_where_the_stream_is(brokers, stream, fails):
    """Not from where the logs begin, which is asked for where losses are borne."""
    reader = stream(maxOffsetsPerTrigger="12", failOnDataLoss=fails)
    known = {"orders": {"0": 50, "1": 20}}
    assert reader.latestOffset(known, ReadMaxRows(12)) == {"orders": {"0": 60, "1": 22}}


def test_topic_that_is_deleted_before_a_limit_counts_is_for_the_next_look(brokers, stream):
    def delete(call):
        if call.request.topics[0].partitions[0].timestamp == EARLIEST_TIMESTAMP:
            brokers.logs.clear()
        return DEFAULT

    reader = stream(maxOffsetsPerTrigger="12", failOnDataLoss="false")
    brokers.on("ListOffsets", delete)
    assert reader.latestOffset(BEGINNING, ReadMaxRows(12)) == {"orders": {"0": 19, "1": 3}}


def test_what_a_limit_counts_from_is_told_or_its_error(brokers, stream):
    """Only of a topic that is not there the next look tells."""

    def refuse(call):
        is_first = call.request.topics[0].partitions[0].timestamp == EARLIEST_TIMESTAMP
        return refused(29)(call) if is_first else DEFAULT

    reader = stream(maxOffsetsPerTrigger="12", failOnDataLoss="false")
    brokers.on("ListOffsets", refuse)
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        reader.latestOffset(BEGINNING, ReadMaxRows(12))


def test_least_number_of_offsets_is_waited_for_but_not_for_ever(brokers, stream, clock):
    reader = stream(minOffsetsPerTrigger="50", maxTriggerDelay="60s")
    assert reader.latestOffset(BEGINNING, NO_LIMIT) == END, "the first batch never waits"
    brokers.logs["orders", 0].stop = 120
    assert reader.latestOffset(END, NO_LIMIT) == END
    clock.now += 61
    assert reader.latestOffset(END, NO_LIMIT) == {"orders": {"0": 120, "1": 30}}


def test_idle_stream_asks_at_a_sensible_pace(brokers, stream, clock):
    reader = stream()
    for _ in range(5):
        assert reader.latestOffset(END, NO_LIMIT) is END
    assert clock.slept == pytest.approx([0.1] * 4)
    assert len(brokers.asked("Metadata")) == 1


@pytest.mark.parametrize(("look_s", "rest_s"), [(0.01, 0.1), (0.02, 0.2), (2.0, 0.3)])
def test_idle_stream_rests_longer_where_a_look_takes_long(brokers, stream, clock, look_s, rest_s):
    def slowly(_):
        clock.now += look_s
        return DEFAULT

    reader = stream()
    brokers.on("ListOffsets", slowly)
    for _ in range(4):
        assert reader.latestOffset(END, NO_LIMIT) is END
    assert clock.slept == pytest.approx([rest_s] * 3)


def test_answer_to_unchanged_offsets_is_the_very_text_of_the_question(stream):
    logged = json.loads('{"orders":{"1":30,"0":100}}')
    assert stream().latestOffset(logged, NO_LIMIT) is logged


def test_latest_offsets_are_reported_beside_limited_ones(stream):
    reader = stream()
    assert reader.reportLatestOffset() is None
    reader.latestOffset(BEGINNING, ReadMaxRows(1))
    assert reader.reportLatestOffset() == END


# An idle stream


@pytest.fixture
def idle(stream, clock):
    """A reader that has looked in vain for seconds: it asks, and is answered, as the last time."""

    def make(**options):
        reader = stream(**options)
        for _ in range(5):
            assert reader.latestOffset(END, NO_LIMIT) is END
            clock.now += 1
        return reader

    return make


def test_idle_stream_says_what_has_come(brokers, idle):
    reader = idle()
    brokers.logs["orders", 1].stop = 31
    end = {"orders": {"0": 100, "1": 31}}
    assert reader.latestOffset(END, NO_LIMIT) == reader.reportLatestOffset() == end
    assert ranges(reader.partitions(END, end)) == [(1, 30, 31)]
    assert reader.latestOffset(end, NO_LIMIT) is end
    assert reader.reportLatestOffset() == end


def test_idle_stream_notices_an_added_partition_within_a_second(brokers, idle, clock):
    reader = idle()
    assert reader.latestOffset(END, NO_LIMIT) is END
    add_partition(brokers, stop=7)
    clock.now += 1
    end = reader.latestOffset(END, NO_LIMIT)
    assert end == {"orders": {"0": 100, "1": 30, "2": 7}}
    assert ranges(reader.partitions(END, end)) == [(2, 0, 7)]
    for _ in range(3):
        assert reader.latestOffset(end, NO_LIMIT) is end


def test_idle_stream_follows_a_leader_that_moved(brokers, idle, clock):
    reader = idle()
    brokers.topics["orders"].move(1, node_id=2)
    brokers.logs["orders", 1].stop = 31
    assert reader.latestOffset(END, NO_LIMIT) == {"orders": {"0": 100, "1": 31}}
    assert len(brokers.asked("ListOffsets", node=2)) == 1


@pytest.mark.parametrize("seconds_later", [0, 2])
def test_idle_stream_loses_a_deleted_topic(brokers, idle, clock, seconds_later):
    strict, lenient = idle(), idle(failOnDataLoss="false")
    brokers.topics.clear()
    brokers.logs.clear()
    clock.now += seconds_later
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders-0, orders-1 have been"):
        strict.latestOffset(END, NO_LIMIT)
    assert lenient.latestOffset(END, NO_LIMIT) == {}


def test_idle_stream_knows_a_topic_made_anew(brokers, idle, clock):
    reader = idle()
    brokers.topics["orders"] = FakeTopic(topic_id_of("another"), [1, 1], [0, 0])
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted and created again"):
        reader.latestOffset(END, NO_LIMIT)


def test_idle_stream_never_goes_back_unasked(brokers, idle):
    strict, lenient = idle(), idle(failOnDataLoss="false")
    before = len(brokers.asked("ListOffsets"))
    brokers.logs["orders", 0].stop = 90
    with pytest.raises(DataLoss, match=r"CHANGED.*orders-0.*from 100 to 90.*names another cluster"):
        strict.latestOffset(END, NO_LIMIT)
    assert len(brokers.asked("ListOffsets")) == before + 3
    assert lenient.latestOffset(END, NO_LIMIT) == {"orders": {"0": 90, "1": 30}}


def test_idle_stream_is_brought_back_by_no_old_leader(brokers, idle):
    reader = idle(failOnDataLoss="false")
    lead_in_the_past(brokers, "orders", end=90)
    assert reader.latestOffset(END, NO_LIMIT) == END


def test_idle_stream_knows_a_log_that_was_cut_off_and_has_grown_since(brokers, idle, caplog):
    """An unclean election between two looks: offsets that were read mean other records."""
    strict, lenient = idle(), idle(failOnDataLoss="false")
    log = brokers.logs["orders", 0]
    log.cut_off(100)
    assert strict.latestOffset(END, NO_LIMIT) == lenient.latestOffset(END, NO_LIMIT) == END
    assert len(brokers.asked("OffsetForLeaderEpoch")) == 2
    log.cut_off(90)
    log.stop = 120
    gone = r"PARTITION_OFFSET_CHANGED\] .*orders-0 was cut off at offset 90 .*up to 100, are gone"
    with pytest.raises(DataLoss, match=gone):
        strict.latestOffset(END, NO_LIMIT)
    grown = {"orders": {"0": 120, "1": 30}}
    assert [lenient.latestOffset(END, NO_LIMIT) for _ in range(2)] == [grown] * 2
    assert caplog.text.count("was cut off at offset 90") == 1


def test_fresh_stream_knows_a_log_that_was_cut_off_before_its_first_look(brokers, stream):
    """Below the start that batch 0 has logged: a trigger's whole interval lies between the two."""
    reader = stream()
    start = started(reader)
    log = brokers.logs["orders", 0]
    log.cut_off(90)
    log.stop = 130
    with pytest.raises(DataLoss, match=r"orders-0 was cut off at offset 90 .*up to 100, are gone"):
        reader.latestOffset(start, NO_LIMIT)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_topic_deleted_before_its_leaders_are_asked_for_cut_offs_is_told_by_the_next_look(
    brokers, idle, clock, fails
):
    reader = idle(failOnDataLoss=fails)

    def deleted(call):
        if brokers.topics.pop("orders", None):
            brokers.logs.clear()
        (topic,) = call.request.topics
        part = OffsetForLeaderEpochResponse.Topic
        parts = [part.Partition(partition=at.partition, error_code=3) for at in topic.partitions]
        told = part(topic=topic.topic, partitions=tuple(parts))
        return OffsetForLeaderEpochResponse(topics=(told,))

    brokers.on("OffsetForLeaderEpoch", deleted)
    brokers.logs["orders", 0].cut_off(100)
    assert reader.latestOffset(END, NO_LIMIT) == END
    assert not brokers.topics
    clock.now += 2
    if fails == "false":
        assert reader.latestOffset(END, NO_LIMIT) == {}
    else:
        with pytest.raises(DataLoss, match="PARTITIONS_DELETED"):
            reader.latestOffset(END, NO_LIMIT)


# Partitions that come and go


def test_added_partition_is_read_from_its_first_offset(brokers, stream, clock):
    reader = stream()
    reader.latestOffset(END, NO_LIMIT)
    add_partition(brokers, stop=7)
    clock.now += 2
    end = reader.latestOffset(END, NO_LIMIT)
    assert end == {"orders": {"0": 100, "1": 30, "2": 7}}
    assert ranges(reader.partitions(END, end)) == [(2, 0, 7)]


def test_added_partition_that_has_lost_records_already_fails_the_query(brokers, stream):
    add_partition(brokers, start=3, stop=7)
    reader = stream()
    end = {"orders": {"0": 100, "1": 30, "2": 7}}
    with pytest.raises(
        DataLoss, match=r"ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO.*orders-2"
    ):
        reader.partitions(END, end)
    assert ranges(stream(failOnDataLoss="false").partitions(END, end)) == [(2, 3, 7)]


def test_an_added_partition_that_is_gone_before_it_was_read_is_a_loss(brokers, stream, clock):
    """Its topic was deleted when the batch was logged: nobody knows where it began."""
    end = END | {"other": {"0": 5}}
    which = {"subscribePattern": "o.*"}
    with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS.*other-0"):
        stream(**which).partitions(BEGINNING, end)
    planned = stream(failOnDataLoss="false", **which).partitions(BEGINNING, end)
    assert ranges(planned) == [(0, 10, 100), (1, 0, 30)]


def test_a_topic_that_is_deleted_while_a_query_by_pattern_starts_is_left_out(
    brokers, stream, clock
):
    """Brokers list it still when it is looked up, and not any more when its bounds are."""
    brokers.add_topic("other")
    reader = stream(subscribePattern="o.*", startingOffsets="earliest")
    brokers.on("ListOffsets", lambda call: delete_other(brokers), None)
    assert reader.initialOffset() == BEGINNING
    assert reader.latestOffset(BEGINNING, NO_LIMIT) == BEGINNING
    assert reader.latestOffset(BEGINNING, NO_LIMIT) == END


def make_topic_that_is_gone(brokers, reader, clock):
    """Whose topic the reader has just seen; where its batch ends."""
    reader.latestOffset(END, NO_LIMIT)
    brokers.add_topic("other")
    brokers.logs["other", 0].stop = 5
    clock.now += 2
    end = reader.latestOffset(END, NO_LIMIT)
    assert end == END | {"other": {"0": 5}}
    delete_other(brokers)
    return end


def delete_other(brokers):
    del brokers.topics["other"], brokers.logs["other", 0]


def test_an_added_topic_that_is_deleted_while_it_is_known_is_a_loss(brokers, stream, clock):
    """Topics are looked up once a second: it is there still, as far as that goes."""
    which = {"subscribePattern": "o.*"}
    strict = stream(**which)
    end = make_topic_that_is_gone(brokers, strict, clock)
    with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS.*other-0"):
        strict.partitions(BEGINNING, end)
    lenient = stream(failOnDataLoss="false", **which)
    end = make_topic_that_is_gone(brokers, lenient, clock)
    assert ranges(lenient.partitions(BEGINNING, end)) == [(0, 10, 100), (1, 0, 30)]
    assert lenient.latestOffset(end, NO_LIMIT) == END


def test_an_added_topic_that_is_deleted_between_two_questions_of_a_look_is_a_loss(
    brokers, stream, clock
):
    """One that says where logs end, and one that says where they begin."""

    def delete_at_the_second(call):
        (first,) = call.request.topics[0].partitions[:1]
        if first.timestamp == EARLIEST_TIMESTAMP and "other" in brokers.topics:
            delete_other(brokers)
        return DEFAULT

    which = {"subscribePattern": "o.*"}
    for strict in ("true", "false"):
        reader = stream(failOnDataLoss=strict, **which)
        reader.latestOffset(END, NO_LIMIT)
        brokers.add_topic("other")
        brokers.logs["other", 0].stop = 5
        clock.now += 2
        brokers.on("ListOffsets", delete_at_the_second)
        if strict == "true":
            with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND.*other-0"):
                reader.latestOffset(END, NO_LIMIT)
        else:
            assert reader.latestOffset(END, NO_LIMIT) == END


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_topic_that_is_deleted_behind_the_snapshot_is_a_loss(brokers, stream, clock, strict):
    brokers.add_topic("other")
    brokers.logs["other", 0].stop = 5
    reader = stream(subscribePattern="o.*", failOnDataLoss=strict)
    reader.prepareForTriggerAvailableNow()
    delete_other(brokers)
    if strict == "true":
        with pytest.raises(DataLoss, match=r"INITIAL_OFFSET_NOT_FOUND.*other-0"):
            reader.latestOffset(BEGINNING, NO_LIMIT)
    else:
        assert reader.latestOffset(BEGINNING, NO_LIMIT) == END
        assert ranges(reader.partitions(BEGINNING, END)) == [(0, 10, 100), (1, 0, 30)]


def test_a_logged_batch_that_ends_before_its_start_is_a_loss(stream, caplog):
    """An earlier run has logged it, that bore losses; it is planned before anything is asked."""
    logged = {"orders": {"0": 90, "1": 30}}
    with pytest.raises(DataLoss, match=r"PARTITION_OFFSET_CHANGED.*orders-0.*from 100 to 90"):
        stream().partitions(END, logged)
    assert stream(failOnDataLoss="false").partitions(END, logged) == []
    assert "PARTITION_OFFSET_CHANGED" in caplog.text


@pytest.mark.parametrize("which", [{"subscribe": "orders"}, {"assign": '{"orders":[0,1]}'}])
@pytest.mark.parametrize("seconds_later", [0, 2])
def test_deleted_topic_fails_the_query_or_is_left_out(brokers, stream, clock, seconds_later, which):
    strict, lenient = stream(**which), stream(failOnDataLoss="false", **which)
    for reader in (strict, lenient):
        reader.latestOffset(END, NO_LIMIT)
    brokers.topics.clear()
    brokers.logs.clear()
    clock.now += seconds_later
    # Not logged: what was only a broker's bad moment does not stay in the checkpoint.
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders-0, orders-1 have been"):
        strict.latestOffset(END, NO_LIMIT)
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders-0, orders-1 have been"):
        strict.partitions(END, {})
    gone = lenient.latestOffset(END, NO_LIMIT)
    assert gone == {}
    assert lenient.partitions(END, gone) == []


NAMES_MORE = [
    ({"subscribe": "orders,odrers"}, "topic 'odrers'"),
    ({"assign": '{"orders":[0,1],"odrers":[0]}'}, "topic 'odrers'"),
    ({"assign": '{"orders":[0,1,7]}'}, "partition orders-7"),
]


@pytest.mark.parametrize(("which", "said"), NAMES_MORE)
def test_what_is_named_from_now_on_and_not_there_fails_a_query_as_at_its_start(
    brokers, stream, which, said
):
    """The options were changed since: no loss tells of a name that is misspelt."""
    reader = stream(**which)
    with pytest.raises(BrokerError, match=rf"{said}: UNKNOWN_TOPIC_OR_PARTITION"):
        reader.latestOffset(BEGINNING, NO_LIMIT)


@pytest.mark.parametrize(("which", "said"), NAMES_MORE)
def test_where_loss_is_borne_what_is_named_and_not_there_is_warned_of_once(
    stream, caplog, which, said
):
    """It may be one that was deleted under an earlier run."""
    reader = stream(failOnDataLoss="false", **which)
    for at in (BEGINNING, END):
        assert reader.latestOffset(at, NO_LIMIT) == END
    assert caplog.text.count("is not there") == 1
    assert said.split()[1].strip("'") in caplog.text


@pytest.mark.parametrize("which", [{"subscribe": "orders,other"}, {"assign": '{"other":[0]}'}])
def test_what_a_broker_that_is_behind_does_not_know_yet_is_there(brokers, stream, clock, which):
    brokers.add_topic("other")
    brokers.on("Metadata", behind(brokers, "other", None), node=1)
    reader = stream(**which)
    assert "other" not in reader.latestOffset({}, NO_LIMIT)
    assert "other" in reader.latestOffset({}, NO_LIMIT)


def test_topic_that_was_deleted_while_the_query_stood_still_is_a_loss(brokers, stream):
    brokers.topics.clear()
    with pytest.raises(DataLoss, match="PARTITIONS_DELETED"):
        stream().latestOffset(END, NO_LIMIT)
    assert stream(failOnDataLoss="false").latestOffset(END, NO_LIMIT) == {}


def test_topic_made_anew_under_a_running_query_is_another_topic(brokers, stream, clock):
    reader = stream()
    reader.latestOffset(END, NO_LIMIT)
    brokers.topics["orders"] = FakeTopic(topic_id_of("another"), [1, 1], [0, 0])
    clock.now += 2
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted and created again"):
        reader.latestOffset(END, NO_LIMIT)


def test_topic_that_the_pattern_does_not_mean_may_be_made_anew(brokers, stream, clock):
    brokers.topics["scratch"] = FakeTopic(topic_id_of("scratch"), [1], [0])
    reader = stream(subscribePattern="^orders$")
    reader.latestOffset(END, NO_LIMIT)
    brokers.topics["scratch"] = FakeTopic(topic_id_of("another"), [1], [0])
    clock.now += 2
    assert set(reader.latestOffset(END, NO_LIMIT)) == {"orders"}
    brokers.topics["orders"] = FakeTopic(topic_id_of("a third"), [1, 1], [0, 0])
    clock.now += 2
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted and created again"):
        reader.latestOffset(END, NO_LIMIT)


def test_of_topics_that_come_and_go_the_latest_are_known(brokers, stream, clock, monkeypatch):
    monkeypatch.setattr(tail, "_MOST_GONE", 2)
    reader = stream(subscribePattern="^o", failOnDataLoss="false")
    for number in range(5):
        name = f"other-{number}"
        brokers.topics[name] = FakeTopic(topic_id_of(name), [1], [0])
        brokers.logs[name, 0] = FakeLog()
        clock.now += 2
        assert name in reader.latestOffset(END, NO_LIMIT)
        del brokers.topics[name]
        clock.now += 2
        assert reader.latestOffset(END, NO_LIMIT) == END
    assert reader._tail._topic_ids.keys() == {"orders", "other-3", "other-4"}


@pytest.mark.parametrize("strict", ["true", "false"])
def test_topic_that_may_not_be_seen_any_more_is_not_deleted(brokers, stream, clock, strict):
    """A pattern finds it no more: given back, it would be read from its beginning again."""
    reader = stream(subscribePattern="^orders$", failOnDataLoss=strict)
    assert reader.latestOffset(END, NO_LIMIT) == END
    hidden = brokers.topics.pop("orders")
    by_name = MetadataResponse.Topic(name="orders", error_code=29)

    def without_rights(call):
        said = metadata(brokers, call)
        if call.request.topics is None:
            return said
        return MetadataResponse(brokers=said.brokers, topics=(by_name,))

    brokers.on("Metadata", *[without_rights] * 4)
    clock.now += 2
    with pytest.raises(BrokerError, match=r"'orders': TOPIC_AUTHORIZATION_FAILED.*right DESCRIBE"):
        reader.latestOffset(END, NO_LIMIT)
    with pytest.raises(BrokerError, match=r"'orders': TOPIC_AUTHORIZATION_FAILED.*right DESCRIBE"):
        reader.partitions(BEGINNING, END)
    brokers.topics["orders"] = hidden
    clock.now += 2
    assert reader.latestOffset(END, NO_LIMIT) == END


def test_what_only_another_pattern_finds_need_not_be_seen(brokers, stream):
    """A query that goes on with a narrower one has lost it, whoever may see it."""
    reader = stream(subscribePattern="^orders$", failOnDataLoss="false")
    hidden = MetadataResponse.Topic(name="other", error_code=29)

    def without_rights(call):
        said = metadata(brokers, call)
        topics = said.topics if call.request.topics is None else (hidden,)
        return MetadataResponse(brokers=said.brokers, topics=topics)

    brokers.on("Metadata", *[without_rights] * 9)
    assert reader.latestOffset(END | {"other": {"0": 5}}, NO_LIMIT) == END


def test_a_start_that_this_user_may_not_see_is_an_error_at_once(brokers, stream):
    """Of a topic that is not there the first batch tells: it may come until then."""
    brokers.on("ListOffsets", refused(29))
    reader = stream(startingOffsets="earliest")
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        reader.initialOffset()


@pytest.mark.parametrize(
    ("code", "name", "opinions"),
    [(29, "TOPIC_AUTHORIZATION_FAILED", 1), (3, "UNKNOWN_TOPIC_OR_PARTITION", OPINIONS)],
)
def test_ends_that_nobody_tells_are_an_error(brokers, stream, clock, code, name, opinions):
    """Only where one knows no such topic may another know better."""
    reader = stream(subscribe="orders")
    looked_up = []
    describe = reader._tail._describe
    reader._tail._describe = lambda **given: looked_up.append(1) or describe(**given)
    brokers.on("ListOffsets", refused(code))
    with pytest.raises(BrokerError, match=name):
        reader.latestOffset(END, NO_LIMIT)
    assert len(looked_up) == opinions


@pytest.mark.slow
def test_end_that_came_back_is_asked_for_again_before_it_is_believed(brokers, stream, clock):
    reader, lenient = stream(), stream(failOnDataLoss="false")
    brokers.logs["orders", 0].stop = 90
    changed = r"PARTITION_OFFSET_CHANGED.*orders-0.*from 100 to 90"
    with pytest.raises(DataLoss, match=changed):
        reader.latestOffset(END, NO_LIMIT)
    assert len(brokers.asked("ListOffsets")) == 3
    end = lenient.latestOffset(END, NO_LIMIT)
    assert end == {"orders": {"0": 90, "1": 30}}
    with pytest.raises(DataLoss, match=changed):
        reader.partitions(END, end)
    assert lenient.partitions(END, end) == []


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("stop", [100, 110])
def test_an_open_transaction_brings_no_stream_back(brokers, stream, clock, strict, stop):
    """Its first run was read_uncommitted, and has read beyond where read_committed ends now."""
    given = {"kafka.isolation.level": "read_committed", "failOnDataLoss": strict}
    log = brokers.logs["orders", 0]
    log.stable, log.stop = 80, stop
    reader = stream(**given)
    assert reader.latestOffset(END, NO_LIMIT) == END
    brokers.logs["orders", 1].stop = 31
    assert reader.latestOffset(END, NO_LIMIT) == {"orders": {"0": 100, "1": 31}}
    log.stable = None
    assert reader.latestOffset(END, NO_LIMIT) == {"orders": {"0": stop, "1": 31}}


def test_an_open_transaction_hides_no_loss_of_what_lies_behind_it(brokers, stream, clock):
    given = {"kafka.isolation.level": "read_committed"}
    log = brokers.logs["orders", 0]
    log.stable, log.stop = 80, 99
    with pytest.raises(DataLoss, match="orders-0 offset was changed from 100 to 80"):
        stream(**given).latestOffset(END, NO_LIMIT)
    lenient = stream(failOnDataLoss="false", **given)
    assert lenient.latestOffset(END, NO_LIMIT) == {"orders": {"0": 80, "1": 30}}


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_start_behind_an_open_transaction_is_where_it_was_given(brokers, stream, clock, strict):
    given = {"kafka.isolation.level": "read_committed", "failOnDataLoss": strict}
    log = brokers.logs["orders", 0]
    log.stable, log.stop = 80, 110
    reader = stream(startingOffsets='{"orders":{"0":90,"1":30}}', **given)
    assert started(reader) == {"orders": {"0": 90, "1": 30}}
    assert reader.latestOffset(started(reader), NO_LIMIT) == {"orders": {"0": 90, "1": 30}}
    log.stable = None
    assert reader.latestOffset(started(reader), NO_LIMIT) == {"orders": {"0": 110, "1": 30}}


SMALLER = FakeTopic(topic_id_of("orders"), [1], [0])
BEFORE = FakeTopic(topic_id_of("orders before"), [1, 1], [0, 0])


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("topic", [None, SMALLER], ids=["no topic", "fewer partitions"])
def test_a_broker_that_is_behind_deletes_no_partition(brokers, stream, clock, strict, topic):
    """In the checkpoint it would count as added by the next batch, and be read from its start."""
    brokers.on("Metadata", behind(brokers, "orders", topic), node=1)
    brokers.logs["orders", 0].stop = 110
    end = {"orders": {"0": 110, "1": 30}}
    assert stream(failOnDataLoss=strict).latestOffset(END, NO_LIMIT) == end


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("topic", [None, SMALLER], ids=["no topic", "fewer partitions"])
def test_a_broker_that_is_behind_takes_nothing_out_of_a_logged_batch(
    brokers, stream, clock, strict, topic
):
    brokers.on("Metadata", behind(brokers, "orders", topic), node=1)
    reader = stream(failOnDataLoss=strict)
    assert ranges(reader.partitions({"orders": {"0": 90}}, END)) == [(0, 90, 100), (1, 0, 30)]


@pytest.mark.parametrize(
    "which", [{"subscribe": "other"}, {"assign": '{"other":[0]}'}, {"subscribePattern": "other"}]
)
@pytest.mark.parametrize("strict", ["true", "false"])
def test_what_is_read_from_now_on_takes_nothing_out_of_a_logged_batch(
    brokers, stream, strict, which
):
    """The options were changed since: it is run again, as by Spark's own, and then they count."""
    brokers.add_topic("other")
    reader = stream(failOnDataLoss=strict, **which)
    planned = reader.partitions({"orders": {"0": 90}}, END)
    assert ranges(planned) == [(0, 90, 100), (1, 0, 30)]
    assert {item.task.topic_ids["orders"] for item in planned} == {topic_id_of("orders")}
    if strict == "true":
        with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders-0, orders-1"):
            reader.latestOffset(END, NO_LIMIT)
    else:
        assert reader.latestOffset(END, NO_LIMIT) == {"other": {"0": 0}}


def test_a_partition_that_is_gone_from_a_logged_batch_is_a_loss(brokers, stream, caplog):
    """A task would look for it, and fail at every restart."""
    brokers.topics["orders"] = SMALLER
    reader = stream(failOnDataLoss="false")
    assert ranges(reader.partitions({"orders": {"0": 90, "1": 20}}, END)) == [(0, 90, 100)]
    assert "orders-1" in caplog.text
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders-1"):
        stream().partitions({"orders": {"0": 90, "1": 20}}, END)


def test_an_old_leader_that_has_been_away_brings_no_end_back(brokers, stream, clock):
    lead_in_the_past(brokers, "orders", end=90)
    assert stream(failOnDataLoss="false").latestOffset(END, NO_LIMIT) == END


@pytest.mark.parametrize("strict", ["true", "false"])
def test_a_broker_that_is_behind_makes_no_topic_anew(brokers, stream, clock, strict, caplog):
    reader = stream(failOnDataLoss=strict)
    brokers.on("Metadata", DEFAULT, behind(brokers, "orders", BEFORE), node=1)
    for _ in range(3):
        assert reader.latestOffset(END, NO_LIMIT) == END
        clock.now += 2
    assert not caplog.records


def test_plan_is_the_same_however_often_it_is_asked_for(stream):
    reader = stream(maxPartitions="1")
    first, again = (ranges(reader.partitions(BEGINNING, END)) for _ in range(2))
    assert first == again == [(0, 10, 100), (1, 0, 30)]


def test_large_batches_are_split_as_batch_reads_are(stream):
    reader = stream(minPartitions="4")
    planned = ranges(reader.partitions(BEGINNING, END))
    assert len(planned) == 4
    assert sum(stop - start for _, start, stop in planned) == 120


# Commits to a group


ALL_READ = {TopicPartition("orders", 0): 100, TopicPartition("orders", 1): 30}


def test_query_restarted_over_a_quiet_topic_commits_and_renews_what_it_has_read(
    stream, group, clock
):
    reader = stream(commitGroupId="g")
    for _ in range(2):
        reader.latestOffset(END, NO_LIMIT)
    assert group == ALL_READ
    group.clear()  # expired
    clock.now += 601
    reader.latestOffset(END, NO_LIMIT)
    assert group == ALL_READ


def test_run_that_finds_nothing_new_commits_what_the_last_one_has_read(brokers, stream, group):
    """As Trigger.AvailableNow does at its end; a run before it may have been killed."""
    reader = stream(commitGroupId="g")
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(END, NO_LIMIT) == END
    assert group == ALL_READ


def test_start_of_a_fresh_query_is_not_committed(stream, group):
    """Nothing of what lies before it was read; Trigger.Once asks for a batch at once."""
    reader = stream(commitGroupId="g", startingOffsets="latest")
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == END
    assert group == {}


def test_fresh_query_that_has_logged_its_start_commits_it(stream, group):
    """Tools see where it stands, whether anything comes or not."""
    reader = stream(commitGroupId="g", startingOffsets="latest")
    at = started(reader)
    assert group == {}
    assert reader.latestOffset(at, NO_LIMIT) == END
    assert group == ALL_READ


def test_what_is_not_read_yet_is_not_committed(brokers, stream, group):
    reader = stream(commitGroupId="g", startingOffsets="earliest")
    at = started(reader)
    assert reader.latestOffset(at, NO_LIMIT) == END
    assert group == {}, "the engine reads what it was told of only now"
    reader.commit(at)
    assert reader.latestOffset(END, NO_LIMIT) == END
    assert group == ALL_READ, "it asks for the next batch when it is done with the last"


def test_group_with_members_is_refused_before_there_is_a_batch(stream, group_with_members):
    """That may be the only one of a run, as with Trigger.Once."""
    reader = stream(startingOffsets="earliest", commitGroupId="g")
    reader.initialOffset()
    with pytest.raises(ConfigError, match=r"'commitGroupId' is 'g': the group has 1 members"):
        reader.latestOffset(BEGINNING, ReadAllAvailable())


def test_what_the_engine_has_done_with_is_committed(stream, group):
    stream().commit(END)  # to no group
    assert group == {}
    stream(commitGroupId="g").commit(END)
    assert group == ALL_READ


@pytest.mark.parametrize("waits_s", [2, 601])
def test_what_was_read_of_a_topic_is_not_committed_for_the_one_made_again(
    brokers, stream, group, clock, waits_s
):
    """The group would be ahead of all that was read of the new one, and stay there."""
    reader = stream(commitGroupId="g", failOnDataLoss="false")
    reader.latestOffset(BEGINNING, NO_LIMIT)
    reader.commit(BEGINNING)
    brokers.topics["orders"] = FakeTopic(topic_id_of("another"), [1], [0])
    brokers.logs["orders", 0].start, brokers.logs["orders", 0].stop = 0, 7
    group.clear()  # brokers forget it with the topic
    clock.now += waits_s
    end = reader.latestOffset(END, NO_LIMIT)
    assert (end, group) == ({"orders": {"0": 7}}, {})
    reader.commit(END)
    assert group == {TopicPartition("orders", 0): 7}


# Trigger.AvailableNow


def test_available_now_ends_at_its_snapshot(brokers, stream):
    reader = stream(startingOffsets="earliest")
    reader.prepareForTriggerAvailableNow()
    brokers.logs["orders", 0].stop = 500
    at, batches = started(reader), 0
    while (end := reader.latestOffset(at, ReadMaxRows(50))) != at:
        at, batches = end, batches + 1
    assert (at, batches) == (END, 3)


def test_available_now_never_starts_behind_its_snapshot(brokers, stream, clock):
    """The engine takes the snapshot first and resolves the start later."""
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    brokers.logs["orders", 0].stop = 500
    add_partition(brokers, stop=7)
    clock.now += 2
    at = reader.initialOffset()
    assert at == END
    assert reader.latestOffset(at, NO_LIMIT) == at
    assert reader.partitions(reader.initialOffset(), at) == []
    assert reader.latestOffset(at, NO_LIMIT) == at


@pytest.mark.parametrize("strict", ["true", "false"])
def test_what_a_group_commits_after_the_snapshot_is_where_the_query_starts_and_ends(
    brokers, stream, group, strict
):
    """It is no offset beyond the log, and what the group has read is not read again."""
    given = {"startingOffsets": "committed", "kafka.group.id": "g", "failOnDataLoss": strict}
    reader = stream(**given)
    reader.prepareForTriggerAvailableNow()
    brokers.logs["orders", 0].stop = 110
    group.update({TopicPartition("orders", 0): 105, TopicPartition("orders", 1): 20})
    at = started(reader)
    assert at == {"orders": {"0": 105, "1": 20}}
    end = reader.latestOffset(at, NO_LIMIT)
    assert ranges(reader.partitions(at, end)) == [(1, 20, 30)]
    assert reader.latestOffset(end, NO_LIMIT) == end == {"orders": {"0": 105, "1": 30}}


def take_snapshot_in_a_bad_moment(brokers, reader, moment):
    """Of a broker that is behind; `orders-0` ends at 110 then."""
    if moment == "no topic":
        orders = brokers.topics.pop("orders")
        reader.prepareForTriggerAvailableNow()
        brokers.topics["orders"] = orders
    else:
        brokers.logs["orders", 0].stop = 20
        reader.prepareForTriggerAvailableNow()
    brokers.logs["orders", 0].stop = 110


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("moment", ["no topic", "an end that is too early"])
def test_a_brokers_bad_moment_does_not_stay_in_the_snapshot(brokers, stream, clock, strict, moment):
    """In the checkpoint, it would have the next run read all again as added partitions."""
    reader = stream(failOnDataLoss=strict)
    take_snapshot_in_a_bad_moment(brokers, reader, moment)
    brokers.logs["orders", 1].stop = 31
    at = {"orders": {"0": 100, "1": 30}}
    end = reader.latestOffset(at, NO_LIMIT)
    assert end == {"orders": {"0": 110, "1": 31 if moment == "no topic" else 30}}
    assert reader.partitions(at, end)
    brokers.logs["orders", 0].stop = 120
    assert reader.latestOffset(end, NO_LIMIT) == end


@pytest.mark.parametrize("moment", ["no topic", "an end that is too early"])
def test_a_brokers_bad_moment_does_not_fail_a_batch_that_is_run_again(
    brokers, stream, clock, moment
):
    """The engine takes the snapshot, and then plans what an earlier run has logged."""
    reader = stream()
    take_snapshot_in_a_bad_moment(brokers, reader, moment)
    assert ranges(reader.partitions(BEGINNING, END)) == [(0, 10, 100), (1, 0, 30)]
    end = reader.latestOffset(END, NO_LIMIT)
    assert end == {"orders": {"0": 110, "1": 30}}
    brokers.logs["orders", 0].stop = 120
    assert reader.latestOffset(end, NO_LIMIT) == end


def test_topic_that_a_snapshot_lacks_wholly_is_part_of_a_fresh_query(brokers, stream, clock):
    """Left out, the next run would take it for added, and read from its first offset."""
    reader = stream()
    orders = brokers.topics.pop("orders")
    reader.prepareForTriggerAvailableNow()
    brokers.topics["orders"] = orders
    assert started(reader) == END


def test_what_is_lost_is_lost_to_the_snapshot_as_well(brokers, stream, clock):
    brokers.topics.clear()
    strict, lenient = stream(), stream(failOnDataLoss="false")
    for reader in (strict, lenient):
        reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match="PARTITIONS_DELETED"):
        strict.latestOffset(END, NO_LIMIT)
    assert lenient.latestOffset(END, NO_LIMIT) == {}


def test_what_is_gone_of_an_unfinished_batch_is_a_loss_under_available_now_too(
    brokers, stream, caplog
):
    """Not what Spark's own names so: restarts, which that advises, ended the same for ever."""
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    strict, lenient = (
        stream(subscribe="orders,other", failOnDataLoss=value) for value in ("true", "false")
    )
    at, logged = BEGINNING | {"other": {"0": 2}}, END | {"other": {"0": 5}}
    del brokers.topics["other"]
    for reader in (strict, lenient):
        reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*other-0"):
        strict.partitions(at, logged)
    assert ranges(lenient.partitions(at, logged)) == [(0, 10, 100), (1, 0, 30)]
    assert "PARTITIONS_DELETED" in caplog.text
    assert lenient.latestOffset(logged, NO_LIMIT) == END


def test_available_now_names_what_may_not_change(brokers, stream):
    reader = stream()
    reader.prepareForTriggerAvailableNow()
    reader.latestOffset(BEGINNING, NO_LIMIT)
    more = {"orders": {"0": 101, "1": 30}}
    with pytest.raises(AvailableNowFailed, match=r"GREATER_OFFSET.*THAN_PREFETCHED"):
        reader.partitions(BEGINNING, more)
    with pytest.raises(AvailableNowFailed, match=r"MISMATCHED_TOPIC_PARTITIONS.*orders-2"):
        reader.partitions(BEGINNING, {"orders": {"0": 100, "1": 30, "2": 1}})
    brokers.logs["orders", 0].stop = 99
    with pytest.raises(AvailableNowFailed, match=r"LATEST_WITH_TRIGGER_AVAILABLENOW.*orders-0"):
        reader.partitions(BEGINNING, END)


# As Spark keeps it


def test_reader_that_is_pickled_opens_nothing(brokers, stream):
    copy = pickle.loads(pickle.dumps(stream()))
    copy.stop()
    assert brokers.calls == []


# Errors


QUESTIONS = {
    "initialOffset": lambda reader: reader.initialOffset(),
    "latestOffset": lambda reader: reader.latestOffset(BEGINNING, NO_LIMIT),
    "prepareForTriggerAvailableNow": lambda reader: reader.prepareForTriggerAvailableNow(),
    "partitions": lambda reader: reader.partitions(BEGINNING, END),
}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_error_on_the_driver_says_where_its_packets_are(
    brokers, stream, nothing_remembered, question
):
    brokers.on("Metadata", cut(MetadataResponse(), 5))
    with pytest.raises(KafkaProtoError, match="its last packets: kafkaproto dissect") as caught:
        QUESTIONS[question](stream())
    (path,) = nothing_remembered.iterdir()
    assert str(caught.value).endswith(str(path))


def test_a_group_that_cannot_be_looked_at_says_where_its_packets_are(
    brokers, stream, nothing_remembered
):
    del brokers.versions["ConsumerGroupDescribe"]
    refused = DescribeGroupsResponse.Group(error_code=-1, group_id="g")
    brokers.on("DescribeGroups", DescribeGroupsResponse(groups=(refused,)))
    reader = stream(commitGroupId="g")
    with pytest.raises(BrokerError, match=r"UNKNOWN_SERVER_ERROR.*\n.*dissect") as caught:
        reader.commit(END)
    assert len(list(nothing_remembered.iterdir())) == str(caught.value).count("dissect") == 1


# Limits by bytes


@pytest.fixture
def sized(brokers):
    """`orders` with 100 records in each partition, of about 100 bytes and of about 1,000."""
    brokers.versions["DescribeLogDirs"] = (1, 4)
    for partition, size_bytes in enumerate((100, 1000)):
        brokers.logs["orders", partition] = FakeLog().fill(10, 10, size_bytes)
    return brokers


def log_bytes(brokers, partition, topic="orders"):
    return sum(len(batch.data) for batch in brokers.logs[topic, partition].batches)


def test_bytes_of_a_batch_go_by_the_size_of_the_logs(sized, stream):
    sizes = [log_bytes(sized, 0), log_bytes(sized, 1)]
    folder = DescribeLogDirsResponse.LogDir
    partitions = tuple(
        folder.Topic.Partition(partition_index=number, partition_size=size)
        for number, size in enumerate(sizes)
    )
    topics = (folder.Topic(name="orders", partitions=partitions),)
    sized.on("DescribeLogDirs", DescribeLogDirsResponse(results=(folder(topics=topics),)))
    limited = {"startingOffsets": "earliest", "maxBytesPerTrigger": str(sum(sizes) // 4 + 9)}
    reader = stream(**limited)

    end = reader.latestOffset(started(reader), NO_LIMIT)

    assert end == {"orders": {"0": 25, "1": 25}}
    sized.logs["orders", 0].start = 50  # the same size with half of the offsets
    reader = stream(**limited)
    assert reader.latestOffset(started(reader), NO_LIMIT) == {"orders": {"0": 62, "1": 24}}
    assert not sized.asked("Fetch")


def test_trigger_once_reads_all_there_is_whatever_the_limits(sized, stream):
    limits = {"maxBytesPerTrigger": "500", "maxOffsetsPerTrigger": "5"}
    reader = stream(startingOffsets="earliest", **limits)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end == {"orders": {"0": 100, "1": 100}}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (31, "this user needs the right DESCRIBE on the cluster"),
        (-1, "UNKNOWN_SERVER_ERROR"),
        (None, "does not offer DescribeLogDirs"),
    ],
)
def test_where_brokers_do_not_say_how_large_logs_are_the_next_batches_do(
    sized, stream, caplog, code, reason
):
    sized.on("DescribeLogDirs", DescribeLogDirsResponse(error_code=code or 0))
    if code is None:
        del sized.versions["DescribeLogDirs"]
    quarter = (log_bytes(sized, 0) + log_bytes(sized, 1)) // 4 + 9
    reader = stream(startingOffsets="earliest", maxBytesPerTrigger=str(quarter))

    at = started(reader)
    ends = []
    while (at := reader.latestOffset(at, NO_LIMIT)) not in ends:
        ends.append(at)

    assert ends == [{"orders": {"0": end, "1": end}} for end in (25, 50, 75, 100)]
    (warned,) = [item.getMessage() for item in caplog.records if item.levelname == "WARNING"]
    assert "maxBytesPerTrigger goes by the size of the batches that come next" in warned
    assert reason in warned


def test_a_partition_whose_next_batch_tells_no_size_counts_as_the_others(
    sized, stream, monkeypatch
):
    """Which batch is damaged is for its reader to tell."""
    sized.on("DescribeLogDirs", DescribeLogDirsResponse(error_code=31))
    add_partition(sized, stop=100)
    sizes = {TopicPartition("orders", 0): 10.0, TopicPartition("orders", 1): 30.0}
    monkeypatch.setattr(tail, "probe_bytes_per_offset", lambda *_: dict(sizes))
    limited = {"startingOffsets": "earliest", "maxBytesPerTrigger": "1500"}
    for end in (25, 100):
        reader = stream(**limited)
        assert reader.latestOffset(started(reader), NO_LIMIT) == {
            "orders": {"0": end, "1": end, "2": end}
        }
        sizes.clear()  # none of them tells


def test_records_that_are_deleted_while_sizes_are_asked_for_are_for_their_reader_to_tell(
    sized, stream
):
    def delete(call):
        for number in (0, 1):
            sized.logs["orders", number].start = 100
        return DescribeLogDirsResponse(results=(folder(topics=(topic,)),))

    folder = DescribeLogDirsResponse.LogDir
    topic = folder.Topic(
        name="orders",
        partitions=tuple(
            folder.Topic.Partition(partition_index=number, partition_size=1000) for number in (0, 1)
        ),
    )
    sized.on("DescribeLogDirs", delete)
    reader = stream(startingOffsets="earliest", maxBytesPerTrigger="2000")
    assert reader.latestOffset(started(reader), NO_LIMIT) == {"orders": {"0": 1, "1": 1}}


def sizes_of(brokers, *partitions):
    """What a broker says of their logs."""
    folder = DescribeLogDirsResponse.LogDir
    topics = tuple(
        folder.Topic(
            name=topic,
            partitions=(
                folder.Topic.Partition(
                    partition_index=number,
                    partition_size=log_bytes(brokers, number, topic),
                ),
            ),
        )
        for topic, number in partitions
    )
    return DescribeLogDirsResponse(results=(folder(topics=topics),))


@pytest.mark.parametrize("is_refused", [False, True], ids=["told", "probed"])
@pytest.mark.parametrize("is_snapshot", [False, True], ids=["default", "available now"])
def test_what_is_gone_is_told_by_its_batch_and_not_by_a_look_at_sizes(
    sized, stream, clock, is_snapshot, is_refused
):
    sized.add_topic("other")
    sized.logs["other", 0] = FakeLog().fill(10, 10, 100)
    there = sizes_of(sized, ("orders", 0), ("orders", 1))
    sized.on("DescribeLogDirs", DescribeLogDirsResponse(error_code=31) if is_refused else there)
    reader = stream(
        subscribePattern="o.*",
        failOnDataLoss="false",
        startingOffsets="earliest",
        maxBytesPerTrigger="5000",
    )
    begin = started(reader)
    if is_snapshot:
        reader.prepareForTriggerAvailableNow()
    delete_other(sized)
    clock.now += 2
    end = reader.latestOffset(begin, NO_LIMIT)
    assert 0 < end["orders"]["0"] < 100
    if is_snapshot:
        with pytest.raises(AvailableNowFailed, match="LOST_TOPIC_PARTITIONS_IN_END_OFFSET"):
            reader.partitions(begin, end)
    else:
        assert {number for number, _, _ in ranges(reader.partitions(begin, end))} == {0, 1}


def test_the_next_batches_are_looked_at_from_the_middle_of_one_on(sized, stream, clock):
    """An offset takes what it takes in its whole batch, not in what is left of it."""
    sized.on("DescribeLogDirs", DescribeLogDirsResponse(error_code=31))
    one = log_bytes(sized, 1) // 100
    reader = stream(
        assign='{"orders":[1]}', startingOffsets="earliest", maxBytesPerTrigger=str(9 * one + 50)
    )

    end = reader.latestOffset({"orders": {"1": 99}}, NO_LIMIT)
    assert end == {"orders": {"1": 100}}
    clock.now += 11
    assert reader.latestOffset({"orders": {"1": 8}}, NO_LIMIT) == {"orders": {"1": 17}}
