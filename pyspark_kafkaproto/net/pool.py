"""Connections kept open, per full client configuration and per process.

Workers of Spark are reused from task to task, and forked from a daemon: a connection made before
the fork belongs to the parent alone, so the pool begins anew when it finds itself in a new process.
"""

from __future__ import annotations

import os

from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.connection import Connection, OnFrame
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.transport import Endpoint


class Connections:
    """Connections to brokers, opened on first use. For one thread at a time.

    One per broker, unless several readers take turns: whoever has a request in flight keeps its
    connection to itself until the answer is there.
    """

    def __init__(self, config: ClientConfig, on_frame: OnFrame | None = None) -> None:
        self.config = config
        self._on_frame = on_frame
        self._open: dict[Endpoint, list[Connection]] = {}
        self._owner_pid = os.getpid()

    def get(self, endpoint: Endpoint, deadline: Deadline) -> Connection:
        """An open connection to `endpoint` with nothing in flight: a kept one, or a new one.

        Who sends on it and then does not wait for the answer has to close it.
        """
        self._leave_parents_connections()
        kept = self._open.setdefault(endpoint, [])
        for connection in list(kept):
            if connection.is_idle:
                return connection
            if not connection.in_flight:  # closed, here or by the broker
                connection.close()
                kept.remove(connection)
        kept.append(Connection.open(endpoint, self.config, deadline, self._on_frame))
        return kept[-1]

    def close(self) -> None:
        """Close all."""
        for kept in self._open.values():
            for connection in kept:
                connection.close()
        self._open = {}

    def _leave_parents_connections(self) -> None:
        """After a fork: forget the parent's sockets. Closing our copies does not close theirs."""
        if self._owner_pid != os.getpid():
            self.close()
            self._owner_pid = os.getpid()


_pools: dict[ClientConfig, Connections] = {}


def connections_for(config: ClientConfig) -> Connections:
    """This process's connections for exactly this configuration, kept from task to task."""
    if config not in _pools:
        _pools[config] = Connections(config)
    return _pools[config]
