"""SASL over a connection: SaslHandshake, SaslAuthenticate, and how long what they gave lasts.

KIP-43, KIP-152; sessions that end and are renewed on the same connection: KIP-368.
"""

from __future__ import annotations

import logging
import random
import time
from math import inf
from typing import Any, NamedTuple, Protocol

from pyspark_kafkaproto.error_codes import (
    ILLEGAL_SASL_STATE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from pyspark_kafkaproto.errors import AuthenticationFailed, BrokerError, KafkaProtoError
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

_log = logging.getLogger(__name__)

# As the Java client: somewhere in these parts of a session, so that clients do not come in waves.
_RENEWED_FROM, _RENEWED_TO = 0.85, 0.95
# A broker takes who comes back sooner, counted from when the last SaslHandshake has come to it, for
# somebody who must not log in there (ILLEGAL_SASL_STATE).
_SOONEST_RENEWAL_S = 1.0

_UNKNOWN = (
    "this broker knows no such delegation token, or its HMAC is another one: it may have expired, "
    "or was made by another cluster (kafkaproto tokens list shows those that there are, for who "
    "logs in with a password); check what"
)
_EXPIRED = (
    "the delegation token has expired: tokens are renewed before that (kafkaproto tokens renew), "
    "and now another one has to be made (kafkaproto tokens create)"
)


class Login(NamedTuple):
    """When a login is to be renewed, and when it is over, on the monotonic clock; `inf`: never."""

    renew_at: float = inf
    ends_at: float = inf


class Asks(Protocol):
    """The part of a connection that is needed here.

    Attributes:
        endpoint: to whom it is.
        login_ends_at: when its login is over on the monotonic clock; in the past: there is none.
    """

    endpoint: Endpoint
    login_ends_at: float

    def request(self, request: Any, deadline: Deadline, most: int | None = None) -> Any:
        """Send, and wait for the answer."""


def authenticate(connection: Asks, config: SecurityConfig, deadline: Deadline) -> Login:
    """Say who we are; where there is no token to say it with, the login of before holds to its end.

    Raises:
        AuthenticationFailed: the broker refuses, or is not the one it should be.
        KafkaProtoError: no token is to be had, see `begin_login`, and no login of before holds.
    """
    left_s = connection.login_ends_at - time.monotonic()
    # Whoever sends on a login that holds needs time for that, too.
    soon = deadline.sooner(min(deadline.remaining_s, left_s) / 2) if left_s > 0 else deadline
    try:
        conversation = begin_login(config, soon)
    except KafkaProtoError as error:
        return _held(connection, error)
    return _log_in(conversation, connection, config, deadline)


def _held(connection: Asks, error: KafkaProtoError) -> Login:
    """The login of before, renewed later; raises where it is over."""
    left_s = connection.login_ends_at - time.monotonic()
    if left_s <= 0:
        raise error
    place = connection.endpoint
    _log.warning("%s: the login of before is used, for %.0f s yet: %s", place, left_s, error)
    again_s = min(max(_SOONEST_RENEWAL_S, left_s / 2), left_s)
    return Login(time.monotonic() + again_s, connection.login_ends_at)


def _log_in(
    conversation: Conversation, connection: Asks, config: SecurityConfig, deadline: Deadline
) -> Login:
    mechanism = config.sasl_mechanism or ""
    is_token = config.logs_in_with_token
    began = time.monotonic()
    _agree_on(mechanism, connection, config, deadline)
    try:
        lifetime_ms = _converse(conversation, connection, deadline)
    except SaslRefused as refused:
        raise AuthenticationFailed(str(connection.endpoint), mechanism, str(refused)) from None
    except BrokerError as error:
        if error.code not in {SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE}:
            raise
        jaas = config.named("sasl.jaas.config")
        advice = _UNKNOWN if is_token else "check what"
        raise AuthenticationFailed(
            str(connection.endpoint),
            mechanism,
            f"{error.message or error.error.name}: {advice} {jaas} says",
        ) from None
    if is_token and lifetime_ms <= 0:
        # A token has an end, which is told; of one that is over brokers close the connection next.
        raise AuthenticationFailed(str(connection.endpoint), mechanism, _EXPIRED)
    if lifetime_ms <= 0:
        return Login()
    share = random.uniform(_RENEWED_FROM, _RENEWED_TO)  # noqa: S311 - jitter, no secret
    lifetime_s = lifetime_ms / 1000
    soonest = time.monotonic() + _SOONEST_RENEWAL_S  # what we have said has come by now
    return Login(max(soonest, began + lifetime_s * share), began + lifetime_s)


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
