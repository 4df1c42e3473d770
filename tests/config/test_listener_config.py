from __future__ import annotations

import re

import pytest

from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.config.describe import ConfigSource, describe_broker
from odradek.broker.config.listener_config import NoListenerPropertyError, listener_property

LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:9092,IN://127.0.0.1:9093",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,IN:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


def test_the_property_of_a_mechanism_overrides_that_of_the_listener_and_that_the_global_one() -> None:
    config = BrokerConfig.load(
        None,
        LISTENERS
        | {
            "connections.max.reauth.ms": "1",
            "listener.name.inside.connections.max.reauth.ms": "2",
            "listener.name.inside.scram-sha-256.connections.max.reauth.ms": "3",
        },
    )
    values = [
        config.listener(*place).connections_max_reauth_ms
        for place in (("INSIDE", "SCRAM-SHA-256"), ("INSIDE", "PLAIN"), ("INSIDE",), ("IN", "SCRAM-SHA-256"))
    ]
    assert values == [3, 2, 2, 1]
    assert config.connections_max_reauth_ms == 1


def test_a_limit_of_one_listener() -> None:
    config = BrokerConfig.load(None, LISTENERS | {"listener.name.inside.max.connections": "7"})
    assert (config.listener("INSIDE").max_connections, config.listener("IN").max_connections) == (7, 2000)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("listener.name.outside.max.connections", "followed by one of in, inside"),
        ("listener.name.INSIDE.max.connections", "followed by one of in, inside"),
        ("listener.name.inside.max.conections", "did you mean max.connections?"),
        ("listener.name.inside.log.dirs", "a listener has no property log.dirs"),
        ("listener.name.inside.plain.ssl.keystore.location", "a mechanism has no property"),
        ("listener.name.inside.plain.sasl.jaas.confg", "did you mean sasl.jaas.config?"),
    ],
)
def test_a_name_that_means_nothing_is_an_error(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        BrokerConfig.load(None, LISTENERS | {name: "1"})


def test_the_longest_listener_that_fits_counts() -> None:
    assert listener_property("listener.name.a.b.max.connections", ["A", "A.B"]).listener == "A.B"
    with pytest.raises(NoListenerPropertyError):
        listener_property("listener.name.a.c.max.connections", ["A", "A.B"])


def test_properties_of_a_controllers_listener_are_passed_over_with_a_warning() -> None:
    texts = {
        "controller.listener.names": "CONTROLLER",
        "listener.name.controller.ssl.keystore.location": "/nowhere",
    }
    config = BrokerConfig.load(None, LISTENERS | texts)
    assert any("CONTROLLER is a listener of controllers" in warning for warning in config.warnings)


def test_an_invalid_value_is_an_error_that_hides_secrets() -> None:
    with pytest.raises(
        ConfigError, match=r"listener.name.in.max.connections = 'x' \(override\): Not a number of type INT"
    ):
        BrokerConfig.load(None, LISTENERS | {"listener.name.in.max.connections": "x"})


def test_what_a_listener_sets_is_described_under_its_whole_name() -> None:
    name, secret = "listener.name.in.max.connections", "listener.name.in.ssl.key.password"
    config = BrokerConfig.load(None, LISTENERS | {name: "7", secret: "hunter2"})
    rows = {row.name: row for row in describe_broker(config)}
    assert (rows[name].value, rows[name].source) == ("7", ConfigSource.STATIC_BROKER_CONFIG)
    assert (rows[secret].value, rows[secret].sensitive) == (None, True)
    assert rows[secret].synonyms[0].value is None


def test_a_limit_of_a_listener_may_be_changed_at_run_time_and_its_security_may_not() -> None:
    config = BrokerConfig.load(None, LISTENERS | {"listener.name.in.max.connections": "7"})
    altered = config.altered({"listener.name.in.max.connections": "8", "listener.name.in.ssl.client.auth": "required"})
    assert altered.listener("IN").max_connections == 8
    assert altered.listener("IN").ssl_client_auth == "none"
    assert config.listener("IN").max_connections == 7
    assert altered.altered({}).listener_value("INSIDE", "max.connections") is None
