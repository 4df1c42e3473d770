"""Security, created from the configuration: how the clients of each listener authenticate, and what they may do.

`config.security_rules` has refused what is not valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from odradek.broker import waiting
from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.config.security_rules import UNSECURED_VALIDATOR, jaas_entry
from odradek.broker.metadata.administration.scram_users import unknown_users_secret
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.randomness import Randomness
from odradek.broker.request.authentication import ListenerAuthentication
from odradek.broker.security.authentication.mechanisms import Mechanisms, OauthBearer, Plain, Scram
from odradek.broker.security.authentication.tokens.validator import TokenValidator
from odradek.broker.security.authentication.unknown_users import SECRET_BYTES, UnknownUsers
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, ScramCredential

if TYPE_CHECKING:
    from odradek.broker.security.tls.listener_tls import ListenerTls
    from odradek.broker.security.tls.settings import TlsSettings


METRICS_PORT: Final = "metrics.port"
"""The HTTP port, where TLS is told apart by the names of listeners."""


def is_audited(config: BrokerConfig) -> bool:
    """Return whether changes are recorded: if clients can be told apart, or the file asks for it."""
    protocols = {config.security_protocol(endpoint.name) for endpoint in config.listeners}
    return bool(config.authorizer_class_name or config.audit_log_file or protocols != {"PLAINTEXT"})


def listener_tls(config: BrokerConfig, clock: Clock) -> dict[str, ListenerTls]:
    """Read keys and certificates, for each listener with TLS, and the HTTP port. Blocks. Raises `ConfigError`."""
    found, problems = {}, []
    for endpoint in config.listeners:
        protocol = config.security_protocol(endpoint.name)
        if protocol in ("SSL", "SASL_SSL"):
            # Loaded where TLS is used: `cryptography` takes 50 ms.
            from odradek.broker.security.tls.listener_tls import ListenerTls
            from odradek.broker.security.tls.settings import TlsSettingsError

            try:
                found[endpoint.name] = ListenerTls(
                    endpoint.name, tls_settings(config, endpoint.name), clock, names_clients=protocol == "SSL"
                )
            except TlsSettingsError as error:
                problems.append(f"{error} (listener {endpoint.name})")
    if config.metrics_port >= 0 and config.metrics_ssl_keystore_location is not None:
        try:
            found[METRICS_PORT] = _tls_of_metrics(config, clock)
        except ValueError as error:
            problems.append(f"metrics.{error}")
    if problems:
        raise ConfigError(problems)
    return found


def _tls_of_metrics(config: BrokerConfig, clock: Clock) -> ListenerTls:
    """Return TLS of the HTTP port. Every client may connect; those with certificates are known by them."""
    from odradek.broker.security.tls.listener_tls import ListenerTls
    from odradek.broker.security.tls.settings import PEM, ClientAuth, TlsSettings

    settings = TlsSettings(
        keystore_location=config.metrics_ssl_keystore_location,
        keystore_type=PEM if config.metrics_ssl_keystore_password is None else "PKCS12",
        keystore_password=config.metrics_ssl_keystore_password,
        truststore_location=config.metrics_ssl_truststore_location,
        truststore_type=PEM if config.metrics_ssl_truststore_password is None else "PKCS12",
        truststore_password=config.metrics_ssl_truststore_password,
        client_auth=ClientAuth.REQUESTED if config.metrics_ssl_truststore_location else ClientAuth.NONE,
    )
    return ListenerTls(METRICS_PORT, settings, clock, names_clients=False)


def tls_settings(config: BrokerConfig, listener: str) -> TlsSettings:
    """Return the settings of a listener with TLS."""
    from odradek.broker.security.tls.settings import ClientAuth, TlsSettings

    of = config.listener(listener)
    return TlsSettings(
        keystore_location=of.ssl_keystore_location,
        keystore_type=of.ssl_keystore_type,
        keystore_password=of.ssl_keystore_password,
        keystore_key=of.ssl_keystore_key,
        keystore_certificate_chain=of.ssl_keystore_certificate_chain,
        key_password=of.ssl_key_password,
        truststore_location=of.ssl_truststore_location,
        truststore_type=of.ssl_truststore_type,
        truststore_password=of.ssl_truststore_password,
        truststore_certificates=of.ssl_truststore_certificates,
        client_auth=ClientAuth(of.ssl_client_auth),
        enabled_protocols=tuple(of.ssl_enabled_protocols),
        cipher_suites=tuple(of.ssl_cipher_suites),
        principal_mapping_rules=of.ssl_principal_mapping_rules,
        allow_dn_changes=of.ssl_allow_dn_changes,
        allow_san_changes=of.ssl_allow_san_changes,
    )


class ScramUserTable:
    """The users of SCRAM in the metadata; `prepare` is awaited before the first client is served."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._unknown: UnknownUsers | None = None

    async def prepare(self, *, read_only: bool) -> None:
        """Get the secret of the cluster for users that do not exist. Raises `KafkaError`.

        A broker that may not write uses a secret of its own if there is none yet.
        """
        stored = self._metadata.image.scram_users.secret
        if stored is not None:
            secret = stored.secret
        elif read_only:
            secret = self._metadata.randomness.random_bytes(SECRET_BYTES)
        else:
            secret = await unknown_users_secret(self._metadata)
        self._unknown = UnknownUsers(secret)

    def credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """Return the credential of a user, as it is stored now."""
        return self._metadata.image.scram_users.credential(mechanism, name)

    def unknown(self) -> UnknownUsers:
        """Return what invents credentials of users that do not exist."""
        assert self._unknown is not None  # `prepare`
        return self._unknown


