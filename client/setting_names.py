"""The names of settings: ours, their names in aiokafka and librdkafka, and the errors for unknown names.

The error for a misspelt name, or for one of another client, suggests ours; a few names of TLS and SASL that have no
counterpart say what to use. Only a client with an unknown name imports this module. docs/client.md shows the table,
with the defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from difflib import get_close_matches

from odradek.client.errors import ConfigurationError

OTHER_NAMES: dict[str, tuple[str | None, str | None]] = {
    "bootstrap_servers": ("bootstrap_servers", "bootstrap.servers"),
    "client_id": ("client_id", "client.id"),
    "request_timeout_ms": ("request_timeout_ms", "socket.timeout.ms"),
    "connect_timeout_ms": (None, "socket.connection.setup.timeout.ms"),
    "metadata_max_age_ms": ("metadata_max_age_ms", "topic.metadata.refresh.interval.ms"),
    "retry_backoff_ms": ("retry_backoff_ms", "retry.backoff.ms"),
    "retry_backoff_max_ms": (None, "retry.backoff.max.ms"),
    "reconnect_backoff_ms": (None, "reconnect.backoff.ms"),
    "reconnect_backoff_max_ms": (None, "reconnect.backoff.max.ms"),
    "security_protocol": ("security_protocol", "security.protocol"),
    "ssl_truststore_location": (None, "ssl.ca.location"),
    "ssl_truststore_password": (None, None),
    "ssl_truststore_type": (None, None),
    "ssl_truststore_certificates": (None, "ssl.ca.pem"),
    "ssl_keystore_location": (None, "ssl.keystore.location"),
    "ssl_keystore_password": (None, "ssl.keystore.password"),
    "ssl_keystore_type": (None, None),
    "ssl_keystore_certificate_chain": (None, "ssl.certificate.pem"),
    "ssl_keystore_key": (None, "ssl.key.pem"),
    "ssl_key_password": (None, "ssl.key.password"),
    "ssl_endpoint_identification_algorithm": (None, "ssl.endpoint.identification.algorithm"),
    "ssl_enabled_protocols": (None, None),
    "sasl_mechanism": ("sasl_mechanism", "sasl.mechanism"),
    "sasl_username": ("sasl_plain_username", "sasl.username"),
    "sasl_password": ("sasl_plain_password", "sasl.password"),
    "sasl_jaas_config": (None, None),
    "sasl_oauth_token_provider": ("sasl_oauth_token_provider", None),
    "sasl_oauthbearer_token_endpoint_url": (None, "sasl.oauthbearer.token.endpoint.url"),
    "sasl_oauthbearer_client_credentials_client_id": (None, "sasl.oauthbearer.client.credentials.client.id"),
    "sasl_oauthbearer_client_credentials_client_secret": (None, "sasl.oauthbearer.client.credentials.client.secret"),
    "sasl_oauthbearer_scope": (None, "sasl.oauthbearer.scope"),
    "acks": ("acks", "acks"),
    "enable_idempotence": ("enable_idempotence", "enable.idempotence"),
    "max_in_flight": (None, "max.in.flight.requests.per.connection"),
    "linger_ms": ("linger_ms", "linger.ms"),
    "batch_size": ("max_batch_size", "batch.size"),
    "max_request_size": ("max_request_size", "message.max.bytes"),
    "buffer_memory": (None, "queue.buffering.max.kbytes"),
    "max_block_ms": (None, None),
    "delivery_timeout_ms": (None, "delivery.timeout.ms"),
    "compression_type": ("compression_type", "compression.type"),
    "compression_level": (None, "compression.level"),
    "partitioner": ("partitioner", "partitioner"),
    "key_serializer": ("key_serializer", None),
    "value_serializer": ("value_serializer", None),
    "transactional_id": ("transactional_id", "transactional.id"),
    "transaction_timeout_ms": ("transaction_timeout_ms", "transaction.timeout.ms"),
    "auto_offset_reset": ("auto_offset_reset", "auto.offset.reset"),
    "isolation_level": ("isolation_level", "isolation.level"),
    "check_crcs": ("check_crcs", "check.crcs"),
    "fetch_min_bytes": ("fetch_min_bytes", "fetch.min.bytes"),
    "fetch_max_wait_ms": ("fetch_max_wait_ms", "fetch.wait.max.ms"),
    "fetch_max_bytes": ("fetch_max_bytes", "fetch.max.bytes"),
    "max_partition_fetch_bytes": ("max_partition_fetch_bytes", "max.partition.fetch.bytes"),
    "max_poll_records": ("max_poll_records", None),
    "default_api_timeout_ms": (None, None),
    "group_id": ("group_id", "group.id"),
    "group_instance_id": ("group_instance_id", "group.instance.id"),
    "group_protocol": (None, "group.protocol"),
    "group_remote_assignor": (None, "group.remote.assignor"),
    "partition_assignment_strategy": ("partition_assignment_strategy", "partition.assignment.strategy"),
    "enable_auto_commit": ("enable_auto_commit", "enable.auto.commit"),
    "auto_commit_interval_ms": ("auto_commit_interval_ms", "auto.commit.interval.ms"),
    "session_timeout_ms": ("session_timeout_ms", "session.timeout.ms"),
    "heartbeat_interval_ms": ("heartbeat_interval_ms", "heartbeat.interval.ms"),
    "max_poll_interval_ms": ("max_poll_interval_ms", "max.poll.interval.ms"),
}
"""Our name to the names in aiokafka and librdkafka, None if there is none. Units and defaults may differ."""

_MORE_NAMES = {
    "queue_buffering_max_ms": "linger_ms",
    "max_in_flight": "max_in_flight",
    "request_required_acks": "acks",
    "message_timeout_ms": "delivery_timeout_ms",
    "compression_codec": "compression_type",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "metadata_broker_list": "bootstrap_servers",
    "socket_connection_setup_timeout_ms": "connect_timeout_ms",
    "sasl_mechanisms": "sasl_mechanism",
    "ssl_cafile": "ssl_truststore_location",
    "ssl_password": "ssl_key_password",
    "sasl_oauthbearer_client_id": "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "sasl_oauthbearer_client_credentials_client_secret",
    "oauth_cb": "sasl_oauth_token_provider",
}
"""Alternative names in librdkafka or Kafka's own client, with underscores, to ours."""

