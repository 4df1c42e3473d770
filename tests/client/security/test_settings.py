"""The settings of TLS and SASL: what needs or excludes what, and that secrets are shown nowhere."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from odradek.client.errors import ConfigurationError
from odradek.client.security.credentials import (
    ClientCredentials,
    PasswordCredentials,
    ProvidedTokens,
    UnsecuredTokens,
    credentials_of,
)
from odradek.client.security.settings import SECRETS, SecurityKeywords, SecuritySettings

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
USER = {"sasl_username": "alice", "sasl_password": "pa55"}


def sasl(mechanism: str | None = "PLAIN", **more: Any) -> SecuritySettings:
    return SecuritySettings(security_protocol="SASL_SSL", sasl_mechanism=mechanism, **more)


def test_the_keywords_are_the_settings() -> None:
    assert tuple(SecurityKeywords.__annotations__) == SecuritySettings.__struct_fields__


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "plaintext", "SSL", "ssl"])
def test_protocols_are_known_in_any_case(protocol: str) -> None:
    settings = SecuritySettings(security_protocol=protocol)
    assert settings.uses_tls is (protocol.upper() == "SSL")
    assert not settings.uses_sasl


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"security_protocol": "TLS"}, "security_protocol is 'TLS'. choose one of PLAINTEXT, SSL, SASL_PLAINTEXT"),
        ({"ssl_truststore_location": "ca.pem"}, "Set security_protocol to SSL, or remove ssl_truststore_location"),
        (USER, "sasl_username is set, and security_protocol 'PLAINTEXT' has no SASL"),
        ({"security_protocol": "SSL", "sasl_mechanism": "PLAIN"}, "Set security_protocol to SASL_SSL"),
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "ssl_keystore_location": "k"} | USER,
            "Set security_protocol to SASL_SSL, or remove ssl_keystore_location",
        ),
        ({"security_protocol": "SSL", "ssl_enabled_protocols": ["TLSv1.1"]}, "choose from TLSv1.2, TLSv1.3"),
        ({"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "http"}, 'choose "https", or ""'),
        (
            {"security_protocol": "SSL", "ssl_truststore_type": "JKS", "ssl_truststore_location": "a.jks"},
            "keytool -importkeystore -srckeystore a.jks -destkeystore a.p12 -deststoretype PKCS12",
        ),
        ({"security_protocol": "SSL", "ssl_keystore_type": "BKS"}, "choose one of PEM, PKCS12"),
        (
            {"security_protocol": "SSL", "ssl_truststore_location": "a", "ssl_truststore_certificates": "b"},
            "ssl_truststore_location and ssl_truststore_certificates are both set",
        ),
        ({"security_protocol": "SSL", "ssl_keystore_key": "k"}, "Set ssl_keystore_certificate_chain, too"),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism is not set. choose one of PLAIN, SCRAM-SHA-256"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "Kerberos is not supported"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "plain"}, "sasl_mechanism is 'plain'"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "PLAIN has no user"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "a"}, "Set sasl_password, too"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "OAUTHBEARER has no tokens"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": "token"},
            "sasl_oauth_token_provider is str. give a function",
        ),
        ({"security_protocol": "SSL", "ssl_key_password": 12345}, "ssl_key_password is int. give text"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        SecuritySettings(**settings)


def test_a_setting_that_hurts_nobody_may_be_there_without_effect() -> None:
    SecuritySettings(ssl_endpoint_identification_algorithm="", ssl_enabled_protocols=["TLSv1.2"])
    SecuritySettings(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", ssl_truststore_type="PEM", **USER)


def test_no_secret_is_in_a_repr_or_an_error() -> None:
    secret = "geheim\0"
    everything = dict.fromkeys(SECRETS, secret)
    struct = msgspec.structs.force_setattr
    settings = SecuritySettings()
    for name, value in everything.items():
        struct(settings, name, value)
    assert secret not in repr(settings)
    assert "geheim" not in repr(settings)
    assert "geheim" not in str(settings.__rich_repr__())
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"):
        for name in SECRETS:
            with pytest.raises(ConfigurationError) as raised:
                sasl(mechanism, **{"sasl_username": "u", "sasl_password": "geheim\0", name: "geheim\0"})
            assert "geheim" not in str(raised.value)
    assert "geheim" not in repr(PasswordCredentials("u", "geheim"))
    assert "geheim" not in repr(ClientCredentials("https://h", "id", "geheim", None, {}))


def test_user_and_password_come_from_settings_or_jaas() -> None:
    expected = PasswordCredentials("alice", "pa55")
    assert credentials_of(sasl("PLAIN", **USER)) == expected
    jaas = f'{PLAIN_MODULE} required username="alice" password="pa55";'
    assert credentials_of(sasl("PLAIN", sasl_jaas_config=jaas)) == expected
    scram = f"{SCRAM_MODULE} required\n  username='alice'\n  password=pa55 ;\n"
    assert credentials_of(sasl("SCRAM-SHA-512", sasl_jaas_config=scram)) == expected


@pytest.mark.parametrize(
    ("mechanism", "text", "words"),
    [
        ("PLAIN", "", "it is empty"),
        ("PLAIN", f"{PLAIN_MODULE} username=a password=b;", 'does not begin with a login module and "required"'),
        ("PLAIN", f"{PLAIN_MODULE} required username=a password=b", "does not end in a semicolon"),
        ("PLAIN", f'{PLAIN_MODULE} required username="a password=b;', "a quote that is not closed"),
        ("PLAIN", f"{PLAIN_MODULE} required username=a password;", "option 2 is not name=value"),
        ("PLAIN", f"{PLAIN_MODULE} required username=a username=b;", "it has the option username twice"),
        ("PLAIN", f"{PLAIN_MODULE} required username=a; {SCRAM_MODULE} required;", "more than one login module"),
        ("PLAIN", f"{PLAIN_MODULE} required username=a;", "has no username or no password"),
        ("PLAIN", f"{SCRAM_MODULE} required username=a password=b;", "not the login module of PLAIN"),
        ("SCRAM-SHA-256", f"{SCRAM_MODULE} required username=a password=b tokenauth=true;", "a delegation token"),
        ("OAUTHBEARER", f"{OAUTH_MODULE} required;", "OAUTHBEARER has no tokens"),
        ("PLAIN", "com.sun.security.auth.module.JndiLoginModule required x=y;", "not the login module of PLAIN"),
    ],
)
def test_jaas_text_that_says_something_else_is_refused(mechanism: str, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        sasl(mechanism, sasl_jaas_config=text)


def test_a_quoted_value_may_have_any_character() -> None:
    text = rf'{PLAIN_MODULE} required username="a;b=\"c\"" password=' + r'"back\\slash and space";'
    assert credentials_of(sasl("PLAIN", sasl_jaas_config=text)) == PasswordCredentials(
        'a;b="c"', r"back\slash and space"
    )


def test_escapes_in_quotes_are_those_of_java() -> None:
    text = PLAIN_MODULE + r' required username="a\tb\101\603" password="\q\n";'
    assert credentials_of(sasl("PLAIN", sasl_jaas_config=text)) == PasswordCredentials("a\tbA03", "q\n")


def test_tokens_come_from_a_function_an_endpoint_or_are_unsecured() -> None:
    def provider() -> tuple[str, float]:
        return "", 0

    url = {"sasl_oauthbearer_token_endpoint_url": "https://auth.example/token"}
    id_and_secret = {
        "sasl_oauthbearer_client_credentials_client_id": "id",
        "sasl_oauthbearer_client_credentials_client_secret": "secret",
    }
    in_jaas = f"{OAUTH_MODULE} required clientId=id clientSecret=secret scope=kafka extension_team=blue;"
    unsecured = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60";'
    found = [
        credentials_of(sasl("OAUTHBEARER", **settings))
        for settings in (
            {"sasl_oauth_token_provider": provider},
            url | id_and_secret | {"sasl_oauthbearer_scope": "kafka"},
            url | {"sasl_jaas_config": in_jaas},
            {"sasl_jaas_config": unsecured},
        )
    ]
    assert found == [
        ProvidedTokens(provider, {}),
        ClientCredentials("https://auth.example/token", "id", "secret", "kafka", {}),
        ClientCredentials("https://auth.example/token", "id", "secret", "kafka", {"team": "blue"}),
        UnsecuredTokens("alice", None, 60, {}),
    ]
