"""Producer ids: who writes, as brokers know it (InitProducerId, KIP-98).

A broker remembers each producer id in each partition that it wrote to, for a day
(producer.id.expiration.ms). One for every task of a stream would be millions, which brokers have
died of (KIP-936): so a producer that has ended well leaves its id to the next one in its process.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from pyspark_kafkaproto.client.writing.sequences import Identity
from pyspark_kafkaproto.client.writing.verdicts import WITHOUT_IDEMPOTENT_WRITE
from pyspark_kafkaproto.cluster import Router
from pyspark_kafkaproto.error_codes import CLUSTER_AUTHORIZATION_FAILED, INVALID_PRODUCER_EPOCH
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyspark_kafkaproto.net import ClientConfig

_LAST_EPOCH: Final = 2**15 - 1
_NO_TIMEOUT_MS: Final = 2**31 - 1
_MOST_KEPT: Final = 16  # more than threads of one process write at a time


class _Home(NamedTuple):
    """Where an identity is good: in the process that got it, for its configuration and cluster.

    A child process never takes what its parent goes on with. The cluster's own id tells it from one
    that was set up anew at the same address, and gives the same numbers again.
    """

    pid: int
    config: ClientConfig
    cluster_id: str | None


# Each of them is either here or one producer's. Threads need no lock: a deque's ends are taken
# and given in one step, and a child process would inherit a lock as its parent's threads held it.
_kept: deque[tuple[_Home, Identity]] = deque(maxlen=_MOST_KEPT)


class Lease:
    """One producer's identity, which another one has had or will have, never at the same time.

    The next one writes under the next epoch, from sequence 0. A leader takes that whatever it knows
    of the last one, and nothing of the last one after it (KIP-360): what may still be under way on
    a lost connection cannot come between. A leader that has forgotten the id takes any epoch and
    sequence, so that identities may be kept for longer than brokers keep theirs.
    """

    def __init__(self, router: Router) -> None:
        self._router = router
        self._home: _Home | None = None

    def take(self) -> Identity:
        """A kept identity in its next epoch, or a new one.

        Raises:
            BrokerError: this user may not have one.
        """
        self._home = _Home(os.getpid(), self._router.config, self._router.cluster_id)
        for _ in range(len(_kept)):
            try:
                home, identity = _kept.popleft()
            except IndexError:  # other threads were faster
                break
            if home == self._home:
                return identity._replace(epoch=identity.epoch + 1)
            _kept.append((home, identity))
        return new_identity(self._router)

    def give_back(self, used: Iterable[Identity]) -> None:
        """Leave the identity to the next producer. Only for one that has written all it sent.

        Args:
            used: what its partitions were written under at the end. Epochs may differ: the last one
                counts. Where ids differ somebody else was met under the first one: none is kept.
        """
        home, self._home = self._home, None
        last = _last_of(used)
        if last is not None and home is not None and home.pid == os.getpid():
            _kept.append((home, last))


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
            text = WITHOUT_IDEMPOTENT_WRITE if is_about_right else ""
            raise BrokerError(answer.error_code, "InitProducerId", "the producer", text)
        return Identity(answer.producer_id, answer.producer_epoch)

    return router.retrying("get a producer id", attempt, deadline)


def later_identity(used: Iterable[Identity]) -> Identity | None:
    """One that none of the leaders which took batches of these has seen; None: a new one is needed.

    As where epochs are used up, or some of these are of another id.
    """
    last = _last_of(used)
    return None if last is None else last._replace(epoch=last.epoch + 1)


def _last_of(used: Iterable[Identity]) -> Identity | None:
    """The one of the last epoch; None where it has no next one, or ids differ, or there is none."""
    identities = set(used)
    if len({each.producer_id for each in identities}) != 1:
        return None
    last = max(identities)
    return last if last.epoch < _LAST_EPOCH else None


def next_identity(router: Router, before: Identity, error: BrokerError) -> Identity:
    """What to go on with where a broker no longer knows `before`.

    The next epoch, so that nothing sent under the last one can be written any more (KIP-360); a new
    producer id where epochs are used up, or somebody else has a later one.
    """
    if error.code == INVALID_PRODUCER_EPOCH or before.epoch >= _LAST_EPOCH:
        return new_identity(router)
    return before._replace(epoch=before.epoch + 1)
