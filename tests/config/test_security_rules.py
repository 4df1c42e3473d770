"""What the broker refuses to start with: one case for each sentence."""

from __future__ import annotations

import re

import pytest

from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.config.jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from odradek.broker.config.security_rules import UNSECURED_VALIDATOR, super_users
from odradek.broker.security.principal import Principal

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = f'{PLAIN_MODULE} required user_alice="secret";'
SASL = {"listeners": "SASL_PLAINTEXT://127.0.0.1:9092"}
PLAIN = SASL | {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": USERS}
OAUTH = SASL | {"sasl.enabled.mechanisms": "OAUTHBEARER"}
SSL = {"listeners": "SSL://127.0.0.1:9092", "ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"}
CLUSTER = PLAIN | {"metadata.etcd.endpoints": "127.0.0.1:2379", "node.id": "1"}
REMOTE = {"listeners": "SASL_PLAINTEXT://0.0.0.0:9092", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}


def refusals(settings: dict[str, str]) -> list[str]:
    try:
        BrokerConfig.load(None, settings)
    except ConfigError as error:
        return str(error).splitlines()
    return []


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"super.users": "User:a"}, "super.users is set, but authorizer.class.name is not"),
        ({"allow.everyone.if.no.acl.found": "true"}, "allow.everyone.if.no.acl.found is set, but authorizer"),
        ({"super.users": "alice", "authorizer.class.name": STANDARD}, "not of the form type:name"),
        ({"super.users": "User:ANONYMOUS", "authorizer.class.name": STANDARD}, "everybody who connects to PLAINTEXT"),
        ({"authorizer.class.name": "org.example.Mine"}, "String must be one of"),
        (SASL, "Kerberos is not supported; set listener.name.sasl_plaintext.sasl.enabled.mechanisms to some of PLAIN"),
        (SASL | {"sasl.enabled.mechanisms": ""}, "names no mechanism"),
        (SASL | {"sasl.enabled.mechanisms": "DIGEST-MD5"}, "expected some of PLAIN"),
        (SASL | {"sasl.enabled.mechanisms": "PLAIN"}, "it names no user; set it to " + PLAIN_MODULE),
        (PLAIN | {"sasl.jaas.config": f"{SCRAM_MODULE} required;"}, f"the login module of PLAIN is {PLAIN_MODULE}"),
        (PLAIN | {"sasl.jaas.config": "nonsense"}, "sasl.jaas.config: the text ends where"),
        (PLAIN | {"sasl.server.callback.handler.class": "org.example.Ldap"}, "no class is loaded; for PLAIN"),
        (PLAIN | {"principal.builder.class": "org.example.Mine"}, "principal.builder.class = org.example.Mine"),
        (PLAIN | {"sasl.server.max.receive.size": "0"}, "must be at least 1"),
        (REMOTE, "SCRAM-SHA-512 without TLS, so that everybody on the way can read"),
        (OAUTH, "sasl.oauthbearer.jwks.endpoint.url is not set"),
        (OAUTH | {"sasl.oauthbearer.jwks.endpoint.url": "http://a/keys"}, "begins with https:// or file:/"),
        (OAUTH | {"sasl.oauthbearer.jwks.endpoint.url": "https://a/keys", "sasl.oauthbearer.allowed.urls": "https://b"},
         "is none of sasl.oauthbearer.allowed.urls"),
        (OAUTH | {"listeners": "SASL_PLAINTEXT://:9092", "sasl.server.callback.handler.class": UNSECURED_VALIDATOR},
         "believes every token"),
        (OAUTH | {"sasl.oauthbearer.jwt.validator.class": "org.example.Mine"}, "no class is loaded"),
        ({"listeners": "SSL://127.0.0.1:9092"}, "the listener SSL needs a certificate"),
        (SSL | {"ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}, "only TLSv1.2 and TLSv1.3 are secure"),
        (SSL | {"ssl.enabled.protocols": ""}, "names no version"),
        (SSL | {"ssl.client.auth": "required"}, "set ssl.truststore.location"),
        (SSL | {"ssl.engine.factory.class": "org.example.Mine"}, "no class is loaded"),
        ({"client.quota.callback.class": "org.example.Mine"}, "clients would have other quotas"),
        (CLUSTER, "brokers log in to each other with one of PLAIN"),
        (CLUSTER | {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256"}, "mechanisms of SASL_PLAINTEXT must have"),
        (CLUSTER | {"sasl.mechanism.inter.broker.protocol": "PLAIN"}, "set username and password"),
        ({"security.inter.broker.protocol": "SSL"}, "no listener has the name SSL: PLAINTEXT"),
        ({"security.inter.broker.protocol": "PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT"}, "remove one"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_is_wrong_and_the_cure(settings: dict[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(part)):
        BrokerConfig.load(None, settings)


def test_a_remote_listener_without_tls_is_refused_with_its_override() -> None:
    assert any("sasl.plaintext.remote.allow=true" in line for line in refusals(REMOTE))
    assert not any("without TLS" in line for line in refusals(REMOTE | {"sasl.plaintext.remote.allow": "true"}))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_a_listener_without_tls_is_allowed_on_loopback(host: str) -> None:
    assert not any("without TLS" in line for line in refusals(REMOTE | {"listeners": f"SASL_PLAINTEXT://{host}:9092"}))


@pytest.mark.parametrize("host", ["", "localhost.example.org", "127.example.org", "[::1:2]", "[::]", "10.127.0.1"])
def test_a_host_that_only_looks_like_loopback_is_remote(host: str) -> None:
    assert any("without TLS" in line for line in refusals(REMOTE | {"listeners": f"SASL_PLAINTEXT://{host}:9092"}))


def test_no_sentence_shows_a_password() -> None:
    text = f'{PLAIN_MODULE} required user_alice="hunter2"'
    assert "hunter2" not in "".join(refusals(PLAIN | {"sasl.jaas.config": text}))


def test_a_mechanism_has_its_own_users() -> None:
    settings = SASL | {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required;",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR,
    }
    assert [line for line in refusals(settings) if "not supported yet" not in line] == []


def test_super_users_are_separated_by_semicolons() -> None:
    assert super_users("User:a; User:CN=b,O=c;") == {Principal("User", "a"), Principal("User", "CN=b,O=c")}
