"""TLS for connections: the SSL context of `SecuritySettings`, and what is wrong if there is no connection.

The certificate of a broker is always verified, against the trust store or the CAs of this machine. Its names are
verified unless `ssl_endpoint_identification_algorithm` is empty, as in Kafka's clients.

| the handshake fails with | error |
|---|---|
| a certificate that we do not trust, that has expired, or that has other names | TlsError, with those names |
| bytes that are not TLS | TlsError: the listener speaks plain text |
| an alert of the broker about our certificate, or that it wants one | AuthenticationFailedError |
| another alert | TlsError |

With TLS 1.3 the broker's alerts arrive after the handshake: `alert_error` is for those.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from pathlib import Path
from typing import Final

from odradek.client.config import Address
from odradek.client.errors import AuthenticationFailedError, ClientError, ConfigurationError, TlsError
from odradek.client.security.settings import SecuritySettings
from odradek.client.security.stores import KeyMaterial, key_material, trusted_certificates

_LOG = logging.getLogger(__name__)

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_WRONG_NAME: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_NOT_YET_VALID, _EXPIRED = 9, 10
_CERTIFICATE_ALERTS: Final = (
    "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED", "CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN",
    "UNKNOWN_CA", "ACCESS_DENIED", "CERTIFICATE_REQUIRED",
)  # fmt: skip
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")
_SECONDS_FOR_NAMES: Final = 5.0
_KEY_STORE: Final = "Set ssl_keystore_location to this client's key and a certificate that the broker trusts"


class Tls:
    """The TLS side of one client's connections.

    The SSL context is made at the first use, which reads the stores, and again after a store file has changed, so that
    a client that runs for months uses its new certificate. If the new files cannot be used, the old context stays.
    """

    def __init__(self, settings: SecuritySettings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._files: tuple[tuple[int, int] | None, ...] = ()  # of the context, or of the last attempt to make one

    @property
    def context(self) -> ssl.SSLContext:
        """The context for a new connection. Raises ConfigurationError if a store cannot be read at the first use."""
        files = tuple(map(_state_of, (self._settings.ssl_truststore_location, self._settings.ssl_keystore_location)))
        if self._context is None:
            self._context, self._files = make_context(self._settings), files
        elif files != self._files:
            self._files = files
            try:
                self._context = make_context(self._settings)
            except (ConfigurationError, TlsError) as error:
                _LOG.warning("%s; the client goes on with the key and trust store from before", error)
            else:
                _LOG.info("key and trust store have changed: new connections use them")
        return self._context

    async def handshake_error(self, error: ssl.SSLError, address: Address, name: str) -> ClientError:
        """The error to raise if the handshake with a peer has failed; `name` is the one that was verified.

        Connects once more to read the names of a certificate that has not the right one.
        """
        if isinstance(error, ssl.SSLCertVerificationError):
            if error.verify_code in _WRONG_NAME:
                names = await certificate_names(address)
                return TlsError(
                    "connect",
                    f"the broker's certificate is not for {name}{f', but for {names}' if names else ''}",
                    "Connect to one of its names, or correct advertised.listeners of the broker",
                )
            return TlsError(
                "connect",
                f"the broker's certificate is not trusted ({error.verify_message})",
                self._cure_of_certificate(error.verify_code),
            )
        return alert_error(error, "connect") or TlsError(
            "connect",
            f"the peer does not speak TLS ({_words(error)})" if error.reason in _NO_TLS else f"TLS: {_words(error)}",
            "Is this the port of a TLS listener? Without TLS, security_protocol is PLAINTEXT or SASL_PLAINTEXT"
            if error.reason in _NO_TLS
            else "Compare ssl_enabled_protocols here and ssl.enabled.protocols of the broker",
        )

    def _cure_of_certificate(self, code: int) -> str:
        if code == _EXPIRED:
            return "Ask for a new certificate of the broker, and check the clock of this machine"
        if code == _NOT_YET_VALID:
            return "Check the clock of this machine"
        if self._settings.ssl_truststore_location or self._settings.ssl_truststore_certificates:
            return "Add the CA of the broker's certificate to the trust store"
        return "Set ssl_truststore_location to a file with the CA of the broker's certificate"


def make_context(settings: SecuritySettings) -> ssl.SSLContext:
    """Make the context of a client. Reads files. Raises ConfigurationError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies certificates and names
    context.check_hostname = settings.verifies_names
    chosen = [_VERSIONS[name] for name in settings.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    trusted = trusted_certificates(settings)
    if trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        context.load_verify_locations(cadata=trusted)
    material = key_material(settings)
    if material is not None:
        _load_key(context, material)
    return context


def context_for_the_web(settings: SecuritySettings) -> ssl.SSLContext:
    """Make the context for an OAuth server: it may have a public CA, or the one of the trust store."""
    context = ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on from Python 3.13: refuses private CAs that Java accepts
    trusted = trusted_certificates(settings)
    if trusted is not None:
        context.load_verify_locations(cadata=trusted)
    return context


def alert_error(error: ssl.SSLError, tried: str) -> ClientError | None:
    """The error for an alert of the broker; None if `error` is something else."""
    reason = error.reason or ""
    if "ALERT" not in reason:
        return None
    cause = f"the broker refused TLS ({_words(error)})"
    if any(reason.endswith(alert) for alert in _CERTIFICATE_ALERTS):
        return AuthenticationFailedError(tried, cause, _KEY_STORE)
    if reason.endswith("PROTOCOL_VERSION"):
        return TlsError(tried, cause, "Compare ssl_enabled_protocols here and ssl.enabled.protocols of the broker")
    return TlsError(tried, cause, f"The broker may want a certificate of this client, or other suites. {_KEY_STORE}")


async def certificate_names(address: Address) -> str:
    """The names of the certificate that a server shows, separated by commas; empty if it cannot be read."""
    der = await peer_certificate(address, _SECONDS_FOR_NAMES)
    if der is None:
        return ""
    from odradek.client.security.certificate import names_of

    return ", ".join(names_of(der))


async def peer_certificate(address: Address, seconds: float, server_name: str | None = None) -> bytes | None:
    """The certificate (DER) that a server shows, not verified; None without TLS or an answer in time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, address.host, address.port, ssl=context, server_hostname=server_name or address.host
            )
    except (OSError, TimeoutError):
        return None
    connection: ssl.SSLObject = transport.get_extra_info("ssl_object")
    der = connection.getpeercert(binary_form=True)
    transport.abort()
    return der


def _state_of(path: str | None) -> tuple[int, int] | None:
    """The time and size of a file, which differ after a change; None without one."""
    try:
        found = None if path is None else Path(path).stat()
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size)


def _load_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """Load a key through a file, because OpenSSL has no other way: it is encrypted, for this user only, and removed."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(material.key + material.chain.encode())
        context.load_cert_chain(path, password=material.password)
    except ssl.SSLError as error:
        cure = "Give the certificates of the private key, its own first"
        raise TlsError("load the key store", f"key and certificate do not fit ({_words(error)})", cure) from None
    finally:
        Path(path).unlink()


def _words(error: ssl.SSLError) -> str:
    return (error.reason or error.strerror or str(error)).lower().replace("_", " ")
