"""Who looks at the frames of connections: told here once, asked for every new connection.

A room above sets an observer; this one knows frames and addresses, not what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark_kafkaproto.net.transport import Endpoint

if TYPE_CHECKING:
    from pyspark_kafkaproto.net.config import ClientConfig

# `sent` or `received`, a frame without its size prefix in one piece or more (the first one holds
# all that stands before the records), and when: ns since 1970.
OnFrame = Callable[[str, Sequence[memoryview], int], None]
Observer = Callable[["ClientConfig", str, Endpoint], OnFrame | None]

_observers: list[Observer] = []


def observe_connections(observer: Observer) -> None:
    """Ask `observer` about every new connection: (configuration, our address, the broker's)."""
    if observer not in _observers:
        _observers.append(observer)


def observer_of(config: ClientConfig, here: str, broker: Endpoint) -> OnFrame | None:
    """What wants to see the frames of a connection; None where nothing does."""
    found = [look for observer in _observers if (look := observer(config, here, broker))]
    if len(found) < 2:
        return found[0] if found else None

    def look_all(direction: str, pieces: Sequence[memoryview], time_ns: int) -> None:
        for look in found:
            look(direction, pieces, time_ns)

    return look_all
