"""Questions about many things at once, each put to the broker that can answer it.

All requests are sent before the first answer is awaited, several on a connection if need be; what
is missing from the answers is asked for again, of whoever has it by then. Who has it (a leader, a
coordinator, the controller) is told by the caller.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, Protocol, TypeVar

from pyspark_kafkaproto.cluster.topology import Broker, Topology
from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    KafkaProtoError,
    LocalProtocolError,
    RemoteProtocolError,
    Throttled,
    UnsupportedVersion,
)
from pyspark_kafkaproto.net import (
    ClientConfig,
    Connection,
    Deadline,
    Endpoint,
    wait_for_answers,
)
from pyspark_kafkaproto.net.retry import is_retriable
from pyspark_kafkaproto.wire.path import within
from pyspark_kafkaproto.wire.standing import message_of

_K = TypeVar("_K")
_T = TypeVar("_T")

# More than one hides the way to the broker and back; a bound keeps both socket buffers from filling
# up, which would leave each side waiting for the other to read.
_MOST_IN_FLIGHT = 8

_SHOWN = 5


class Asker(Protocol):
    """Whom to ask through: what this module and `coordinators` need of a `Router`.

    That imports both of them.
    """

    config: ClientConfig

    def deadline(self) -> Deadline:
        """The end of one call of the API."""

    def connect(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """An open connection with nothing in flight."""

    def forget_for(self, error: KafkaProtoError) -> bool:
        """Forget what `error` shows to be out of date."""

    def note_failure(self, endpoint: Endpoint, error: KafkaProtoError) -> None:
        """A request to this broker met `error`."""

    def ask_any(self, request: Any, deadline: Deadline) -> Any:
        """The answer of whichever broker answers first, one round over them."""

    def at_any(self, attempt: Callable[[Endpoint], _T], deadline: Deadline) -> _T:
        """The same with an attempt of any kind."""

    def topology(self, topics: Collection[str] | None, deadline: Deadline) -> Topology:
        """Fresh metadata, one try."""

    def retrying(self, what: str, attempt: Callable[[], _T], deadline: Deadline) -> _T:
        """`attempt` until it succeeds."""


def whole(things: list[_K]) -> list[list[_K]]:
    """All of a broker's things in one request."""
    return [things]


def cut(size: int) -> Callable[[list[_K]], Iterator[list[_K]]]:
    """At most `size` things in a request."""

    def parts(things: list[_K]) -> Iterator[list[_K]]:
        for start in range(0, len(things), size):
            yield things[start : start + size]

    return parts


@dataclass(frozen=True, slots=True)
class Question(Generic[_K, _T]):
    """What to ask about things of one kind, which can be sorted and shown.

    Args:
        what: names the work in errors.
        make_request: from the things of one request.
        read: an answer's result or error per thing of the request; may raise the BrokerError of
            the whole answer.
        parts: cuts what one broker is asked about into requests.
        most: the highest version of the request to use.
        least: the lowest, where what is asked means something else to brokers before.
        note_unsent: is told of things whose request never left.
        is_trial: whether it only asks if a change could be made.
    """

    what: str
    make_request: Callable[[list[_K]], Any]
    read: Callable[[Any, list[_K]], Mapping[_K, _T | BrokerError]]
    parts: Callable[[list[_K]], Iterable[list[_K]]] = whole
    most: int | None = None
    least: int = 0
    note_unsent: Callable[[list[_K]], None] | None = None
    is_trial: bool = False


def ask(
    router: Asker,
    question: Question[_K, _T],
    wanted: Iterable[_K],
    find_places: Callable[[set[_K], Deadline], Mapping[_K, Endpoint | BrokerError]],
    deadline: Deadline | None = None,
) -> dict[_K, _T]:
    """The answer about each of `wanted`, from where `find_places` says.

    What fails for good keeps nothing else from being asked for, and from being tried again.

    Args:
        router: whom to ask through.
        question: what to ask.
        wanted: what to ask about.
        find_places: the broker to ask about each, or why none is known; one try.
        deadline: when to give up; None: at the end of a call of the API.

    Raises:
        BrokerError: the first error that no retry mends; it names what else failed. `usable`, of
            all other errors too, has the results so far.
        RemoteProtocolError: an answer is not about what was asked.
    """
    return _Inquiry(router, question, find_places, deadline).about(set(wanted))


