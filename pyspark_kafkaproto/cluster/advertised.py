"""Why a broker that was found cannot be reached: the address that it advertises.

Clients ask a listener where the brokers are, and connect to what that listener advertises. A first
contact that works and a second one that does not is nearly always a wrong advertised.listeners: a
container's own name, an address of another network, localhost.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark_kafkaproto.errors import ConnectionFailed
from pyspark_kafkaproto.net import Endpoint


def explained(
    error: ConnectionFailed, place: Endpoint, asked: Collection[Endpoint], protocol: str
) -> ConnectionFailed:
    """`error`, with what to do about an address that is advertised.

    Args:
        error: why `place` could not be reached.
        place: the address that was tried, which the user did not give.
        asked: the addresses that the user gave, or the one of them that answered.
        protocol: security.protocol, the usual name of a listener.
    """
    if error.was_connected:
        return error
    return error.with_reason(f"{error.reason}. {advertised_advice(place, asked, protocol)}")


def advertised_advice(place: Endpoint, asked: Collection[Endpoint], protocol: str) -> str:
    """Which listener was asked, what it advertised, and the line to set."""
    listener = ", ".join(map(str, sorted(asked)))
    line = f"advertised.listeners={protocol}://{min(asked)}"
    return (
        f"The listener that was asked, {listener}, advertises this address, {place}. If the broker "
        "runs and it is the address that cannot be reached from here, set the one that can, for "
        f"that listener, in the broker's server.properties: {line}"
    )
