"""TLS of one listener while it serves: its present context, the names of its clients, the exchange of certificates.

```
settings, files ──read, check──► context, certificate ──► new connections
   ▲ changed (`check_files`, every few seconds)     └► unusable, or of somebody else: the old ones stay
   └ altered (`reload`)                                 `check_files` logs one line, `reload` raises
```

A certificate of somebody else: with another subject, or without a name that the old one has among its alternative names
(`ssl.allow.dn.changes`, `ssl.allow.san.changes` allow it). Source: `SslFactory.CertificateEntries` of Kafka. Open
connections keep the context of their handshake.

`check_files`, `check` and `reload` read files: a running broker calls them on a thread. A lock lets one of them replace
the state at a time. Everything else may be called on the event loop at any time, because the state is replaced as one.
"""

from __future__ import annotations

import os
import ssl
from threading import Lock
from typing import NamedTuple

from cryptography import x509

from odradek.broker.clock import Clock
from odradek.broker.security.principal import ANONYMOUS, USER, Principal
from odradek.broker.security.tls.context import context_of
from odradek.broker.security.tls.distinguished_name import subject_name
from odradek.broker.security.tls.mapping_rules import MappingRules
from odradek.broker.security.tls.settings import TlsSettings, TlsSettingsError
from odradek.broker.security.tls.stores import Credentials, read_credentials
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_Stamp = tuple[tuple[str, int, int, int, int], ...]
"""Path, device, number, size and time of change (ns) of each file."""


class _State(NamedTuple):
    """What a successful reading made: all of it is replaced together."""

    settings: TlsSettings
    context: ssl.SSLContext
    certificate: x509.Certificate
    expiry_timestamp: float
    rules: MappingRules


class ListenerTls:
    """See the module. `names_clients`: certificates say who clients are (protocol SSL); else SASL does (SASL_SSL)."""

    def __init__(self, listener: str, settings: TlsSettings, clock: Clock, *, names_clients: bool = True) -> None:
        """Read the files. Raises TlsSettingsError, of which the message does not name the listener."""
        self.listener = listener
        self._clock = clock
        self._names_clients = names_clients
        self._lock = Lock()
        self._seen = _stamp(settings)
        self._state = _read(settings)
        self._warn_if_expired()

    @property
    def settings(self) -> TlsSettings:
        return self._state.settings

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._state.context

    @property
    def certificate_expiry_timestamp(self) -> float:
        """When the first certificate of the chain expires, in seconds since the epoch."""
        return self._state.expiry_timestamp

    def principal(self, certificate: bytes | None, *, is_resumed: bool = False) -> Principal:
        """Return who a client with this certificate (DER) is; OpenSSL has verified it, unless the session is resumed.

        Raises UnmappedNameError if no rule maps its name, and ValueError if it has none that can be read, or if the
        certificate of a resumed session has expired.
        """
        if certificate is None:
            return ANONYMOUS
        if is_resumed:
            self._check_validity(x509.load_der_x509_certificate(certificate))
        if not self._names_clients:
            return ANONYMOUS
        return Principal(USER, self._state.rules.name(subject_name(certificate)))

    def reload(self, settings: TlsSettings | None = None) -> None:
        """Read the files again, now, with other settings if given; new connections use them.

        Raises TlsSettingsError if they cannot be used, or are of somebody else; then nothing has changed.
        """
        with self._lock:
            settings = self._state.settings if settings is None else settings
            stamp = _stamp(settings)
            self._state = new = self._successor(settings)
            self._seen = stamp
            _LOG.info("TLS certificate loaded", listener=self.listener, serial=f"{new.certificate.serial_number:x}")
            self._warn_if_expired()

    def check(self) -> None:
        """Read the files, and change nothing. Raises TlsSettingsError where `reload` would."""
        self._successor(self._state.settings)

    def check_files(self) -> None:
        """Reload if a file has changed. If it cannot be used, log one line for each change and keep the old one."""
        stamp = _stamp(self._state.settings)
        if stamp == self._seen:
            return
        try:
            self.reload()
        except TlsSettingsError as error:
            self._seen = stamp  # of before the reading: a file that was completed during it has changed again
            _LOG.error("TLS certificate not loaded, the old one stays", listener=self.listener, reason=error)

    def _successor(self, settings: TlsSettings) -> _State:
        new = _read(settings)
        _check_identity(self._state.certificate, new.certificate, settings)
        return new

    def _check_validity(self, certificate: x509.Certificate) -> None:
        if certificate.not_valid_after_utc.timestamp() < self._clock.time_ms() / 1000:
            raise ValueError("the client's certificate has expired since its session began")

    def _warn_if_expired(self) -> None:
        if self._state.expiry_timestamp <= self._clock.time_ms() / 1000:
            _LOG.warning("TLS certificate has expired", listener=self.listener, certificate=_subject(self._state))


def _read(settings: TlsSettings) -> _State:
    credentials = read_credentials(settings)
    return _State(
        settings,
        context_of(settings, credentials),
        credentials.chain[0],
        _expiry_timestamp(credentials),
        MappingRules(settings.principal_mapping_rules),
    )


def _expiry_timestamp(credentials: Credentials) -> float:
    return min([each.not_valid_after_utc.timestamp() for each in credentials.chain])


def _subject(state: _State) -> str:
    return state.certificate.subject.rfc4514_string()


def _check_identity(old: x509.Certificate, new: x509.Certificate, settings: TlsSettings) -> None:
    if old.subject != new.subject and not settings.allow_dn_changes:
        raise TlsSettingsError(
            f"ssl.keystore: the certificate is of {new.subject.rfc4514_string()}, the one in use of "
            f"{old.subject.rfc4514_string()}: set ssl.allow.dn.changes=true to allow that"
        )
    missing = _alternative_names(old) - _alternative_names(new)
    if missing and not settings.allow_san_changes:
        raise TlsSettingsError(
            f"ssl.keystore: the certificate lacks alternative names of the one in use, {', '.join(sorted(missing))}: "
            "set ssl.allow.san.changes=true to allow that"
        )


def _alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(f"{type(name).__name__}:{name.value}" for name in names)


def _stamp(settings: TlsSettings) -> _Stamp:
    """Return what changes with the files. Symbolic links are followed: Kubernetes exchanges them."""
    found = []
    for path in settings.files:
        try:
            status = os.stat(path)  # noqa: PTH116 - the path is text
        except OSError:
            found.append((path, 0, 0, 0, 0))
        else:
            found.append((path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
