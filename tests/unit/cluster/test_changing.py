"""What the answer to a second try of a change means, where the first one may have made it."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import NewTopic, TopicPartition
from pyspark_kafkaproto.cluster.admin import AclFilter, Replica
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed, KafkaProtoError
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from pyspark_kafkaproto.messages.delete_topics import DeleteTopicsResponse
from tests.fake_broker import close, topic_id_of

FIRST = TopicPartition("orders", 0)
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


HALF_A_SECOND = {"default.api.timeout.ms": "500"}


@pytest.mark.slow
@pytest.mark.parametrize("is_trial", [False, True])
def test_what_no_answer_told_of_may_have_been_done(brokers, kafka_at, is_trial):
    brokers.on("CreateTopics", close())
    kafka = kafka_at(brokers.bootstrap_servers, **HALF_A_SECOND)
    with pytest.raises(KafkaProtoError) as caught:
        kafka.create_topics({NewTopic("new")}, validate_only=is_trial)
    assert ("it may have been done all the same" in str(caught.value)) != is_trial


CHANGES = {
    "DeleteAcls": lambda kafka: kafka.delete_acls({AclFilter(principal="User:a")}),
    "DeleteRecords": lambda kafka: kafka.delete_records({FIRST: 1}),
    "OffsetCommit": lambda kafka: kafka.set_consumer_offsets("g", {FIRST: 1}),
    "OffsetDelete": lambda kafka: kafka.delete_consumer_offsets("g", {FIRST}),
    "AlterReplicaLogDirs": lambda kafka: kafka.move_replicas({Replica(1, "orders", 0): "/logs"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("api", CHANGES)
def test_whatever_is_changed_is_told_to_be_in_doubt(brokers, kafka_at, api):
    brokers.on(api, close())
    with pytest.raises(KafkaProtoError, match="it may have been done all the same"):
        CHANGES[api](kafka_at(brokers.bootstrap_servers, **HALF_A_SECOND))


@pytest.mark.slow
def test_of_several_those_are_named_that_no_answer_told_of(brokers, kafka_at):
    part = CreateTopicsResponse.Topic
    told = part(name="a"), part(name="b", error_code=TOPIC_AUTHORIZATION_FAILED)
    slow = part(name="c", error_code=REQUEST_TIMED_OUT)
    brokers.on("CreateTopics", CreateTopicsResponse(topics=(*told, slow)), close())
    kafka = kafka_at(brokers.bootstrap_servers, **HALF_A_SECOND)
    with pytest.raises(BrokerError, match="topic 'b'") as caught:
        kafka.create_topics({NewTopic(name) for name in "abc"})
    assert str(caught.value).endswith("look first: c")


@pytest.mark.slow
def test_what_was_never_asked_for_is_not_in_doubt(brokers, kafka_at):
    brokers.stop(1)  # the controller
    kafka = kafka_at(brokers.address(2), **HALF_A_SECOND)
    with pytest.raises(ConnectionFailed) as caught:
        kafka.create_topics({NewTopic("new")})
    assert "may have been done" not in str(caught.value)
