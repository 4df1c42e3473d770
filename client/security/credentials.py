"""The credentials of a SASL mechanism, from the settings that have them.

| mechanism | settings | result |
|---|---|---|
| PLAIN, SCRAM-… | `sasl_username` and `sasl_password`, or `sasl_jaas_config` | `PasswordCredentials` |
| OAUTHBEARER | `sasl_oauth_token_provider` | `ProvidedTokens` |
| | `sasl_oauthbearer_token_endpoint_url`; id and secret are settings, or in `sasl_jaas_config` | `ClientCredentials` |
| | `sasl_jaas_config` with `unsecuredLoginStringClaim_sub` | `UnsecuredTokens`: what Kafka's tests use |

Their `repr` has no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.errors import ConfigurationError
from odradek.client.security.jaas import JaasEntry, parse_jaas

if TYPE_CHECKING:
    from odradek.client.security.settings import SecuritySettings, TokenProvider

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_EXTENSION: Final = "extension_"
_SUBJECT: Final = "unsecuredLoginStringClaim_sub"
_UNSECURED: Final = "unsecuredLogin"


class PasswordCredentials(NamedTuple):
    """Of PLAIN and SCRAM."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"PasswordCredentials({self.username!r}, [hidden])"


class ProvidedTokens(NamedTuple):
    """Of OAUTHBEARER: a function returns the tokens."""

    provider: TokenProvider
    extensions: dict[str, str]


class ClientCredentials(NamedTuple):
    """Of OAUTHBEARER: a token endpoint issues the tokens."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None
    extensions: dict[str, str]

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r}, [hidden])"


class UnsecuredTokens(NamedTuple):
    """Of OAUTHBEARER: tokens without a signature, for a principal, as Kafka's default login module makes them."""

    subject: str
    scope: str | None
    seconds: int
    extensions: dict[str, str]


Credentials = PasswordCredentials | ProvidedTokens | ClientCredentials | UnsecuredTokens


def credentials_of(settings: SecuritySettings) -> Credentials:
    """The credentials for `sasl_mechanism`, which is a known one. Raises ConfigurationError."""
    mechanism = settings.sasl_mechanism
    assert mechanism is not None, "checked with the settings"
    jaas = _jaas(settings.sasl_jaas_config, mechanism)
    if mechanism == "OAUTHBEARER":
        return _of_tokens(settings, jaas)
    if jaas is not None:
        if jaas.options.get("tokenauth", "false").lower() == "true":
            raise _wrong("sasl_jaas_config has a delegation token", "Use a user and a password")
        username, password = jaas.options.get("username"), jaas.options.get("password")
        if username is None or password is None:
            raise _wrong("sasl_jaas_config has no username or no password", 'Write username="…" password="…"')
        return PasswordCredentials(username, password)
    if settings.sasl_username is None or settings.sasl_password is None:
        raise _wrong(f"{mechanism} has no user", "Set sasl_username and sasl_password, or sasl_jaas_config")
    return PasswordCredentials(settings.sasl_username, settings.sasl_password)


def _of_tokens(settings: SecuritySettings, jaas: JaasEntry | None) -> Credentials:
    options = jaas.options if jaas is not None else {}
    extensions = {
        name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)
    }
    if settings.sasl_oauth_token_provider is not None:
        return ProvidedTokens(settings.sasl_oauth_token_provider, extensions)
    if settings.sasl_oauthbearer_token_endpoint_url is not None:
        client_id = settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
        secret = settings.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
        if not client_id or not secret:
            prefix = "sasl_oauthbearer_client_credentials"
            cure = f"Set {prefix}_client_id and {prefix}_client_secret"
            raise _wrong("sasl_oauthbearer_token_endpoint_url is set without a client id or its secret", cure)
        scope = settings.sasl_oauthbearer_scope or options.get("scope")
        return ClientCredentials(settings.sasl_oauthbearer_token_endpoint_url, client_id, secret, scope, extensions)
    if _SUBJECT in options:
        seconds = options.get(f"{_UNSECURED}LifetimeSeconds", "3600")
        if not seconds.isdecimal() or not 0 < int(seconds) <= 10**9:
            raise _wrong(f"{_UNSECURED}LifetimeSeconds in sasl_jaas_config is no number", "Write seconds")
        return UnsecuredTokens(
            options[_SUBJECT], options.get(f"{_UNSECURED}StringClaim_scope"), int(seconds), extensions
        )
    raise _wrong("OAUTHBEARER has no tokens", "Set sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url")


def _jaas(text: str | None, mechanism: str) -> JaasEntry | None:
    if text is None:
        return None
    module = _MODULES[mechanism]
    try:
        entry = parse_jaas(text)
    except ValueError as error:
        raise _wrong(f"sasl_jaas_config cannot be read: {error}", f'Write {module} required name="value" …;') from None
    if entry.module != module:
        raise _wrong(f"the module in sasl_jaas_config is not the login module of {mechanism}", f"It is {module}")
    return entry


def _wrong(cause: str, cure: str) -> ConfigurationError:
    return ConfigurationError("configure the client", cause, cure)
