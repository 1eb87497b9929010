"""Brokers that are registered, and the end of that."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.errors import BrokerError, ConfigError, UnsupportedVersion
from pyspark_kafkaproto.messages.describe_cluster import DescribeClusterResponse
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


REGISTERED = "DescribeCluster"


def registered(*ids, away=(), **said):
    """The answer about brokers of these ids."""
    broker = DescribeClusterResponse.Broker
    return DescribeClusterResponse(
        cluster_id="fake",
        brokers=tuple(
            broker(broker_id=number, host="127.0.0.1", port=9, is_fenced=number in away)
            for number in ids
        ),
        **said,
    )


def test_brokers_that_are_away_are_registered(brokers, kafka):
    brokers.versions[REGISTERED] = (0, 2)
    brokers.on(REGISTERED, registered(1, 2, 7, away={7}))
    assert kafka.registered_brokers() == {1, 2, 7}
    (request,) = brokers.asked(REGISTERED)
    assert request.include_fenced_brokers


def test_error_of_the_whole_answer_is_raised(brokers, kafka):
    brokers.versions[REGISTERED] = (0, 2)
    brokers.on(REGISTERED, registered(error_code=42, error_message="what is that?"))
    with pytest.raises(BrokerError, match=r"the cluster.*INVALID_REQUEST.*what is that\?"):
        kafka.registered_brokers()


def test_older_brokers_tell_of_none_that_is_away(brokers, kafka):
    brokers.versions[REGISTERED] = (0, 1)
    with pytest.raises(UnsupportedVersion, match=REGISTERED):
        kafka.registered_brokers()
