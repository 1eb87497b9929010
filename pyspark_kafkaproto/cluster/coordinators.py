"""Who coordinates a group or a transactional id, whichever version of the question brokers know.

Newer ones answer about many keys at once (FindCoordinator 4, KIP-699, Kafka 3.0); Redpanda and MSK
Serverless, for two, know the older question about one key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark_kafkaproto.cluster.asking import Asker, check_complete, cut, send_all
from pyspark_kafkaproto.error_codes import COORDINATOR_NOT_AVAILABLE
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError, UnsupportedVersion
from pyspark_kafkaproto.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyspark_kafkaproto.net import Deadline, Endpoint

GROUP_KEY = 0
TRANSACTION_KEY = 1
KINDS = {GROUP_KEY: "group", TRANSACTION_KEY: "transactional id"}
# Who leads a partition of it coordinates what is kept there.
_TOPICS = {GROUP_KEY: "__consumer_offsets", TRANSACTION_KEY: "__transaction_state"}

_KEYS_PER_REQUEST = 1000
LAST_BY_ONE_KEY = 3

Found = FindCoordinatorResponse.Coordinator


def find_coordinators(
    router: Asker, keys: Collection[str], deadline: Deadline, kind: int
) -> dict[str, Endpoint | BrokerError]:
    """Where each of `keys` is coordinated, one try.

    Or why that is not told: it has no coordinator at the moment, or may not be seen.
    """
    places: dict[str, Endpoint | BrokerError] = {}
    for part in cut(_KEYS_PER_REQUEST)(sorted(keys)):
        try:
            found = _ask_together(router, part, deadline, kind)
        except UnsupportedVersion:
            found = _ask_one_by_one(router, part, deadline, kind)
        places |= {item.key: _place(item, kind) for item in found}
    return places


def _place(item: Found, kind: int) -> Endpoint | BrokerError:
    if item.error_code:
        subject, text = f"{KINDS[kind]} {item.key!r}", item.error_message or ""
        if item.error_code == COORDINATOR_NOT_AVAILABLE:
            text = _without_leader(_TOPICS[kind])
        return BrokerError(item.error_code, "FindCoordinator", subject, text)
    return Endpoint(item.host, item.port)


def _without_leader(topic: str) -> str:
    """What is wrong, where it stays so; brokers say it for a moment, too, as they elect leaders."""
    return (
        f"its partition of {topic} has no leader, or {topic} cannot be made with so few brokers: "
        f"kafkaproto metadata {topic} shows it"
    )


def the_one(answer: FindCoordinatorResponse, key: str) -> Found:
    """The answer of a version up to LAST_BY_ONE_KEY, as later ones have it."""
    return Found(
        key=key,
        node_id=answer.node_id,
        host=answer.host,
        port=answer.port,
        error_code=answer.error_code,
        error_message=answer.error_message,
    )


def _ask_together(router: Asker, keys: list[str], deadline: Deadline, kind: int) -> Sequence[Found]:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(keys))
    answer: FindCoordinatorResponse = router.ask_any(request, deadline)
    check_complete("FindCoordinator", keys, [item.key for item in answer.coordinators])
    return answer.coordinators


def _ask_one_by_one(router: Asker, keys: list[str], deadline: Deadline, kind: int) -> list[Found]:
    """A request for each, all of them under way at one broker."""
    requests = [FindCoordinatorRequest(key_type=kind, key=key) for key in keys]

    def ask(place: Endpoint) -> list[Found]:
        questions = [(place, request) for request in requests]
        answers = send_all(router, questions, deadline, LAST_BY_ONE_KEY)
        return [_read(answer, key) for answer, key in zip(answers, keys, strict=True)]

    return router.at_any(ask, deadline)


def _read(answer: FindCoordinatorResponse | KafkaProtoError, key: str) -> Found:
    if isinstance(answer, KafkaProtoError):
        raise answer
    return the_one(answer, key)
