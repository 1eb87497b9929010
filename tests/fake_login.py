"""Fake brokers that want a login (PLAIN, or SCRAM), and what a client says to them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
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


class ScramServer:
    """Who answers SaslAuthenticate as a broker does: SCRAM-SHA-512, for users and for tokens.

    Args:
        users: passwords by name.
        tokens: HMACs in base64 by id: they stand for passwords where the extension says so alone.
        lifetime_s: how long a login with a token lasts now.
    """

    def __init__(
        self,
        users: Mapping[str, str],
        tokens: Mapping[str, str],
        lifetime_s: Callable[[], float] = lambda: 0,
    ) -> None:
        self.users, self.tokens, self.lifetime_s = users, tokens, lifetime_s
        self.logged_in: list[str] = []  # names and ids
        self._open: dict[tuple[int, int], tuple[str, str, bool]] = {}

    def __call__(self, call: Call) -> SaslAuthenticateResponse:
        where = call.node_id, call.connection
        said = call.request.auth_bytes.decode()
        if where not in self._open:
            return self._challenge(where, said)
        return self._judge(*self._open.pop(where), said)

    def _challenge(self, where: tuple[int, int], said: str) -> SaslAuthenticateResponse:
        bare = said.removeprefix("n,,")
        name, nonce, *extensions = bare.split(",")
        assert extensions in ([], ["tokenauth=true"])
        challenge = f"{nonce}more,s={base64.b64encode(b'salt').decode()},i=4096"
        self._open[where] = name.removeprefix("n="), f"{bare},{challenge}", bool(extensions)
        return SaslAuthenticateResponse(auth_bytes=challenge.encode())

    def _judge(self, name: str, before: str, is_token: bool, said: str) -> SaslAuthenticateResponse:
        password = (self.tokens if is_token else self.users).get(name)
        bare, _, proof = said.rpartition(",p=")
        message = f"{before},{bare}".encode()
        salted = hashlib.pbkdf2_hmac("sha512", (password or "").encode(), b"salt", 4096)
        client_key = hmac.digest(salted, b"Client Key", "sha512")
        signature = hmac.digest(hashlib.sha512(client_key).digest(), message, "sha512")
        wanted = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if password is None or base64.b64decode(proof) != wanted:
            why = "Authentication failed during authentication due to invalid credentials"
            return SaslAuthenticateResponse(error_code=58, error_message=why, auth_bytes=b"")
        self.logged_in.append(name)
        server_key = hmac.digest(salted, b"Server Key", "sha512")
        verifier = base64.b64encode(hmac.digest(server_key, message, "sha512"))
        return SaslAuthenticateResponse(
            auth_bytes=b"v=" + verifier,
            session_lifetime_ms=int(self.lifetime_s() * 1000) if is_token else 0,
        )
