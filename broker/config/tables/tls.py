"""Properties of TLS, each for all listeners or for one: `listener.name.<listener>.<property>`."""

from __future__ import annotations

from odradek.broker.config.bounds import one_of
from odradek.broker.config.property import SecuredProperty, Table
from odradek.broker.config.types import BOOLEAN, CLASS, LIST, PASSWORD, STRING, nullable

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class TlsProperties(Table):
    """TLS, for listeners with SSL or SASL_SSL."""

    ssl_keystore_type = SecuredProperty(
        "ssl.keystore.type", STRING, "JKS", dynamic=True, reloads=True,
        doc="The format of the key store: PEM or PKCS12. The default of Kafka, JKS, is refused, with the command that "
        "converts such a store.",
    )
    ssl_keystore_location = SecuredProperty(
        "ssl.keystore.location", nullable(STRING), None, dynamic=True, reloads=True,
        doc="The file with the broker's private key and its certificates. Nobody but its owner and group may read it. "
        "When it changes, new connections use the new one.",
    )
    ssl_keystore_password = SecuredProperty(
        "ssl.keystore.password", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="The password of a key store of type PKCS12.",
    )
    ssl_key_password = SecuredProperty(
        "ssl.key.password", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="The password of the private key, if it is encrypted.",
    )
    ssl_keystore_key = SecuredProperty(
        "ssl.keystore.key", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="The private key itself, as PEM, in place of a key store (ssl.keystore.type=PEM).",
    )
    ssl_keystore_certificate_chain = SecuredProperty(
        "ssl.keystore.certificate.chain", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="The broker's certificate and those of its issuers, as PEM, beside ssl.keystore.key.",
    )
    ssl_truststore_type = SecuredProperty(
        "ssl.truststore.type", STRING, "JKS", dynamic=True, reloads=True,
        doc="The format of the trust store: PEM or PKCS12.",
    )
    ssl_truststore_location = SecuredProperty(
        "ssl.truststore.location", nullable(STRING), None, dynamic=True, reloads=True,
        doc="The file with the certificates of the authorities that may issue clients' certificates.",
    )
    ssl_truststore_password = SecuredProperty(
        "ssl.truststore.password", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="The password of a trust store of type PKCS12.",
    )
    ssl_truststore_certificates = SecuredProperty(
        "ssl.truststore.certificates", nullable(PASSWORD), None, dynamic=True, reloads=True,
        doc="These certificates themselves, as PEM, in place of a trust store (ssl.truststore.type=PEM).",
    )
    ssl_client_auth = SecuredProperty(
        "ssl.client.auth", STRING, "none", one_of("required", "requested", "none"), dynamic=True,
        doc="Whether clients show a certificate, whose subject is then their principal: required, requested or none.",
    )
    ssl_enabled_protocols = SecuredProperty(
        "ssl.enabled.protocols", LIST, ["TLSv1.2", "TLSv1.3"], dynamic=True,
        doc="The versions of TLS. Older ones than 1.2 are refused.",
    )
    ssl_cipher_suites = SecuredProperty(
        "ssl.cipher.suites", LIST, [], dynamic=True,
        doc="The cipher suites, by their names in Java. Empty: those of OpenSSL that are considered secure.",
    )
    ssl_principal_mapping_rules = SecuredProperty(
        "ssl.principal.mapping.rules", STRING, "DEFAULT",
        doc="Rules that make a name of the subject of a client's certificate: RULE:pattern/replacement/L, ... DEFAULT.",
    )
    ssl_allow_dn_changes = SecuredProperty(
        "ssl.allow.dn.changes", BOOLEAN, False,
        doc="Whether a certificate that replaces another one at run time may have another subject.",
    )
    ssl_allow_san_changes = SecuredProperty(
        "ssl.allow.san.changes", BOOLEAN, False,
        doc="Whether it may lack alternative names that the other one has.",
    )
    ssl_endpoint_identification_algorithm = SecuredProperty(
        "ssl.endpoint.identification.algorithm", STRING, "https", dynamic=True,
        doc="Whether this broker checks that the certificate of another one has its name: https; empty: it does not.",
    )
    ssl_engine_factory_class = SecuredProperty(
        "ssl.engine.factory.class", nullable(CLASS), None, dynamic=True,
        doc="Must be unset or org.apache.kafka.common.security.ssl.DefaultSslEngineFactory: no class is loaded.",
    )
