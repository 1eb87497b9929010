"""Fetch answers that a test words itself."""

from __future__ import annotations

from pyspark_kafkaproto.messages.fetch import FetchResponse
from tests.fake_log import Answered


def answered(*partitions, **fields):
    """A Fetch answer about `orders`, in the versions by id."""

    def answer(call):
        topic_id = call.request.topics[0].topic_id
        topic = FetchResponse.Topic(topic_id=topic_id, partitions=partitions)
        return FetchResponse(responses=(topic,), **fields)

    return answer


def refused(code):
    """A Fetch answer about `orders` with this error for all that is asked for."""

    def answer(call):
        (topic,) = call.request.topics
        parts = (
            Answered(partition_index=item.partition, error_code=code) for item in topic.partitions
        )
        return answered(*parts)(call)

    return answer
