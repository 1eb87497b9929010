"""SASL over a connection: SaslHandshake, SaslAuthenticate, and how long what they gave lasts.

KIP-43, KIP-152; sessions that end and are renewed on the same connection: KIP-368.
"""

from __future__ import annotations

import random
import time
from typing import Any, Protocol

from pyspark_kafkaproto.error_codes import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from pyspark_kafkaproto.errors import AuthenticationFailed, BrokerError
from pyspark_kafkaproto.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.login import begin_login
from pyspark_kafkaproto.net.sasl import Conversation, SaslRefused
from pyspark_kafkaproto.net.security import SecurityConfig
from pyspark_kafkaproto.net.transport import Endpoint

# As the Java client: somewhere in these parts of a session, so that clients do not come in waves.
_RENEWED_FROM, _RENEWED_TO = 0.85, 0.95
_SOONEST_RENEWAL_S = 1.0  # a broker ends connections that come back sooner


class Asks(Protocol):
    """The part of a connection that is needed here."""

    endpoint: Endpoint

    def request(self, request: Any, deadline: Deadline, most: int | None = None) -> Any:
        """Send, and wait for the answer."""


def authenticate(connection: Asks, config: SecurityConfig, deadline: Deadline) -> float:
    """Say who we are; returns when to do so again on the monotonic clock (`inf`: never).

    Raises:
        AuthenticationFailed: the broker refuses, or is not the one it should be.
    """
    conversation = begin_login(config, deadline)
    mechanism = config.sasl_mechanism or ""
    began = time.monotonic()
    _agree_on(mechanism, connection, config, deadline)
    try:
        lifetime_ms = _converse(conversation, connection, deadline)
    except SaslRefused as refused:
        raise AuthenticationFailed(str(connection.endpoint), mechanism, str(refused)) from None
    except BrokerError as error:
        if error.code not in {SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE}:
            raise
        raise AuthenticationFailed(
            str(connection.endpoint),
            mechanism,
            f"{error.message or error.error.name}: check what "
            f"{config.named('sasl.jaas.config')} says",
        ) from None
    if lifetime_ms <= 0:
        return float("inf")
    share = random.uniform(_RENEWED_FROM, _RENEWED_TO)  # noqa: S311 - jitter, no secret
    return began + max(_SOONEST_RENEWAL_S, lifetime_ms / 1000 * share)


def _agree_on(mechanism: str, connection: Asks, config: SecurityConfig, deadline: Deadline) -> None:
    answer = connection.request(SaslHandshakeRequest(mechanism=mechanism), deadline)
    place = str(connection.endpoint)
    if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms) or "none"
        why = f"this listener offers {offered}: see {config.named('sasl.mechanism')}"
        raise AuthenticationFailed(place, mechanism, why)
    if answer.error_code == ILLEGAL_SASL_STATE:
        plain = "SSL" if config.uses_tls else "PLAINTEXT"
        why = f"this listener knows no SASL: set {config.named('security.protocol')} to {plain}, "
        why += "or give the port of a listener with SASL"
        raise AuthenticationFailed(place, mechanism, why)
    if answer.error_code:
        raise BrokerError(answer.error_code, "SaslHandshake", f"broker {place}")


def _converse(conversation: Conversation, connection: Asks, deadline: Deadline) -> int:
    """Carry messages both ways until the mechanism has heard enough."""
    message = next(conversation)
    while True:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer: SaslAuthenticateResponse = connection.request(request, deadline)
        if answer.error_code:
            subject = f"broker {connection.endpoint}"
            text = answer.error_message or ""
            raise BrokerError(answer.error_code, "SaslAuthenticate", subject, text)
        try:
            message = conversation.send(answer.auth_bytes)
        except StopIteration:
            return answer.session_lifetime_ms
