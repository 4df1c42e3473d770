"""Security, created from the configuration: how the clients of each listener authenticate.

`config.security_rules` has refused what is not valid.
"""

from __future__ import annotations

from odradek.broker.config import BrokerConfig
from odradek.broker.config.security_rules import jaas_entry
from odradek.broker.request.authentication import ListenerAuthentication
from odradek.broker.security.authentication.mechanisms import Mechanisms, OauthBearer, Plain, Scram


def is_audited(config: BrokerConfig) -> bool:
    """Return whether changes are recorded: if clients can be told apart, or the file asks for it."""
    protocols = {config.security_protocol(endpoint.name) for endpoint in config.listeners}
    return bool(config.authorizer_class_name or config.audit_log_file or protocols != {"PLAINTEXT"})


def listener_authentication(config: BrokerConfig) -> dict[str, ListenerAuthentication]:
    """Return how clients authenticate, for each listener on which they must."""
    return {
        endpoint.name: _authentication(config, endpoint.name)
        for endpoint in config.listeners
        if config.security_protocol(endpoint.name).startswith("SASL")
    }


def _authentication(config: BrokerConfig, listener: str) -> ListenerAuthentication:
    its_config = config.listener(listener)
    names = its_config.sasl_enabled_mechanisms
    return ListenerAuthentication(
        mechanisms=Mechanisms([_mechanism(config, listener, name) for name in names]),
        lifetimes_ms={name: config.listener(listener, name).connections_max_reauth_ms for name in names},
        max_receive_size=its_config.sasl_server_max_receive_size,
        failure_delay_seconds=its_config.connection_failed_authentication_delay_ms / 1000,
    )


def _mechanism(config: BrokerConfig, listener: str, name: str) -> Plain | Scram | OauthBearer:
    if name == "PLAIN":
        entry = jaas_entry(config, listener, name)
        assert entry is not None  # the rules
        return Plain(entry.users)
    raise NotImplementedError(name)
