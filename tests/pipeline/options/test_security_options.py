from __future__ import annotations

import pytest

from odradek.pipeline.options.broker_options import batch_read_options, stream_read_options, write_options

BROKER = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t", "topic": "t"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("kafka.security.protocol", "SASL_SSL"),
        ("kafka.security.protocol", "SSL"),
        ("kafka.sasl.mechanism", "PLAIN"),
        ("kafka.sasl.jaas.config", 'PlainLoginModule required password="secret";'),
        ("kafka.ssl.truststore.location", "/secret.jks"),
        ("kafka.security.providers", "x"),
    ],
)
@pytest.mark.parametrize("parse", [batch_read_options, stream_read_options, write_options])
def test_tls_and_sasl_are_refused_with_a_sentence(parse: object, option: str, value: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match=f"{option}: the bundled client has neither TLS nor SASL yet") as error:
        parse(BROKER | {option: value})
    assert "secret" not in str(error.value)


def test_all_refused_options_are_named() -> None:
    options = {"kafka.ssl.protocol": "TLSv1.3", "kafka.sasl.mechanism": "PLAIN"}
    with pytest.raises(ValueError, match=r"^kafka\.sasl\.mechanism, kafka\.ssl\.protocol: the bundled client"):
        batch_read_options(BROKER | options)


@pytest.mark.parametrize("name", ["PLAINTEXT", "plaintext"])
def test_the_plaintext_protocol_is_accepted(name: str) -> None:
    assert batch_read_options(BROKER | {"kafka.security.protocol": name}) == batch_read_options(BROKER)
