"""The rows of an answer that is decoded in several pieces."""

from __future__ import annotations

from functools import partial

import pytest

from pyspark_kafkaproto import TopicPartition
from pyspark_kafkaproto.client.reading import decode
from pyspark_kafkaproto.client.share.held import Acknowledge
from pyspark_kafkaproto.client.share.rows import Layout, helds_of, parts_of
from pyspark_kafkaproto.messages.share_fetch import ShareFetchResponse
from pyspark_kafkaproto.net import ClientConfig
from tests.fake_log import FakeLog

PARTITION = TopicPartition("t", 0)
CONFIG = ClientConfig.parse({"bootstrap.servers": "b-1:9092"})

Answered = ShareFetchResponse.Topic.Partition


@pytest.fixture
def small_pieces(monkeypatch):
    """Each batch is a piece of its own."""
    monkeypatch.setattr(decode, "decode", partial(decode.decode, chunk_bytes=1))


def test_what_came_in_a_piece_before_is_no_gap(small_pieces):
    """Said to be one it would be lost, where who reads it does not come to its end."""
    log = FakeLog().fill(3)
    data = Answered(
        records=b"".join(batch.data for batch in log.batches),
        acquired_records=(Answered.AcquiredRecords(first_offset=2, last_offset=29),),
    )
    (held,) = helds_of(PARTITION, b"", data)
    parts = []
    for part in parts_of(data, [held], Layout(["offset"]), CONFIG):
        parts.append((part.first, part.last))
        held.give(part.first, part.last)
    assert parts == [(2, 9), (10, 19), (20, 29)]
    assert not held.has_unsaid
    held.accept_given()
    assert held.say() == [(2, 29, (1,))]


def test_batches_before_what_was_acquired_are_no_damage():
    """So brokers (4.3) answer where compaction has taken all that was given to us again."""
    log = FakeLog().fill(1)
    acquired = Answered.AcquiredRecords(first_offset=24, last_offset=24, delivery_count=2)
    data = Answered(records=log.batches[0].data, acquired_records=(acquired,))
    (held,) = helds_of(PARTITION, b"", data)
    assert list(parts_of(data, [held], Layout(["offset"]), CONFIG)) == []
    assert held.say() == [(24, 24, (Acknowledge.RELEASE,))]


def test_neighbours_that_were_delivered_equally_often_are_one_range():
    ranges = [(0, 4, 1), (5, 9, 1), (10, 12, 2), (14, 15, 2)]
    names = ("first_offset", "last_offset", "delivery_count")
    each = tuple(Answered.AcquiredRecords(**dict(zip(names, one, strict=True))) for one in ranges)
    helds = helds_of(PARTITION, b"", Answered(acquired_records=each))
    assert [held.acquired[1:] for held in helds] == [(0, 9, 1), (10, 12, 2), (14, 15, 2)]
