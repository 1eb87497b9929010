"""The front of an answer whose records are still coming."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.messages.fetch import FetchResponse
from pyspark_kafkaproto.messages.metadata import MetadataResponse
from pyspark_kafkaproto.wire.frame import decode_response, encode_response, response_front

Topic = FetchResponse.Topic
Partition = Topic.Partition
RECORDS = b"record batches" * 20


def answer(*partitions, **fields):
    topic = Topic(topic="" if fields.pop("by_id", True) else "orders", partitions=partitions)
    return FetchResponse(responses=(topic,), **fields)


def framed(message, version):
    return encode_response(message, version, 7)[4:]


@pytest.mark.parametrize("version", [4, 5, 11, 12, 13, 18])
def test_front_is_what_the_whole_says_before_its_records(version):
    first = Partition(
        partition_index=3,
        high_watermark=90,
        last_stable_offset=80,
        aborted_transactions=(Partition.AbortedTransaction(producer_id=1, first_offset=2),),
        records=RECORDS,
    )
    whole = answer(first, Partition(partition_index=4, records=b"more"), by_id=version >= 13)
    frame = framed(whole, version)
    pos = frame.index(RECORDS)
    front = response_front(FetchResponse, frame[:pos], version)
    assert (front.pos, front.size) == (pos, len(RECORDS))
    ((topic,), (expected,)) = (
        front.message.responses,
        decode_response(FetchResponse, frame, version)[1].responses,
    )
    assert (topic.topic, topic.topic_id) == (expected.topic, expected.topic_id)
    (data,) = topic.partitions
    for name in ("partition_index", "error_code", "high_watermark", "last_stable_offset"):
        assert getattr(data, name) == getattr(expected.partitions[0], name)
    assert data.aborted_transactions == expected.partitions[0].aborted_transactions
    assert data.records is None


def test_front_that_is_not_there_as_a_whole_is_none():
    frame = framed(answer(Partition(records=RECORDS)), 18)
    pos = frame.index(RECORDS)
    fronts = [response_front(FetchResponse, frame[:size], 18) for size in range(pos)]
    assert fronts == [None] * pos


@pytest.mark.parametrize(
    "message",
    [
        FetchResponse(),
        answer(),
        answer(Partition(records=None)),
        answer(Partition(records=b"")),
        answer(Partition(records=b""), Partition(records=RECORDS)),
    ],
    ids=["no topic", "no partition", "null", "empty", "not the first"],
)
def test_answer_that_does_not_begin_with_records_has_no_front(message):
    assert response_front(FetchResponse, framed(message, 18), 18) is None


def test_message_without_records_has_no_front():
    message = MetadataResponse(topics=(MetadataResponse.Topic(name="orders"),))
    assert response_front(MetadataResponse, framed(message, 12), 12) is None
