"""What only the controller can do, asked of it: of whichever broker passes it on, since KRaft.

A broker of a cluster without ZooKeeper passes what it is asked on to the controller; one of an
older cluster answers NOT_CONTROLLER, and the controller is looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask
from pyspark_kafkaproto.cluster.changing import change
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import Topology
from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_CONTROLLER,
)
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from pyspark_kafkaproto.net import Deadline, Endpoint

_K = TypeVar("_K")
_T = TypeVar("_T")


def ask_controller(
    router: Router,
    question: Question[_K, _T],
    things: Collection[_K],
    done: int | None = None,
) -> dict[_K, _T]:
    """`change`, asked of the controller for all of `things`."""
    return change(router, question, things, partial(controller_places, router), done)


def ask_controller_once(
    router: Router, what: str, request: Any, read: Callable[[Any], _T], least: int = 0
) -> _T:
    """One question to the controller that is not about many things.

    Args:
        router: whom to ask through.
        what: names the work in errors.
        request: what to ask.
        read: turns the answer into a result, or raises its BrokerError.
        least: the lowest version of the request to use.
    """
    question: Question[str, _T] = Question(
        what, lambda _: request, lambda answer, _: {what: read(answer)}, least=least
    )
    return ask(router, question, [what], partial(controller_places, router))[what]


@contextmanager
def needing_kraft(what: str) -> Iterator[None]:
    """Say why a broker has no request of this kind: every broker without ZooKeeper has them.

    Args:
        what: that ZooKeeper's clusters lack.
    """
    try:
        yield
    except UnsupportedVersion as error:
        lacking = f"there is no {what} where brokers keep their metadata in ZooKeeper, not in KRaft"
        raise UnsupportedVersion(f"{error}: {lacking}") from error


def controller_places(
    router: Router, things: Collection[_K], deadline: Deadline
) -> dict[_K, Endpoint | BrokerError]:
    """For `ask`: the controller, for all of `things`."""
    return dict.fromkeys(things, controller_of(router.topology((), deadline)))


def controller_of(topology: Topology) -> Endpoint:
    """The broker to ask for changes.

    Raises:
        BrokerError: there is none at the moment.
    """
    broker = topology.brokers.get(topology.controller_id)
    if broker is None:
        raise BrokerError(NOT_CONTROLLER, "Metadata", "the cluster", "no controller is known")
    return broker.endpoint


def refusal(code: int, api: str, subject: str, message: str | None) -> BrokerError:
    """The error of an answer.

    What controllers say of a missing right is a request of theirs at full length, and which right
    it is we know ourselves.
    """
    text = "" if code == CLUSTER_AUTHORIZATION_FAILED else message or ""
    return BrokerError(code, api, subject, text)


def timeout_ms(router: Router) -> int:
    """How long the broker may take: less than we wait for its answer."""
    return int(router.config.request_timeout_s * 1000 * 0.9)