def each_place(
    things: Iterable[_K], place_of: Callable[[_K], Endpoint]
) -> dict[_K, Endpoint | BrokerError]:
    """For `ask`: the broker to ask about each thing, or the BrokerError that `place_of` raises."""
    places: dict[_K, Endpoint | BrokerError] = {}
    for thing in things:
        try:
            places[thing] = place_of(thing)
        except BrokerError as error:
            places[thing] = error
    return places


class _Inquiry(Generic[_K, _T]):
    """One question's work, and what became of each thing: `_done`, or `_failed` for good."""

    def __init__(
        self,
        router: Asker,
        question: Question[_K, _T],
        find_places: Callable[[set[_K], Deadline], Mapping[_K, Endpoint | BrokerError]],
        deadline: Deadline | None,
    ) -> None:
        self._router = router
        self._question = question
        self._find_places = find_places
        self._deadline = deadline or router.deadline()
        self._done: dict[_K, _T] = {}
        self._failed: dict[_K, BrokerError] = {}
        self._first_met: dict[tuple[_K, str], float] = {}

    def about(self, wanted: set[_K]) -> dict[_K, _T]:
        """See `ask`."""

        def attempt() -> None:
            failures = self._ask_once(wanted - self._done.keys() - self._failed.keys())
            again = self._worth_another_try(failures)
            for error in again[1:]:  # `retrying` sees to the first
                self._router.forget_for(error)
            if again:
                raise again[0]

        last: KafkaProtoError | None = None
        try:
            if wanted:
                self._router.retrying(self._question.what, attempt, self._deadline)
        except KafkaProtoError as error:
            last = error
        worst = self._worst(last)
        if worst is not None:
            worst.usable, worst.refused = dict(self._done), dict(self._failed)
            raise worst
        return self._done

    def _ask_once(self, missing: set[_K]) -> dict[_K, KafkaProtoError]:
        """Ask about all of `missing`; the errors of those about which there is no result."""
        question = self._question
        places = self._find_places(missing, self._deadline)
        failures: dict[_K, KafkaProtoError] = {
            thing: error for thing, error in places.items() if isinstance(error, BrokerError)
        }
        requests = list(_requests(question, places))
        bodies = [(place, question.make_request(part)) for place, part in requests]
        answers = send_all(self._router, bodies, self._deadline, question.most, question.least)
        for (place, part), answer in zip(requests, answers, strict=True):
            if question.note_unsent and _is_unsent(answer):
                question.note_unsent(part)
            for thing, result in _results(question, place, part, answer).items():
                if isinstance(result, KafkaProtoError):
                    failures[thing] = result
                else:
                    self._done[thing] = result
        return failures

    def _worth_another_try(self, failures: Mapping[_K, KafkaProtoError]) -> list[KafkaProtoError]:
        """Those errors that a retry may mend, the one that is worth the longest wait first.

        Raises:
            KafkaProtoError: one that is about more than its thing, and that no retry mends.
        """
        again = []
        for thing, error in failures.items():
            if is_retriable(error) and not self._has_outlasted(thing, error):
                again.append(error)
            elif isinstance(error, BrokerError):
                self._failed[thing] = error
            else:
                raise error
        return sorted(again, key=lambda error: -error.patience_s)

    def _has_outlasted(self, thing: _K, error: KafkaProtoError) -> bool:
        """Whether it has lasted longer than it is worth a retry."""
        if error.patience_s == inf:
            return False
        now = time.monotonic()
        since = self._first_met.setdefault((thing, str(error)), now)
        return now - since >= error.patience_s

    def _worst(self, last: KafkaProtoError | None) -> KafkaProtoError | None:
        """What to tell of: the first failure for good, with the others; else `last`.

        Args:
            last: what ended the tries, if they did not come to their end.
        """
        if not self._failed or (last is not None and not is_retriable(last)):
            return last
        errors = [self._failed[thing] for thing in sorted(self._failed)]  # type: ignore[type-var]  # see Question
        others = list(dict.fromkeys(error.subject for error in errors))[1:]
        if others:
            errors[0].add_line(f"also failed: {listed(others)}")
        if last is not None:
            errors[0].add_line(str(last))
        return errors[0]


