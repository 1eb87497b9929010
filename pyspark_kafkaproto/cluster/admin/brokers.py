"""Brokers that are registered, those that are away included (KIP-1073), and the end of that.

A broker that is gone for good is in no metadata and stays registered (UnregisterBroker, KIP-631).
"""

from __future__ import annotations

from pyspark_kafkaproto.cluster.asking import Question
from pyspark_kafkaproto.cluster.controller import (
    ask_controller,
    ask_controller_once,
    needing_kraft,
    refusal,
)
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import BROKER_ID_NOT_REGISTERED
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from pyspark_kafkaproto.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

_FIRST_WITH_THOSE_AWAY = 2  # of DescribeCluster: Kafka 4.0


def registered_brokers(router: Router) -> set[int]:
    """Ids of the brokers that are registered, those that are away included.

    Raises:
        UnsupportedVersion: brokers before Kafka 4.0 tell of those alone that run.
    """

    def read(answer: DescribeClusterResponse) -> set[int]:
        if answer.error_code:
            raise refusal(answer.error_code, answer.API_NAME, "the cluster", answer.error_message)
        return {item.broker_id for item in answer.brokers}

    request = DescribeClusterRequest(include_fenced_brokers=True)
    what = "list the registered brokers"
    return ask_controller_once(router, what, request, read, _FIRST_WITH_THOSE_AWAY)


def unregister_broker(router: Router, node_id: int) -> None:
    """Have the cluster forget a broker that will not come back.

    What it held is not moved: reassign that first. One that runs goes on running, but leads nothing
    and is in no metadata, until it is started again.

    Raises:
        BrokerError: there is no such broker, or this user may not.
        UnsupportedVersion: the cluster has ZooKeeper, and no registrations of this kind.
    """

    def read(answer: UnregisterBrokerResponse, part: list[int]) -> dict[int, BrokerError | None]:
        del part
        if not answer.error_code:
            return {node_id: None}
        subject = f"broker {node_id}"
        error = refusal(answer.error_code, answer.API_NAME, subject, answer.error_message)
        return {node_id: error}

    question = Question(
        f"unregister broker {node_id}", lambda _: UnregisterBrokerRequest(broker_id=node_id), read
    )
    with needing_kraft("registration that outlasts a broker"):
        ask_controller(router, question, {node_id}, BROKER_ID_NOT_REGISTERED)
