"""DescribeConfigs rows against those of Apache Kafka 4.3.1 with the same settings (data/README.md)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.describe import ConfigRow, describe_broker, describe_broker_defaults, with_cluster_defaults
from odradek.broker.config.topic_config import describe
from tests.effort import some

STATIC = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "num.partitions": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "/var/lib/kafka",
    "log.retention.minutes": "77",
    "log.roll.hours": "5",
    "log.flush.interval.ms": "1234",
    "log.roll.jitter.hours": "1",
    "broker.rack": "r1",
    "log.segment.delete.delay.ms": "50",
    "max.connections": "5000",
    "process.roles": "broker,controller",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
DYNAMIC = {"log.segment.bytes": "2000000"}
DYNAMIC_DEFAULT = {
    "log.segment.bytes": "3000000",
    "log.flush.interval.messages": "9",
    "log.retention.ms": "99999",
}
TOPIC = {"retention.ms": "12345", "segment.bytes": "4000000"}


class Fact(NamedTuple):
    resource: str
    name: str
    value: str
    source: str
    read_only: str
    sensitive: str
    type: str
    synonyms: str


def _facts(resource: str) -> dict[str, Fact]:
    lines = (Path(__file__).parent / "data" / "describe-configs.tsv").read_text().splitlines()[1:]
    facts = (Fact(*line.split("\t")) for line in lines)
    return {fact.name: fact for fact in facts if fact.resource == resource}


def _shown(row: ConfigRow, resource: str) -> Fact:
    synonyms = ";".join(f"{each.source.name}:{each.name}={each.value}" for each in row.synonyms)
    return Fact(
        resource,
        row.name,
        "null" if row.value is None else row.value,
        row.source.name,
        str(row.read_only).lower(),
        str(row.sensitive).lower(),
        row.type.name,
        synonyms,
    )


CONFIG = BrokerConfig.load(None, STATIC)
FOR_ALL = with_cluster_defaults(CONFIG, DYNAMIC_DEFAULT)
BROKER_FACTS = _facts("broker")
BROKER_ROWS = {row.name: row for row in describe_broker(CONFIG, DYNAMIC, FOR_ALL)}
TOPIC_ROWS = {row.name: row for row in describe(CONFIG, TOPIC, dynamic=DYNAMIC, dynamic_default=FOR_ALL)}

# Rows that differ from Kafka's on purpose: its value also has a listener for controllers; other defaults; properties
# that cannot be changed at run time here; a value that is null in Kafka after log.retention.ms has been altered.
DIFFERENT = {
    "listeners",
    "node.id",
    "listener.security.protocol.map",
    "max.connections",
    "max.connections.per.ip",
    "socket.receive.buffer.bytes",
    "queued.max.request.bytes",
    "socket.send.buffer.bytes",
    "log.retention.minutes",
    "log.cleaner.threads",
}


@pytest.mark.parametrize("name", some(sorted((BROKER_FACTS.keys() & BROKER_ROWS.keys()) - DIFFERENT)))
def test_a_broker_row_equals_kafkas(name: str) -> None:
    assert _shown(BROKER_ROWS[name], "broker") == BROKER_FACTS[name]


@pytest.mark.parametrize("fact", _facts("topic").values(), ids=lambda fact: fact.name)
def test_a_topic_row_equals_kafkas(fact: Fact) -> None:
    assert _shown(TOPIC_ROWS[fact.name], "topic") == fact


def test_the_broker_with_the_empty_name_has_the_properties_of_all_brokers() -> None:
    rows = {row.name: _shown(row, "broker-default") for row in describe_broker_defaults(FOR_ALL)}

    assert rows == _facts("broker-default")


def test_other_units_of_an_altered_property_keep_their_values() -> None:
    assert BROKER_ROWS["log.retention.minutes"].value == "77"
    assert BROKER_ROWS["log.retention.minutes"].source.name == "STATIC_BROKER_CONFIG"


def test_rows_have_documentation() -> None:
    assert all(row.documentation for row in [*BROKER_ROWS.values(), *TOPIC_ROWS.values()])


def test_only_a_value_that_is_not_set_is_a_default() -> None:
    assert BROKER_ROWS["num.partitions"].is_default is False
    assert BROKER_ROWS["default.replication.factor"].is_default is True
    assert TOPIC_ROWS["retention.ms"].is_default is False


def test_every_property_of_kafka_is_described() -> None:
    assert BROKER_FACTS.keys() - BROKER_ROWS.keys() == set()


def test_the_value_of_the_cluster_takes_precedence_over_the_file() -> None:
    config = BrokerConfig.load(None, {"min.insync.replicas": "2"})

    [row] = [
        row
        for row in describe_broker(config, {}, with_cluster_defaults(config, {}))
        if row.name == "min.insync.replicas"
    ]

    assert [(synonym.value, synonym.source.name) for synonym in row.synonyms] == [
        ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("2", "STATIC_BROKER_CONFIG"),
        ("1", "DEFAULT_CONFIG"),
    ]


def test_a_topic_inherits_a_broker_wide_value_without_effect() -> None:
    rows = describe(CONFIG, {}, dynamic={"log.local.retention.ms": "5000"})
    [row] = [row for row in rows if row.name == "local.retention.ms"]

    assert (row.value, row.source.name) == ("5000", "DYNAMIC_BROKER_CONFIG")
