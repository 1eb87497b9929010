"""Which brokers can be reached, and which of them to ask what any of them can answer.

`Contacts` remembers who answered and who did not, so that a broker that hangs is waited for once.
It knows nothing of what brokers have: leaders, coordinators and topics are `routing`'s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from threading import get_ident
from typing import Any, Self, TypeVar

from pyspark_kafkaproto.cluster.advertised import explained
from pyspark_kafkaproto.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
    RemoteProtocolError,
)
from pyspark_kafkaproto.net import ClientConfig, Connection, Connections, Deadline, Endpoint

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

# Who hangs still takes connections and requests, and says nothing then. Others agree on a version,
# and begin to answer, sooner, nearly always; after each that does not the next one has twice as
# long, and the last one, and all of them later, have all the time there is.
_ANSWERS_WITHIN_S = 3.0
# Who did not answer, and has come back, answers by then. It is not waited for longer where others
# do answer, if with something old, but once in a while: it may be slow, or far away.
_IF_BACK_S = 0.3
_LEFT_ALONE_S = 30.0
BOOTSTRAP = "bootstrap"
"""The stage behind those of a connection: to learn of the cluster."""


class Contacts:
    """Reaches brokers, and asks whichever answers.

    Args:
        config: the client's configuration.
        connections: shared ones; None makes its own.
        met: brokers that somebody has met already: who does not answer is away, and no wrong
            address.
    """

    def __init__(
        self, config: ClientConfig, connections: Connections | None, met: Iterable[Endpoint]
    ) -> None:
        self.config = config
        self.connections = connections or Connections(config)
        self._told = tuple(dict.fromkeys(met))
        self._behind: dict[Endpoint, None] = {}  # asked last, whoever is the longest first
        self._left_alone: dict[Endpoint, Deadline] = {}  # of these, who does not answer
        self._met: tuple[Endpoint, ...] = ()  # the bootstrap server that answered last
        self._answered: Endpoint | None = None  # whoever answered `ask_any` last
        self._failed: dict[Endpoint, KafkaProtoError] = {}  # why, the last time
        self._in_haste_s = _ANSWERS_WITHIN_S  # for whom another one can stand in
        self._end: Deadline | None = None  # of all calls, where there is one
        self._ends: dict[int, Deadline] = {}  # of each thread's call
        self._warned: set[Endpoint] = set()
        self._reached: set[Endpoint] = set()

    def _of_cluster(self) -> Collection[Endpoint] | None:
        """The brokers that the cluster was said to have; None: nobody has told yet."""
        return None

    def within(self, timeout_s: float) -> Self:
        """The same with what it knows; all its calls together end within `timeout_s`.

        A single request has a third of that, so that a broker that hangs is not all that is tried.
        """
        hasty = self.waiting(timeout_s / 3)
        hasty._end = self.deadline().sooner(timeout_s)  # noqa: SLF001 - one of this class
        return hasty

    def waiting(self, timeout_s: float) -> Self:
        """The same with what it knows, which waits for no broker longer than `timeout_s`.

        For each, so that one that takes its time leaves the others theirs.
        """
        hasty = copy(self)
        hasty._ends = dict(self._ends)  # noqa: SLF001 - one of this class
        timeout_s = min(self.config.request_timeout_s, timeout_s)
        hasty.config = replace(self.config, request_timeout_s=timeout_s)
        return hasty

    @contextmanager
    def one_call(self) -> Iterator[None]:
        """Inside, all questions together have the time of one call of the API.

        Those of this thread: an end that another one found and put back would be in the past.
        """
        me = get_ident()
        if me in self._ends:  # a part of a call that began before
            yield
            return
        self._ends[me] = self.deadline()
        try:
            yield
        finally:
            del self._ends[me]

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    def deadline(self) -> Deadline:
        """The end of one call of the API (default.api.timeout.ms)."""
        own = self._end or self._ends.get(get_ident())
        return own or Deadline.after(self.config.default_api_timeout_s)

    # Any broker

    def ask_any(self, request: Any, deadline: Deadline) -> Any:
        """`at_any` with one request, in the best version that the broker speaks."""
        return self.at_any(lambda place: self._ask(place, request, deadline), deadline)

    def at_any(self, attempt: Callable[[Endpoint], _T], deadline: Deadline) -> _T:
        """One round over the brokers: the first answer, known ones first, then the bootstrap ones.

        Raises:
            ConnectionFailed: names every broker that was tried and why it failed. Where nobody has
                ever met the cluster it is worth a retry only for
                socket.connection.setup.timeout.ms, and not at all where no name resolves: a wrong
                address should not take a minute.
            RemoteProtocolError: whoever was tried does not speak Kafka's protocol.
        """
        failures: dict[Endpoint, KafkaProtoError] = {}
        began = time.monotonic()
        for endpoint in self._candidates():
            try:
                answer = attempt(endpoint)
            except (ConnectionFailed, DeadlineExceeded, RemoteProtocolError) as error:
                failures[endpoint] = error
                # A copy: whoever meets this one may hold much in the frames of its traceback.
                self._failed[endpoint] = copy(error)
                self.ask_last(endpoint)
                if deadline.has_passed:
                    break
            else:
                self._behind.pop(endpoint, None)
                self._left_alone.pop(endpoint, None)
                self._answered = endpoint
                if endpoint in self.config.bootstrap_servers:
                    self._met = (endpoint,)
                return answer
        failed = _all_failed(failures)
        if self._of_cluster() is None and not self._told:
            failed = self._advised(failed)
            is_misspelt = getattr(failed, "stage", "") == "resolve"
            left_s = began + self.config.connection_setup_timeout_s - time.monotonic()
            failed.patience_s = 0.0 if is_misspelt else max(0.0, left_s)
        raise failed

    def _advised(self, error: KafkaProtoError) -> KafkaProtoError:
        """`error`, with what to look at where not even a connection was made."""
        if not isinstance(error, ConnectionFailed) or error.was_connected:
            return error
        name = self.config.named("bootstrap.servers")
        advice = f"is {name} right, and does a broker run there? `kafkaproto doctor` may tell more"
        return error.with_reason(f"{error.reason} ({advice})")

    def waits_for(self) -> dict[Endpoint, KafkaProtoError | None]:
        """Whom it has asked in vain so far, and why; empty once anybody has answered."""
        if self._answered is not None:
            return {}
        return {place: self._failed.get(place) for place in self.config.bootstrap_servers}

    def waits_for_text(self) -> str:
        """The same in a line; empty once anybody has answered."""
        shown = (
            f"{place} ({getattr(error, 'reason', error)})" if error else str(place)
            for place, error in self.waits_for().items()
        )
        return ", ".join(shown)

    def distrust_last(self) -> None:
        """The last answer of `ask_any` was out of date: its broker is asked last the next time."""
        if self._answered is not None:
            self._put_last(self._answered)

    def request(
        self, connection: Connection, request: Any, deadline: Deadline, most: int | None = None
    ) -> Any:
        """`Connection.request`; whoever does not answer is noted."""
        try:
            return connection.request(request, deadline, most)
        except KafkaProtoError as error:
            self.note_failure(connection.endpoint, error)
            raise

    def note_failure(self, endpoint: Endpoint, error: KafkaProtoError) -> None:
        """A request to this broker met `error`: one that did not answer is not whom to ask next.

        Whoever looks for another one would first wait for it again: the kernel of a process that
        hangs still takes connections.
        """
        if isinstance(error, (ConnectionFailed, DeadlineExceeded)):
            self.ask_last(endpoint)

    def ask_last(self, endpoint: Endpoint) -> None:
        """Have `ask_any` try this broker, which did not answer, behind all others."""
        self._put_last(endpoint)
        end = self._left_alone.get(endpoint)
        if end is None or end.has_passed:
            self._left_alone[endpoint] = Deadline.after(_LEFT_ALONE_S)

    def _put_last(self, endpoint: Endpoint) -> None:
        self._behind.pop(endpoint, None)
        self._behind[endpoint] = None

    def connect(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """An open connection with nothing in flight; see `Connections.get`.

        Raises:
            ConnectionFailed: where the address is an advertised one, with what to do about it. That
                is said once in a warning, too: who tries again may do so for a minute.
        """
        try:
            connection = self.connections.get(endpoint, deadline)
        except DeadlineExceeded:
            self.ask_last(endpoint)
            raise
        except ConnectionFailed as error:
            self.ask_last(endpoint)
            given = self.config.bootstrap_servers
            # The user's own, and what was right before: the broker is away.
            if endpoint in given or endpoint in self._reached:
                raise
            asked = self._met or given
            failed = explained(error, endpoint, asked, self.config.security_protocol)
            if failed is not error and endpoint not in self._warned:
                self._warned.add(endpoint)
                _log.warning("%s", failed)
            raise failed from error
        self._reached.add(endpoint)
        return connection

    def has_reached(self, endpoint: Endpoint) -> bool:
        """Whether this broker has taken a connection of ours."""
        return endpoint in self._reached

    def _everybody(self) -> dict[Endpoint, None]:
        """Whom anybody's questions may be put to: known ones, then the bootstrap ones."""
        known = self._of_cluster() or ()
        return dict.fromkeys((*known, *self._told, *self.config.bootstrap_servers))

    def _candidates(self) -> list[Endpoint]:
        every = self._everybody()
        first = [endpoint for endpoint in every if endpoint not in self._behind]
        # Who wants silence would be waited for, while another one may answer at once; so would who
        # did not answer somebody else of this process.
        first.sort(key=self.connections.throttling.__contains__)
        first.sort(key=self.connections.has_failed)
        return first + [endpoint for endpoint in self._behind if endpoint in every]

    def _ask(self, endpoint: Endpoint, request: Any, deadline: Deadline) -> Any:
        soon = deadline.sooner(self.config.request_timeout_s)
        in_haste = not self._is_doubted(endpoint) and any(
            other != endpoint and not self._is_doubted(other) for other in self._everybody()
        )
        if endpoint in self._left_alone and self._behind.keys() - self._left_alone.keys():
            # Others answer, if with something old: a partition may have no leader for long.
            in_haste = self._left_alone[endpoint].has_passed
            soon = soon if in_haste else soon.sooner(_IF_BACK_S)
        connected = soon.sooner(self._in_haste_s) if in_haste else soon
        try:
            connection = self.connect(endpoint, connected)
            return connection.request(request, soon, None, self._in_haste_s if in_haste else None)
        except KafkaProtoError:
            if in_haste and connected.has_passed:
                # It may be the way there that is slow: with many brokers, each of which is given up
                # too early, the time of a call would be over before anybody had enough.
                self._in_haste_s *= 2
            raise

    def _is_doubted(self, endpoint: Endpoint) -> bool:
        """Whether it was asked in vain the last time, here or by somebody else of this process."""
        return endpoint in self._left_alone or self.connections.has_failed(endpoint)


def _all_failed(failures: Mapping[Endpoint, KafkaProtoError]) -> KafkaProtoError:
    """One error for a round in which no broker answered."""
    errors = list(failures.values())
    if len(errors) == 1 or all(isinstance(error, RemoteProtocolError) for error in errors):
        return errors[0]
    stages = {getattr(error, "stage", "receive") for error in errors}
    stage = stages.pop() if len(stages) == 1 else BOOTSTRAP
    reasons = (f"{place}: {_reason(error)}" for place, error in failures.items())
    return ConnectionFailed(", ".join(map(str, failures)), stage, "; ".join(reasons))


def _reason(error: KafkaProtoError) -> str:
    return error.reason if isinstance(error, ConnectionFailed) else str(error)
