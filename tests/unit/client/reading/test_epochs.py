"""Epochs and ids tell apart what names and offsets cannot: logs cut off, topics made anew."""

import logging

import pytest

from pyspark_kafkaproto.client import Fetcher, ReadSettings
from pyspark_kafkaproto.errors import BrokerError, DataLoss, DeadlineExceeded
from tests.fake_broker import DEFAULT, metadata
from tests.fake_log import Answered, fetch
from tests.unit.client.answers import answered
from tests.unit.client.rows import rows, rows_of

pytestmark = pytest.mark.usefixtures("answers_in_pieces")

LENIENT = ReadSettings(fail_on_data_loss=False)


def read(task, config, settings=None):
    """All rows, as (partition, offset), in the order they came."""
    fetcher = Fetcher(task, config, settings or ReadSettings())
    return [row for block in fetcher.blocks() for row in rows_of(block)]


def asked_epochs(brokers):
    """Per Fetch: the leader's epoch, and that of the last batch read, of its first partition."""
    asked = [request.topics[0].partitions[0] for request in brokers.asked("Fetch")]
    return [(item.current_leader_epoch, item.last_fetched_epoch) for item in asked]


# Logs that are cut off


@pytest.mark.parametrize("by_id", [True, False], ids=["17", "12"])
def test_each_fetch_tells_the_epoch_of_the_last_batch_that_was_read(brokers, config, task, by_id):
    log = brokers.logs["orders", 0]
    brokers.topics["orders"].epochs[0] = 7
    for log.epoch in (3, 5):
        log.fill(8, size_bytes=1000)
    small = config(max_partition_fetch_bytes=20_000)
    assert read(task((0, 0, 160), by_id=by_id), small) == rows(0, 0, 160)
    told = [read_epoch for _, read_epoch in asked_epochs(brokers)]
    assert told[0] == -1
    assert sorted(set(told)) == [-1, 3, 5] == sorted(set(told), key=told.index)


def test_brokers_before_version_12_are_told_no_epoch(brokers, config, task):
    brokers.versions["Fetch"] = (4, 11)
    brokers.logs["orders", 0].fill(8, size_bytes=3000)
    assert read(task((0, 0, 80)), config()) == rows(0, 0, 80)
    assert brokers.calls[-1].header.api_version == 11
    assert len(brokers.asked("Fetch")) > 1


def _cut_off(brokers, to, *before):
    """Another leader, who knows less, is elected before the second Fetch; more is written then.

    `before`: what the old one still answers after the first.
    """
    log = brokers.logs["orders", 0].fill(10, size_bytes=3000)

    def elect(call):
        brokers.topics["orders"].move(0, node_id=2)
        log.cut_off(to)
        log.fill(20, size_bytes=3000)
        return fetch(brokers, call)

    brokers.on("Fetch", DEFAULT, *before, elect, DEFAULT)
    return log


@pytest.mark.parametrize("to", [10, 0])
def test_log_cut_off_below_what_was_read_is_a_data_loss(brokers, config, task, clock, to):
    _cut_off(brokers, to)
    with pytest.raises(
        DataLoss, match=rf"orders-0.*offset 20 are gone.*epoch .* up to offset {to} only"
    ) as caught:
        read(task((0, 0, 100)), config())
    assert caught.value.condition == "COULD_NOT_READ_OFFSET_RANGE"


def test_log_cut_off_is_noticed_behind_an_old_leader_that_falls_back(brokers, config, task, clock):
    """One that has nothing more, and then not even what was read."""
    said = Answered(high_watermark=20), Answered(error_code=1, high_watermark=-1)
    _cut_off(brokers, 10, *map(answered, said))
    with pytest.raises(DataLoss, match=r"offset 20 are gone.*epoch 0 up to offset 10 only"):
        read(task((0, 0, 100)), config())


