"""TLS between a transport and its bytes: who is trusted, how long it may take, what went wrong.

Versions from 1.2 on, the host's name checked unless `ssl.endpoint.identification.algorithm` is
empty. An `ssl` socket knows no kernel time-outs and gives at most one record (16 KiB) per call.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Sequence

from pyspark_kafkaproto.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    KafkaProtoError,
)
from pyspark_kafkaproto.net.arrival import Arrival
from pyspark_kafkaproto.net.deadline import Deadline
from pyspark_kafkaproto.net.secret import HIDDEN
from pyspark_kafkaproto.net.security import SecurityConfig
from pyspark_kafkaproto.net.stores import KeyPair, own_identity, trusted_certificates
from pyspark_kafkaproto.net.transport import (
    CLOSED,
    TLS_STAGE,
    Endpoint,
    Transport,
    open_socket,
)

_TLS = "TLS"

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# Python offers no choice among these: a list has to hold all of them or none.
_SUITES_1_3 = {
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
}

# OpenSSL's X509_V_ERR_… numbers
_EXPIRED, _NOT_YET_VALID = 10, 9
_WRONG_HOST = {62, 64}
_NO_TRUST = {2, 18, 19, 20, 21, 26}

# Alerts of a broker that does not like our certificate, or misses one
_CERTIFICATE_ALERTS = (
    "ALERT_BAD_CERTIFICATE",
    "ALERT_CERTIFICATE_EXPIRED",
    "ALERT_CERTIFICATE_REQUIRED",
    "ALERT_CERTIFICATE_REVOKED",
    "ALERT_CERTIFICATE_UNKNOWN",
    "ALERT_UNKNOWN_CA",
    "ALERT_UNSUPPORTED_CERTIFICATE",
    "ALERT_ACCESS_DENIED",
)
_PLAINTEXT_PEER = (
    "the broker did not answer in TLS (a plaintext listener does this): give the port of a "
    "listener with TLS, or set {} to PLAINTEXT or SASL_PLAINTEXT"
)


def connect_tls(
    endpoint: Endpoint, config: SecurityConfig, deadline: Deadline, first: int = 0
) -> Transport:
    """Connect as `open_socket`, and shake hands.

    Raises:
        AuthenticationFailed: one side does not trust the other; says why and what to set.
        ConnectionFailed: no connection, or no TLS at the other end.
        DeadlineExceeded: no answer in time.
        ConfigError: certificates or keys cannot be used.
    """
    context = make_context(config)
    sock = open_socket(endpoint, deadline, first)
    try:
        sock.settimeout(max(0.001, deadline.remaining_s))
        wrapped = context.wrap_socket(sock, server_hostname=endpoint.host)
    except OSError as error:
        sock.close()
        raise _explain(error, endpoint, config, deadline) from error
    except BaseException:
        sock.close()
        raise
    return TlsTransport(wrapped, endpoint, config)


class TlsTransport(Transport):
    """A transport whose bytes are encrypted."""

    def __init__(self, sock: ssl.SSLSocket, endpoint: Endpoint, config: SecurityConfig) -> None:
        super().__init__(sock, endpoint)
        self._config = config
        self._seen = b""  # looked at already, and still to be received

    def send(self, data: bytes | memoryview, deadline: Deadline) -> None:
        """Write all of `data`."""
        left = memoryview(data)
        while left:
            self._sock.settimeout(self._left_s(deadline, "send"))
            try:
                left = left[self._sock.send(left) :]
            except OSError as error:
                raise self._failed("send", error, deadline) from error

    def _send_at_once(self, pieces: Sequence[memoryview]) -> int:
        self._sock.settimeout(0)
        try:
            return self._sock.send(pieces[0])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0  # OpenSSL wants the same bytes again, and has sent some of them

    def receive_ahead(
        self, arrival: Arrival, pos: int, piece_bytes: int, deadline: Deadline, *, thread: bool
    ) -> None:
        """Nothing: what comes through the socket is not the answer's bytes yet."""

    def _receive(self, view: memoryview, deadline: Deadline) -> int:
        """What was looked at already, or one record."""
        return self._take_seen(view) or self._await(view, deadline)

    def _take(self, view: memoryview, deadline: Deadline) -> int:
        """What was looked at already, or a record that is there."""
        if self._seen:
            return self._take_seen(view)
        self._sock.settimeout(0)
        try:
            count = self._sock.recv_into(view)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return 0
        except OSError as error:
            raise self._failed("receive", error, deadline) from error
        return self._counted(count)

    def _take_seen(self, view: memoryview) -> int:
        count = min(len(self._seen), len(view))
        view[:count], self._seen = self._seen[:count], self._seen[count:]
        return count

    def _await(self, view: memoryview, deadline: Deadline) -> int:
        """One record."""
        self._sock.settimeout(self._left_s(deadline, "receive"))
        try:
            count = self._sock.recv_into(view)
        except OSError as error:
            raise self._failed("receive", error, deadline) from error
        return self._counted(count)

    def is_readable(self) -> bool:
        """Whether a receive finds something at once: bytes, or the end."""
        if self._seen:
            return True
        # The raw socket may hold a session ticket, which is nothing to speak of; and there is no
        # looking at what is encrypted without taking it.
        try:
            self._sock.settimeout(0)
            self._seen = self._sock.recv(1)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except (OSError, ValueError):
            return True
        return True

    def _failed(self, stage: str, error: OSError, deadline: Deadline) -> KafkaProtoError:
        if isinstance(error, TimeoutError):
            return DeadlineExceeded(f"broker {self.endpoint}: {stage}", deadline.timeout_s)
        if isinstance(error, ssl.SSLError) and (refusal := _refusal(error, self._config)):
            # In TLS 1.3 the broker looks at our certificate after we are done with the handshake.
            return AuthenticationFailed(str(self.endpoint), _TLS, refusal)
        return super()._failed(stage, error, deadline)

    def _why(self, error: OSError) -> str:
        """An end without TLS's own word for it is OpenSSL's `EOF occurred in violation of …`."""
        is_end = isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError))
        return CLOSED if is_end else super()._why(error)


