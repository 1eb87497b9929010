"""The oldest brokers that speak the protocol of KIP-848: Apache Kafka 4.0."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.client.group.pattern import SubscriptionPattern
from pyspark_kafkaproto.cluster import KafkaCluster, TopicPartition
from pyspark_kafkaproto.devbroker import DevBroker
from tests.broker.filling import fill
from tests.broker.sharing import (
    BEATS_OFTEN,
    PARTITIONS,
    RECORDS,
    are_at,
    is_shared,
    make_topic,
    no_beat,
    open_member,
    poll_all,
)

pytestmark = pytest.mark.broker

QUICK = {
    **BEATS_OFTEN,
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "10000",
}


def test_kafka_4_0_shares_out_and_lets_in_again_whom_it_has_fenced(tmp_path, monkeypatch):
    """By names, and by a pattern: 4.0 is the first to know those."""
    lost = []
    properties = {"group_protocol": "consumer", "enable_auto_commit": "false"}
    with (
        DevBroker(tmp_path, properties=QUICK, version="4.0.1") as broker,
        KafkaCluster({"bootstrap.servers": broker.bootstrap_servers}) as kafka,
    ):
        topic = make_topic(kafka, "orders")
        partitions = {TopicPartition(topic, number) for number in range(PARTITIONS)}
        fill(kafka, dict.fromkeys(partitions, RECORDS))
        ours = open_member(broker, "g", SubscriptionPattern("ord.*"), **properties)
        silent = open_member(broker, "g", topic, {"on_lost": lost.append}, **properties)
        poll_all([ours, silent], is_shared(ours, silent), "two members")
        with monkeypatch.context() as held_back:
            held_back.setattr(silent._keeper._coordinator, "_beat", no_beat)
            poll_all([ours], is_shared(ours), "the others' partitions")
        poll_all([ours, silent], is_shared(ours, silent), "its coming back")
        assert len(lost) == 1
        poll_all([ours, silent], are_at((ours, silent), RECORDS), "all rows")
        for one in (ours, silent):
            one.commit()
            one.close()
        assert kafka.get_consumer_offsets("g", partitions) == dict.fromkeys(partitions, RECORDS)