def _is_unsent(answer: Any | KafkaProtoError) -> bool:
    if isinstance(answer, ConnectionFailed):
        return answer.stage not in ("send", "receive")
    unsent = (AuthenticationFailed, LocalProtocolError, Throttled, UnsupportedVersion)
    return isinstance(answer, unsent)


def listed(names: list[str]) -> str:
    """The first few of them, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _requests(
    question: Question[_K, Any], places: Mapping[_K, Endpoint | BrokerError]
) -> Iterator[tuple[Endpoint, list[_K]]]:
    by_place: dict[Endpoint, list[_K]] = {}
    for thing, place in places.items():
        if isinstance(place, Endpoint):
            by_place.setdefault(place, []).append(thing)
    for place, things in by_place.items():
        for part in question.parts(sorted(things)):  # type: ignore[type-var]  # see Question
            yield place, part


def _results(
    question: Question[_K, _T], place: Endpoint, part: list[_K], answer: Any | KafkaProtoError
) -> Mapping[_K, _T | KafkaProtoError]:
    """An answer's result or error per thing; what is wrong with the whole of it is so for each."""
    if isinstance(answer, KafkaProtoError):
        return dict.fromkeys(part, answer)
    where = f"{question.what}, broker {place}"
    try:
        results = question.read(answer, part)
        check_complete(where, part, results)
    except BrokerError as error:
        return dict.fromkeys(part, error.at(str(place)))
    except RemoteProtocolError as error:  # raised later: what others have done is to be told, too
        named = error if error.where == where else within(error, f"{where}, {error.where}")
        return dict.fromkeys(part, named)
    return {
        thing: result.at(str(place)) if isinstance(result, BrokerError) else result
        for thing, result in results.items()
    }


def check_complete(where: str, asked: Collection[Any], answered: Collection[Any]) -> None:
    """An answer that leaves something out would be waited for, or taken for nothing there."""
    for things, what in (
        (set(asked) - set(answered), "not answered"),
        (set(answered) - set(asked), "answered, but not asked about"),
    ):
        if things:
            names = ", ".join(sorted(map(str, things)))
            raise RemoteProtocolError(f"{names}: {what}", where=where)


def send_all(
    router: Asker,
    requests: Sequence[tuple[Endpoint, Any]],
    deadline: Deadline,
    most: int | None = None,
    least: int = 0,
) -> list[Any | KafkaProtoError]:
    """The answer to each request, or the error that kept it away; brokers work side by side."""
    answers: list[Any | KafkaProtoError] = [None] * len(requests)
    lines: dict[Endpoint, _Line] = {}
    for number, (place, request) in enumerate(requests):
        line = lines.setdefault(place, _Line(router, place, deadline, (most, least), answers))
        line.unsent.append((number, request))
    try:
        for line in lines.values():
            line.send()
        for line in lines.values():
            line.wait_anew()  # who was reached for in vain took of the others' time
        while waiting := [line for line in lines.values() if line.sent]:
            for line in _whose_turn(waiting):
                line.receive()
                line.send()
    finally:
        for line in lines.values():
            line.leave_nothing_in_flight()
    return answers


