"""Losses while no run looked on: a checkpoint that says which logs its offsets are of."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from pyspark_kafkaproto.cluster.topology import topic_id_text
from pyspark_kafkaproto.errors import DataLoss
from pyspark_kafkaproto.messages.describe_log_dirs import DescribeLogDirsResponse
from pyspark_kafkaproto.spark.stream.limits import MOST
from pyspark_kafkaproto.spark.stream.unlimited import UnlimitedStreamReader
from tests.fake_broker import FakeTopic, topic_id_of
from tests.fake_log import FakeLog
from tests.fake_past import behind, lead_in_the_past
from tests.unit.spark.stream.partitions import ranges

NO_LIMIT = ReadMaxRows(MOST)
WANTED = {"findLossBetweenRuns": "true"}
BEGINNING = {"orders": {"0": 10, "1": 0}}
END = {"orders": {"0": 100, "1": 30}}
MADE_AGAIN = (
    r"PARTITIONS_DELETED\] Topic orders was deleted and created again since the query began, or "
    r"kafka\.bootstrap\.servers names another cluster\."
)
CUT_OFF = r"PARTITION_OFFSET_CHANGED\] .*orders-0 was cut off at offset 90 .*up to 100, are gone"


def mark(epochs, topic="orders", seen_as=None):
    topic_id = topic_id_text(topic_id_of(seen_as or topic))
    return {f"{topic}:{topic_id}{epochs and ':' + epochs}": {}}


def make_again(brokers):
    """With as many records and more than the one before it had."""
    brokers.topics["orders"] = FakeTopic(topic_id_of("another"), [1, 1], [0, 0])
    brokers.logs["orders", 0].stop = 150


def cut_off(brokers):
    """An unclean election; the log has grown since."""
    log = brokers.logs["orders", 0]
    log.cut_off(90)
    log.stop = 150


FIRST = BEGINNING | mark("")
LOGGED = END | mark("0,0")


def test_which_logs_they_are_of_stands_behind_offsets_where_that_is_wanted(stream):
    for given, none_told, all_told in ((WANTED, mark(""), mark("0,0")), ({}, {}, {})):
        reader = stream(startingOffsets="earliest", **given)
        start = reader.initialOffset()
        assert list(start.items()) == list((BEGINNING | none_told).items())
        assert reader.latestOffset(start, NO_LIMIT) is start  # batch 0
        end = reader.latestOffset(start, NO_LIMIT)
        assert list(end.items()) == list((END | all_told).items())
        assert ranges(reader.partitions(start, end)) == [(0, 10, 100), (1, 0, 30)]
        assert reader.reportLatestOffset() == end
        assert reader.latestOffset(end, NO_LIMIT) is end


def test_batch_0_says_it_too(brokers, stream):
    reader = stream(**WANTED)
    start = reader.initialOffset()
    assert start == reader.latestOffset(start, NO_LIMIT) == LOGGED
    make_again(brokers)
    again = stream(**WANTED)
    with pytest.raises(DataLoss, match=MADE_AGAIN):
        again.partitions(again.initialOffset(), start)


def test_partitions_that_were_added_are_named_once_they_are_in_a_batch(brokers, stream):
    reader = stream(**WANTED, subscribePattern="^o")
    start = reader.initialOffset()
    brokers.topics["other"] = FakeTopic(topic_id_of("other"), [1], [0])
    brokers.logs["other", 0] = FakeLog(stop=5)
    assert start == LOGGED
    fresh = stream(**WANTED, subscribePattern="^o")
    expected = END | {"other": {"0": 5}} | mark("0,0") | mark("0", "other")
    assert fresh.latestOffset(start, NO_LIMIT) == expected


@pytest.mark.parametrize("start", ["latest-10", "earliest+20", "2026-01-01T00:00:00Z"])
def test_epochs_are_known_whoever_asked_for_the_ends(brokers, stream, start):
    """What looks up such a start asks for the ends of the same partitions first."""
    for log in brokers.logs.values():
        log.newest_ms = 0
    reader = stream(**WANTED, startingOffsets=start)
    assert mark("0,0").keys() < reader.initialOffset().keys()


def test_what_brokers_do_not_know_is_neither_logged_nor_missed(brokers, stream):
    brokers.topics["orders"] = FakeTopic(bytes(16), [1, 1], [0, 0])
    assert stream(**WANTED).initialOffset() == END | {"orders::0,0": {}}
    assert stream(**WANTED).latestOffset(LOGGED, NO_LIMIT) is LOGGED


def test_a_query_that_goes_on_knows_a_topic_that_was_made_again_and_has_grown(brokers, stream):
    make_again(brokers)
    for _ in range(2):  # nothing is logged: each run learns of it
        with pytest.raises(DataLoss, match=MADE_AGAIN):
            stream(**WANTED).latestOffset(LOGGED, NO_LIMIT)


def test_a_query_that_goes_on_knows_a_log_that_was_cut_off_and_has_grown(brokers, stream):
    cut_off(brokers)
    for _ in range(2):
        with pytest.raises(DataLoss, match=CUT_OFF):
            stream(**WANTED).latestOffset(LOGGED, NO_LIMIT)
    assert stream().latestOffset(END, NO_LIMIT) == {"orders": {"0": 150, "1": 30}}


@pytest.mark.parametrize(("happens", "loss"), [(make_again, MADE_AGAIN), (cut_off, CUT_OFF)])
def test_under_available_now_too_which_has_looked_by_then(brokers, stream, happens, loss):
    happens(brokers)
    reader = stream(**WANTED)
    reader.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=loss):
        reader.latestOffset(LOGGED, NO_LIMIT)


@pytest.mark.parametrize(("happens", "loss"), [(make_again, MADE_AGAIN), (cut_off, CUT_OFF)])
def test_a_batch_that_was_logged_and_not_finished_is_not_read_from_another_log(
    brokers, stream, happens, loss
):
    happens(brokers)
    with pytest.raises(DataLoss, match=loss):
        stream(**WANTED).partitions(FIRST, LOGGED)


def test_what_an_unfinished_batch_of_sparks_own_does_not_say_the_one_before_does(brokers, stream):
    read = {"orders": {"0": 95, "1": 30}} | mark("0,0")
    make_again(brokers)
    with pytest.raises(DataLoss, match=MADE_AGAIN):
        stream(**WANTED).partitions(read, END)


def test_leaders_that_changed_and_lost_nothing_are_asked_about_once(brokers, stream):
    brokers.logs["orders", 0].cut_off(100)
    reader = stream(**WANTED)
    assert reader.latestOffset(LOGGED, NO_LIMIT) is LOGGED
    assert len(brokers.asked("OffsetForLeaderEpoch")) == 1
    brokers.logs["orders", 0].stop = 120
    end = reader.latestOffset(LOGGED, NO_LIMIT)
    assert end == {"orders": {"0": 120, "1": 30}} | mark("1,0")
    assert len(brokers.asked("OffsetForLeaderEpoch")) == 1
    again = stream(**WANTED)
    assert again.latestOffset(end, NO_LIMIT) is end
    assert len(brokers.asked("OffsetForLeaderEpoch")) == 1


def test_who_bears_losses_is_told_once_and_what_is_there_now_is_logged(brokers, stream, caplog):
    make_again(brokers)
    brokers.logs["orders", 0].epoch = 3  # elections since: of another topic they say nothing
    reader = stream(**WANTED, failOnDataLoss="false")
    end = reader.latestOffset(LOGGED, NO_LIMIT)
    assert end == {"orders": {"0": 150, "1": 30}} | mark("3,0", seen_as="another")
    assert ranges(reader.partitions(LOGGED, end)) == [(0, 100, 150)]
    assert reader.latestOffset(end, NO_LIMIT) is end
    assert caplog.text.count("KAFKA_DATA_LOSS") == 1
    caplog.clear()
    again = stream(**WANTED)
    assert ranges(again.partitions(LOGGED, end)) == [(0, 100, 150)], "the batch knows the topic"
    assert again.latestOffset(end, NO_LIMIT) is end
    assert not brokers.asked("OffsetForLeaderEpoch")
    assert "KAFKA_DATA_LOSS" not in caplog.text


def test_who_bears_a_cut_is_told_once_too(brokers, stream, caplog):
    cut_off(brokers)
    reader = stream(**WANTED, failOnDataLoss="false")
    end = reader.latestOffset(LOGGED, NO_LIMIT)
    assert end == {"orders": {"0": 150, "1": 30}} | mark("1,0")
    assert stream(**WANTED).latestOffset(end, NO_LIMIT) is end
    assert caplog.text.count("KAFKA_DATA_LOSS") == 1


@pytest.mark.parametrize("happens", [make_again, cut_off])
@pytest.mark.parametrize("is_running", [False, True])
def test_what_was_borne_is_logged_though_there_is_nothing_to_read(
    brokers, stream, clock, happens, is_running
):
    """Else the next run would fail over it, whoever let this one go on."""
    reader = stream(**WANTED, failOnDataLoss="false")
    if is_running:
        assert reader.latestOffset(LOGGED, NO_LIMIT) is LOGGED
    happens(brokers)
    brokers.logs["orders", 0].stop = 100
    clock.now += 2
    end = reader.latestOffset(LOGGED, NO_LIMIT)
    now = mark("0,0", seen_as="another") if happens is make_again else mark("1,0")
    assert end == END | now
    assert reader.partitions(LOGGED, end) == []
    assert reader.latestOffset(end, NO_LIMIT) is end, "once"
    assert stream(**WANTED).latestOffset(end, NO_LIMIT) is end


@pytest.mark.parametrize("happens", [make_again, cut_off])
def test_nothing_is_logged_anew_without_the_option(brokers, stream, clock, happens):
    reader = stream(failOnDataLoss="false")
    assert reader.latestOffset(END, NO_LIMIT) is END
    happens(brokers)
    brokers.logs["orders", 0].stop = 100
    clock.now += 2
    for _ in range(2):
        assert reader.latestOffset(END, NO_LIMIT) is END


def test_a_topic_that_is_gone_is_told_as_ever(brokers, stream, clock):
    brokers.topics.clear()
    brokers.logs.clear()
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED\] Partitions orders-0, orders-1 have"):
        stream(**WANTED).latestOffset(LOGGED, NO_LIMIT)
    lenient = stream(**WANTED, failOnDataLoss="false")
    assert lenient.latestOffset(LOGGED, NO_LIMIT) == {}


def test_brokers_that_have_been_away_are_not_believed(brokers, stream):
    before = FakeTopic(topic_id_of("orders before"), [1, 1], [0, 0])
    brokers.on("Metadata", behind(brokers, "orders", before), node=1)
    reader = stream(**WANTED)
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(LOGGED, NO_LIMIT) is LOGGED


@pytest.mark.parametrize("is_snapshot", [False, True], ids=["default", "available now"])
def test_no_loss_is_made_of_the_old_epoch_of_a_leader_that_has_been_away(
    brokers, stream, is_snapshot
):
    """What was read was written later than that; it is not what ends are compared with next."""
    for number, end in enumerate((60, 20)):
        log = brokers.logs["orders", number]
        log.stop, grown = end, log.stop
        log.cut_off(end)  # nothing is lost: another leader went on there
        log.stop = grown
    lead_in_the_past(brokers, "orders", end=20, epoch=0)
    logged = END | mark("1,1")
    reader = stream(**WANTED)
    if is_snapshot:
        reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(logged, NO_LIMIT) is logged


def test_a_log_that_is_cut_off_while_a_run_begins_is_a_loss(brokers, stream):
    """The epochs of the snapshot were those that were logged, and ends are asked for again."""
    log, other = brokers.logs["orders", 0], brokers.logs["orders", 1]
    log.stop, other.stop = 110, 20
    reader = stream(**WANTED)
    reader.prepareForTriggerAvailableNow()
    cut_off(brokers)
    other.stop = 30  # the snapshot was a broker's bad moment
    with pytest.raises(DataLoss, match=CUT_OFF):
        reader.latestOffset(LOGGED, NO_LIMIT)


def test_epochs_that_are_logged_are_those_of_the_ends_and_not_of_a_look_at_sizes(brokers, stream):
    """Between the two a log is cut off, and the run is killed: the next one learns of it."""

    def cut_off_meanwhile(call):
        cut_off(brokers)
        parts = [folder.Topic.Partition(partition_index=at, partition_size=900) for at in (0, 1)]
        topic = folder.Topic(name="orders", partitions=tuple(parts))
        return DescribeLogDirsResponse(results=(folder(topics=(topic,)),))

    folder = DescribeLogDirsResponse.LogDir
    brokers.on("DescribeLogDirs", cut_off_meanwhile)
    brokers.logs["orders", 0].stop = 110
    end = stream(**WANTED, maxBytesPerTrigger="9000").latestOffset(LOGGED, NO_LIMIT)
    assert end == {"orders": {"0": 110, "1": 30}} | mark("0,0")
    with pytest.raises(DataLoss, match=r"orders-0 was cut off at offset 90 .*up to 110, are gone"):
        stream(**WANTED).latestOffset(end, NO_LIMIT)


@pytest.mark.parametrize("given", [{}, WANTED])
def test_checkpoints_with_and_without_it_go_on_under_both(brokers, stream, given):
    for logged in (LOGGED, END):
        reader = stream(**given)
        assert reader.latestOffset(logged, NO_LIMIT) is logged
        brokers.logs["orders", 0].stop += 1
        end = reader.latestOffset(logged, NO_LIMIT)
        assert end.keys() == {"orders"} | (mark("0,0") if given else {}).keys()
        brokers.logs["orders", 0].stop -= 1


@pytest.mark.parametrize("happens", [make_again, cut_off])
def test_without_the_option_what_is_logged_is_not_looked_at(brokers, stream, happens):
    happens(brokers)
    assert stream().latestOffset(LOGGED, NO_LIMIT) == {"orders": {"0": 150, "1": 30}}


class TestUnderAnEngineWithoutLimits:
    def test_what_was_borne_is_logged_though_there_is_nothing_to_read(self, brokers, stream):
        make_again(brokers)
        brokers.logs["orders", 0].stop = 100
        reader = stream(**WANTED, failOnDataLoss="false")
        assert reader.partitions(LOGGED, LOGGED) == []
        assert reader.latestOffset() == END | mark("0,0", seen_as="another")

    @pytest.fixture
    def stream_class(self):
        return UnlimitedStreamReader

    @pytest.mark.parametrize(("happens", "loss"), [(make_again, MADE_AGAIN), (cut_off, CUT_OFF)])
    def test_it_is_logged_and_known_again(self, brokers, stream, happens, loss):
        reader = stream(**WANTED)
        logged = reader.latestOffset()
        assert logged == reader.initialOffset() == LOGGED
        again = stream(**WANTED)
        assert again.partitions(logged, logged) == []
        assert again.latestOffset() == LOGGED
        happens(brokers)
        with pytest.raises(DataLoss, match=loss):
            stream(**WANTED).partitions(logged, logged)
