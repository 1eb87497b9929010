"""Changes asked of whoever makes them, and what the answer to a second try means.

A change whose answer was lost is asked for again, and may have been made by then. Who makes it (the
controller, a coordinator) is told by the caller, as for `asking`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from pyspark_kafkaproto.cluster.asking import Asker, Question, ask, listed
from pyspark_kafkaproto.error_codes import REQUEST_TIMED_OUT
from pyspark_kafkaproto.errors import BrokerError, KafkaProtoError
from pyspark_kafkaproto.net import Deadline, Endpoint

_K = TypeVar("_K")
_T = TypeVar("_T")

_EARLIER_TRY = "an earlier try may have done it: its answer was lost, or told of no end"


class Tries(Generic[_K]):
    """Which things an earlier try may have changed: it was sent, and no answer says otherwise."""

    def __init__(self) -> None:
        self._open: set[_K] = set()
        self._doubtful: set[_K] = set()

    def send(self, things: Collection[_K]) -> None:
        """These are asked for, perhaps again."""
        self._doubtful.update(self._open.intersection(things))
        self._open.update(things)

    def note_answer(self, thing: _K, code: int) -> None:
        """What an answer says of `thing`."""
        if code != REQUEST_TIMED_OUT:
            self._open.discard(thing)

    def note_unsent(self, things: Collection[_K]) -> None:
        """The last try did not reach whoever makes the change."""
        self._open.difference_update(set(things) - self._doubtful)

    def may_be_done(self, thing: _K) -> bool:
        """Whether a try before the last one may have done it."""
        return thing in self._doubtful

    def is_unanswered(self, thing: _K) -> bool:
        """Whether some try, the last one too, may have done it without telling."""
        return thing in self._doubtful or thing in self._open

    def tell_doubt(self, error: KafkaProtoError, things: Collection[_K]) -> None:
        """Have the `error` of a change to `things` say which of them may have been done."""
        told = {*(error.usable or ()), *(error.refused or ())}
        in_doubt = [thing for thing in things if thing not in told and self.is_unanswered(thing)]
        if in_doubt:
            error.add_line(_in_doubt(in_doubt, things))


def change(
    router: Asker,
    question: Question[_K, _T],
    things: Collection[_K],
    find_places: Callable[[set[_K], Deadline], Mapping[_K, Endpoint | BrokerError]],
    done: int | None = None,
    *,
    is_ours: bool = False,
) -> dict[_K, _T]:
    """Change something; what `ask` gives.

    Args:
        router: whom to ask through.
        question: what to ask.
        things: what it is about.
        find_places: as for `ask`.
        done: the error code that a second try meets where the first one came through: if there may
            have been such a first try, the error's text says so.
        is_ours: whether `done` tells after such a try that it was that one: its result is None.

    Raises:
        KafkaProtoError: as `ask`; says of what no answer told that it may have been done.
    """
    tries: Tries[_K] = Tries()

    def request(part: list[_K]) -> Any:
        tries.send(part)
        return question.make_request(part)

    def outcome(thing: _K, result: _T | BrokerError) -> _T | BrokerError:
        if not isinstance(result, BrokerError):
            return result
        tries.note_answer(thing, result.code)
        if result.code != done or not tries.may_be_done(thing):
            return result
        return cast("_T", None) if is_ours else _perhaps_ours(result)

    def outcomes(answer: Any, part: list[_K]) -> dict[_K, _T | BrokerError]:
        return {
            thing: outcome(thing, result) for thing, result in question.read(answer, part).items()
        }

    asked = replace(question, make_request=request, read=outcomes, note_unsent=tries.note_unsent)
    try:
        return ask(router, asked, things, find_places)
    except KafkaProtoError as error:
        if not question.is_trial:
            tries.tell_doubt(error, things)
        raise


def _in_doubt(in_doubt: Collection[object], things: Collection[object]) -> str:
    text = "it may have been done all the same, an answer was lost or told of no end: look first"
    return text if len(things) == 1 else f"{text}: {listed(sorted(map(str, in_doubt)))}"


def _perhaps_ours(error: BrokerError) -> BrokerError:
    return error.saying("; ".join(filter(None, (error.message, _EARLIER_TRY))))
