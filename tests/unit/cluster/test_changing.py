"""What the answer to a second try of a change means, where the first one may have made it."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.delete_topics import DeleteTopicsResponse
from tests.fake_broker import close, topic_id_of

REQUEST_TIMED_OUT, TOPIC_AUTHORIZATION_FAILED, NOT_CONTROLLER, UNKNOWN_TOPIC_ID = 7, 29, 41, 100


def deleted(code=0):
    """The answer about `orders`, by its id."""
    part = DeleteTopicsResponse.Topic
    item = part(name=None, topic_id=topic_id_of("orders"), error_code=code)
    return DeleteTopicsResponse(responses=(item,))


@pytest.mark.parametrize("first", [close(), deleted(REQUEST_TIMED_OUT)])
def test_what_is_found_done_behind_a_try_of_unknown_end_was_done_by_that(
    brokers, kafka, clock, first
):
    brokers.on("DeleteTopics", first, deleted(UNKNOWN_TOPIC_ID))
    kafka.delete_topics({"orders"})
    assert len(brokers.asked("DeleteTopics")) == 2


def test_a_try_that_is_known_to_have_done_nothing_counts_for_none(brokers, kafka, clock):
    brokers.on("DeleteTopics", deleted(NOT_CONTROLLER), deleted(UNKNOWN_TOPIC_ID))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*UNKNOWN_TOPIC_ID"):
        kafka.delete_topics({"orders"})


def test_an_error_of_another_kind_is_not_taken_for_done(brokers, kafka, clock):
    brokers.on("DeleteTopics", close(), deleted(TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match=r"topic 'orders'.*TOPIC_AUTHORIZATION_FAILED"):
        kafka.delete_topics({"orders"})