def make_context(config: SecurityConfig) -> ssl.SSLContext:
    """What `ssl` has to know; made anew per connection, so that renewed certificates are seen.

    Raises:
        ConfigError: certificates or keys cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(config.ssl_endpoint_identification_algorithm)
    context.verify_mode = ssl.CERT_REQUIRED
    versions = sorted(_VERSIONS[name] for name in config.ssl_enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if config.ssl_protocol == "TLSv1.2":
        _no_1_3(context, config, "ssl.protocol", config.ssl_protocol)
    if config.ssl_cipher_suites:
        _choose_suites(context, config)
    trusted = trusted_certificates(config)
    if trusted is None:
        context.load_default_certs()
    else:
        _trust(context, trusted, config)
    identity = own_identity(config)
    if identity is not None:
        _identify(context, identity, config)
    return context


def _no_1_3(context: ssl.SSLContext, config: SecurityConfig, name: str, value: str) -> None:
    if context.minimum_version == ssl.TLSVersion.TLSv1_3:
        why = f"it excludes TLSv1.3, the only one in {config.named('ssl.enabled.protocols')}"
        raise ConfigError(config.named(name), value, why)
    context.maximum_version = ssl.TLSVersion.TLSv1_2


def _no_1_2(context: ssl.SSLContext, config: SecurityConfig, name: str, value: str) -> None:
    if context.maximum_version == ssl.TLSVersion.TLSv1_2:
        protocols = " or ".join(map(config.named, ("ssl.protocol", "ssl.enabled.protocols")))
        why = f"it names suites of TLSv1.3 alone, which {protocols} excludes: name some of TLSv1.2"
        raise ConfigError(config.named(name), value, why)
    context.minimum_version = ssl.TLSVersion.TLSv1_3


def _choose_suites(context: ssl.SSLContext, config: SecurityConfig) -> None:
    name, suites = "ssl.cipher.suites", config.ssl_cipher_suites
    shown = ",".join(suites)
    newest = _SUITES_1_3 & set(suites)
    if not newest:
        _no_1_3(context, config, name, shown)
    elif newest != _SUITES_1_3 and context.maximum_version == ssl.TLSVersion.TLSv1_3:
        why = "Python cannot choose among TLS 1.3's suites: name all of them "
        why += f"({', '.join(sorted(_SUITES_1_3))}), or set "
        why += f"{config.named('ssl.enabled.protocols')} to TLSv1.2"
        raise ConfigError(config.named(name), shown, why)
    older = [suite for suite in suites if suite not in _SUITES_1_3]
    if not older:
        # TLS 1.2 would take OpenSSL's own suites, of which nobody named one; Java offers none then.
        _no_1_2(context, config, name, shown)
    try:
        # OpenSSL passes over names that it does not know as long as it knows one.
        for suite in older:
            context.set_ciphers(_openssl_name(suite))
        if older:
            context.set_ciphers(":".join(map(_openssl_name, older)))
    except ssl.SSLError:
        raise ConfigError(config.named(name), shown, "OpenSSL has not all of these") from None


def _openssl_name(suite: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 → ECDHE-RSA-AES256-GCM-SHA384."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").removeprefix("RSA_")
    name = name.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    return name.replace("_POLY1305_SHA256", "_POLY1305").replace("_", "-")


def _trust(context: ssl.SSLContext, pem: str, config: SecurityConfig) -> None:
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        where = config.ssl_truststore_location
        name = "ssl.truststore.location" if where else "ssl.truststore.certificates"
        why = f"it holds no usable certificate ({getattr(error, 'reason', None) or error})"
        raise ConfigError(config.named(name), where or "PEM text", why) from None
    # As in Java, who is given as trusted is, without whoever signed for it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def _identify(context: ssl.SSLContext, identity: KeyPair, config: SecurityConfig) -> None:
    # OpenSSL takes keys from a file alone: one that only this user reads, for a moment.
    try:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            # Not by its name, which may be another's file by now; what is left in a buffer when the
            # disk is full would keep `file` from being removed.
            with os.fdopen(file.fileno(), "w", encoding="utf-8", closefd=False) as text:
                text.write(identity.pem.reveal())
            _load_identity(context, file.name, identity, config)
    except OSError as error:  # of the file itself
        why = f"the key is in a temporary file for a moment, which failed ({error.strerror}): "
        why += "set TMPDIR to a folder that can be written"
        raise ConfigError(identity.option, identity.shown, why) from None


def _load_identity(
    context: ssl.SSLContext, file: str, identity: KeyPair, config: SecurityConfig
) -> None:
    password_name = config.named("ssl.key.password")

    def password() -> str:
        if identity.password is None:  # OpenSSL would ask at the terminal
            raise ConfigError(password_name, None, "required: the private key is encrypted")
        return identity.password.reveal()

    try:
        context.load_cert_chain(file, password=password)
    except ConfigError:
        raise
    except (OSError, ValueError) as error:  # the latter of a password that is too long
        reason = getattr(error, "reason", None) or str(error) or "bad decrypt"
        # `BEGIN ENCRYPTED …`, or `Proc-Type: 4,ENCRYPTED` in OpenSSL's older form
        if identity.password is not None and "ENCRYPTED" in identity.pem.reveal():
            why = f"it does not decrypt the private key ({reason})"
            raise ConfigError(password_name, HIDDEN, why) from None
        why = f"expected a private key and its certificate in PEM ({reason})"
        pem = identity.pem.reveal()
        lacking = [kind for kind in ("PRIVATE KEY", "CERTIFICATE") if f"{kind}-----" not in pem]
        if lacking:
            why = f"{why}: there is no {lacking[0]} in it"
        raise ConfigError(identity.option, identity.shown, why) from None


def _explain(
    error: OSError, endpoint: Endpoint, config: SecurityConfig, deadline: Deadline
) -> AuthenticationFailed | ConnectionFailed:
    """What a failed handshake means, and what to do about it."""
    place = str(endpoint)
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(place, _TLS, _distrust(error, endpoint, config))
    if isinstance(error, TimeoutError):
        why = f"no answer within {deadline.timeout_s:.3g} s; is this a listener with TLS?"
        return ConnectionFailed(place, TLS_STAGE, why)
    if isinstance(error, ssl.SSLError) and (refusal := _refusal(error, config)):
        return AuthenticationFailed(place, _TLS, refusal)
    is_cut = isinstance(error, (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError))
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    if is_cut or reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"}:
        return ConnectionFailed(
            place, TLS_STAGE, _PLAINTEXT_PEER.format(config.named("security.protocol"))
        )
    return ConnectionFailed(place, TLS_STAGE, str(reason))


def _distrust(
    error: ssl.SSLCertVerificationError, endpoint: Endpoint, config: SecurityConfig
) -> str:
    code, said = error.verify_code, error.verify_message
    if code == _EXPIRED:
        return f"the broker's certificate has expired ({said}): have it renewed there"
    if code == _NOT_YET_VALID:
        return f"the broker's certificate is not valid yet ({said}): check this machine's clock"
    if code in _WRONG_HOST:
        check = config.named("ssl.endpoint.identification.algorithm")
        return (
            f"the broker's certificate is for another host than {endpoint.host!r} ({said}): "
            "connect under a name that stands in it (advertised.listeners of the broker), or have "
            f"one made with this name; an empty {check} "
            "switches this check off"
        )
    if code in _NO_TRUST:
        location, text = map(
            config.named, ("ssl.truststore.location", "ssl.truststore.certificates")
        )
        where = config.ssl_truststore_location or (
            text if config.ssl_truststore_certificates else "this system's certificates"
        )
        return (
            f"the broker's certificate is not signed by an authority in {where} ({said}): set "
            f"{location} or {text} to the authority's certificate"
        )
    return f"the broker's certificate is not accepted: {said}"


def _refusal(error: ssl.SSLError, config: SecurityConfig) -> str | None:
    """What a broker's alert means; None where it is none about who we are."""
    reason = error.reason or ""
    store = config.named("ssl.keystore")
    if any(alert in reason for alert in _CERTIFICATE_ALERTS):
        if config.ssl_keystore_location or config.ssl_keystore_key:
            return f"the broker does not accept our certificate ({reason}): check {store}.*"
        return (
            f"the broker wants a certificate of ours ({reason}): set {store}.location, or "
            f"{store}.key and {store}.certificate.chain"
        )
    if "PROTOCOL_VERSION" in reason or reason == "UNSUPPORTED_PROTOCOL":
        return f"no TLS version in common ({reason}): see {config.named('ssl.enabled.protocols')}"
    if "HANDSHAKE_FAILURE" in reason or reason == "NO_CIPHERS_AVAILABLE":
        return (
            f"the broker refuses the handshake ({reason}): no cipher suite in common "
            f"({config.named('ssl.cipher.suites')}), or it wants a certificate of ours "
            f"({store}.location)"
        )
    return None
