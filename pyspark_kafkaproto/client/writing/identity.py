"""Producer ids: who writes, as brokers know it (InitProducerId, KIP-98)."""

from __future__ import annotations

from typing import Final

from pyspark_kafkaproto.client.writing.queues import Identity
from pyspark_kafkaproto.client.writing.verdicts import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    NEEDS_IDEMPOTENT_WRITE,
)
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_LAST_EPOCH: Final = 2**15 - 1
_NO_TIMEOUT_MS: Final = 2**31 - 1


def new_identity(router: Router) -> Identity:
    """An identity that nobody has had: any broker gives one.

    Raises:
        BrokerError: this user may not have one.
    """
    deadline = router.deadline()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)

    def attempt() -> Identity:
        answer: InitProducerIdResponse = router.ask_any(request, deadline)
        if answer.error_code:
            is_about_right = answer.error_code == CLUSTER_AUTHORIZATION_FAILED
            text = NEEDS_IDEMPOTENT_WRITE if is_about_right else ""
            raise BrokerError(answer.error_code, "InitProducerId", "the producer", text)
        return Identity(answer.producer_id, answer.producer_epoch)

    return router.retrying("get a producer id", attempt, deadline)


def next_identity(router: Router, before: Identity, error: BrokerError) -> Identity:
    """What to go on with where a broker no longer knows `before`.

    The next epoch, so that nothing sent under the last one can be written any more (KIP-360); a new
    producer id where epochs are used up, or somebody else has a later one.
    """
    if error.code == INVALID_PRODUCER_EPOCH or before.epoch >= _LAST_EPOCH:
        return new_identity(router)
    return before._replace(epoch=before.epoch + 1)
