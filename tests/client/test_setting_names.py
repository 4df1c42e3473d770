"""The names of settings: docs/client.md lists them, and the errors for other names suggest ours."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from odradek.client import Admin, ConfigurationError, Consumer, Producer
from odradek.client.config import ClientConfig, ClientSettings
from odradek.client.setting_names import OTHER_NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"
CLIENTS: dict[str, type] = {"Producer": Producer, "Consumer": Consumer, "Admin": Admin}
ROW = re.compile(r"\| `(\w+)` \| (?:`(.+?)`)? ?\| (?:-|`(\S+)`) \| (?:-|`(\S+)`) \|")
REQUIRED = object()


def tables() -> dict[str, list[tuple[str, Any, str | None, str | None]]]:
    """The rows of the page's tables of settings: name, default, aiokafka's name, librdkafka's name."""
    found = {}
    for title, body in re.findall(
        r"^\| ([\w ]+) \| default .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE
    ):
        rows = [ROW.fullmatch(line) for line in body.splitlines()]
        found[title] = [
            (row[1], ast.literal_eval(row[2]) if row[2] else REQUIRED, row[3], row[4])
            for row in rows
            if row is not None
        ]
        assert len(found[title]) == len(rows)
    return found


def test_the_page_lists_every_setting_of_all_clients_with_its_default() -> None:
    defaults = {field.name: field.default for field in msgspec.structs.fields(ClientConfig)}
    assert {name: default for name, default, *_ in tables()["every client"]} == defaults | {
        "bootstrap_servers": REQUIRED
    }
    assert defaults.keys() == ClientSettings.__annotations__.keys() | {"bootstrap_servers"}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_lists_every_setting_of_a_client_with_its_default(client: str) -> None:
    own = inspect.signature(CLIENTS[client]).parameters
    defaults = {name: own[name].default for name in own.keys() - {"bootstrap_servers", "network", "client"}}
    assert {name: default for name, default, *_ in tables()[client]} == defaults


def test_the_names_of_the_page_are_those_of_the_client() -> None:
    listed = {name: (aiokafka, librdkafka) for rows in tables().values() for name, _, aiokafka, librdkafka in rows}
    assert listed == OTHER_NAMES


@pytest.mark.interop
def test_aiokafka_has_its_names_and_none_of_the_others() -> None:
    import aiokafka
    from aiokafka.admin import AIOKafkaAdminClient

    peers = {"Producer": aiokafka.AIOKafkaProducer, "Consumer": aiokafka.AIOKafkaConsumer, "Admin": AIOKafkaAdminClient}
    rows = tables()
    for client, peer in peers.items():
        theirs = inspect.signature(peer).parameters.keys()
        for name, _, aiokafka_name, _ in [*rows["every client"], *rows[client]]:
            assert aiokafka_name in theirs if aiokafka_name else name not in theirs, (client, name)


@pytest.mark.interop
def test_librdkafka_has_its_names() -> None:
    assert "No such configuration property" in what_librdkafka_says_of("no.such.name")
    for name, (_, property_name) in OTHER_NAMES.items():
        if property_name is not None:
            assert "No such configuration property" not in what_librdkafka_says_of(property_name), name


def what_librdkafka_says_of(property_name: str) -> str:
    from confluent_kafka import KafkaException
    from confluent_kafka import Producer as Confluent

    try:
        Confluent({property_name: "not a value of this"})
    except KafkaException as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("client", "name", "words"),
    [
        ("Producer", "linger", "Producer has no setting linger. Did you mean linger_ms?"),
        ("Producer", "linger.ms", "Producer has no setting linger.ms. Did you mean linger_ms?"),
        ("Producer", "compresion_type", "Did you mean compression_type?"),
        ("Producer", "max_batch_size", "Did you mean batch_size?"),
        ("Producer", "queue.buffering.max.ms", "Did you mean linger_ms?"),
        ("Producer", "max_in_flight_requests_per_connection", "Did you mean max_in_flight?"),
        ("Consumer", "groupid", "Consumer has no setting groupid. Did you mean group_id?"),
        ("Consumer", "fetch_wait_max_ms", "Did you mean fetch_max_wait_ms?"),
        ("Consumer", "auto_offset_rest", "Did you mean auto_offset_reset?"),
        ("Admin", "api_timeout_ms", "Did you mean default_api_timeout_ms?"),
        ("Producer", "colour", "Producer has no setting colour. docs/client.md lists all"),
        ("Consumer", "acks", "Consumer has no setting acks. docs/client.md lists all"),
        (
            "Producer",
            "ssl_context",
            "no setting ssl_context. Name the files: ssl_truststore_location, ssl_keystore_loc",
        ),
        ("Consumer", "sasl.mechanism", "no setting sasl.mechanism. Did you mean sasl_mechanism?"),
        ("Admin", "ssl_cafile", "no setting ssl_cafile. Did you mean ssl_truststore_location?"),
        ("Admin", "sasl_plain_password", "no setting sasl_plain_password. Did you mean sasl_password?"),
        ("Admin", "ssl_check_hostname", 'ssl_endpoint_identification_algorithm="" checks no names'),
        ("Admin", "sasl_kerberos_service_name", "Kerberos is not supported"),
    ],
)
def test_the_error_for_an_unknown_setting_suggests_the_right_one(client: str, name: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        CLIENTS[client]("localhost:9092", **{name: 1})


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_has_the_settings_of_security(client: str) -> None:
    user = {"sasl_username": "alice", "sasl_password": "geheim"}
    made = CLIENTS[client]("localhost:9092", security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512", **user)
    assert "geheim" not in repr(vars(made))
    with pytest.raises(ConfigurationError, match="sasl_mechanism is 'SCRAM'"):
        CLIENTS[client]("localhost:9092", security_protocol="SASL_SSL", sasl_mechanism="SCRAM", **user)


def test_plain_text_is_a_security_protocol() -> None:
    Producer("localhost:9092", security_protocol="PLAINTEXT")
