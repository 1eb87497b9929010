"""What a connection begins with: ApiVersions, and what to make of a peer that does not answer it.

KIP-35, KIP-511.
"""

from __future__ import annotations

from typing import Any, Protocol

from pyspark_kafkaproto import __version__
from pyspark_kafkaproto.error_codes import UNKNOWN_SERVER_ERROR, UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import BrokerError, ConnectionFailed, DeadlineExceeded
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.net import hints
from pyspark_kafkaproto.net.config import ClientConfig
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.transport import TLS_STAGE, Endpoint
from pyspark_kafkaproto.net.versions import BrokerVersions

# Every broker since 3.8 speaks it; a higher one costs most of them a second round trip.
_FIRST_API_VERSIONS = 4


class Speaks(Protocol):
    """The part of a connection that is needed here."""

    endpoint: Endpoint

    def send(self, request: Any, deadline: Deadline, version: int | None = None) -> None:
        """Send without waiting for the answer."""

    def receive(self, deadline: Deadline) -> Any:
        """Wait for it: what has it as its `message`."""


def agree_on_versions(
    connection: Speaks, versions: BrokerVersions, config: ClientConfig, deadline: Deadline
) -> None:
    """Ask which versions the broker speaks, in one that brokers know, else in one that it names.

    Args:
        connection: new.
        versions: that of this broker; what it says is noted there.
        config: for what an error tells to look at.
        deadline: when to give up.

    Raises:
        ConnectionFailed: it hangs up, which listeners do that want TLS, or a certificate; or it is
            in trouble itself.
        DeadlineExceeded: it says nothing.
        BrokerError: it says no versions.
    """
    try:
        answer = _ask(connection, _FIRST_API_VERSIONS, deadline)
        if answer.error_code == UNSUPPORTED_VERSION:
            versions.note(answer)
            answer = _ask(connection, versions.to_ask_with(), deadline)
    except ConnectionFailed as error:
        if error.stage == TLS_STAGE:
            raise
        hint = hints.of_handshake(config)
        raise ConnectionFailed(error.broker, "handshake", f"{error.reason} ({hint})") from error
    except DeadlineExceeded as error:
        what = f"broker {connection.endpoint}: handshake ({hints.SILENT})"
        raise DeadlineExceeded(what, error.timeout_s, error.attempts) from error
    if answer.error_code == UNKNOWN_SERVER_ERROR:  # another one may be well, or this one later
        why = "it cannot tell its versions, its log says why (UNKNOWN_SERVER_ERROR)"
        raise ConnectionFailed(str(connection.endpoint), "handshake", why)
    if answer.error_code:
        raise BrokerError(answer.error_code, "ApiVersions", f"broker {connection.endpoint}")
    versions.note(answer)


def _ask(connection: Speaks, version: int, deadline: Deadline) -> ApiVersionsResponse:
    request = ApiVersionsRequest(
        client_software_name="pyspark-kafkaproto", client_software_version=__version__
    )
    connection.send(request, deadline, version)
    answer: ApiVersionsResponse = connection.receive(deadline).message
    return answer
