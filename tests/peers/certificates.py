"""Certificate authorities and certificates for tests, made by `cryptography`: nothing here is of the broker.

`Authority("ca")` signs. `issue` makes a key and a certificate: of a server, with names, or of a client; RSA or ECDSA;
valid now, expired or not yet valid. `Issued` writes the files that brokers and clients read. Keys are made once for
each process and kind, because an RSA key takes a tenth of a second.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Kind = Literal["ecdsa", "rsa"]
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DAY = dt.timedelta(days=1)
PASSWORD = "pass word"


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@cache
def key(kind: Kind, number: int = 0) -> Key:
    """Return the key of this kind and number; always the same one in this process."""
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Issued(NamedTuple):
    """A key with its certificate and those of the authorities above it, the root excluded."""

    key: Key | ed25519.Ed25519PrivateKey
    certificate: x509.Certificate
    intermediates: Sequence[x509.Certificate] = ()

    @property
    def chain_pem(self) -> str:
        chain = (self.certificate, *self.intermediates)
        return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in chain)

    def key_pem(self, password: str | None = None) -> str:
        """Return the key in PKCS8, encrypted if there is a password."""
        encryption = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """Write key and chain to one file, as Kafka's ssl.keystore.location of type PEM; only its owner reads it."""
        return write_secret(path, self.key_pem(password) + self.chain_pem)

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """Write a key store, which only its owner reads."""
        return write_secret(path, self.pkcs12(password))

    def pkcs12(self, password: str = PASSWORD) -> bytes:
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"broker", self.key, self.certificate, list(self.intermediates), encryption
        )

    def write(self, directory: Path, name: str = "server") -> Path:
        """Write `name.pem`: key and chain in one file, which only its owner reads; also `name.key` and `name.crt`."""
        write_secret(directory / f"{name}.key", self.key_pem())
        (directory / f"{name}.crt").write_text(self.chain_pem)
        return self.write_pem(directory / f"{name}.pem")


def write_secret(path: Path, content: str | bytes) -> Path:
    """Replace a file by one that only its owner may read, as a careful operator does: by a rename."""
    temporary = path.with_suffix(".new")
    temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    temporary.chmod(0o600)
    temporary.rename(path)
    return path


# Contexts of Python 3.13's `create_default_context`, as other clients have them, want it of every authority. Java does
# not, and there are private authorities without it (`key_usage=False`).
_SIGNS = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Authority:
    """A certificate authority; a root, or one below another."""

    def __init__(
        self, name: str = "Test CA", *, kind: Kind = "ecdsa", parent: Authority | None = None, key_usage: bool = True
    ) -> None:
        self.key = key(kind, hash(name))
        self.intermediates: tuple[x509.Certificate, ...] = ()
        subject = common_name(name)
        issuer, signing = (subject, self.key) if parent is None else (parent.certificate.subject, parent.key)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now() - DAY)
            .not_valid_after(now() + 365 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        )
        if key_usage:
            builder = builder.add_extension(_SIGNS, critical=True)
        self.certificate: x509.Certificate = builder.sign(signing, hashes.SHA256())
        if parent is not None:
            self.intermediates = (self.certificate, *parent.intermediates)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def write(self, directory: Path, name: str = "ca") -> Path:
        path = directory / f"{name}.pem"
        path.write_text(self.pem)
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """Write a trust store, as keytool makes it."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        path.write_bytes(pkcs12.serialize_java_truststore([entry], encryption))
        return path

    def issue(
        self,
        subject: str | x509.Name = "localhost",
        *,
        kind: Kind = "ecdsa",
        number: int = 1,
        names: Sequence[str] = ("localhost", "127.0.0.1"),
        client: bool = False,
        connects: bool = False,
        starts: dt.timedelta = -DAY,
        ends: dt.timedelta = 30 * DAY,
    ) -> Issued:
        """Issue a certificate of a server with these names, or of a client; valid from and until now plus a span.

        That of a server which `connects` is one of a client, too, for brokers that connect to each other.
        """
        own = key(kind, number)
        purposes = [] if client else [ExtendedKeyUsageOID.SERVER_AUTH]
        if client or connects:
            purposes.append(ExtendedKeyUsageOID.CLIENT_AUTH)
        builder = (
            x509.CertificateBuilder()
            .subject_name(common_name(subject) if isinstance(subject, str) else subject)
            .issuer_name(self.certificate.subject)
            .public_key(own.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now() + starts)
            .not_valid_after(now() + ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if names and not client:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False
            )
        return Issued(own, builder.sign(self.key, hashes.SHA256()), self.intermediates)

    def server(self, kind: Kind = "ecdsa") -> Issued:
        """Issue a good certificate of a server on this machine."""
        return self.issue(kind=kind)

    def client(self, subject: str | x509.Name = "alice", kind: Kind = "ecdsa") -> Issued:
        return self.issue(subject, kind=kind, number=2, client=True)

    def expired(self, *, client: bool = False) -> Issued:
        return self.issue("alice" if client else "localhost", client=client, starts=-30 * DAY, ends=-DAY)

    def wrong_host(self) -> Issued:
        return self.issue("elsewhere.example", names=("elsewhere.example",))


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
