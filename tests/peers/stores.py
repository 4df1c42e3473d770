"""A certificate authority for tests: certificates for brokers and clients, as PEM and PKCS12 files."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)


class Issued(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """A file with key and certificate, as Kafka's ssl.keystore.location of type PEM."""
        path.write_text(self.key_pem(password) + self.certificate_pem)
        path.chmod(0o600)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """A key store."""
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"key", self.key, self.certificate, None, BestAvailableEncryption(password.encode())
            )
        )
        path.chmod(0o600)
        return path


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "Test CA") -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, subject, key, 365).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.root = Issued(builder.sign(key, hashes.SHA256()), key)

    @property
    def pem(self) -> str:
        return self.root.certificate_pem

    def issue(self, subject: str, names: Sequence[str] = (), days: int = 90) -> Issued:
        """A certificate for a common name; `names` are host names and IP addresses. Negative `days`: expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        distinguished = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        builder = _builder(distinguished, self.root.certificate.subject, key, days).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        return Issued(builder.sign(self.root.key, hashes.SHA256()), key)

    def write_pkcs12(self, path: Path, password: str) -> Path:
        """A trust store, as keytool makes it."""
        entry = pkcs12.PKCS12Certificate(self.root.certificate, b"ca")
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + days * DAY) - DAY)
        .not_valid_after(now + days * DAY)
    )


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
