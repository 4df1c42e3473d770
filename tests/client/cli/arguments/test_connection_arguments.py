"""Files of --command-config: those of Kafka's tools, with passwords, JAAS text and PEM in them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from odradek.client import Admin, ConfigurationError
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, client_settings
from odradek.client.config import AdminConfig, parse_bootstrap_servers
from odradek.client.security.credentials import ClientCredentials, PasswordCredentials, credentials_of


def settings(tmp_path: Path, text: str, *more: str) -> dict[str, Any]:
    path = tmp_path / "client.properties"
    path.write_text(text)
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    return client_settings(parser.parse_args(["--command-config", str(path), *more]), Admin)


def config(settings: dict[str, Any]) -> AdminConfig:
    servers = parse_bootstrap_servers("localhost:9092")
    return AdminConfig(bootstrap_servers=servers, default_api_timeout_ms=1, **settings)


def test_a_file_of_kafkas_tools_for_scram_over_tls(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        r"""
# as in Kafka's documentation
security.protocol=SASL_SSL
sasl.mechanism = SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="alice" \
  password="a=b\\"c\\\\d#e";
ssl.truststore.location=/etc/kafka/ca.p12
ssl.truststore.password=changeit
ssl.truststore.type=PKCS12
ssl.endpoint.identification.algorithm=
ssl.enabled.protocols=TLSv1.3, TLSv1.2
ssl.protocol=TLSv1.3
request.timeout.ms: 12345
""",
    )
    assert found["ssl_truststore_location"] == "/etc/kafka/ca.p12"
    assert found["ssl_enabled_protocols"] == ["TLSv1.3", "TLSv1.2"]
    assert found["request_timeout_ms"] == 12345
    made = config(found)
    assert not made.verifies_names
    assert credentials_of(made) == PasswordCredentials("alice", 'a=b"c\\d#e')


def test_a_file_of_kafkas_tools_for_oauth(tmp_path: Path) -> None:
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    found = settings(
        tmp_path,
        f"""
security.protocol=SASL_SSL
sasl.mechanism=OAUTHBEARER
sasl.login.callback.handler.class={handler}
sasl.oauthbearer.token.endpoint.url=https://auth.example/token
sasl.oauthbearer.client.credentials.client.id=id
sasl.oauthbearer.client.credentials.client.secret=secret
sasl.oauthbearer.scope=kafka
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
""",
    )
    expected = ClientCredentials("https://auth.example/token", "id", "secret", "kafka", {})
    assert credentials_of(config(found)) == expected


def test_pem_in_a_file_may_be_continued_or_have_line_ends(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        r"""
security.protocol=SSL
ssl.truststore.certificates=-----BEGIN CERTIFICATE----- \
  MIIB \
  -----END CERTIFICATE-----
ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nMIIC\n-----END PRIVATE KEY-----
ssl.keystore.certificate.chain=x
""",
    )
    assert found["ssl_truststore_certificates"] == "-----BEGIN CERTIFICATE----- MIIB -----END CERTIFICATE-----"
    assert found["ssl_keystore_key"] == "-----BEGIN PRIVATE KEY-----\nMIIC\n-----END PRIVATE KEY-----"


def test_a_property_on_the_command_line_takes_precedence(tmp_path: Path) -> None:
    more = ["--command-property", "security.protocol=PLAINTEXT"]
    assert settings(tmp_path, "security.protocol=SSL", *more)["security_protocol"] == "PLAINTEXT"


def test_an_escape_that_is_none_is_an_error_with_its_line_and_without_its_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"client\.properties, line 2: .*\. Write a backslash as two"):
        settings(tmp_path, "\nssl.key.password=\\users")
