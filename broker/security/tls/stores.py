"""Keys and certificates from the stores that the settings name.

| store | is |
|---|---|
| PEM file | key and chain in one file (keystore), certificates (truststore) |
| PEM text | the same in properties |
| PKCS12 file | recognised by its content; also under the type JKS, as Java does |
| JKS, JCEKS file | refused, with the command that converts it: only Java reads that format |

The chain is put in order: the certificate of the key first, then its issuers. A file with a key that others may read or
write is refused, and a truststore that others may write; a group may read, which `ssl-cert` groups and Kubernetes'
fsGroup need. Errors: `TlsSettingsError`. Kafka's `DefaultSslEngineFactory` refuses the same combinations.

Works on the disk, so a running broker calls it on a thread.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from odradek.broker.security.tls import pem
from odradek.broker.security.tls.settings import PEM, ClientAuth, TlsSettings, TlsSettingsError

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

MOST_BYTES = 16 * 1024 * 1024
"""The largest file that is read: a hundred times the list of all public authorities."""
_JAVA_STORES = {b"\xfe\xed\xfe\xed": "JKS", b"\xce\xce\xce\xce": "JCEKS"}
_KEY_LABELS = frozenset({"PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"})
_CERTIFICATE_LABELS = frozenset({"CERTIFICATE", "X509 CERTIFICATE"})


class Credentials(NamedTuple):
    """The content of the stores: the key, its chain (its own certificate first), the trusted authorities."""

    key: PrivateKey
    chain: tuple[x509.Certificate, ...]
    trusted: tuple[x509.Certificate, ...]


def read_credentials(settings: TlsSettings) -> Credentials:
    """Read all stores. Raises TlsSettingsError."""
    key, certificates = _keystore(settings)
    chain = _in_order(key, certificates)
    trusted = _truststore(settings)
    if settings.client_auth is not ClientAuth.NONE and not trusted:
        # Differs from Kafka: it then trusts every public authority, so anybody with a certificate would be a client.
        raise TlsSettingsError(
            f"ssl.client.auth = {settings.client_auth.value}: set ssl.truststore.location or "
            "ssl.truststore.certificates to the authorities that sign the certificates of clients"
        )
    return Credentials(key, chain, trusted)


def _keystore(settings: TlsSettings) -> tuple[PrivateKey, list[x509.Certificate]]:
    is_pem = settings.keystore_type.upper() == PEM
    if settings.keystore_key is not None or settings.keystore_certificate_chain is not None:
        _check_inline_keystore(settings, is_pem=is_pem)
        key = _pem_key("ssl.keystore.key", settings.keystore_key or "", settings.key_password)
        chain = _pem_certificates("ssl.keystore.certificate.chain", settings.keystore_certificate_chain or "")
        return key, chain
    if settings.keystore_location is None:
        raise TlsSettingsError(
            "ssl.keystore.location is not set: name the file with the key and the certificate of this listener, or set "
            "ssl.keystore.type=PEM with ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    property_name, path = "ssl.keystore.location", Path(settings.keystore_location)
    data = _read(property_name, path, has_secret=True)
    if is_pem:
        _refuse_password("ssl.keystore.password", settings.keystore_password, "use ssl.key.password for the key")
        text = _text(property_name, path, data)
        return _pem_key(property_name, text, settings.key_password), _pem_certificates(property_name, text)
    if settings.keystore_password is None:
        raise TlsSettingsError(f"ssl.keystore.password is not set: set it to the password of {path}")
    content = _pkcs12("ssl.keystore", path, data, settings.keystore_password)
    if content.key is None or content.cert is None:
        raise TlsSettingsError(f"{property_name}: {path} has no private key with its certificate")
    others = [each.certificate for each in content.additional_certs]
    return _usable(property_name, content.key), [content.cert.certificate, *others]


def _check_inline_keystore(settings: TlsSettings, *, is_pem: bool) -> None:
    if not is_pem:
        raise TlsSettingsError(
            f"ssl.keystore.type = {settings.keystore_type}: set it to PEM, because ssl.keystore.key and "
            "ssl.keystore.certificate.chain are PEM"
        )
    if settings.keystore_key is None:
        raise TlsSettingsError("ssl.keystore.key is not set: ssl.keystore.certificate.chain needs its private key")
    if settings.keystore_certificate_chain is None:
        raise TlsSettingsError("ssl.keystore.certificate.chain is not set: ssl.keystore.key needs its certificates")
    if settings.keystore_location is not None:
        raise TlsSettingsError("ssl.keystore.location and ssl.keystore.key are both set: remove one of them")
    _refuse_password("ssl.keystore.password", settings.keystore_password, "use ssl.key.password for the key")


def _truststore(settings: TlsSettings) -> tuple[x509.Certificate, ...]:
    is_pem = settings.truststore_type.upper() == PEM
    inline, location = settings.truststore_certificates, settings.truststore_location
    if inline is not None:
        if not is_pem:
            raise TlsSettingsError(
                f"ssl.truststore.type = {settings.truststore_type}: set it to PEM, as ssl.truststore.certificates is"
            )
        if location is not None:
            raise TlsSettingsError(
                "ssl.truststore.location and ssl.truststore.certificates are both set: remove one of them"
            )
        _refuse_password("ssl.truststore.password", settings.truststore_password, "remove it")
        return tuple(_pem_certificates("ssl.truststore.certificates", inline))
    if location is None:
        _refuse_password("ssl.truststore.password", settings.truststore_password, "set ssl.truststore.location too")
        return ()
    path = Path(location)
    data = _read("ssl.truststore.location", path, has_secret=False)
    if is_pem:
        _refuse_password("ssl.truststore.password", settings.truststore_password, "remove it")
        return tuple(_pem_certificates("ssl.truststore.location", _text("ssl.truststore.location", path, data)))
    content = _pkcs12("ssl.truststore", path, data, settings.truststore_password)
    found = [each.certificate for each in content.additional_certs]
    if content.cert is not None:
        found.append(content.cert.certificate)
    if not found:
        raise TlsSettingsError(f"ssl.truststore.location: {path} has no certificate")
    return tuple(found)


def _refuse_password(name: str, value: str | None, cure: str) -> None:
    if value is not None:
        raise TlsSettingsError(f"{name} is set, but there is no store that it opens: {cure}")


def _read(name: str, path: Path, *, has_secret: bool) -> bytes:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise TlsSettingsError(f"{name}: {path} is not a file")
        if has_secret and mode & (stat.S_IROTH | stat.S_IWOTH):
            raise TlsSettingsError(f"{name}: {path} has a private key and others may read or write it: chmod o= {path}")
        if mode & stat.S_IWOTH:
            raise TlsSettingsError(f"{name}: others may write {path}, and so decide who is trusted: chmod o-w {path}")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise TlsSettingsError(f"{name}: cannot read {path}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise TlsSettingsError(f"{name}: {path} is larger than {MOST_BYTES} bytes")
    return data


def _text(name: str, path: Path, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TlsSettingsError(f"{name}: {path} is not PEM, although {name.rpartition('.')[0]}.type is PEM") from error


def _pkcs12(store: str, path: Path, data: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    java = _JAVA_STORES.get(data[:4])
    if java is not None:
        converted = path.with_suffix(".p12")
        raise TlsSettingsError(
            f"{store}.location: {path} is a {java} store, which only Java reads; convert it: keytool "
            f"-importkeystore -srckeystore {path} -destkeystore {converted} -deststoretype PKCS12, then set "
            f"{store}.location={converted}"
        )
    if data.lstrip().startswith(b"-----BEGIN"):
        raise TlsSettingsError(f"{store}.type: {path} is PEM: set {store}.type=PEM")
    if not data.startswith(b"\x30"):
        raise TlsSettingsError(f"{store}.location: {path} is neither PEM nor PKCS12")
    try:
        return pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:  # also a damaged file: the checksum covers both
        cure = f"set {store}.password to its password" if password is None else "is the password right?"
        raise TlsSettingsError(f"{store}.password: it does not open {path}; {cure}") from error
    except UnsupportedAlgorithm as error:
        raise TlsSettingsError(f"{store}.location: {path} is encrypted in a way that is not supported") from error


def _pem_key(name: str, text: str, password: str | None) -> PrivateKey:
    keys = [block.text for block in pem.blocks(text) if block.label in _KEY_LABELS]
    if len(keys) != 1:
        found = f"{len(keys)} private keys" if keys else "no private key"
        raise TlsSettingsError(f"{name} has {found} in PEM: it must have one, and its certificates")
    try:
        key = serialization.load_pem_private_key(keys[0], None if password is None else password.encode())
    except TypeError as error:
        if password is None:
            raise TlsSettingsError(
                f"ssl.key.password is not set, but the key in {name} is encrypted: set it"
            ) from error
        raise TlsSettingsError(f"ssl.key.password is set, but the key in {name} is not encrypted: remove it") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is not None:
            raise TlsSettingsError(f"ssl.key.password: it does not decrypt the key in {name}; is it right?") from error
        raise TlsSettingsError(f"{name}: the private key cannot be read; openssl pkcs8 -topk8 converts it") from error
    return _usable(name, key)


def _usable(name: str, key: object) -> PrivateKey:
    if not isinstance(key, PrivateKey):
        raise TlsSettingsError(f"{name}: the key is neither RSA nor of an elliptic curve: make another one")
    return key


def _pem_certificates(name: str, text: str) -> list[x509.Certificate]:
    found = [block.text for block in pem.blocks(text) if block.label in _CERTIFICATE_LABELS]
    if not found:
        raise TlsSettingsError(f"{name} has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    try:
        return [x509.load_pem_x509_certificate(each) for each in found]
    except ValueError as error:
        raise TlsSettingsError(f"{name}: a certificate in it cannot be read") from error


def _in_order(key: PrivateKey, certificates: list[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Return the certificate of the key, then its issuers as far as they are there; the rest is left out."""
    public = _encoded(key.public_key())
    own = [each for each in certificates if _encoded(each.public_key()) == public]
    if not own:
        subject = certificates[0].subject.rfc4514_string()
        raise TlsSettingsError(
            f"ssl.keystore: the private key does not belong to the certificate of {subject}: put "
            "the key and the certificate that was issued for it together"
        )
    chain, left = [own[0]], [each for each in certificates if each not in own]
    while chain[-1].subject != chain[-1].issuer:
        issuer = next((each for each in left if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return tuple(chain)


def _encoded(key: object) -> bytes:
    return key.public_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
