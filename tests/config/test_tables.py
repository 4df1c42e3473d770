"""Every row of the tables against those of Apache Kafka 4.3.1."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.config.bounds import Bound, OneOf, OneOfAnyCase, Range, RangeOr
from odradek.broker.config.broker_config import DESCRIBED_PROPERTIES, PROPERTIES
from odradek.broker.config.ignored_properties import IGNORED_PROPERTIES, REMOVED
from odradek.broker.config.property import LogProperty
from odradek.broker.config.topic_config import TOPIC_PROPERTIES
from odradek.broker.storage.log_config import LogConfig
from tests.effort import some


class Fact(NamedTuple):
    name: str
    type: str
    default: str
    valid: str


def _facts(name: str) -> dict[str, Fact]:
    lines = (Path(__file__).parent / "data" / name).read_text().splitlines()[1:]
    return {fact.name: fact for fact in (Fact(*line.split("\t")) for line in lines)}


BROKER = _facts("broker-configs.tsv")
TOPIC = _facts("topic-configs.tsv")

DIFFERENT_DEFAULTS = {
    "node.id",
    "listeners",
    "max.connections",
    "max.connections.per.ip",
    "queued.max.request.bytes",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}
DIFFERENT_BOUNDS = {
    "authorizer.class.name",
    "log.segment.bytes",
    "remote.storage.enable",
    "segment.bytes",
    "transaction.two.phase.commit.enable",
}


def _default(text: str | None, kind: str) -> str:
    return "null" if text is None else f"[{text.replace(',', ', ')}]" if kind == "LIST" else text


def _valid(bound: Bound | None) -> str | None:
    """Return Kafka's notation of a bound, or None for a bound that is a function."""
    return "" if bound is None else str(bound) if isinstance(bound, Range | OneOf | OneOfAnyCase | RangeOr) else None


def test_every_property_of_kafka_is_in_a_table() -> None:
    assert BROKER.keys() - PROPERTIES.keys() == IGNORED_PROPERTIES.keys()
    assert REMOVED.keys() & {*BROKER, *PROPERTIES} == set()


def test_every_name_that_is_not_kafkas_is_marked_as_own() -> None:
    assert {row.name for row in PROPERTIES.values() if row.own} == PROPERTIES.keys() - BROKER.keys()


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() & BROKER.keys()))
def test_a_broker_property_equals_kafkas(name: str) -> None:
    row, fact = PROPERTIES[name], BROKER[name]

    assert row.kind.code.name == fact.type
    if name not in DIFFERENT_DEFAULTS:
        assert _default(row.kind.text(row.default), fact.type) == fact.default.removeprefix("class ")
    if name not in DIFFERENT_BOUNDS and fact.valid != "non-null string":
        assert _valid(row.bound) == fact.valid
    assert bool(row.differs) == (name in DIFFERENT_DEFAULTS | DIFFERENT_BOUNDS)


@pytest.mark.parametrize("name", some(sorted(IGNORED_PROPERTIES)))
def test_a_property_without_effect_equals_kafkas(name: str) -> None:
    row, fact = IGNORED_PROPERTIES[name], BROKER[name]

    assert row.kind.code.name == fact.type
    assert fact.default in {_default(row.kind.text(row.default), fact.type), f"class {row.default}", "(required)"}
    assert _valid(row.bound) == (None if fact.valid.startswith("non-empty") else fact.valid)


@pytest.mark.parametrize("name", sorted(TOPIC))
def test_a_topic_property_equals_kafkas(name: str) -> None:
    row, fact = TOPIC_PROPERTIES[name], TOPIC[name]

    assert row.kind.code.name == fact.type
    assert _default(row.kind.text(row.default), fact.type) == fact.default
    if name not in DIFFERENT_BOUNDS and _valid(row.bound) is not None:
        assert _valid(row.bound) == fact.valid


def test_topics_have_the_same_properties_as_in_kafka() -> None:
    assert TOPIC_PROPERTIES.keys() == TOPIC.keys()


def test_dynamic_properties_are_dynamic_in_kafka() -> None:
    lines = (Path(__file__).parent / "data" / "describe-configs.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    changeable = {row[1] for row in rows if row[0] == "broker" and row[4] == "false"}
    ours = {row.name for row in DESCRIBED_PROPERTIES.values() if row.dynamic}

    assert ours <= changeable
    # These need a restart here.
    assert changeable - ours == {
        "listeners",
        "listener.security.protocol.map",
        "log.cleaner.threads",
    }


def test_every_field_of_a_logs_configuration_comes_from_the_tables() -> None:
    rows = [row for row in PROPERTIES.values() if isinstance(row, LogProperty)]

    assert sorted(row.log_field for row in rows) == sorted(LogConfig.__struct_fields__)
    assert {row.log_field for row in rows if row.topic is None} == {"record_validation", "producer_id_expiration_ms"}


def test_every_default_is_within_its_own_bound() -> None:
    for row in PROPERTIES.values():
        text = row.kind.text(row.default)
        if text is not None and (row.bound is None or text):
            assert row.parse(text) == row.default


def test_every_property_has_a_description() -> None:
    for row in PROPERTIES.values():
        assert row.doc.endswith((".", "?")), row.name
