"""The context of OpenSSL by which a listener's new connections are encrypted.

`make_context` reads the stores and applies the settings: TLS 1.2 and 1.3 only, the suites that are asked for or
OpenSSL's good ones, no compression, no renegotiation. With client certificates there are no session tickets. A session
of TLS 1.2 can be resumed nevertheless, without its certificate being examined again: `ListenerTls.principal` does that.
A new context has new keys and no sessions, so that nobody resumes a session of an exchanged truststore.

`load_cert_chain` of Python reads files only. The key is passed in a file that has no name (`memfd`), or, where that
does not exist, in one with mode 0600 that is removed before this returns.

Works on the disk, so a running broker calls it on a thread. A context may be used by connections of any thread.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from odradek.broker.security.tls import cipher_suites
from odradek.broker.security.tls.settings import ClientAuth, TlsSettings, TlsSettingsError
from odradek.broker.security.tls.stores import Credentials, read_credentials

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TOO_OLD = frozenset({"SSLv2", "SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1"})
_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
# OpenSSL's list of what its security level permits; the names that follow are never on, whatever is asked.
_EVERYTHING = "ALL:COMPLEMENTOFDEFAULT:!aNULL:!eNULL"
_NEVER = ("!aNULL", "!eNULL", "!EXPORT")
_WEAK = {
    "EE_KEY_TOO_SMALL": "the key is too short: use RSA with 2048 bits or more, or an elliptic curve",
    "CA_KEY_TOO_SMALL": "the key of an authority in the chain is too short",
    "CA_MD_TOO_WEAK": "a certificate is signed with MD5 or SHA-1: have it issued again with SHA-256",
}


def make_context(settings: TlsSettings) -> ssl.SSLContext:
    """Read the stores and return a context for new connections. Raises TlsSettingsError."""
    return context_of(settings, read_credentials(settings))


def context_of(settings: TlsSettings, credentials: Credentials) -> ssl.SSLContext:
    """Return a context with these credentials. Raises TlsSettingsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    _set_versions_and_suites(context, settings, credentials)
    _load_chain(context, credentials)
    context.verify_mode = _VERIFY[settings.client_auth]
    if settings.client_auth is ClientAuth.NONE:
        context.num_tickets = 1
    else:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        # As in Java, any certificate of the truststore ends a chain, not only a root.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata="".join(_pem(each) for each in credentials.trusted))
    return context


def _set_versions_and_suites(context: ssl.SSLContext, settings: TlsSettings, credentials: Credentials) -> None:
    enabled = _versions(settings.enabled_protocols)
    if settings.cipher_suites:
        probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        probe.set_ciphers(_EVERYTHING)
        suites = cipher_suites.choose(settings.cipher_suites, frozenset(each["name"] for each in probe.get_ciphers()))
        wanted = {ssl.TLSVersion.TLSv1_2} if suites.tls_1_2 else set()
        wanted |= {ssl.TLSVersion.TLSv1_3} if suites.tls_1_3 else set()
        if not enabled & wanted:
            raise TlsSettingsError(
                "ssl.cipher.suites: no suite in it belongs to ssl.enabled.protocols = "
                f"{','.join(settings.enabled_protocols)}: add one, or leave the list empty for the default ones"
            )
        enabled &= wanted
        if ssl.TLSVersion.TLSv1_2 in enabled:
            _check_key(suites.tls_1_2, credentials, alone=len(enabled) == 1)
            context.set_ciphers(":".join((*suites.tls_1_2, *_NEVER)))
        if ssl.TLSVersion.TLSv1_3 in enabled:
            _restrict_tls_1_3(context, suites.tls_1_3)
    context.minimum_version = min(enabled)
    context.maximum_version = max(enabled)


def _versions(names: tuple[str, ...]) -> set[ssl.TLSVersion]:
    for name in names:
        if name in _TOO_OLD:
            raise TlsSettingsError(f"ssl.enabled.protocols: {name} is not safe and not served: remove it")
        if name not in _VERSIONS:
            raise TlsSettingsError(f"ssl.enabled.protocols: {name!r} is not a version: use {', '.join(_VERSIONS)}")
    if not names:
        raise TlsSettingsError(f"ssl.enabled.protocols names no version: use {','.join(_VERSIONS)}")
    return {_VERSIONS[name] for name in names}


def _check_key(suites: tuple[str, ...], credentials: Credentials, *, alone: bool) -> None:
    """Raise TlsSettingsError if no client could connect, because all suites need a key of the other kind."""
    is_rsa = isinstance(credentials.key, rsa.RSAPrivateKey)
    if alone and not any(("ECDSA" not in name) is is_rsa for name in suites):
        kind = "RSA" if is_rsa else "of an elliptic curve"
        raise TlsSettingsError(
            f"ssl.cipher.suites: none of them works with the key, which is {kind}: add one that does"
        )


def _restrict_tls_1_3(context: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    restrict = getattr(context, "set_ciphersuites", None)  # from Python 3.15 on
    if restrict is not None:
        restrict(":".join(suites))
    elif set(suites) != set(cipher_suites.TLS_1_3_SUITES):
        missing = [name for name in cipher_suites.TLS_1_3_SUITES if name not in suites]
        raise TlsSettingsError(
            f"ssl.cipher.suites: TLS 1.3 cannot be restricted to {', '.join(suites)} here; add {', '.join(missing)}, "
            "or set ssl.enabled.protocols=TLSv1.2"
        )


def _load_chain(context: ssl.SSLContext, credentials: Credentials) -> None:
    key = credentials.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = "".join(_pem(each) for each in credentials.chain).encode()
    try:
        with _private_file(key + chain) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        why = _WEAK.get(error.reason or "", f"OpenSSL refuses it ({error.reason})")
        raise TlsSettingsError(f"ssl.keystore: {why}") from error
    except OSError as error:
        raise TlsSettingsError(f"ssl.keystore: cannot be passed to OpenSSL: {error.strerror}") from error


@contextlib.contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file with this content, which only this user can read, and which is gone afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("credentials", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
        return
    descriptor, path = tempfile.mkstemp()  # its mode is 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
