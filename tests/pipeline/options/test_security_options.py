from __future__ import annotations

import re
from pathlib import Path

import pytest

from odradek.pipeline.options.broker_options import batch_read_options, stream_read_options, write_options
from odradek.pipeline.options.security_options import check_not_stored

BROKER = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t", "topic": "t"}
PARSERS = [batch_read_options, stream_read_options, write_options]
SCRAM = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.ssl.truststore.location": "/ca.pem",
    "kafka.ssl.truststore.type": "PEM",
    "kafka.ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
    "kafka.ssl.protocol": "TLSv1.3",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="geheim";'
    ),
}


@pytest.mark.parametrize("parse", PARSERS)
def test_the_options_of_the_connector_become_settings_of_the_client(parse: object) -> None:
    assert callable(parse)
    parsed = parse(BROKER | SCRAM)
    config = parsed.cluster.client_config()
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert config.ssl_truststore_location == "/ca.pem"
    assert config.ssl_enabled_protocols == ["TLSv1.3", "TLSv1.2"]
    assert config.sasl_jaas_config == SCRAM["kafka.sasl.jaas.config"]
    for text in (repr(parsed), str(parsed), repr(parsed.cluster), repr(config)):
        assert "geheim" not in text


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("kafka.security.providers", "secret", "kafka.security.providers: the bundled client has no such setting"),
        ("kafka.ssl.engine.factory.class", "secret", "kafka.ssl.engine.factory.class: the bundled client"),
        ("kafka.sasl.login.callback.handler.class", "secret", "or not this value"),
        ("kafka.security.protocol", "TLS", "choose one of PLAINTEXT, SSL"),
        ("kafka.sasl.password", "secret", "sasl_password is set, and security_protocol 'PLAINTEXT' has no SASL"),
        ("kafka.ssl.truststore.location", "/ca.jks", "Set security_protocol to SSL"),
    ],
)
@pytest.mark.parametrize("parse", PARSERS)
def test_what_the_client_cannot_do_is_refused_without_its_value(
    parse: object, option: str, value: str, words: str
) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        parse(BROKER | {option: value})
    assert "secret" not in str(error.value)


def test_all_refused_options_are_named() -> None:
    options = {"kafka.ssl.provider": "x", "kafka.sasl.kerberos.service.name": "kafka"}
    with pytest.raises(ValueError, match=r"^kafka\.sasl\.kerberos\.service\.name, kafka\.ssl\.provider: the "):
        batch_read_options(BROKER | options)


@pytest.mark.parametrize("name", ["PLAINTEXT", "plaintext"])
def test_the_plaintext_protocol_changes_nothing(name: str) -> None:
    read = batch_read_options(BROKER | {"kafka.security.protocol": name})
    assert not read.cluster.client_config().uses_tls


def test_a_table_of_a_catalog_may_have_no_secret() -> None:
    check_not_stored({"kafka.security.protocol": "SSL", "kafka.ssl.keystore.location": "/key.pem"})
    words = r"^kafka\.sasl\.jaas\.config, kafka\.ssl\.key\.password: the catalog"
    with pytest.raises(ValueError, match=words) as error:
        check_not_stored({"kafka.SASL.jaas.config": "geheim", "kafka.ssl.key.password": "geheim"})
    assert "geheim" not in str(error.value)


def test_jobs_read_them_from_a_file_of_kafkas_tools(tmp_path: Path) -> None:
    import argparse

    from odradek.pipeline.jobs.arguments import add_source_arguments
    from odradek.pipeline.jobs.source import source_options

    path = tmp_path / "client.properties"
    path.write_text("".join(f"{name.removeprefix('kafka.')}={value}\n" for name, value in SCRAM.items()))
    parser = argparse.ArgumentParser()
    add_source_arguments(parser)
    line = f"--bootstrap-server localhost:9092 --topic t --command-config {path}"
    options = source_options(parser.parse_args([*line.split(), "--option", "kafka.ssl.truststore.type=PKCS12"]))
    assert {name: options[name] for name in SCRAM} == SCRAM | {"kafka.ssl.truststore.type": "PKCS12"}
    batch_read_options({name.lower(): value for name, value in options.items()})
