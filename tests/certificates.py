"""Certificate authorities for tests, and what they sign; keys are small, lives are short."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A key with its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def chain_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        hiding = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hiding).decode()

    def pem_file(self, path: Path) -> str:
        path.write_text(self.key_pem() + self.chain_pem)
        return str(path)

    def pkcs12_file(self, path: Path, password: str) -> str:
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"me", self.key, self.certificate, None, BestAvailableEncryption(password.encode())
            )
        )
        return str(path)


class Authority:
    """Signs certificates; `pem` is its own."""

    def __init__(self, name: str = "tests", signed_by: Authority | None = None) -> None:
        self._name = _named(f"{name} authority")
        self._key = ec.generate_private_key(ec.SECP256R1())
        signer = signed_by or self
        builder = _certificate(self._name, signer._name, self._key, _NOW - _DAY, _NOW + _DAY)
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        self.certificate = builder.sign(signer._key, hashes.SHA256())
        self.pem = self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self, common_name: str, *hosts: str, is_expired: bool = False, is_early: bool = False
    ) -> Issued:
        """A certificate for `hosts` (names and addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        begin, end = _NOW - 2 * _DAY, _NOW + _DAY
        begin, end = (begin, _NOW - _DAY) if is_expired else (begin, end)
        begin, end = (_NOW + _DAY, _NOW + 2 * _DAY) if is_early else (begin, end)
        builder = _certificate(_named(common_name), self._name, key, begin, end)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Issued(key, builder.sign(self._key, hashes.SHA256()))

    def pem_file(self, path: Path) -> str:
        path.write_text(self.pem)
        return str(path)

    def pkcs12_file(self, path: Path, password: str) -> str:
        """A trust store as keytool writes it: a certificate without a key."""
        trusted = [pkcs12.PKCS12Certificate(self.certificate, b"ca")]
        hiding = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_java_truststore(trusted, hiding))
        return str(path)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: dt.datetime,
    end: dt.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
