"""Properties of authentication, each for all listeners or for one, and some for one mechanism of a listener.

`listener.name.<listener>.<property>`, `listener.name.<listener>.<mechanism>.<property>`.
"""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import SecuredProperty, Table
from odradek.broker.config.types import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, nullable

_PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class SaslProperties(Table):
    """Authentication, for listeners with SASL_PLAINTEXT or SASL_SSL."""

    sasl_enabled_mechanisms = SecuredProperty(
        "sasl.enabled.mechanisms", LIST, ["GSSAPI"], dynamic=True,
        doc="The mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Kafka's default, GSSAPI (Kerberos), is "
        "refused, so that a listener must name its own.",
    )
    sasl_jaas_config = SecuredProperty(
        "sasl.jaas.config", nullable(PASSWORD), None, dynamic=True,
        doc="The users of PLAIN, in Java's notation: org.apache.kafka.common.security.plain.PlainLoginModule required "
        "user_alice=\"alice's password\"; with username and password for this broker's own connections.",
    )
    sasl_plaintext_remote_allow = SecuredProperty(
        "sasl.plaintext.remote.allow", BOOLEAN, False, own=True,
        doc="Whether PLAIN and SCRAM are allowed without TLS on an address that other machines can reach, where "
        "everybody on the way reads what passes.",
    )
    sasl_server_callback_handler_class = SecuredProperty(
        "sasl.server.callback.handler.class", nullable(CLASS), None,
        doc="For OAUTHBEARER the class of Kafka whose behaviour is wanted: …oauthbearer.OAuthBearerValidatorCallback"
        "Handler, or …oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler, which believes "
        "every token and is accepted on loopback only. No class is loaded.",
    )
    sasl_server_max_receive_size = SecuredProperty(
        "sasl.server.max.receive.size", INT, 524_288,
        doc="The largest request of a connection that is not authenticated yet; a larger one closes it.",
    )
    connections_max_reauth_ms = SecuredProperty(
        "connections.max.reauth.ms", LONG, 0,
        doc="The time after which a client must authenticate again, or its connection is closed at its next request; "
        "0: never (KIP-368).",
    )
    connection_failed_authentication_delay_ms = SecuredProperty(
        "connection.failed.authentication.delay.ms", INT, 100, at_least(0),
        doc="The time until a failed authentication is answered.",
    )
    principal_builder_class = SecuredProperty(
        "principal.builder.class", CLASS, _PRINCIPAL_BUILDER, dynamic=True,
        doc="Must be the default: no class is loaded.",
    )


class OAuthBearerProperties(Table):
    """Tokens, for the mechanism OAUTHBEARER."""

    sasl_oauthbearer_jwks_endpoint_url = SecuredProperty(
        "sasl.oauthbearer.jwks.endpoint.url", nullable(STRING), None,
        doc="Where the public keys are that sign tokens: an https or a file URL.",
    )
    sasl_oauthbearer_allowed_urls = SecuredProperty(
        "sasl.oauthbearer.allowed.urls", LIST, [], own=True,
        doc="If set, sasl.oauthbearer.jwks.endpoint.url must be one of these; the system property org.apache.kafka."
        "sasl.oauthbearer.allowed.urls of Kafka.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = SecuredProperty(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000,
        doc="The interval at which these keys are read again.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms = SecuredProperty(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100,
        doc="The time before the first repetition if they cannot be read; it doubles.",
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms = SecuredProperty(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000,
        doc="The longest time before a repetition.",
    )
    sasl_oauthbearer_expected_audience = SecuredProperty(
        "sasl.oauthbearer.expected.audience", LIST, [],
        doc="The audiences of which a token must name one; empty: any.",
    )
    sasl_oauthbearer_expected_issuer = SecuredProperty(
        "sasl.oauthbearer.expected.issuer", nullable(STRING), None,
        doc="The issuer that a token must name; unset: any.",
    )
    sasl_oauthbearer_clock_skew_seconds = SecuredProperty(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30,
        doc="How far the issuer's clock may differ from this one.",
    )
    sasl_oauthbearer_scope_claim_name = SecuredProperty(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope",
        doc="The claim with a token's scope.",
    )
    sasl_oauthbearer_sub_claim_name = SecuredProperty(
        "sasl.oauthbearer.sub.claim.name", STRING, "sub",
        doc="The claim with the name of the principal.",
    )
    sasl_oauthbearer_jwt_validator_class = SecuredProperty(
        "sasl.oauthbearer.jwt.validator.class", CLASS, _VALIDATOR,
        doc="Must be the default, or …oauthbearer.BrokerJwtValidator, which is the same here: no class is loaded.",
    )
