"""Which messages are shown: the filters of the command line and of the page."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from pyspark_kafkaproto.capture.about import about
from pyspark_kafkaproto.capture.message import Message, Peers
from pyspark_kafkaproto.capture.subjects import About
from pyspark_kafkaproto.wire.ids import id_of


class Shown(NamedTuple):
    """A message that was selected, with what it is about."""

    message: Message
    found: About


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a message must have to be shown; empty: anything.

    Attributes:
        apis: names, as in the protocol guide.
        topics: names, or ids.
        clients: client ids, or addresses as `host` or `host:port`.
        only_errors: an error code of the broker, or bytes that cannot be read.
        slower_than_ns: responses that took at least as long.
        connection: the number of one connection.
    """

    apis: Collection[str] = ()
    topics: Collection[str] = ()
    clients: Collection[str] = ()
    only_errors: bool = False
    slower_than_ns: int | None = None
    connection: int | None = None

    def choose(self, message: Message) -> Shown | None:
        """The message if it is wanted. Its body is looked at only after its header has passed."""
        if not self._is_header_wanted(message):
            return None
        found = about(message)
        if self.topics and not any(_is_about(topic, found, message) for topic in self.topics):
            return None
        if self.only_errors and not (found.errors or message.problem):
            return None
        return Shown(message, found)

    def wants_connection(self, peers: Peers) -> bool | None:
        """Whether a connection is wanted by itself; None: if one of its messages is."""
        if self.connection is not None:
            return peers.number == self.connection
        if not {peers.client, _host(peers.client)}.isdisjoint(self.clients):
            return True
        of_messages = self.apis or self.topics or self.clients or self.slower_than_ns is not None
        return None if of_messages else True

    def _is_header_wanted(self, message: Message) -> bool:
        if self.connection is not None and message.peers.number != self.connection:
            return False
        if self.apis and message.api not in self.apis:
            return False
        if self.slower_than_ns is not None and (message.latency_ns or 0) < self.slower_than_ns:
            return False
        return not self.clients or self._is_client_wanted(message)

    def _is_client_wanted(self, message: Message) -> bool:
        address = message.peers.client
        return not {message.client_id, address, _host(address)}.isdisjoint(self.clients)


def _is_about(topic: str, found: About, message: Message) -> bool:
    """Whether a topic, by its name or id, is among those that were found."""
    if topic in found.topics:
        return True
    topic_id = id_of(topic)
    return topic_id is not None and message.topic_names.get(topic_id) in found.topics


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
