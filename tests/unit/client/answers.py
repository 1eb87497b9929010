"""Fetch answers that a test words itself."""

from __future__ import annotations

from pyspark_kafkaproto.messages.fetch import FetchResponse


def answered(*partitions, **fields):
    """A Fetch answer about `orders`, in the versions by id."""

    def answer(call):
        topic_id = call.request.topics[0].topic_id
        topic = FetchResponse.Topic(topic_id=topic_id, partitions=partitions)
        return FetchResponse(responses=(topic,), **fields)

    return answer
