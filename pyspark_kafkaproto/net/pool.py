"""Connections kept open, per full client configuration and per process.

There is one per broker and thread, and for each reader more that takes turns in a thread.
Configurations are a bounded number.

Workers of Spark are reused from task to task, and forked from a daemon: a connection made before
the fork belongs to the parent alone, so the pool begins anew when it finds itself in a new process.
Threads that read side by side never get the same connection: each could take the other's answers.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from dataclasses import dataclass, field

from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.connection import Connection
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.transport import Endpoint

# Jobs on one worker rarely differ in more than the user they run as.
MOST_POOLS = 8

_unreached: set[Endpoint] = set()  # by this process, the last time, with whatever configuration


@dataclass(slots=True)
class _Place:
    """What is kept for one broker and thread.

    Attributes:
        kept: its connections, each with the moment when it has been unused for too long.
        failures: how often in a row it was not reached, or refused us; `error` is the last reason.
        quiet: until when it is left alone after that.
        address: with which of its name's addresses to begin: the next after each failure.
    """

    kept: dict[Connection, Deadline] = field(default_factory=dict)
    failures: int = 0
    error: KafkaProtoError | None = None
    quiet: Deadline | None = None
    address: int = 0

    def take(self, connection: Connection, end: Deadline | None = None) -> bool:
        """Take a connection out, to use it or to close it; False if another thread was faster.

        Only connections that were unused for long are taken by other threads than their own.
        Whoever uses one puts it back with a new end, so a thread that wants to close it passes the
        `end` that it has seen: the connection is taken only if that is still its end.
        """
        found = self.kept.pop(connection, None)
        if found is None:
            return False
        if end is None or found is end:
            return True
        self.kept[connection] = found
        return False


class Connections:
    """Connections to brokers, opened on first use; who got one uses it in the same thread.

    One per broker and thread, unless several readers take turns: whoever has a request in flight
    keeps its connection to itself until the answer is there. One that nobody used for
    connections.max.idle.ms is closed, and a broker that could not be reached is left alone for
    reconnect.backoff.ms, doubled up to reconnect.backoff.max.ms, with jitter. So is one that
    refused our login: who tries that again waits here, as brokers, and accounts, bear few of them.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._places: dict[tuple[Endpoint, int], _Place] = {}
        self._owner_pid = os.getpid()

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer on one of them."""
        return any(connection.in_flight for connection in self.kept)

    @property
    def kept(self) -> list[Connection]:
        """All connections that are kept, those in use too."""
        return [one for place in list(self._places.values()) for one in list(place.kept)]

    @property
    def throttling(self) -> set[Endpoint]:
        """The brokers that want silence for now: this thread's next request waits (KIP-219)."""
        return {
            endpoint
            for endpoint, place in self._own_places().items()
            if any(one.is_throttled for one in list(place.kept))
        }

    @staticmethod
    def has_failed(endpoint: Endpoint) -> bool:
        """Whether this process could not open the last connection that it wanted to this broker.

        All of a process's pools know: planning makes a new one each time, and would each time wait
        for the same broker that hangs.
        """
        return endpoint in _unreached

    def get(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """An open connection to `endpoint` with nothing in flight: a kept one, or a new one.

        Who sends on it and then does not wait for the answer has to close it.

        Raises:
            KafkaProtoError: it could not be opened; within the time that the broker is left alone
                this is the error of the try before.
        """
        self._leave_parents_connections()
        self._close_unused()
        place = self._places.setdefault((endpoint, threading.get_ident()), _Place())
        for connection in list(place.kept):
            if connection.in_flight or not place.take(connection):
                continue
            if connection.is_idle:
                place.kept[connection] = Deadline.after(self.config.connections_max_idle_s)
                return connection
            connection.close()  # as it was already, here or by the broker
        if place.error and place.quiet and not place.quiet.has_passed:
            if isinstance(place.error, AuthenticationFailed):
                time.sleep(min(place.quiet.remaining_s, deadline.remaining_s))
            if not place.quiet.has_passed:
                raise copy.copy(place.error)
        connection = self._open(place, endpoint, deadline)
        place.kept[connection] = Deadline.after(self.config.connections_max_idle_s)
        return connection

    def _open(self, place: _Place, endpoint: Endpoint, deadline: Deadline) -> Connection:
        try:
            connection = Connection.open(endpoint, self.config, deadline, first=place.address)
        except (AuthenticationFailed, ConnectionFailed, DeadlineExceeded) as error:
            place.failures += 1
            if not isinstance(error, AuthenticationFailed):
                _unreached.add(endpoint)
                place.address += 1
            place.error = copy.copy(error)  # who catches this one may write on it
            place.quiet = Deadline.after(self.config.reconnect_backoff.wait_s(place.failures))
            raise
        _unreached.discard(endpoint)
        place.failures, place.error = 0, None
        return connection

    def _own_places(self) -> dict[Endpoint, _Place]:
        """Those of this thread."""
        own = threading.get_ident()
        places = list(self._places.items())
        return {endpoint: place for (endpoint, thread), place in places if thread == own}

    def _close_unused(self) -> None:
        for place in list(self._places.values()):
            for connection, end in list(place.kept.items()):
                if end.has_passed and not connection.in_flight and place.take(connection, end):
                    connection.close()

    def close_ended(self) -> None:
        """Close what is of no use any more: brokers have ended it, or nobody used it for too long.

        Of those that were ended only this thread's: another may be about to use its own.
        """
        self._leave_parents_connections()
        self._close_unused()
        for place in self._own_places().values():
            for connection in list(place.kept):
                is_of_use = connection.in_flight or connection.is_idle
                if not is_of_use and place.take(connection):
                    connection.close()

    def close(self) -> None:
        """Close all."""
        for connection in self.kept:
            connection.close()
        self._places = {}

    def _leave_parents_connections(self) -> None:
        """After a fork: forget the parent's sockets. Closing our copies does not close theirs."""
        if self._owner_pid != os.getpid():
            self.close()
            self._owner_pid = os.getpid()


class _Shared(Connections):
    """Those of all readers of a configuration: whoever goes last closes them."""

    def __del__(self) -> None:
        self.close()


_pools: dict[ClientConfig, Connections] = {}


def connections_for(config: ClientConfig) -> Connections:
    """This process's connections for exactly this configuration, kept from task to task.

    Of the configurations that were not used for longest all beyond MOST_POOLS are let go.
    """
    pool = _pools.pop(config, None) or _Shared(config)
    _pools[config] = pool  # the last one used stands last
    for other, unused in list(_pools.items())[:-1]:
        if len(_pools) > MOST_POOLS and not unused.is_busy:
            _pools.pop(other, None)  # not closed: another thread may be about to use it
    for kept in list(_pools.values()):
        kept.close_ended()  # those that nobody uses would do that never
    return pool
