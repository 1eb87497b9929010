"""What a beginning that breaks tells about the peer, as errors say it. Pure.

Each names the property to look at as it was given.
"""

from __future__ import annotations

from pyspark_kafkaproto.net.security import SecurityConfig

SILENT = "connected, and nothing answers: is this a Kafka listener?"


def of_handshake(config: SecurityConfig) -> str:
    """The peer hangs up, or breaks off, before it has told its versions."""
    if config.uses_tls:
        name = config.named("ssl.keystore.location")
        return f"a listener that wants a client certificate does this: see {name}"
    name = config.named("security.protocol")
    return f"a TLS listener does this to a plaintext client: see {name}"


def of_first_request(config: SecurityConfig) -> str:
    """The peer has told its versions, and hangs up at what comes next."""
    wanted = "SASL_SSL" if config.uses_tls else "SASL_PLAINTEXT or SASL_SSL"
    return (
        "a listener with SASL does this to a client that does not log in: set "
        f"{config.named('security.protocol')} to {wanted}"
    )


def of_bytes(prefix: bytes, config: SecurityConfig) -> str:
    """The peer sends these where the size of a frame should stand; "" where they tell nothing."""
    if prefix[:2] == b"\x15\x03":
        name = config.named("security.protocol")
        return f"; these bytes are a TLS alert: set {name} to SSL or SASL_SSL"
    if prefix.isascii() and prefix.decode().isprintable():
        return f"; these bytes read {prefix.decode()!r}: is this a Kafka listener?"
    return ""
