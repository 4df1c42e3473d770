"""The checks of `SecuritySettings`: values, and settings that need or exclude each other. Reads no file.

A setting that would have no effect is an error if it shows that its user expects security: a trust store without TLS,
a password without SASL. Kafka's clients connect in plain text then. Others, such as
`ssl_endpoint_identification_algorithm` beside SASL_PLAINTEXT, are harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from odradek.client.errors import ConfigurationError
from odradek.client.security.credentials import PasswordCredentials, credentials_of

if TYPE_CHECKING:
    from odradek.client.security.settings import SecuritySettings

_CLIENT_ID = "sasl_oauthbearer_client_credentials_client_id"
_CLIENT_SECRET = "sasl_oauthbearer_client_credentials_client_secret"  # noqa: S105 - a setting's name
_NEED_TLS = (
    "ssl_truststore_location", "ssl_truststore_certificates", "ssl_keystore_location", "ssl_keystore_certificate_chain",
    "ssl_keystore_key",
)  # fmt: skip
_NEED_SASL = (
    "sasl_mechanism", "sasl_username", "sasl_password", "sasl_jaas_config", "sasl_oauth_token_provider",
    "sasl_oauthbearer_token_endpoint_url", _CLIENT_ID, _CLIENT_SECRET,
)  # fmt: skip
_STORE_TYPES = ("PEM", "PKCS12")


def check(settings: SecuritySettings) -> None:
    """Raise ConfigurationError for the first mistake."""
    from odradek.client.security.settings import PROTOCOLS

    _check_types(settings)
    protocol = settings.security_protocol
    if protocol.upper() not in PROTOCOLS:
        raise wrong(f"security_protocol is {protocol!r}", f"choose one of {', '.join(PROTOCOLS)}")
    if not settings.uses_tls:
        _refuse_without(settings, _NEED_TLS, "TLS", "SASL_SSL" if settings.uses_sasl else "SSL")
    if not settings.uses_sasl:
        _refuse_without(settings, _NEED_SASL, "SASL", "SASL_SSL")
    _check_tls(settings)
    if settings.uses_sasl:
        _check_sasl(settings)


def wrong(cause: str, cure: str) -> ConfigurationError:
    return ConfigurationError("configure the client", cause, cure)


def _check_types(settings: SecuritySettings) -> None:
    from odradek.client.security.settings import SecurityKeywords

    for name in SecurityKeywords.__annotations__:
        value: Any = getattr(settings, name)
        if name == "ssl_enabled_protocols":
            continue
        if name == "sasl_oauth_token_provider":
            if value is not None and not callable(value):
                raise wrong(
                    f"{name} is {type(value).__name__}", "give a function that returns a token and when it expires"
                )
        elif not isinstance(value, str) and (value is not None or name == "security_protocol"):
            raise wrong(f"{name} is {type(value).__name__}", "give text")


def _refuse_without(settings: SecuritySettings, names: Sequence[str], needed: str, protocol: str) -> None:
    for name in names:
        if getattr(settings, name) is not None:
            raise wrong(
                f"{name} is set, and security_protocol {settings.security_protocol!r} has no {needed}",
                f"Set security_protocol to {protocol}, or remove {name}",
            )


def _check_tls(settings: SecuritySettings) -> None:
    from odradek.client.security.settings import HTTPS, TLS_VERSIONS

    versions = settings.ssl_enabled_protocols
    if isinstance(versions, str) or not versions or not set(versions) <= set(TLS_VERSIONS):
        raise wrong(f"ssl_enabled_protocols is {versions!r}", f"choose from {', '.join(TLS_VERSIONS)}")
    algorithm = settings.ssl_endpoint_identification_algorithm
    if algorithm and algorithm.lower() != HTTPS:
        raise wrong(
            f"ssl_endpoint_identification_algorithm is {algorithm!r}", 'choose "https", or "" to check no names'
        )
    for store in ("truststore", "keystore"):
        kind = getattr(settings, f"ssl_{store}_type")
        if kind is not None and kind.upper() == "JKS":
            raise jks(f"ssl_{store}_type", getattr(settings, f"ssl_{store}_location"))
        if kind is not None and kind.upper() not in _STORE_TYPES:
            raise wrong(f"ssl_{store}_type is {kind!r}", f"choose one of {', '.join(_STORE_TYPES)}")
    _exclude(settings, "ssl_truststore_location", "ssl_truststore_certificates")
    _exclude(settings, "ssl_keystore_location", "ssl_keystore_key")
    _exclude(settings, "ssl_keystore_location", "ssl_keystore_certificate_chain")
    _need_each_other(settings, "ssl_keystore_key", "ssl_keystore_certificate_chain")


def jks(what: str, location: str | None) -> ConfigurationError:
    """The error for a key store or trust store in Java's own format."""
    file = location or "store.jks"
    command = f"keytool -importkeystore -srckeystore {file} -destkeystore {_p12(file)} -deststoretype PKCS12"
    return wrong(f"{what} is JKS, which only Java reads", f"Convert it: {command}")


def _p12(file: str) -> str:
    return f"{file.removesuffix('.jks')}.p12"


def _check_sasl(settings: SecuritySettings) -> None:
    from odradek.client.security.settings import MECHANISMS

    mechanism = settings.sasl_mechanism
    if mechanism == "GSSAPI":
        raise wrong("sasl_mechanism is 'GSSAPI', and Kerberos is not supported", f"choose from {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        cause = "sasl_mechanism is not set" if mechanism is None else f"sasl_mechanism is {mechanism!r}"
        raise wrong(cause, f"choose one of {', '.join(MECHANISMS)}")
    _need_each_other(settings, "sasl_username", "sasl_password")
    for name in ("sasl_username", "sasl_oauth_token_provider", "sasl_oauthbearer_token_endpoint_url"):
        if name != "sasl_oauthbearer_token_endpoint_url":  # beside it a JAAS text has the client id and its secret
            _exclude(settings, "sasl_jaas_config", name)
    _exclude(settings, "sasl_oauth_token_provider", "sasl_oauthbearer_token_endpoint_url")
    credentials = credentials_of(settings)
    if isinstance(credentials, PasswordCredentials) and "\0" in credentials.username + credentials.password:
        raise wrong("the user name or the password has a null character", "No mechanism can send it")


def _exclude(settings: SecuritySettings, one: str, other: str) -> None:
    if getattr(settings, one) is not None and getattr(settings, other) is not None:
        raise wrong(f"{one} and {other} are both set", "Remove one of them")


def _need_each_other(settings: SecuritySettings, one: str, other: str) -> None:
    has_one, has_other = getattr(settings, one) is not None, getattr(settings, other) is not None
    if has_one != has_other:
        present, missing = (one, other) if has_one else (other, one)
        raise wrong(f"{present} is set and {missing} is not", f"Set {missing}, too")