def test_log_cut_off_below_what_was_read_is_read_on_when_told_so(
    brokers, config, task, clock, caplog
):
    _cut_off(brokers, 10)
    with caplog.at_level(logging.WARNING):
        assert read(task((0, 0, 100)), config(), LENIENT) == rows(0, 0, 100)
    assert "failOnDataLoss is false" in caplog.text
    assert asked_epochs(brokers)[-2:] == [(1, 0), (1, -1)]


def test_log_cut_off_above_what_was_read_loses_nothing_that_went_out(brokers, config, task, clock):
    """Not read yet: whoever reads from the new leader gets what is there now, as in Kafka."""
    _cut_off(brokers, 40)
    assert read(task((0, 0, 100)), config()) == rows(0, 0, 100)


def _answer_then(brokers, change):
    """An answer with more than the high watermark that it names, and a `change` right behind it."""
    whole = brokers.logs["orders", 0].fetch(0, 0, 64 << 10, is_first=True)
    ahead = Answered(partition_index=0, high_watermark=5, records=whole.records)

    def answer(call):
        change()
        return answered(ahead)(call)

    brokers.on("Fetch", answer, DEFAULT)


def test_log_cut_off_as_more_was_answered_than_acknowledged_is_no_damage(
    brokers, config, task, clock
):
    log = brokers.logs["orders", 0].fill(3)

    def elect():
        brokers.topics["orders"].move(0, node_id=2)
        log.cut_off(10)

    _answer_then(brokers, elect)
    with pytest.raises(DataLoss, match="it holds the offsets 0 to 10 now"):
        read(task((0, 0, 40)), config())


def test_topic_deleted_as_more_was_answered_than_acknowledged_is_a_data_loss(
    brokers, config, task, clock
):
    brokers.logs["orders", 0].fill(3)

    def delete():
        del brokers.topics["orders"]
        for partition in (0, 1):
            del brokers.logs["orders", partition]

    _answer_then(brokers, delete)
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted"):
        read(task((0, 0, 40)), config())


def test_damaged_epoch_is_no_loss(brokers, config, task, clock):
    """No CRC covers it: a leader that has no such epoch denies the offset, but lists it."""
    log = brokers.logs["orders", 0].fill(10, size_bytes=3000)

    def deny_the_epoch(call):
        if call.request.topics[0].partitions[0].last_fetched_epoch >= 0:
            return answered(Answered(error_code=1, high_watermark=-1))(call)
        return fetch(brokers, call)

    brokers.on("Fetch", deny_the_epoch)
    assert read(task((0, 0, 100)), config()) == rows(0, 0, log.stop)


def test_follower_that_has_less_than_was_read_says_nothing_of_the_log(brokers, config, task, clock):
    """It has lost its end, and catches up, in the leader's epoch: who leads has all of it."""
    log = brokers.logs["orders", 0].fill(10, size_bytes=3000)
    behind = Answered.DivergingEpoch(epoch=0, end_offset=10)

    def lead(call):
        if call.request.rack_id:
            return answered(Answered(high_watermark=100, preferred_read_replica=2))(call)
        return fetch(brokers, call)

    def follow(call):
        asked = call.request.topics[0].partitions[0]
        if asked.last_fetched_epoch >= 0:
            return answered(Answered(high_watermark=100, diverging_epoch=behind))(call)
        return answered(log.fetch(0, asked.fetch_offset, 64 << 10, is_first=True))(call)

    brokers.on("Fetch", lead, node=1)
    brokers.on("Fetch", follow, node=2)
    assert read(task((0, 0, 100)), config(client_rack="eu-2")) == rows(0, 0, 100)
    asked = [call.node_id for call in brokers.calls if call.api == "Fetch"]
    assert asked[:3] == [1, 2, 2]
    assert set(asked[3:]) == {1}


# Leaders of the past


