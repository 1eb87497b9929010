"""The end of a broker's registration."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.unregister_broker import UnregisterBrokerResponse
from tests.fake_broker import close

API = "UnregisterBroker"


def test_controller_forgets_the_broker(brokers, kafka):
    brokers.controller = 2
    brokers.on(API, UnregisterBrokerResponse())
    kafka.unregister_broker(7)
    assert [item.broker_id for item in brokers.asked(API, node=2)] == [7]


@pytest.mark.parametrize("is_lost", [True, False])
def test_one_that_is_not_registered_is_told_perhaps_of_an_earlier_try(
    brokers, kafka, clock, is_lost
):
    gone = UnregisterBrokerResponse(error_code=102, error_message="not registered")
    brokers.on(API, *([close()] if is_lost else []), gone)
    with pytest.raises(BrokerError, match=r"broker 7.*not registered") as caught:
        kafka.unregister_broker(7)
    assert ("an earlier try may have done it" in str(caught.value)) == is_lost


def test_controller_that_moved_is_looked_up_again(brokers, kafka, clock):
    brokers.on(API, UnregisterBrokerResponse(error_code=41), UnregisterBrokerResponse())
    kafka.unregister_broker(7)
    assert len(brokers.asked(API)) == 2


def test_right_that_is_missing_is_named(brokers, kafka):
    brokers.on(API, UnregisterBrokerResponse(error_code=31))
    with pytest.raises(BrokerError, match="needs the right ALTER on the cluster"):
        kafka.unregister_broker(7)


def test_what_cannot_be_done_is_refused_here(brokers, kafka):
    with pytest.raises(ConfigError, match=r"node_id.*expected ids of brokers"):
        kafka.unregister_broker(-1)
    del brokers.versions[API]
    with pytest.raises(UnsupportedVersion, match=r"does not offer UnregisterBroker: .*ZooKeeper"):
        kafka.unregister_broker(7)
