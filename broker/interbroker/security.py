"""TLS and SASL of this broker as a client of the others: the properties of the listener that brokers use.

It trusts what that listener trusts, shows the certificate that it shows, and logs in with `username` and `password` of
`sasl.jaas.config`, as in Kafka. `config.security_rules` has refused what is not valid.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.config import BrokerConfig
from odradek.broker.config.security_rules import jaas_entry
from odradek.client.security.settings import SecuritySettings


def security_between_brokers(config: BrokerConfig) -> SecuritySettings | None:
    """Return the settings of connections to `inter.broker.listener.name`; None for plain text."""
    listener = config.inter_broker_listener
    protocol = config.security_protocol(listener)
    if protocol == "PLAINTEXT":
        return None
    settings: dict[str, Any] = {"security_protocol": protocol}
    if protocol.endswith("SSL"):
        settings |= _tls(config, listener)
    if protocol.startswith("SASL"):
        settings |= _login(config, listener)
    return SecuritySettings(**settings)


def _tls(config: BrokerConfig, listener: str) -> dict[str, Any]:
    of = config.listener(listener)
    settings: dict[str, Any] = {
        "ssl_endpoint_identification_algorithm": of.ssl_endpoint_identification_algorithm,
        "ssl_enabled_protocols": tuple(of.ssl_enabled_protocols),
    }
    if of.ssl_truststore_location is not None or of.ssl_truststore_certificates is not None:
        settings |= {
            "ssl_truststore_location": of.ssl_truststore_location,
            "ssl_truststore_type": of.ssl_truststore_type,
            "ssl_truststore_password": of.ssl_truststore_password,
            "ssl_truststore_certificates": of.ssl_truststore_certificates,
        }
    if of.ssl_client_auth != "none":
        settings |= {
            "ssl_keystore_location": of.ssl_keystore_location,
            "ssl_keystore_type": of.ssl_keystore_type,
            "ssl_keystore_password": of.ssl_keystore_password,
            "ssl_keystore_certificate_chain": of.ssl_keystore_certificate_chain,
            "ssl_keystore_key": of.ssl_keystore_key,
            "ssl_key_password": of.ssl_key_password,
        }
    return settings


def _login(config: BrokerConfig, listener: str) -> dict[str, Any]:
    mechanism = config.sasl_mechanism_inter_broker_protocol
    entry = jaas_entry(config, listener, mechanism)
    assert entry is not None  # the rules
    return {
        "sasl_mechanism": mechanism,
        "sasl_username": entry.options["username"],
        "sasl_password": entry.options["password"],
    }
