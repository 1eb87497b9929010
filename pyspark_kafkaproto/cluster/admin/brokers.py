"""Brokers that are gone for good: the end of their registration (UnregisterBroker, KIP-631)."""

from __future__ import annotations

from pyspark_kafkaproto.cluster.asking import Question
from pyspark_kafkaproto.cluster.controller import ask_controller, needing_kraft, refusal
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import BROKER_ID_NOT_REGISTERED
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


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
