"""Who leads: asked for where that is not known, seldom in vain, and anew where it is old."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from pyspark_kafkaproto.client.reading.directory import NO_EPOCH, Directory
from pyspark_kafkaproto.cluster import Router, TopicPartition
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.net import Deadline
from tests.fake_broker import topic_id_of
from tests.fake_log import FENCED_LEADER_EPOCH, NOT_LEADER, OFFSET_OUT_OF_RANGE, Answered

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = (FIRST, SECOND)
NOBODY = -1


@pytest.fixture
def directory(config, task, clock):
    """Both partitions are planned; node 1 leads them."""
    with closing(Router(config(retry_backoff_ms=100, retry_backoff_max_ms=100))) as router:
        yield Directory(task((0, 0, 10), (1, 0, 10)), router, fail_on_data_loss=True)


def leaders(directory, *partitions):
    """The node of each that has one."""
    found = directory.leaders(partitions or BOTH, Deadline.after(5))
    return {partition: leader.node_id for partition, leader in found.items()}


def looked_up(brokers):
    return len(brokers.asked("Metadata"))


def test_leaders_that_were_planned_are_not_looked_up(brokers, directory):
    assert leaders(directory) == {FIRST: 1, SECOND: 1}
    assert looked_up(brokers) == 0


def test_who_has_no_leader_is_asked_about_again_after_a_while_beside_others(
    brokers, directory, clock
):
    brokers.topics["orders"].move(1, NOBODY)
    directory.forget([SECOND])
    for _ in range(3):
        assert leaders(directory) == {FIRST: 1}
    assert looked_up(brokers) == 1
    assert directory.is_in_vain(SECOND)
    clock.now += 0.11
    assert not directory.is_in_vain(SECOND)
    brokers.topics["orders"].move(1, 2)
    assert leaders(directory) == {FIRST: 1, SECOND: 2}
    assert looked_up(brokers) == 2


def test_where_there_is_no_other_it_is_asked_about_at_each_try(brokers, directory):
    brokers.topics["orders"].move(1, NOBODY)
    directory.forget([SECOND])
    for tries in (1, 2):
        with pytest.raises(BrokerError, match="LEADER_NOT_AVAILABLE"):
            leaders(directory, SECOND)
        assert looked_up(brokers) == tries


def test_whoever_reads_without_an_end_hears_of_leaders_that_moved(brokers, directory):
    brokers.topics["orders"].move(1, 2)
    assert leaders(directory) == {FIRST: 1, SECOND: 1}, "no error has told"
    directory.begin_anew()
    for _ in range(2):
        assert leaders(directory) == {FIRST: 1, SECOND: 2}
    assert looked_up(brokers) == 1


def test_where_nobody_tells_of_leaders_they_stay_as_they_were(brokers, directory):
    brokers.on("Metadata", MetadataResponse(error_code=42))
    directory.begin_anew()
    assert leaders(directory) == {FIRST: 1, SECOND: 1}
    assert looked_up(brokers) == 1


def test_how_new_a_leader_must_be_is_not_forgotten_for_one_who_does_not_say(directory):
    """Nor what metadata told of it; and who has no leader by now may be fenced all the same."""
    newer = Answered.CurrentLeader(leader_id=2, leader_epoch=5)
    directory.note_failure(SECOND, Answered(error_code=NOT_LEADER, current_leader=newer))
    directory.forget([SECOND])
    for code in (NOT_LEADER, FENCED_LEADER_EPOCH):
        directory.note_failure(SECOND, Answered(error_code=code))
    with pytest.raises(BrokerError, match="epoch 0, but epoch 5 has begun"):
        leaders(directory, SECOND)


def test_what_was_said_of_a_follower_is_not_held_against_the_leader(brokers, config, task, clock):
    planned = task((0, 0, 10))
    with closing(Router(config(client_rack="r"), leaders=planned.leaders)) as router:
        directory = Directory(planned, router, fail_on_data_loss=True)
        assert directory.moves(FIRST, Answered(preferred_read_replica=2))
        assert leaders(directory, FIRST) == {FIRST: 2}
        directory.forget([FIRST])
        assert leaders(directory, FIRST) == {FIRST: 1}
        assert not directory.moves(FIRST, Answered(error_code=OFFSET_OUT_OF_RANGE))


def test_epochs_of_a_topic_outlast_the_word_of_a_broker_that_names_another(
    brokers, config, task, clock
):
    """It is behind, and names one that was deleted: the epochs of that one are none of this."""
    planned, topic = task((0, 0, 10)), brokers.topics["orders"]
    with closing(Router(config())) as router:
        directory = Directory(planned, router, fail_on_data_loss=False)
        directory.note_read(FIRST, 3)
        before = replace(topic, topic_id=topic_id_of("orders before"), epochs=[7] * 2)
        for told, epochs in ((before, (7, NO_EPOCH)), (topic, (0, 3))):
            brokers.topics["orders"] = told
            directory.forget([FIRST])
            found = directory.leaders([FIRST], Deadline.after(5))[FIRST].epoch
            assert (found, directory.read_epoch(FIRST)) == epochs


def test_an_epoch_that_was_committed_is_that_of_the_topic_of_that_name(
    brokers, config, task, clock
):
    planned = replace(task((0, 0, 10)), topic_ids={}, leaders={})
    with closing(Router(config())) as router:
        directory = Directory(planned, router, fail_on_data_loss=False)
        directory.note_read(FIRST, 3)
        leaders(directory, FIRST)
        assert directory.topic_id("orders") == brokers.topics["orders"].topic_id
        assert directory.read_epoch(FIRST) == 3


def test_epochs_of_many_topics_are_gone_through_once(brokers, config, task, clock):
    """Not once for each: a member may read thousands, whose ids it hears of all together."""

    class Counted(dict):
        looks = 0

        def __iter__(self):
            for item in super().__iter__():
                self.looks += 1
                yield item

    many = [TopicPartition(f"many-{number}", 0) for number in range(50)]
    for item in many:
        brokers.topics[item.topic] = replace(
            brokers.topics["orders"], topic_id=topic_id_of(item.topic)
        )
    planned = replace(task((0, 0, 10)), topic_ids={}, leaders={})
    with closing(Router(config())) as router:
        directory = Directory(planned, router, fail_on_data_loss=False)
        directory._read_epochs = Counted()
        for item in many:
            directory.note_read(item, 3)
        leaders(directory, *many)
        assert {directory.read_epoch(item) for item in many} == {3}
        assert directory._read_epochs.looks <= 2 * len(many)
