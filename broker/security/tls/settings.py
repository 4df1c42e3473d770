"""The TLS settings of one listener: the values of its `ssl.*` properties, as `context` and `stores` need them.

The caller fills the struct from the configuration, which nothing here imports. Names and defaults are Kafka's
(`SslConfigs`). Errors are one line, which starts with the property and ends with the cure.
"""

from __future__ import annotations

from enum import Enum

import msgspec

PEM = "PEM"
"""The store type of PEM files and inline PEM. Any other type is a file that is recognised by its content."""
DEFAULT_STORE_TYPE = "JKS"
"""Kafka's default. Java reads PKCS12 files under this type, too."""
DEFAULT_PROTOCOLS = ("TLSv1.2", "TLSv1.3")


class ClientAuth(Enum):
    """The values of `ssl.client.auth`."""

    NONE = "none"
    REQUESTED = "requested"
    """A client without a certificate is served as User:ANONYMOUS; one with an invalid certificate is refused."""
    REQUIRED = "required"


class TlsSettingsError(ValueError):
    """Settings that cannot be used. The message is a line that names the property and the cure, and no secret."""


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings; None: not set. `repr` shows no password, no key and no certificate.

    A keystore is a file (`keystore_location`), or PEM text in `keystore_key` and `keystore_certificate_chain`. A
    truststore is a file, or PEM text in `truststore_certificates`.
    """

    keystore_location: str | None = None
    keystore_type: str = DEFAULT_STORE_TYPE
    keystore_password: str | None = None
    keystore_key: str | None = None
    keystore_certificate_chain: str | None = None
    key_password: str | None = None
    truststore_location: str | None = None
    truststore_type: str = DEFAULT_STORE_TYPE
    truststore_password: str | None = None
    truststore_certificates: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    enabled_protocols: tuple[str, ...] = DEFAULT_PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    principal_mapping_rules: str = "DEFAULT"
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    def __repr__(self) -> str:
        return (
            f"TlsSettings(keystore_location={self.keystore_location!r}, keystore_type={self.keystore_type!r}, "
            f"truststore_location={self.truststore_location!r}, client_auth={self.client_auth})"
        )

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the settings name, for noticing changes."""
        return tuple(path for path in (self.keystore_location, self.truststore_location) if path is not None)
