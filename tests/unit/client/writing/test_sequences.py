"""Sequences that begin anew: from which batch on, and what is passed over until then."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.writing.batches import Batch
from pyspark_kafkaproto.client.writing.sequences import Identity, Sequences

FIRST, SECOND, THIRD = (Identity(1000, epoch) for epoch in range(3))


def batch(place, base_sequence=0, records=1):
    return Batch(b"", records, (place,), base_sequence, [])


@pytest.mark.parametrize("places", [(3, 5), (5, 3)])
def test_of_two_restarts_the_place_of_the_earlier_counts_and_the_later_identity(places):
    sequences = Sequences(FIRST)
    for place, identity in zip(places, (SECOND, THIRD), strict=True):
        sequences.restart(identity, (place,))
    assert [sequences.begins_anew_with(batch(place)) for place in (2, 3, 4)] == [False, True, True]
    sequences.begin_anew()
    assert sequences.identity == THIRD
    sequences.restart(FIRST, (9,))
    assert not sequences.begins_anew_with(batch(5)), "that one is over"


def test_behind_what_is_passed_over_sequences_go_on_as_if_it_were_written():
    sequences = Sequences(FIRST)
    assert sequences.pass_over(batch(1, base_sequence=0, records=7))
    assert not sequences.is_overtaking(batch(2, base_sequence=7))


def test_nothing_is_passed_over_where_sequences_are_to_begin_anew():
    sequences = Sequences(FIRST)
    sequences.restart(SECOND, (2,))
    assert not sequences.pass_over(batch(1, base_sequence=0, records=7))
    assert not sequences.is_overtaking(batch(2, base_sequence=0))


def test_a_broker_that_has_heard_nothing_of_the_next_identity_gets_one_batch_at_a_time():
    """It would take the second for a first one, and what is before it could not be written."""
    sequences = Sequences(FIRST)
    assert sequences.most_in_flight(100.0) == 1
    sequences.note_known(100.0)
    assert sequences.most_in_flight(101.0) > 1
    sequences.restart(SECOND, (2,))
    sequences.begin_anew()
    assert sequences.most_in_flight(101.0) == 1
