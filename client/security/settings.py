"""The settings of TLS and SASL, with the names and meaning of Kafka's clients.

```
SecuritySettings ──► client.network.tls    an SSL context, if `uses_tls`
                 └─► client.network.sasl   the authentication of each connection, if `uses_sasl`
```
`ClientConfig` inherits from this class; brokers use it alone for the connections between them. It is immutable, and its
`repr` hides secrets. Constructors raise ConfigurationError, whose text never has the value of a secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypedDict

import msgspec

TokenProvider = Callable[[], "tuple[str, float] | Awaitable[tuple[str, float]]"]
"""Returns a token and the time at which it expires, in seconds since the epoch; may be async. If it is not, it runs on
a thread, because it may block."""

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
HTTPS: Final = "https"

HIDDEN: Final = "[hidden]"
SECRETS: Final = frozenset(
    {
        "ssl_truststore_password",
        "ssl_keystore_password",
        "ssl_keystore_key",
        "ssl_key_password",
        "sasl_password",
        "sasl_jaas_config",
        "sasl_oauthbearer_client_credentials_client_secret",
    }
)
"""The settings whose values are shown nowhere."""


class SecurityKeywords(TypedDict, total=False):
    """The keywords of TLS and SASL; `SecuritySettings` specifies their meaning and defaults."""

    security_protocol: str
    ssl_truststore_location: str | None
    ssl_truststore_password: str | None
    ssl_truststore_type: str | None
    ssl_truststore_certificates: str | None
    ssl_keystore_location: str | None
    ssl_keystore_password: str | None
    ssl_keystore_type: str | None
    ssl_keystore_certificate_chain: str | None
    ssl_keystore_key: str | None
    ssl_key_password: str | None
    ssl_endpoint_identification_algorithm: str | None
    ssl_enabled_protocols: Sequence[str]
    sasl_mechanism: str | None
    sasl_username: str | None
    sasl_password: str | None
    sasl_jaas_config: str | None
    sasl_oauth_token_provider: TokenProvider | None
    sasl_oauthbearer_token_endpoint_url: str | None
    sasl_oauthbearer_client_credentials_client_id: str | None
    sasl_oauthbearer_client_credentials_client_secret: str | None
    sasl_oauthbearer_scope: str | None


class SecuritySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The encryption and authentication of connections."""

    security_protocol: str = "PLAINTEXT"  # or SSL (TLS), SASL_PLAINTEXT, SASL_SSL
    ssl_truststore_location: str | None = None  # a file with the CAs to trust; None: those of this machine
    ssl_truststore_password: str | None = None  # of a PKCS12 file
    ssl_truststore_type: str | None = None  # PEM or PKCS12; None: what the file is
    ssl_truststore_certificates: str | None = None  # the CAs as PEM text, in place of a file
    ssl_keystore_location: str | None = None  # a file with this client's key and certificates
    ssl_keystore_password: str | None = None  # of a PKCS12 file
    ssl_keystore_type: str | None = None  # PEM or PKCS12; None: what the file is
    ssl_keystore_certificate_chain: str | None = None  # the certificates as PEM text, its own first
    ssl_keystore_key: str | None = None  # the private key as PEM text
    ssl_key_password: str | None = None  # of an encrypted private key
    ssl_endpoint_identification_algorithm: str | None = HTTPS  # the broker's certificate has its name; "": unchecked
    ssl_enabled_protocols: Sequence[str] = TLS_VERSIONS
    sasl_mechanism: str | None = None  # PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER
    sasl_username: str | None = None  # of PLAIN and SCRAM
    sasl_password: str | None = None
    sasl_jaas_config: str | None = None  # the same as Kafka writes it, in place of the two
    sasl_oauth_token_provider: TokenProvider | None = None  # tokens of OAUTHBEARER from a function
    sasl_oauthbearer_token_endpoint_url: str | None = None  # or from an OAuth server, for client credentials
    sasl_oauthbearer_client_credentials_client_id: str | None = None
    sasl_oauthbearer_client_credentials_client_secret: str | None = None
    sasl_oauthbearer_scope: str | None = None  # the scope to request

    def __post_init__(self) -> None:
        if self.security_protocol == "PLAINTEXT" and all(getattr(self, name) is None for name in _UNSET):
            return  # without loading the checks
        from odradek.client.security.setting_checks import check

        check(self)

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.upper().endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.upper().startswith("SASL_")

    @property
    def verifies_names(self) -> bool:
        """Whether the certificate of a broker must have the name that was connected to."""
        return bool(self.ssl_endpoint_identification_algorithm)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, HIDDEN if name in SECRETS and value is not None else value) for name, value in values]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


_UNSET = [
    name
    for name, default in zip(SecuritySettings.__struct_fields__, SecuritySettings.__struct_defaults__, strict=True)
    if default is None
]
