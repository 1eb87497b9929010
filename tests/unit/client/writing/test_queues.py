"""What is counted of a partition's batches, and what is known of those in doubt."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.queues import PartitionQueue, Written
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences
from pyspark_kafkaproto.cluster import Leader, TopicPartition
from pyspark_kafkaproto.net import Deadline, Endpoint
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


@pytest.mark.parametrize(
    ("offsets", "reached"),
    [
        ((100, 50), (50, 100)),
        ((50, 100), (50, 100)),
        ((0, 5), (0, 5)),
        ((NOT_SAID,), (NOT_SAID, NOT_SAID)),
        ((NOT_SAID, 50), (NOT_SAID, 50)),
        ((100, NOT_SAID, 50), (NOT_SAID, 100)),
    ],
)
def test_a_batch_whose_offset_is_not_said_may_lie_before_all_others(offsets, reached):
    count = Written()
    for at in offsets:
        count.add(batch(at), at)
    assert (count.first_offset, count.last_offset) == reached
    count.merge(counted(20, 24))
    assert count.first_offset == (NOT_SAID if NOT_SAID in offsets else min(20, *offsets))


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


def leader(epoch):
    return Leader(1, Endpoint("broker", 9092), epoch)


def test_who_was_deposed_is_doubted_until_a_newer_one_leads():
    queue = queue_of()
    assert not queue.doubts(leader(0)), "nobody has failed"
    queue.leader = leader(4)
    queue.depose()
    queue.depose()  # nobody was found in between
    assert [queue.doubts(leader(epoch)) for epoch in (3, 4, 5)] == [True, True, False]


def known_to_the_broker(*in_flight):
    """The broker knows the producer, so that several batches may be in flight: here these are."""
    queue = queue_of()
    queue.sequences.note_known(0.0)
    queue.in_flight.extend(in_flight)
    queue.waiting.append(batch(9))
    return queue


def sent_before(*order):
    one = batch(*order)
    one.tries = 1
    return one


@pytest.mark.parametrize("alone", [sent_before(1), batch(1, 0, **PART)])
def test_nothing_follows_one_that_goes_alone(alone):
    assert known_to_the_broker(batch(1)).can_send(1.0)
    assert not known_to_the_broker(alone).can_send(1.0)
    queue = known_to_the_broker(batch(1))
    queue.returned.append(alone)
    assert not queue.can_send(1.0), "nor does that follow another"


def test_nothing_is_sent_behind_one_that_came_back_until_all_have():
    """Nor under sequences that are to be others by then."""
    first, second = batch(1), batch(2)
    queue = known_to_the_broker(first, second)
    queue.give_back(first)
    assert not queue.can_send(1.0)
    queue.give_back(second)
    assert queue.can_send(1.0)
    queue = known_to_the_broker(batch(1))
    queue.sequences.note_replaced(is_shorter=False)
    assert not queue.can_send(1.0)


def test_nothing_is_sent_under_the_next_epoch_until_all_of_the_one_before_is_settled():
    """A broker takes nothing of an epoch any more once it has seen the next."""
    records = encode_batch([NewRecord(b"x", None)])
    first, second = (Batch(records, 1, (place,), place - 1, []) for place in (1, 2))
    queue = queue_of(first)
    queue.sequences.note_known(0.0)
    queue.waiting.append(second)
    queue.sequences.restart(Identity(1000, 1), second.order)
    assert queue.take() is first
    assert not queue.can_send(1.0)
    queue.deliver(first, 0, 1.0)
    assert queue.can_send(1.0)
    assert queue.take() is second
    assert (queue.identity.epoch, second.base_sequence) == (1, 0)


def test_one_that_is_heard_of_late_moves_nothing_back():
    """What was written behind it stays passed, and what comes next keeps its sequence."""
    first, second = (Batch(b"", 1, (place,), place - 1, []) for place in (1, 2))
    queue = queue_of()
    queue.in_flight.extend([first, second])
    queue.deliver(second, 1, 0.0)
    queue.deliver(first, NOT_SAID, 0.0)
    assert queue.is_passed(first)
    assert not queue.is_passed(second)
    assert not queue.sequences.is_overtaking(Batch(b"", 1, (3,), 2, []))


@pytest.mark.parametrize(
    ("began", "offset", "is_overtaken"),
    [
        (0, 0, True),  # the topic was made again
        (0, 2, True),
        (0, 3, False),  # one record of the first, one of the second
        (5, 7, True),
        (5, 8, False),
        (NOT_SAID, 0, True),
        (NOT_SAID, 1, False),
        (5, NOT_SAID, False),
    ],
)
def test_one_without_room_before_the_next_is_known_not_to_be_written(began, offset, is_overtaken):
    first, second, third = Batch(b"", 2, (1,), 0, []), batch(2), batch(3)
    queue = queue_of(second, batch(4))
    queue.in_flight.extend([first, third])
    queue.deliver(first, began, 0.0)
    queue.deliver(third, offset, 0.0)
    assert second.overtaken_by is (third if is_overtaken else None)
    assert queue.returned[-1].overtaken_by is None, "it comes behind that one"


def test_what_is_written_ends_a_row_of_failures():
    """The next failure is the first: its pause is short, and its time begins."""
    one = batch(1)
    queue = queue_of()
    queue.in_flight.append(one)
    queue.failures_in_a_row, queue.first_seen = 7, {"it leads no more": 90.0}
    queue.deliver(one, 0, 0.0)
    assert (queue.failures_in_a_row, queue.first_seen) == (0, {})


def test_a_new_epoch_is_needed_where_something_may_come_alone():
    """Of whom no sequences are known none is to be had."""
    assert not queue_of(batch(1)).may_come_twice
    assert queue_of(batch(1), batch(2, may_be_written=True)).may_come_twice
    assert not queue_of(batch(1, may_be_written=True), producer_id=-1).may_come_twice
    assert known_to_the_broker(batch(1)).may_come_twice


def test_what_was_sent_right_behind_one_in_doubt_is_asked_about_it_once():
    """Once more would be for ever: nothing has changed."""
    first, second, third = (batch(place, may_be_written=True) for place in (1, 2, 3))
    queue = queue_of(first, second, third, batch(4), batch(5, may_be_written=True))
    assert queue.can_call_witnesses(first)
    queue.call_witnesses(first)
    assert queue.witnesses == [third, second]
    assert not queue.can_call_witnesses(first)
    assert queue.can_call_witnesses(second)
    assert not queue.can_call_witnesses(third), "what comes next was never sent"
    queue.sequences.is_misnumbered = True
    assert not queue.can_call_witnesses(second)


@pytest.mark.parametrize("behind", [batch(2, 0, doubtful=(2,)), batch(2)], ids=["a part", "unsent"])
def test_what_cannot_be_in_the_log_as_it_is_tells_nothing(behind):
    queue = queue_of(batch(1, may_be_written=True), behind, batch(3, may_be_written=True))
    assert not queue.can_call_witnesses(queue.returned[0])


def test_what_goes_under_the_next_epoch_tells_nothing_of_one_before():
    first, second = (batch(place, may_be_written=True) for place in (1, 2))
    queue = queue_of(first, second)
    queue.sequences.restart(Identity(1000, 1), second.order)
    assert not queue.can_call_witnesses(first)
