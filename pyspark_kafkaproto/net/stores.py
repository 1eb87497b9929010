"""Certificates and keys, from wherever the properties say, as PEM text.

PEM is read as it is, PKCS12 with the package `cryptography` (extra `tls`): Python's `ssl` reads PEM
alone. Java's own format, JKS, is refused with the command that converts it. What a file holds is
told by its first bytes: Java's `ssl.*.type=JKS` reads PKCS12 files as well, and so do we.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from pyspark_kafkaproto.errors import ConfigError
from pyspark_kafkaproto.net.secret import HIDDEN, Secret
from pyspark_kafkaproto.net.security import SecurityConfig

_JKS_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM_BLOCK = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=kind)-----", re.DOTALL
)
# A sequence of whatever length that begins with a number, the version: 3 (RFC 7292).
_PKCS12 = re.compile(
    rb"\x30(?:[\x00-\x80]|\x81.|\x82.{2}|\x83.{3}|\x84.{4})\x02\x01\x03", re.DOTALL
)
_NO_STORE = (
    "neither PEM nor PKCS12: expected text with -----BEGIN CERTIFICATE----- …, or such a store (a "
    "certificate in DER becomes PEM by: openssl x509 -inform DER)"
)
_LINE_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The client's own key and certificates, as PEM; the key may be encrypted.

    Attributes:
        option: the property that they were given by.
        shown: its value, for errors.
    """

    pem: Secret
    password: Secret | None
    option: str
    shown: str


def trusted_certificates(config: SecurityConfig) -> str | None:
    """The authorities to trust, as PEM; None for those of the system.

    Raises:
        ConfigError: they cannot be read; names the property, the file and what to do.
    """
    if config.ssl_truststore_certificates:
        name = config.named("ssl.truststore.certificates")
        return _rewrapped(name, config.ssl_truststore_certificates)
    if config.ssl_truststore_location is None:
        return None
    name, path = config.named("ssl.truststore.location"), config.ssl_truststore_location
    data = _read(name, path)
    if _is_pem(data):
        return _rewrapped(name, data.decode("utf-8", "replace"), path)
    _refuse_jks(name, path, data, "keytool -list -rfc -keystore {path} > ca.pem")
    password = config.ssl_truststore_password
    password_name = config.named("ssl.truststore.password")
    _, certificates = _open_pkcs12(name, path, data, password, password_name)
    if not certificates:
        raise ConfigError(name, path, "it holds no certificate")
    return certificates


def own_identity(config: SecurityConfig) -> KeyPair | None:
    """The client's key and certificates; None where it has none. Raises as the other does."""
    if config.ssl_keystore_key and config.ssl_keystore_certificate_chain:
        text = config.ssl_keystore_key.reveal()
        name = config.named("ssl.keystore.key")
        key = _rewrapped(name, text, HIDDEN)
        chain = config.ssl_keystore_certificate_chain.reveal()
        chain = _rewrapped(config.named("ssl.keystore.certificate.chain"), chain, HIDDEN)
        return KeyPair(Secret(key + chain), config.ssl_key_password, name, HIDDEN)
    if config.ssl_keystore_location is None:
        return None
    name, path = config.named("ssl.keystore.location"), config.ssl_keystore_location
    data = _read(name, path)
    password = config.ssl_keystore_password
    if _is_pem(data):
        pem = Secret(data.decode("utf-8", "replace"))
        return KeyPair(pem, config.ssl_key_password or password, name, path)
    _refuse_jks(
        name,
        path,
        data,
        "keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 "
        "-deststoretype PKCS12",
    )
    key, chain = _open_pkcs12(name, path, data, password, config.named("ssl.keystore.password"))
    if not key:
        raise ConfigError(name, path, "it holds no private key")
    return KeyPair(Secret(key + chain), None, name, path)


def _read(name: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # the latter of a name with a zero byte
        reason = getattr(error, "strerror", error)
        why = f"the file cannot be read here ({reason}): it must be there on the driver and on "
        why += "every executor; PEM text in the properties needs no file"
        raise ConfigError(name, path, why) from error


def _is_pem(data: bytes) -> bool:
    return b"-----BEGIN " in data


def _refuse_jks(name: str, path: str, data: bytes, convert: str) -> None:
    if data.startswith(_JKS_MAGIC):
        command = convert.format(path=shlex.quote(path))
        raise ConfigError(name, path, f"a JKS store, which only Java reads; convert it: {command}")


def _rewrapped(name: str, text: str, shown: str | None = None) -> str:
    """PEM blocks with line breaks as OpenSSL wants them: options are often one long line."""
    blocks = []
    for match in _PEM_BLOCK.finditer(text):
        kind, body = match["kind"], match["body"]
        if ":" not in body:  # no headers: the body is base64 alone
            letters = "".join(body.replace("\\n", " ").split())
            lines = re.findall(f".{{1,{_LINE_CHARACTERS}}}", letters)
            body = "\n" + "\n".join(lines) + "\n"
        blocks.append(f"-----BEGIN {kind}-----{body}-----END {kind}-----\n")
    if not blocks:
        value = shown or text[:_LINE_CHARACTERS]
        raise ConfigError(name, value, "expected PEM: -----BEGIN CERTIFICATE----- …")
    return "".join(blocks)


def _open_pkcs12(
    name: str, path: str, data: bytes, password: Secret | None, password_name: str
) -> tuple[str, str]:
    """Key and certificates of a PKCS12 store, as PEM; the key is empty where it holds none."""
    if not _PKCS12.match(data):
        raise ConfigError(name, path, _NO_STORE)
    try:
        # An extra, and 50 ms: for those alone who have such a store.
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError:
        shown = shlex.quote(path)
        command = f"openssl pkcs12 -in {shown} -out {shown}.pem"
        why = f"PKCS12 needs: pip install 'pyspark-kafkaproto[tls]'; or convert it: {command}"
        raise ConfigError(name, path, why) from None
    secret = password.reveal().encode() if password else None
    try:
        store = pkcs12.load_pkcs12(data, secret)
    except ValueError as error:
        if "password" in str(error).lower() or secret is None:
            if secret is None:
                raise ConfigError(password_name, None, f"required to open {path}") from None
            raise ConfigError(password_name, HIDDEN, f"it does not open {path}") from None
        raise ConfigError(name, path, _NO_STORE) from None
    found = [store.cert, *store.additional_certs] if store.cert else list(store.additional_certs)
    pem = serialization.Encoding.PEM
    certificates = "".join(item.certificate.public_bytes(pem).decode() for item in found)
    if store.key is None:
        return "", certificates
    key = store.key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return key.decode(), certificates
