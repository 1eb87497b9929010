"""What transactions are at, for those who keep a cluster, and fencing (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from pyspark_kafkaproto.cluster.asking import Question, ask, cut, nothing_done_yet
from pyspark_kafkaproto.cluster.coordinators import TRANSACTION_KEY
from pyspark_kafkaproto.cluster.names import check_set
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.transactions import (
    TIMEOUTS_MS,
    DescribedTransaction,
    Writer,
    coordinator_places,
    describe_transactions,
    refusal,
)
from pyspark_kafkaproto.error_codes import INVALID_TRANSACTION_TIMEOUT
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

# Nobody writes with what fencing gives, but the coordinator waits no longer than this for the
# replicas of its own log: with less it answers COORDINATOR_NOT_AVAILABLE where they are slow. Where
# the broker's transaction.max.timeout.ms is shorter, what every broker allows.
_FENCING_TIMEOUTS_MS = (min(TIMEOUTS_MS), 1)


def describe_with_coordinators(
    router: Router, transactional_ids: Collection[str]
) -> dict[str, DescribedTransaction]:
    """As `describe_transactions`, with the id of the broker that coordinates each.

    Raises:
        BrokerError: there is no such transactional id, or it may not be seen; `usable` has the
            others.
    """
    check_set("transactional_ids", transactional_ids, "transactional id")
    try:
        return _with_coordinators(router, describe_transactions(router, transactional_ids))
    except KafkaProtoError as error:
        if error.usable:
            error.usable = _with_coordinators(router, error.usable)
        raise


def _with_coordinators(
    router: Router, found: dict[str, DescribedTransaction]
) -> dict[str, DescribedTransaction]:
    if not found:
        return {}
    ids = {item.endpoint: item.node_id for item in router.described(()).brokers.values()}
    # Known from asking, or asked for anew: an election since is no reason to fail.
    places = router.coordinators(found, router.deadline(), TRANSACTION_KEY)
    return {
        name: item if isinstance(place, BrokerError) else replace(item, coordinator=ids.get(place))
        for name, item in found.items()
        for place in (places[name],)
    }


def fence_producers(router: Router, transactional_ids: Collection[str]) -> dict[str, Writer]:
    """Fence whoever has each transactional id, and have what he left open aborted.

    Returns once that is done. An id that is not there is refused, as being fenced would make it.

    Returns:
        The producer id and epoch that each transactional id has now; older epochs are fenced.

    Raises:
        BrokerError: there is no such transactional id, or it may not be written with; `usable` has
            those that were fenced.
    """
    check_set("transactional_ids", transactional_ids, "transactional id")
    with nothing_done_yet():
        describe_transactions(router, transactional_ids)
    for wanted_ms in _FENCING_TIMEOUTS_MS:
        try:
            return _fence(router, transactional_ids, wanted_ms)
        except BrokerError as error:
            if error.code != INVALID_TRANSACTION_TIMEOUT:
                raise
            refused = error
    raise refused


def _fence(
    router: Router, transactional_ids: Collection[str], timeout_ms: int
) -> dict[str, Writer]:
    question: Question[str, Writer] = Question(
        "fence producers",
        lambda part: InitProducerIdRequest(
            transactional_id=part[0], transaction_timeout_ms=timeout_ms
        ),
        lambda answer, part: {part[0]: _fenced(answer, part[0])},
        cut(1),
    )
    return ask(router, question, transactional_ids, partial(coordinator_places, router))


def _fenced(answer: InitProducerIdResponse, transactional_id: str) -> Writer | BrokerError:
    if answer.error_code:
        subject = f"transactional id {transactional_id!r}"
        return refusal(answer.error_code, answer.API_NAME, subject)
    return Writer(transactional_id, answer.producer_id, answer.producer_epoch)