def ask_all_brokers(
    router: Asker, what: str, request: Any, read: Callable[[Any, Broker], Mapping[_K, _T]]
) -> dict[_K, _T]:
    """What all brokers together know, where each knows a part.

    Args:
        router: whom to ask through.
        what: names the work in errors.
        request: the same for each.
        read: an answer's part, with the broker that gave it.
    """
    deadline = router.deadline()

    def attempt() -> dict[_K, _T]:
        brokers = router.topology((), deadline).brokers.values()
        found: dict[_K, _T] = {}
        answers = send_all(router, [(broker.endpoint, request) for broker in brokers], deadline)
        for broker, answer in zip(brokers, answers, strict=True):
            if isinstance(answer, KafkaProtoError):
                raise answer
            found |= read(answer, broker)
        return found

    return router.retrying(what, attempt, deadline)


def _whose_turn(waiting: list[_Line]) -> list[_Line]:
    """Those that have answered, or have no time left: who is silent keeps no other's answer out."""
    if len(waiting) == 1 and not waiting[0].due.has_passed:
        return waiting
    by_connection = {line.connection: line for line in waiting if line.connection is not None}
    wait_s = min(line.due.remaining_s for line in waiting)
    ready = wait_for_answers(list(by_connection), wait_s)
    over = (line for line in waiting if line.due.has_passed and line.connection not in ready)
    return [*map(by_connection.__getitem__, ready), *over]


class _Line:
    """What one broker is asked: requests not sent yet, and those whose answers are awaited.

    Attributes:
        connection: to it, once it was reached.
        due: until when the next answer is waited for.
    """

    def __init__(
        self,
        router: Asker,
        place: Endpoint,
        deadline: Deadline,
        versions: tuple[int | None, int],
        answers: list[Any | KafkaProtoError],
    ) -> None:
        self.unsent: deque[tuple[int, Any]] = deque()
        self.sent: deque[int] = deque()
        self._router = router
        self._place = place
        self._deadline = deadline
        self._versions = versions
        self._answers = answers
        self.connection: Connection | None = None
        self.due = deadline

    def send(self) -> None:
        """Send as many as may be in flight."""
        while self.unsent and self._has_room:
            number, request = self.unsent.popleft()
            self.sent.append(number)
            try:
                if self.connection is None:
                    self.connection = self._router.connect(self._place, self._soon())
                kind = type(message_of(request))
                version = self.connection.version_for(kind, *self._versions)
                self.connection.send(request, self._soon(), version)
                self.wait_anew()
            except Throttled as error:  # nothing of it left; what was sent before is answered yet
                self.unsent.appendleft((self.sent.pop(), request))
                self._fail_unsent(error)
            except KafkaProtoError as error:
                self._fail(error)

    @property
    def _has_room(self) -> bool:
        if self.connection is not None and self.connection.must_drain:
            return False
        return len(self.sent) < _MOST_IN_FLIGHT

    def receive(self) -> None:
        """Take one answer, if any is awaited."""
        if self.sent and self.connection is not None:
            try:
                reply = self.connection.receive(self.due)
            except KafkaProtoError as error:
                self._fail(error)
            else:
                self._answers[self.sent.popleft()] = reply.message
                self.wait_anew()

    def wait_anew(self) -> None:
        """The next answer has its whole time from now on."""
        self.due = self._soon()

    def leave_nothing_in_flight(self) -> None:
        """Whoever comes next would take our answers for theirs: after Ctrl-C, for one."""
        if self.connection is not None and self.connection.in_flight:
            self.connection.close()

    def _soon(self) -> Deadline:
        return self._deadline.sooner(self._router.config.request_timeout_s)

    def _fail(self, error: KafkaProtoError) -> None:
        """What is lost with a connection is every answer that it owes, and what was to follow."""
        for number in self.sent:
            self._answers[number] = error
        self.sent.clear()
        self._fail_unsent(error)

    def _fail_unsent(self, error: KafkaProtoError) -> None:
        """Nothing more can be sent."""
        self._router.note_failure(self._place, error)
        for number, _ in self.unsent:
            self._answers[number] = error
        self.unsent.clear()


@contextmanager
def nothing_done_yet() -> Iterator[None]:
    """For questions before something is done: what was answered of them is not `usable` as done."""
    try:
        yield
    except KafkaProtoError as error:
        error.usable = None
        raise
