"""Security, created from the configuration: how the clients of each listener authenticate, and what they may do.

`config.security_rules` has refused what is not valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from odradek.broker import waiting
from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.config.security_rules import UNSECURED_VALIDATOR, jaas_entry
from odradek.broker.request.authentication import ListenerAuthentication
from odradek.broker.security.authentication.mechanisms import Mechanisms, OauthBearer, Plain, Scram
from odradek.broker.security.authentication.tokens.validator import TokenValidator
from odradek.broker.tasks import BackgroundTasks


def is_audited(config: BrokerConfig) -> bool:
    """Return whether changes are recorded: if clients can be told apart, or the file asks for it."""
    protocols = {config.security_protocol(endpoint.name) for endpoint in config.listeners}
    return bool(config.authorizer_class_name or config.audit_log_file or protocols != {"PLAINTEXT"})


@dataclass(frozen=True)
class Authentications:
    """Makes the authentication of each listener, and starts the tasks that it needs: fetching the keys of tokens."""

    config: BrokerConfig
    clock: Clock
    tasks: BackgroundTasks

    def by_listener(self) -> dict[str, ListenerAuthentication]:
        """Return how clients authenticate, for each listener on which they must."""
        return {
            endpoint.name: self._of(endpoint.name)
            for endpoint in self.config.listeners
            if self.config.security_protocol(endpoint.name).startswith("SASL")
        }

    def _of(self, listener: str) -> ListenerAuthentication:
        its_config = self.config.listener(listener)
        names = its_config.sasl_enabled_mechanisms
        return ListenerAuthentication(
            mechanisms=Mechanisms([self._mechanism(listener, name) for name in names]),
            lifetimes_ms={name: self.config.listener(listener, name).connections_max_reauth_ms for name in names},
            max_receive_size=its_config.sasl_server_max_receive_size,
            failure_delay_seconds=its_config.connection_failed_authentication_delay_ms / 1000,
        )

    def _mechanism(self, listener: str, name: str) -> Plain | Scram | OauthBearer:
        if name == "PLAIN":
            entry = jaas_entry(self.config, listener, name)
            assert entry is not None  # the rules
            return Plain(entry.users)
        if name == "OAUTHBEARER":
            return OauthBearer(self._validator(listener))
        raise NotImplementedError(name)

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
