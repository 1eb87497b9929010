"""Fake brokers that want a login (PLAIN), and what a client says to them."""

from __future__ import annotations

from itertools import count
from typing import Any

from pyspark_kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from pyspark_kafkaproto.messages.sasl_handshake import SaslHandshakeResponse
from pyspark_kafkaproto.net import Connections
from tests.fake_broker import Call, FakeCluster, close
from tests.fake_log import fetch

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="me" password="hunter2";'
)
LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": JAAS,
}
AS_KEYWORDS = {name.replace(".", "_"): value for name, value in LOGIN.items()}


def want_login(cluster: FakeCluster) -> None:
    """From now on its nodes take logins, those of anybody, without an end."""
    cluster.versions |= {"SaslHandshake": (0, 1), "SaslAuthenticate": (0, 2)}
    cluster.on("SaslHandshake", SaslHandshakeResponse(mechanisms=("PLAIN",)))
    cluster.on("SaslAuthenticate", logged_in())


def login_again(cluster: FakeCluster, connections: Connections) -> None:
    """With each Fetch the logins on `connections` end, and every other login fails."""
    logins = count()

    def log_in(_: Call) -> Any:
        return close() if next(logins) % 2 else logged_in()

    def answer(call: Call) -> Any:
        for connection in connections.kept:
            connection._renew_login_at = 0.0
        return fetch(cluster, call)

    cluster.on("SaslAuthenticate", log_in)
    cluster.on("Fetch", answer)


def logged_in(lifetime_s: float = 0) -> SaslAuthenticateResponse:
    """The answer to a login that ends then; 0: never."""
    return SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=int(lifetime_s * 1000))