_PEM_FILE = "Put key and certificates into one PEM file: ssl_keystore_location"
_NOT_THERE = {
    "ssl_context": "Name the files: ssl_truststore_location, ssl_keystore_location",
    "ssl_certfile": _PEM_FILE,
    "ssl_keyfile": _PEM_FILE,
    "ssl_certificate_location": _PEM_FILE,
    "ssl_key_location": _PEM_FILE,
    "ssl_check_hostname": 'ssl_endpoint_identification_algorithm="" checks no names',
    "enable_ssl_certificate_verification": "Give the CAs of the brokers: ssl_truststore_location",
    "ssl_cipher_suites": "OpenSSL's configuration of this machine has the suites; brokers choose from them",
    "sasl_kerberos": "Kerberos is not supported",
}
"""What to use instead of settings without a counterpart, by the beginning of their names."""

_NOT_SETTINGS = frozenset({"network", "client"})
_NO_PROPERTIES = frozenset({"bootstrap_servers", "key_serializer", "value_serializer", "sasl_oauth_token_provider"})


def setting_types(client: type) -> dict[str, str]:
    """The settings of a client by name, with the name of their type; the common settings come first."""
    from odradek.client.config import ClientSettings

    of_all = {name: kind.__forward_arg__ for name, kind in ClientSettings.__annotations__.items()}
    own = inspect.signature(client).parameters
    return of_all | {name: str(own[name].annotation) for name in own if name not in _NOT_SETTINGS}


def property_types(client: type) -> dict[str, str]:
    """As `setting_types`, but only the settings that a property can have: text, not functions."""
    return {name: kind for name, kind in setting_types(client).items() if name not in _NO_PROPERTIES}


def unknown_setting(name: str, client: type) -> ConfigurationError:
    """The error for a keyword that a client does not have."""
    cause = f"{client.__name__} has no setting {name}"
    return _refusal(name, cause, _suggestion(name, list(setting_types(client))), "docs/client.md lists all")


def unknown_property(name: str, clients: Sequence[type]) -> ConfigurationError:
    """The error for a property, with dots, that none of these clients has."""
    known = dict.fromkeys(setting for client in clients for setting in property_types(client))
    suggestion = _suggestion(name, list(known))
    named = " and ".join(client.__name__ for client in clients)
    cure = f"docs/client.md lists those of {named}; write it as Kafka does, with dots"
    return _refusal(name, f"there is no property {name}", suggestion and suggestion.replace("_", "."), cure)


def _refusal(name: str, cause: str, suggestion: str | None, cure: str) -> ConfigurationError:
    missing = next((instead for start, instead in _NOT_THERE.items() if _snake(name).startswith(start)), None)
    if missing is not None:
        cure = missing
    elif suggestion is not None:
        cure = f"Did you mean {suggestion}? {cure}"
    return ConfigurationError("configure the client", cause, cure)


def _suggestion(name: str, known: Sequence[str]) -> str | None:
    """Our name for another client's setting, or the one with the most similar spelling."""
    snake = _snake(name)
    ours = {
        _snake(other): setting for setting, others in OTHER_NAMES.items() for other in others if other is not None
    } | _MORE_NAMES
    if snake in known:
        return snake
    if ours.get(snake) in known:
        return ours[snake]
    nearest = get_close_matches(snake, [*known, *ours], n=len(ours))
    return next((found for one in nearest if (found := ours.get(one, one)) in known), None)


def _snake(name: str) -> str:
    return name.replace(".", "_").replace("-", "_").lower()
