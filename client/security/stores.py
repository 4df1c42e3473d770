"""Trust stores and key stores: PEM files, PKCS12 files, and PEM text in the settings.

The type is the one of the settings, or what the file is. Files of Java's own format (JKS) are refused with the command
that converts them. A trust store that is PEM is read without the package cryptography. Reads files, so it blocks;
raises ConfigurationError, whose text has the path and never a password or a key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.security.pem import certificates_in, keys_in
from odradek.client.security.setting_checks import jks, wrong

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    from odradek.client.security.settings import SecuritySettings

_JKS_MAGIC: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # JKS and JCEKS
_LARGEST: Final = 16 << 20  # bytes of a file; the bundle of all public CAs has 0.2 MiB


class KeyMaterial(NamedTuple):
    """A certificate chain as PEM, its own certificate first, and its private key as PEM, encrypted with `password`."""

    chain: str
    key: bytes
    password: str

    def __repr__(self) -> str:
        return "KeyMaterial([hidden])"


def trusted_certificates(settings: SecuritySettings) -> str | None:
    """The CAs to trust, as PEM; None for those of this machine."""
    if settings.ssl_truststore_certificates is not None:
        found = certificates_in(settings.ssl_truststore_certificates)
        where = "ssl_truststore_certificates"
    elif settings.ssl_truststore_location is not None:
        where = f"ssl_truststore_location {settings.ssl_truststore_location}"
        data = _read(settings.ssl_truststore_location, settings.ssl_truststore_type, "ssl_truststore_location")
        if isinstance(data, str):
            found = certificates_in(data)
        else:
            store = _open_pkcs12(
                data, settings.ssl_truststore_password, settings.ssl_truststore_location, "ssl_truststore_password"
            )
            found = _pem_of(store)
    else:
        return None
    if not found:
        raise wrong(f"{where} has no certificate", "Give the certificates of the CAs as PEM or PKCS12")
    return found


def key_material(settings: SecuritySettings) -> KeyMaterial | None:
    """This client's private key and certificates, or None if it has none."""
    location = settings.ssl_keystore_location
    if location is None:
        if settings.ssl_keystore_key is None or settings.ssl_keystore_certificate_chain is None:
            return None
        return _of_pem(
            settings.ssl_keystore_key,
            settings.ssl_keystore_certificate_chain,
            settings.ssl_key_password,
            ("ssl_keystore_key", "ssl_keystore_certificate_chain"),
        )
    data = _read(location, settings.ssl_keystore_type, "ssl_keystore_location")
    where = f"ssl_keystore_location {location}"
    if isinstance(data, str):
        return _of_pem(data, data, settings.ssl_key_password, (where, where))
    store = _open_pkcs12(data, settings.ssl_keystore_password, location, "ssl_keystore_password")
    if store.key is None or store.cert is None:
        raise wrong(f"{where} has no private key with a certificate", "Give a store with this client's key")
    return _encrypted(store.key, _pem_of(store))


def _read(location: str, kind: str | None, setting: str) -> str | bytes:
    """The text of a PEM file, the bytes of a PKCS12 file."""
    try:
        with Path(location).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise wrong(
            f"{setting} {location} cannot be read ({error.strerror})", "Check the path and its rights"
        ) from None
    if len(data) > _LARGEST:
        raise wrong(f"{setting} {location} has more than {_LARGEST >> 20} MiB", "Give a file with keys or certificates")
    if data.startswith(_JKS_MAGIC):
        raise jks(f"{setting} {location}", location)
    is_pem = b"-----BEGIN" in data
    if kind is not None and is_pem != (kind.upper() == "PEM"):
        raise wrong(f"{setting} {location} is no {kind.upper()} file", "Remove the type of the store")
    return data.decode("utf-8", "replace") if is_pem else data


def _open_pkcs12(data: bytes, password: str | None, location: str, setting: str) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        needed = f"{setting} is not set" if password is None else f"{setting} does not open it"
        raise wrong(f"{location} cannot be read as PKCS12", f"Check the file, or the password: {needed}") from None


def _pem_of(store: PKCS12KeyAndCertificates) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    stored = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    return "".join(one.certificate.public_bytes(Encoding.PEM).decode() for one in stored)


def _of_pem(key_text: str, chain_text: str, password: str | None, where: tuple[str, str]) -> KeyMaterial:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    keys, chain = keys_in(key_text), certificates_in(chain_text)
    if len(keys) != 1:
        raise wrong(f"{where[0]} has {len(keys)} private keys", "Give one private key as PEM")
    if not chain:
        raise wrong(f"{where[1]} has no certificate", "Give the certificates of the key as PEM, its own first")
    try:
        key = load_pem_private_key(keys[0].encode(), None if password is None else password.encode())
    except TypeError:
        cause = "is encrypted, and ssl_key_password is not set" if password is None else "is not encrypted"
        raise wrong(f"the private key of {where[0]} {cause}", "Set or remove ssl_key_password") from None
    except (ValueError, UnsupportedAlgorithm):
        cure = "Check ssl_key_password, and that the key is PKCS#8 (openssl pkcs8 -topk8)"
        raise wrong(f"the private key of {where[0]} cannot be read", cure) from None
    return _encrypted(key, chain)


def _encrypted(key: object, chain: str) -> KeyMaterial:
    """Encrypt a key with a new password, because OpenSSL reads it from a file only."""
    import secrets

    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    password = secrets.token_hex(32)
    encryption = BestAvailableEncryption(password.encode())
    written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)  # type: ignore[attr-defined] # a union of classes
    return KeyMaterial(chain, written, password)
