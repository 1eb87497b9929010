"""What is counted of a partition's batches, and what is known of those in doubt."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.queues import PartitionQueue, Written
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.net import Deadline
from pyspark_kafkaproto.records import NewRecord, encode_batch

NOT_SAID = -1


def counted(first, last):
    return Written(records=5, batches=2, bytes=70, first_offset=first, last_offset=last)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ((10, 14), (20, 24), (10, 24)),
        ((20, 24), (10, 14), (10, 24)),
        ((10, 14), (NOT_SAID, NOT_SAID), (10, 14)),
        ((NOT_SAID, NOT_SAID), (0, 4), (0, 4)),
        ((NOT_SAID, NOT_SAID), (NOT_SAID, NOT_SAID), (NOT_SAID, NOT_SAID)),
    ],
)
def test_offsets_of_two_counts_reach_from_the_first_to_the_last_that_were_said(one, other, both):
    count = counted(*one)
    count.merge(counted(*other))
    assert (count.first_offset, count.last_offset) == both


def test_what_two_counts_have_is_added_up():
    count = Written(records=1, batches=2, bytes=3, retries=4, restarts=5)
    count.merge(Written(records=10, batches=20, bytes=30, retries=40, restarts=50))
    assert count == Written(records=11, batches=22, bytes=33, retries=44, restarts=55)


def queue_of(*returned, producer_id=1000):
    sequences = Sequences(Identity(producer_id, 0))
    return PartitionQueue(TopicPartition("orders", 0), sequences, 1000, returned=list(returned))


def batch(*order, doubtful=(), may_be_written=False):
    """One record at this place; `doubtful` is that of the one that it is a part of."""
    return Batch(b"", 1, order, 0, [], doubtful=doubtful, may_be_written=may_be_written)


PART = {"doubtful": (1,)}


@pytest.mark.parametrize(
    ("gone", "others", "has_vanished"),
    [
        (batch(1, 0, **PART), [], True),
        (batch(1, 0, **PART), [batch(2, 0, doubtful=(2,)), batch(3)], True),
        (batch(1, 0, **PART), [batch(1, 1, **PART)], False),
        (batch(1, 0, **PART), [batch(1, 1, **PART, may_be_written=True)], True),
        (batch(1, 0, **PART, may_be_written=True), [batch(1, 1, **PART)], True),
        (batch(1, may_be_written=True), [], True),
        (batch(1), [], False),
    ],
)
def test_a_batch_in_doubt_has_vanished_unless_another_part_will_show_what_became_of_it(
    gone, others, has_vanished
):
    assert queue_of(*others).has_vanished(gone, []) == has_vanished
    assert not queue_of(*others).has_vanished(gone, [batch(1, 0, 0)]), "something is left of it"
    assert not queue_of(*others, producer_id=-1).has_vanished(gone, []), "nothing is known by it"


def test_a_part_that_is_written_settles_the_doubts_of_its_own_whole():
    part, beside, below = batch(1, 0, **PART), batch(1, 1, **PART), batch(1, 2, 0, **PART)
    another = batch(2, 0, doubtful=(2,))
    queue = queue_of(beside, another)
    queue.in_flight.extend([part, below])
    queue.deliver(part, 5, 0.0)
    assert [item.doubtful for item in (beside, below, another)] == [(), (), (2,)]


def test_while_nobody_was_there_to_send_no_time_has_passed():
    """Of those alone whose time runs: of their batches, and of errors that may last for a while."""
    sent, returned, new = batch(1), batch(2), batch(3)
    sent.deadline, returned.deadline = Deadline(100.0, 30.0), Deadline(110.0, 30.0)
    queue = queue_of(returned)
    queue.in_flight.append(sent)
    queue.waiting.append(new)
    queue.first_seen = {"it leads no more": 90.0, "it is not there": 95.0}
    queue.excuse(7.0)
    assert [sent.deadline.at, returned.deadline.at, new.deadline] == [107.0, 117.0, None]
    assert queue.first_seen == {"it leads no more": 97.0, "it is not there": 102.0}


def test_what_a_later_one_has_passed_is_sent_again_under_the_sequence_that_it_had():
    """The broker has it, and knows it by that: under another one it would be written twice."""
    records = encode_batch([NewRecord(b"x", None)], base_offset=0, leader_epoch=0)
    first, second, third = (
        Batch(records, 1, (place,), sequence, []) for sequence, place in enumerate((1, 2, 4))
    )
    queue = queue_of(first, third)
    queue.in_flight.append(second)
    queue.deliver(second, 1, 0.0)
    queue.sequences.is_misnumbered = True
    third.base_sequence = 3  # as a row before it was refused, which had 2
    assert queue.take() is first
    assert (first.base_sequence, third.base_sequence) == (0, 2)