@dataclass(frozen=True)
class Authentications:
    """Makes the authentication of each listener, and starts the tasks that it needs: fetching the keys of tokens."""

    config: BrokerConfig
    clock: Clock
    tasks: BackgroundTasks
    users: ScramUserTable
    randomness: Randomness

    async def prepare(self, *, read_only: bool) -> None:
        """Do what must be done before clients are served: see `ScramUserTable.prepare`."""
        names = [endpoint.name for endpoint in self.config.listeners]
        if any(SCRAM_MECHANISMS.keys() & {*self._mechanisms_of(name)} for name in names):
            await self.users.prepare(read_only=read_only)

    def by_listener(self) -> dict[str, ListenerAuthentication]:
        """Return how clients authenticate, for each listener on which they must."""
        return {
            endpoint.name: self._of(endpoint.name)
            for endpoint in self.config.listeners
            if self.config.security_protocol(endpoint.name).startswith("SASL")
        }

    def _of(self, listener: str) -> ListenerAuthentication:
        its_config, names = self.config.listener(listener), self._mechanisms_of(listener)
        return ListenerAuthentication(
            mechanisms=Mechanisms([self._mechanism(listener, name) for name in names]),
            lifetimes_ms={name: self.config.listener(listener, name).connections_max_reauth_ms for name in names},
            max_receive_size=its_config.sasl_server_max_receive_size,
            failure_delay_seconds=its_config.connection_failed_authentication_delay_ms / 1000,
            is_encrypted=self.config.security_protocol(listener) == "SASL_SSL",
        )

    def _mechanisms_of(self, listener: str) -> list[str]:
        is_used = self.config.security_protocol(listener).startswith("SASL")
        return self.config.listener(listener).sasl_enabled_mechanisms if is_used else []

    def _mechanism(self, listener: str, name: str) -> Plain | Scram | OauthBearer:
        if name == "PLAIN":
            entry = jaas_entry(self.config, listener, name)
            assert entry is not None  # the rules
            return Plain(entry.users)
        if name == "OAUTHBEARER":
            return OauthBearer(self._validator(listener))
        find_credential = partial(self.users.credential, name)
        return Scram(SCRAM_MECHANISMS[name], find_credential, self.users.unknown, self.randomness)

    def _validator(self, listener: str) -> TokenValidator:
        its_config = self.config.listener(listener, "OAUTHBEARER")
        if its_config.sasl_server_callback_handler_class == UNSECURED_VALIDATOR:
            from odradek.broker.security.authentication.tokens.unsecured_tokens import (
                UnsecuredSettings,
                UnsecuredTokens,
            )

            entry = jaas_entry(self.config, listener, "OAUTHBEARER")
            return UnsecuredTokens(UnsecuredSettings.from_options({} if entry is None else entry.options), self.clock)
        # Loaded where tokens are used: joserfc and cryptography take 60 ms.
        from odradek.broker.security.authentication.tokens.key_cache import KeyCache, KeyCacheSettings
        from odradek.broker.security.authentication.tokens.key_source import key_source
        from odradek.broker.security.authentication.tokens.signed_tokens import SignedTokens, SignedTokenSettings

        url = its_config.sasl_oauthbearer_jwks_endpoint_url
        assert url is not None  # the rules
        keys = KeyCache(
            key_source(url, [urlsplit(url).hostname or ""]),
            self.clock,
            KeyCacheSettings(
                its_config.sasl_oauthbearer_jwks_endpoint_refresh_ms,
                its_config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
                its_config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
            ),
            lambda seconds: waiting.pause(self.clock, seconds),
        )
        self.tasks.start(f"keys of {listener}", keys.run())
        settings = SignedTokenSettings(
            tuple(its_config.sasl_oauthbearer_expected_audience),
            its_config.sasl_oauthbearer_expected_issuer,
            its_config.sasl_oauthbearer_clock_skew_seconds,
            its_config.sasl_oauthbearer_scope_claim_name,
            its_config.sasl_oauthbearer_sub_claim_name,
        )
        return SignedTokens(settings, keys.find, self.clock)
