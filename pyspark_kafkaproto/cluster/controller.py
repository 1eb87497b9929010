"""What only the controller can do, asked of it: of whichever broker passes it on, since KRaft.

A broker of a cluster without ZooKeeper passes what it is asked on to the controller; one of an
older cluster answers NOT_CONTROLLER, and the controller is looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, ask
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.cluster.topology import Topology
from pyspark_kafkaproto.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
)
from pyspark_kafkaproto.errors import BrokerError, UnsupportedVersion
from pyspark_kafkaproto.net import Deadline, Endpoint

_K = TypeVar("_K")
_T = TypeVar("_T")

_EARLIER_TRY = "an earlier try may have done it: its answer was lost, or told of no end"


def ask_controller(
    router: Router,
    question: Question[_K, None],
    things: Collection[_K],
    done: int | None = None,
    find_places: Callable[[set[_K], Deadline], Mapping[_K, Endpoint | BrokerError]] | None = None,
    *,
    is_ours: bool = False,
) -> None:
    """Change something.

    Args:
        router: whom to ask through.
        question: what to ask.
        things: what it is about.
        done: the error code that a second try meets where the first one came through: if there may
            have been such a first try, the error's text says so.
        find_places: as for `ask`; None: the controller, for all.
        is_ours: whether `done` tells after such a try that it was that one.
    """
    sent: set[_K] = set()
    doubtful: set[_K] = set()  # sent before, and not known to have changed nothing

    def request(part: list[_K]) -> Any:
        doubtful.update(sent.intersection(part))
        sent.update(part)
        return question.make_request(part)

    def outcome(thing: _K, error: BrokerError | None) -> BrokerError | None:
        if error is None or error.code == REQUEST_TIMED_OUT:
            return error
        sent.discard(thing)
        if error.code != done or thing not in doubtful:
            return error
        return None if is_ours else _perhaps_ours(error)

    def outcomes(answer: Any, part: list[_K]) -> dict[_K, BrokerError | None]:
        return {
            thing: outcome(thing, error) for thing, error in question.read(answer, part).items()
        }

    asked = replace(question, make_request=request, read=outcomes)
    ask(router, asked, things, find_places or partial(controller_places, router))


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


def _perhaps_ours(error: BrokerError) -> BrokerError:
    text = "; ".join(filter(None, (error.message, _EARLIER_TRY)))
    told = BrokerError(error.code, error.api, error.subject, text)
    told.patience_s = error.patience_s
    return told
