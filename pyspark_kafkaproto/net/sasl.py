"""SASL mechanisms as conversations, without a socket: bytes to send out, bytes received in.

A conversation is a generator: it yields what the client says and is sent what the broker answered;
it returns when the client has heard enough, and raises SaslRefused when what it heard is wrong.
PLAIN: RFC 4616. SCRAM: RFC 5802 and 7677, KIP-84, KIP-48. OAUTHBEARER: RFC 7628, KIP-255 and
KIP-342.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Generator, Mapping

from pyspark_kafkaproto.errors import KafkaProtoError

Conversation = Generator[bytes, bytes, None]

# Kafka takes new SCRAM credentials from 4,096 to 16,384 rounds. Fewer make a stolen exchange cheap
# to guess from; a number without limit would let any peer keep this processor busy at will.
LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 100_000

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_NONCE_BYTES = 24
_SHOWN_CHARACTERS = 200


class SaslRefused(KafkaProtoError):
    """The broker said something that this mechanism does not allow, or no; never a secret."""


def plain(username: str, password: str) -> Conversation:
    """PLAIN: name and password in clear; use it over TLS."""
    yield b"\0".join((b"", username.encode(), password.encode()))


def scram(
    mechanism: str,
    username: str,
    password: str,
    nonce: str | None = None,
    *,
    is_token: bool = False,
) -> Conversation:
    """SCRAM-SHA-256 or -512: the password is proved, not sent, and the broker proves to know it.

    Text goes as UTF-8 just as it is: Kafka's own clients and tools apply no SASLprep, and a
    password that was normalised here would not match what they stored. With `is_token` the two are
    the id of a delegation token and its HMAC in base64 (KIP-48).
    """
    algorithm = _HASHES[mechanism]
    own_nonce = nonce or secrets.token_urlsafe(_NONCE_BYTES)
    extension = ",tokenauth=true" if is_token else ""
    first_bare = f"n={_sasl_name(username)},r={own_nonce}{extension}"
    challenge = (yield f"n,,{first_bare}".encode()).decode("utf-8", "replace")
    said = _attributes(challenge, "rsi")
    if not said["r"].startswith(own_nonce) or len(said["r"]) == len(own_nonce):
        raise SaslRefused("the broker's nonce does not continue ours: somebody may be in between")
    salted = salted_password(mechanism, password, _salt(said["s"]), _iterations(said["i"]))
    final_bare = f"c=biws,r={said['r']}"
    message = f"{first_bare},{challenge},{final_bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    stored_key = hashlib.new(algorithm, client_key).digest()
    signature = hmac.digest(stored_key, message, algorithm)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = yield f"{final_bare},p={base64.b64encode(proof).decode()}".encode()
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    _check_signature(final.decode("utf-8", "replace"), hmac.digest(server_key, message, algorithm))


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """What brokers keep for SCRAM (RFC 5802's SaltedPassword): whoever has it can log in with it.

    Text goes as in `scram`.
    """
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def oauthbearer(token: str, extensions: Mapping[str, str]) -> Conversation:
    """OAUTHBEARER: a token, with extensions if the broker wants some."""
    further = "".join(f"{key}={value}\x01" for key, value in extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token}\x01{further}\x01".encode()
    if refusal:
        # The broker says no twice: with this answer, and with an error once it is acknowledged.
        yield b"\x01"
        raise SaslRefused(f"the broker does not accept the token: {_read_refusal(refusal)}")


def _sasl_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _attributes(message: str, names: str) -> dict[str, str]:
    """The `r=…,s=…,i=…` of a message: exactly `names` first, in this order."""
    found = {part[:1]: part[2:] for part in message.split(",") if part[1:2] == "="}
    if "e" in found:
        raise SaslRefused(f"the broker answers {_shown(found['e'])}")
    if "".join(found)[: len(names)] != names:
        raise SaslRefused(f"the broker's message has not the parts {', '.join(names)}")
    return found


def _salt(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslRefused("the broker's salt is not base64") from None


def _iterations(text: str) -> int:
    """The number of rounds; it comes from the peer, so it is bounded at both ends."""
    rounds = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else -1
    if not LEAST_ITERATIONS <= rounds <= MOST_ITERATIONS:
        raise SaslRefused(
            f"the broker wants {_shown(text)} iterations: {LEAST_ITERATIONS} to "
            f"{MOST_ITERATIONS} are accepted"
        )
    return rounds


def _check_signature(message: str, expected: bytes) -> None:
    given = _attributes(message, "v")["v"]
    if not hmac.compare_digest(given.encode(), base64.b64encode(expected)):
        raise SaslRefused(
            "the broker's signature is wrong: it does not know this password, whoever it is"
        )


def _read_refusal(refusal: bytes) -> str:
    try:
        said = json.loads(refusal)
    except (ValueError, RecursionError):  # the latter of brackets alone
        return _shown(refusal.decode("utf-8", "replace"))
    return _shown(str(said.get("status", said) if isinstance(said, dict) else said))


def _shown(text: str) -> str:
    """A peer's words, fit for an error: short, and printable alone."""
    return repr(text[:_SHOWN_CHARACTERS])
