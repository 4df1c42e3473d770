"""The rules of security: what the broker refuses to start with, because it would be less secure than it seems.

Each sentence names the property and the cure. Certificates and keys are examined later, when they are loaded
(`security.tls`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from odradek.broker.config.endpoints import Endpoint, is_loopback
from odradek.broker.config.jaas import MODULES, JaasEntry, JaasError, parse_jaas
from odradek.broker.config.listener_config import MECHANISMS, PREFIX, ListenerConfig
from odradek.broker.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig

_WITH_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_CLASSES = "org.apache.kafka.common.security"
UNSECURED_VALIDATOR = f"{_CLASSES}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
"""The callback handler of Kafka that believes every token."""
_CALLBACK_HANDLERS = {
    "PLAIN": (f"{_CLASSES}.plain.internals.PlainServerCallbackHandler",),
    "SCRAM-SHA-256": (f"{_CLASSES}.scram.internals.ScramServerCallbackHandler",),
    "SCRAM-SHA-512": (f"{_CLASSES}.scram.internals.ScramServerCallbackHandler",),
    "OAUTHBEARER": (
        f"{_CLASSES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{_CLASSES}.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
        UNSECURED_VALIDATOR,
    ),
}
_BUILT_IN = {
    "principal.builder.class": (f"{_CLASSES}.authenticator.DefaultKafkaPrincipalBuilder",),
    "ssl.engine.factory.class": (f"{_CLASSES}.ssl.DefaultSslEngineFactory",),
    "sasl.oauthbearer.jwt.validator.class": (
        f"{_CLASSES}.oauthbearer.DefaultJwtValidator",
        f"{_CLASSES}.oauthbearer.BrokerJwtValidator",
    ),
}
"""The classes of Kafka whose work is done here; no other can be named, and none is loaded."""
_TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


def broken_security_rules(config: BrokerConfig) -> list[str]:
    """Return a sentence for each rule that the configuration breaks."""
    sentences = [*_access(config), *_between_brokers(config), *_quotas(config), *_metrics(config)]
    for endpoint in config.listeners:
        protocol = config.security_protocol(endpoint.name)
        its_config = config.listener(endpoint.name)
        sentences += [*_classes(endpoint, its_config)]
        if protocol in ("SSL", "SASL_SSL"):
            sentences += _tls(endpoint, its_config)
        if protocol.startswith("SASL"):
            sentences += _sasl(config, endpoint, its_config, is_encrypted=protocol == "SASL_SSL")
    return list(dict.fromkeys(sentences))


def super_users(text: str) -> frozenset[Principal]:
    """Return the principals of super.users. Raises ValueError."""
    return frozenset(Principal.parse(item.strip()) for item in text.split(";") if item.strip())


def jaas_entry(config: BrokerConfig, listener: str, mechanism: str) -> JaasEntry | None:
    """Return the entry of sasl.jaas.config for a mechanism of a listener. Raises `JaasError`."""
    text = config.listener(listener, mechanism).sasl_jaas_config
    return None if text is None else parse_jaas(text)


def _access(config: BrokerConfig) -> Iterator[str]:
    try:
        administrators = super_users(config.super_users)
    except ValueError as error:
        yield f"super.users: {error}; several are separated by semicolons"
        return
    if not config.authorizer_class_name:
        for name in ("super.users", "allow.everyone.if.no.acl.found"):
            if config.declared.get(name):
                yield (
                    f"{name} is set, but authorizer.class.name is not, so that everybody may do everything: set it to"
                    " org.apache.kafka.metadata.authorizer.StandardAuthorizer, or remove this"
                )
        return
    if ANONYMOUS in administrators:
        for endpoint in config.listeners:
            if _is_open(config, endpoint):
                yield (
                    f"super.users has {ANONYMOUS}, and everybody who connects to {endpoint} (listeners) is that user:"
                    " remove it, or give the listener authentication"
                )


def _quotas(config: BrokerConfig) -> Iterator[str]:
    name = "client.quota.callback.class"
    if config.declared.get(name):
        yield f"{name}: no class is loaded, and without it clients would have other quotas than it says: remove it"


def _metrics(config: BrokerConfig) -> Iterator[str]:
    if config.metrics_ssl_keystore_location is not None:
        return
    for name in ("metrics.ssl.keystore.password", "metrics.ssl.truststore.location", "metrics.ssl.truststore.password"):
        if config.declared.get(name):
            yield f"{name} is set, and metrics.ssl.keystore.location is not: without it metrics.port does not speak TLS"
    if config.metrics_token_file is not None and config.metrics_port >= 0 and not is_loopback(config.metrics_host):
        yield (
            f"metrics.token.file: everybody on the way to {config.metrics_host} (metrics.host) could read the token:"
            " set metrics.ssl.keystore.location, or leave the port on 127.0.0.1"
        )


def _is_open(config: BrokerConfig, endpoint: Endpoint) -> bool:
    protocol = config.security_protocol(endpoint.name)
    if protocol == "SSL":
        return config.listener(endpoint.name).ssl_client_auth != "required"
    return protocol == "PLAINTEXT"


def _between_brokers(config: BrokerConfig) -> Iterator[str]:
    names = [endpoint.name for endpoint in config.listeners]
    protocol = "security.inter.broker.protocol"
    if protocol in config.declared:
        if config.inter_broker_listener_name is not None:
            yield f"{protocol} and inter.broker.listener.name are both set: remove one"
        elif config.inter_broker_listener not in names:
            yield f"{protocol}: no listener has the name {config.inter_broker_listener}: {', '.join(names)}"
    if config.metadata_etcd_endpoints and config.inter_broker_listener in names:
        yield from _login_of_brokers(config)


def _login_of_brokers(config: BrokerConfig) -> Iterator[str]:
    listener, mechanism = config.inter_broker_listener, config.sasl_mechanism_inter_broker_protocol
    if not config.security_protocol(listener).startswith("SASL"):
        return
    name = "sasl.mechanism.inter.broker.protocol"
    if mechanism not in _WITH_PASSWORDS:
        yield f"{name} = {mechanism}: brokers log in to each other with one of {', '.join(_WITH_PASSWORDS)}"
    elif mechanism not in config.listener(listener).sasl_enabled_mechanisms:
        yield f"{name} = {mechanism}: sasl.enabled.mechanisms of {listener} must have it"
    else:
        try:
            entry = jaas_entry(config, listener, mechanism)
        except JaasError:
            return  # reported for the listener
        if entry is None or not {"username", "password"} <= entry.options.keys():
            yield (
                f"{PREFIX}{listener.lower()}.{mechanism.lower()}.sasl.jaas.config: set username and password, by which"
                " brokers know each other"
            )


def _classes(endpoint: Endpoint, config: ListenerConfig) -> Iterator[str]:
    chosen = {
        "principal.builder.class": config.principal_builder_class,
        "ssl.engine.factory.class": config.ssl_engine_factory_class,
        "sasl.oauthbearer.jwt.validator.class": config.sasl_oauthbearer_jwt_validator_class,
    }
    for name, class_name in chosen.items():
        if class_name is not None and class_name not in _BUILT_IN[name]:
            yield f"{name} = {class_name} ({endpoint.name}): no class is loaded; it can be {_BUILT_IN[name][0]}"


def _tls(endpoint: Endpoint, config: ListenerConfig) -> Iterator[str]:
    name = endpoint.name
    if config.ssl_keystore_location is None and config.ssl_keystore_key is None:
        yield (
            f"ssl.keystore.location is not set, and the listener {name} needs a certificate: set it, or"
            " ssl.keystore.certificate.chain and ssl.keystore.key"
        )
    for version in config.ssl_enabled_protocols:
        if version not in _TLS_VERSIONS:
            yield f"ssl.enabled.protocols = {version} ({name}): only {' and '.join(_TLS_VERSIONS)} are secure"
    if not config.ssl_enabled_protocols:
        yield f"ssl.enabled.protocols ({name}) names no version"
    if config.ssl_client_auth != "none" and not (config.ssl_truststore_location or config.ssl_truststore_certificates):
        yield (
            f"ssl.client.auth = {config.ssl_client_auth} ({name}): set ssl.truststore.location to the certificates of"
            " the authorities that issue those of clients"
        )


def _sasl(config: BrokerConfig, endpoint: Endpoint, its_config: ListenerConfig, *, is_encrypted: bool) -> Iterator[str]:
    name = endpoint.name
    mechanisms = its_config.sasl_enabled_mechanisms
    if not mechanisms:
        yield f"sasl.enabled.mechanisms ({name}) names no mechanism: {', '.join(MECHANISMS)}"
    for mechanism in mechanisms:
        if mechanism == "GSSAPI":
            yield (
                f"sasl.enabled.mechanisms = GSSAPI ({name}), which is Kafka's default: Kerberos is not supported; set"
                f" {PREFIX}{name.lower()}.sasl.enabled.mechanisms to some of {', '.join(MECHANISMS)}"
            )
        elif mechanism not in MECHANISMS:
            yield f"sasl.enabled.mechanisms = {mechanism} ({name}): expected some of {', '.join(MECHANISMS)}"
        else:
            yield from _mechanism(config, endpoint, mechanism, is_encrypted=is_encrypted)
    if its_config.sasl_server_max_receive_size < 1:
        yield f"sasl.server.max.receive.size ({name}): it must be at least 1"


def _mechanism(config: BrokerConfig, endpoint: Endpoint, mechanism: str, *, is_encrypted: bool) -> Iterator[str]:
    its_config = config.listener(endpoint.name, mechanism)
    prefix = f"{PREFIX}{endpoint.name.lower()}.{mechanism.lower()}."
    is_exposed = not is_encrypted and not is_loopback(endpoint.host)
    if mechanism in _WITH_PASSWORDS and is_exposed and not its_config.sasl_plaintext_remote_allow:
        yield (
            f"{endpoint} (listeners) has {mechanism} without TLS, so that everybody on the way can read what passes:"
            " use SASL_SSL, an address on loopback, or set sasl.plaintext.remote.allow=true"
        )
    handler = its_config.sasl_server_callback_handler_class
    if handler is not None and handler not in _CALLBACK_HANDLERS[mechanism]:
        yield (
            f"{prefix}sasl.server.callback.handler.class = {handler}: no class is loaded; for {mechanism} it can be"
            f" {', '.join(_CALLBACK_HANDLERS[mechanism])}"
        )
    try:
        entry = jaas_entry(config, endpoint.name, mechanism)
    except JaasError as error:
        yield f"{prefix}sasl.jaas.config: {error}"
        return
    if entry is not None and entry.module != MODULES[mechanism]:
        yield f"{prefix}sasl.jaas.config: the login module of {mechanism} is {MODULES[mechanism]}"
    elif mechanism == "PLAIN" and (entry is None or not entry.users):
        yield (
            f'{prefix}sasl.jaas.config: it names no user; set it to {MODULES[mechanism]} required user_NAME="PASSWORD";'
        )
    if mechanism == "OAUTHBEARER":
        options = {} if entry is None else entry.options
        yield from _tokens(its_config, prefix, options, is_exposed=not is_loopback(endpoint.host))


def _tokens(config: ListenerConfig, prefix: str, options: Mapping[str, str], *, is_exposed: bool) -> Iterator[str]:
    from odradek.broker.security.authentication.tokens.unsecured_tokens import UnsecuredSettings  # loaded if used

    url = config.sasl_oauthbearer_jwks_endpoint_url
    if config.sasl_server_callback_handler_class == UNSECURED_VALIDATOR:
        try:
            UnsecuredSettings.from_options(options)
        except ValueError as error:
            yield f"{prefix}sasl.jaas.config: {error}"
        if is_exposed:
            yield (
                f"{prefix}sasl.server.callback.handler.class: {UNSECURED_VALIDATOR} believes every token, so it is for"
                " tests on loopback only"
            )
        return
    if url is None:
        yield (
            f"{prefix}sasl.oauthbearer.jwks.endpoint.url is not set: tokens are checked with the public keys there (an"
            f" https or file URL); for tests set {prefix}sasl.server.callback.handler.class to {UNSECURED_VALIDATOR}"
        )
    elif (problem := _problem_of_url(url)) is not None:
        yield f"{prefix}sasl.oauthbearer.jwks.endpoint.url: {problem}"
    elif config.sasl_oauthbearer_allowed_urls and url not in config.sasl_oauthbearer_allowed_urls:
        yield f"{prefix}sasl.oauthbearer.jwks.endpoint.url is none of sasl.oauthbearer.allowed.urls"


def _problem_of_url(url: str) -> str | None:
    from odradek.broker.security.authentication.tokens.key_source import key_source  # loaded if used: 60 ms

    try:
        key_source(url, [urlsplit(url).hostname or ""])
    except ValueError as error:
        return str(error)
    return None