def test_metadata_that_lags_behind_an_election_is_not_believed(brokers, config, task, clock):
    """The second node still names the first, which knows better; then it hears of the election."""
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    planned = task((0, 0, 100))
    told = []

    def lag(call):
        told.append(call.node_id)
        answer = metadata(brokers, call)
        if len(told) == 3:
            brokers.topics["orders"].move(0, node_id=2)
        return answer

    def fence(call):
        newer = Answered.CurrentLeader(leader_id=2, leader_epoch=1)
        return answered(Answered(error_code=6, current_leader=newer))(call)

    brokers.on("Fetch", DEFAULT, fence, node=1)
    brokers.on("Metadata", lag)
    assert read(planned, config()) == rows(0, 0, 100)
    assert len(brokers.asked("Fetch", node=1)) == 2
    assert len(told) == 4
    assert set(told[:2]) == {1, 2}, "whoever lags is asked last the next time"


def test_fencing_means_that_a_newer_epoch_has_begun(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.on("Fetch", answered(Answered(error_code=74)))
    late = config(default_api_timeout_ms=3000)
    with pytest.raises((BrokerError, DeadlineExceeded), match="epoch 0, but epoch 1 has begun"):
        read(task((0, 0, 10)), late)
    assert len(brokers.asked("Fetch")) == 1


def test_brokers_that_tell_no_epochs_are_believed(brokers, config, task, clock):
    brokers.logs["orders", 0].fill(1)
    brokers.topics["orders"].epochs[0] = 3
    planned = task((0, 0, 10))
    brokers.topics["orders"].leaders[0] = 2
    brokers.topics["orders"].epochs[0] = -1
    brokers.on("Fetch", answered(Answered(error_code=6)), node=1)
    brokers.on("Fetch", lambda call: fetch(brokers, call), node=2)
    assert read(planned, config()) == rows(0, 0, 10)


# Topics deleted, and made anew


def _in_the_middle(brokers, do):
    """Before the second Fetch `do` happens."""

    def act(call):
        do()
        return fetch(brokers, call)

    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    brokers.on("Fetch", DEFAULT, act, DEFAULT)


def _deleted_behind_a_denied_offset(brokers):
    """A broker denies the offset, and before its bounds are asked for the topic is gone."""

    def deny(call):
        brokers.topics.pop("orders")
        for partition in (0, 1):
            brokers.logs.pop(("orders", partition))
        return answered(Answered(error_code=1, high_watermark=-1))(call)

    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    brokers.on("Fetch", DEFAULT, deny, DEFAULT)


def test_topic_deleted_before_it_says_what_is_left_is_a_data_loss(brokers, config, task, clock):
    _deleted_behind_a_denied_offset(brokers)
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted"):
        read(task((0, 0, 100)), config())


def test_topic_deleted_before_it_says_what_is_left_ends_its_ranges_when_told_so(
    brokers, config, task, clock
):
    _deleted_behind_a_denied_offset(brokers)
    assert read(task((0, 0, 100)), config(), LENIENT) == rows(0, 0, 20)


def _deleted_as_it_is_given_up(brokers):
    """Nothing came for long, and before the end of the log is asked for the topic is gone."""

    def forget(call):
        brokers.topics.pop("orders", None)
        for partition in (0, 1):
            brokers.logs.pop(("orders", partition), None)

    brokers.logs["orders", 0].fill(2)
    brokers.on("ListOffsets", forget)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_topic_deleted_as_what_does_not_come_is_given_up_is_a_data_loss(
    brokers, config, task, clock, isolation
):
    _deleted_as_it_is_given_up(brokers)
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted"):
        read(task((0, 0, 100)), config(isolation_level=isolation))


def test_topic_deleted_as_what_does_not_come_is_given_up_ends_its_ranges_when_told_so(
    brokers, config, task, clock
):
    _deleted_as_it_is_given_up(brokers)
    assert read(task((0, 0, 100)), config(), LENIENT) == rows(0, 0, 20)


def test_topic_deleted_mid_read_is_a_data_loss(brokers, config, task, clock):
    _in_the_middle(brokers, lambda: brokers.topics.pop("orders"))
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*orders was deleted"):
        read(task((0, 0, 100)), config())


@pytest.mark.slow
def test_topic_deleted_mid_read_ends_its_ranges_when_told_so(brokers, config, task, clock, caplog):
    _in_the_middle(brokers, lambda: brokers.topics.pop("orders"))
    fetcher = Fetcher(task((0, 0, 100), (1, 0, 30)), config(), LENIENT)
    found = [row for block in fetcher.blocks() for row in rows_of(block)]
    assert found == rows(0, 0, 20)
    assert [item.report.passed_over for item in fetcher.progress] == [80, 30]
    assert clock.now - 1000 >= 30, "a broker may lag behind: what is there is not passed over"
    assert "its topic was deleted" in caplog.text


@pytest.mark.slow
def test_broker_that_does_not_know_the_topic_yet_costs_no_row(brokers, config, task, clock):
    hidden = dict(brokers.topics)
    _in_the_middle(brokers, brokers.topics.clear)

    def hear_of_it(call):
        if clock.now > 1010:
            brokers.topics.update(hidden)

    brokers.on("Metadata", hear_of_it)
    assert read(task((0, 0, 100)), config(), LENIENT) == rows(0, 0, 100)


@pytest.mark.slow
def test_other_topics_of_the_task_are_read_to_their_end(brokers, config, task, clock):
    brokers.logs["many", 3].fill(2)
    gone, stays = task((0, 0, 10)), task((3, 0, 20), topic="many")
    both = type(gone)(
        gone.ranges + stays.ranges,
        {**gone.leaders, **stays.leaders},
        {**gone.topic_ids, **stays.topic_ids},
    )
    del brokers.topics["orders"]
    assert read(both, config(), LENIENT) == rows(3, 0, 20)


def _make_anew(brokers):
    """The same name, another topic: its epochs begin anew, and its records are others."""
    brokers.topics["orders"].topic_id = b"another topic id"
    brokers.topics["orders"].epochs[0] = 0
    log = brokers.logs["orders", 0]
    log.cut_off(0)
    log.epoch = 0
    log.fill(10, size_bytes=3000)


def test_topic_made_anew_mid_read_is_a_data_loss(brokers, config, task, clock):
    brokers.topics["orders"].epochs[0] = 9
    _in_the_middle(brokers, lambda: _make_anew(brokers))
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*deleted and created again"):
        read(task((0, 0, 100)), config())


def test_topic_made_anew_mid_read_gives_no_offset_twice_when_told_so(brokers, config, task, clock):
    """Its epochs are lower than those of the first one: they are not compared."""
    brokers.topics["orders"].epochs[0] = 9
    brokers.logs["orders", 0].epoch = 9
    planned = task((0, 0, 100))
    _in_the_middle(brokers, lambda: _make_anew(brokers))
    assert read(planned, config(), LENIENT) == rows(0, 0, 100)


def test_topic_made_anew_as_more_was_answered_than_acknowledged_is_a_data_loss(
    brokers, config, task, clock
):
    """ListOffsets goes by name: what it tells is the end of the new one."""
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    planned = task((0, 0, 200))

    def make_anew():
        _make_anew(brokers)
        brokers.logs["orders", 0].cut_off(0)

    _answer_then(brokers, make_anew)
    with pytest.raises(DataLoss, match=r"PARTITIONS_DELETED.*deleted and created again"):
        read(planned, config())


@pytest.mark.parametrize("code", [100, 103], ids=["UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"])
def test_topic_id_that_a_broker_does_not_know_yet_is_asked_for_again(
    brokers, config, task, clock, code
):
    brokers.logs["orders", 0].fill(1)
    brokers.on("Fetch", answered(Answered(error_code=code)), DEFAULT)
    assert read(task((0, 0, 10)), config()) == rows(0, 0, 10)
    assert len(brokers.asked("Metadata")) == 1


# What else a leader may say


@pytest.mark.parametrize("code", [-1, 5, 6, 9, 56, 74, 75, 78])
def test_errors_that_pass_cost_no_row(brokers, config, task, clock, code):
    brokers.logs["orders", 0].fill(10, size_bytes=3000)
    planned = task((0, 0, 100))

    def fail(call):
        if code == 74:
            brokers.topics["orders"].epochs[0] += 1
        return answered(Answered(error_code=code))(call)

    brokers.on("Fetch", DEFAULT, fail, DEFAULT)
    assert read(planned, config()) == rows(0, 0, 100)


@pytest.mark.slow
def test_server_error_that_stays_is_an_error_in_time(brokers, config, task, clock):
    brokers.on("Fetch", answered(Answered(error_code=-1)))
    with pytest.raises(BrokerError, match=r"UNKNOWN_SERVER_ERROR \(-1\)"):
        read(task((0, 0, 10)), config())
    assert 50 < clock.now - 1000 <= 60


def test_log_that_the_broker_cannot_read_is_an_error_at_once(brokers, config, task, clock):
    """As in Java's consumer: no time mends a file."""
    brokers.on("Fetch", answered(Answered(error_code=2)))
    with pytest.raises(BrokerError, match=r"orders-0.*CORRUPT_MESSAGE.*the file is damaged"):
        read(task((0, 0, 10)), config())
    assert clock.slept == []


def test_follower_that_knows_less_than_the_leader_is_left_for_it(brokers, config, task, clock):
    """The stop of a range may lie beyond what a follower knows to be acknowledged."""
    log = brokers.logs["orders", 0].fill(4)
    behind = answered(Answered(high_watermark=20))
    sent_on = answered(Answered(high_watermark=40, preferred_read_replica=2))
    half = log.fetch(0, 0, len(log.batches[0].data) * 2, is_first=True)
    brokers.on("Fetch", sent_on, DEFAULT, node=1)
    brokers.on("Fetch", answered(half), behind, node=2)
    assert read(task((0, 0, 40)), config(client_rack="eu-2")) == rows(0, 0, 40)
    assert [call.node_id for call in brokers.calls if call.api == "Fetch"] == [1, 2, 2, 1]
    assert brokers.asked("Fetch")[-1].rack_id == ""


@pytest.mark.slow
def test_what_one_follower_lacks_does_not_send_other_ranges_to_their_leaders(
    brokers, config, task, clock
):
    """More ranges than a request asks for: those of the second are read in our rack too."""
    ranges = []
    for partition in range(150):
        brokers.logs["many", partition].fill(2)
        ranges.append((partition, 0, 20))

    def send_on(call):
        if not call.request.rack_id:
            return fetch(brokers, call)
        asked = [item.partition for item in call.request.topics[0].partitions]
        named = {"high_watermark": 20, "preferred_read_replica": 2}
        return answered(*(Answered(partition_index=number, **named) for number in asked))(call)

    def follow_behind(call):
        """One batch of each, then nothing more."""
        asked = call.request.topics[0].partitions
        logs = {item.partition: brokers.logs["many", item.partition] for item in asked}
        if asked[0].fetch_offset:
            return answered(*(Answered(partition_index=n, high_watermark=10) for n in logs))(call)
        return answered(*(log.fetch(n, 0, 0, is_first=True) for n, log in logs.items()))(call)

    brokers.on("Fetch", send_on, node=1)
    brokers.on("Fetch", follow_behind, node=2)
    found = read(task(*ranges, topic="many"), config(client_rack="eu-2"))
    assert sorted(found) == [row for number in range(150) for row in rows(number, 0, 20)]
    followed = {
        item.partition
        for request in brokers.asked("Fetch", node=2)
        for item in request.topics[0].partitions
    }
    assert followed == set(range(150))
