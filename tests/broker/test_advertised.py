"""The classic trap, reproduced: the bootstrap answers, the address that it advertises does not."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster import KafkaCluster, NewTopic
from pyspark_kafkaproto.devbroker import DevBroker
from pyspark_kafkaproto.errors import ConnectionFailed

pytestmark = pytest.mark.broker

LISTENERS = dict.fromkeys(("INSIDE", "OUTSIDE", "CURED"), "PLAINTEXT")
ADVERTISED = {"OUTSIDE": "nowhere.invalid:9092", "CURED": "localhost"}


def _cluster(broker, listener, **properties):
    return KafkaCluster({"bootstrap.servers": broker.addresses(listener)} | properties)


def test_inside_works_outside_fails_with_the_line_to_set_and_the_line_cures_it():
    with DevBroker(listeners=LISTENERS, advertised=ADVERTISED) as broker:
        with _cluster(broker, "INSIDE") as inside:
            inside.create_topics([NewTopic("orders", 1, 1)])
            partitions = inside.get_partitions({"orders"})
            assert inside.get_latest_leader_offsets(partitions) == dict.fromkeys(partitions, 0)
        soon = {"default.api.timeout.ms": "6000"}
        with _cluster(broker, "OUTSIDE", **soon) as outside:
            assert outside.get_partitions({"orders"}) == partitions
            with pytest.raises(ConnectionFailed) as caught:
                outside.get_latest_leader_offsets(partitions)
            asked = broker.addresses("OUTSIDE")
            told = f"asked, {asked}, advertises this address, nowhere.invalid:9092"
            assert told in str(caught.value)
            assert f"advertised.listeners=PLAINTEXT://{asked}" in str(caught.value)
            hops = {item.hop: item for item in outside.diagnose()}
            assert hops["versions"].result == "ok"
            assert hops["advertised address"].result == "broken"
        with _cluster(broker, "CURED") as cured:
            assert cured.get_latest_leader_offsets(partitions) == dict.fromkeys(partitions, 0)
            assert {item.result for item in cured.diagnose()} == {"ok", "not used"}
