"""The messages of stored records against the facts of Apache Kafka 4.3.1, and against records that it wrote."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol import codec
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from odradek.protocol.schema import LAST_VERSION, Layout, LayoutField, Message, Scalar, Structure, fields, layout, spec
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.protocol.stored_records.producer_snapshot import ProducerSnapshot
from odradek.protocol.stored_records.raft_control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from odradek.protocol.stored_records.record_types import GROUP_RECORDS, TRANSACTION_RECORDS, StoredRecord
from tests.protocol.messages.test_facts import expected_default, facts_of, snake_case, version_range

FACTS = Path(__file__).parents[1] / "data" / "facts"
GOLDEN_DIRS = Path(__file__).parents[2] / "storage" / "golden_dirs"
RECORDS = [*GROUP_RECORDS.values(), *TRANSACTION_RECORDS.values()]
MESSAGES: list[type[Message]] = [
    *(message for record in RECORDS for message in record),
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    ProducerSnapshot,
    LeaderChangeMessage,
    SnapshotHeaderRecord,
    SnapshotFooterRecord,
    KRaftVersionRecord,
    VotersRecord,
]
VERSIONS = [
    (message, version)
    for message in MESSAGES
    for version in range(spec(message).first_version, spec(message).last_version + 1)
]


def described(of: Layout) -> list[Any]:
    """A layout as plain values: fields in order, then those with a tag."""
    return [(None, *field_described(field)) for field in of.fields] + [
        (tag, *field_described(field)) for tag, field in of.tagged
    ]


def field_described(field: LayoutField) -> tuple[Any, ...]:
    kind = field.kind.name if isinstance(field.kind, Scalar) else described(field.part) if field.part else None
    return field.name, kind, field.is_array, field.is_nullable


def expected(facts: list[dict[str, Any]], common: dict[str, Any], version: int) -> list[Any]:
    plain, tagged = [], []
    for fact in facts:
        first, last = version_range(fact.get("versions") or fact["taggedVersions"])
        if not first <= version <= last:
            continue
        type_name = fact["type"].removeprefix("[]")
        parts = fact.get("fields") or common.get(type_name)
        null_first, null_last = version_range(fact["nullableVersions"]) if "nullableVersions" in fact else (1, 0)
        kind = expected(parts, common, version) if parts else type_name
        row = (snake_case(fact["name"]), kind, fact["type"].startswith("[]"), null_first <= version <= null_last)
        if "tag" in fact:
            tagged.append((fact["tag"], *row))
        else:
            plain.append((None, *row))
    return plain + sorted(tagged)


def common_of(facts: dict[str, Any]) -> dict[str, Any]:
    return {part["name"]: part["fields"] for part in facts.get("commonStructs", [])}


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_class_states_the_versions(cls: type[Message]) -> None:
    facts = facts_of(cls.__name__)
    flexible = None if facts["flexibleVersions"] == "none" else version_range(facts["flexibleVersions"])[0]
    assert spec(cls) == (None, *version_range(facts["validVersions"]), flexible)


@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=str)
def test_layout_is_that_of_the_facts(cls: type[Message], version: int) -> None:
    facts = facts_of(cls.__name__)
    assert described(layout(cls, version)) == expected(facts["fields"], common_of(facts), version)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_defaults_are_those_of_the_facts(cls: type[Message]) -> None:
    facts = facts_of(cls.__name__)
    compare_defaults(cls, facts["fields"], common_of(facts))


def compare_defaults(cls: type[Structure], facts: list[dict[str, Any]], common: dict[str, Any]) -> None:
    for field, fact in zip(fields(cls), facts, strict=True):
        assert field.default == expected_default(fact, field.kind, field.is_array), field.name
        if not isinstance(field.kind, Scalar):
            compare_defaults(field.kind, fact.get("fields") or common[fact["type"].removeprefix("[]")], common)


@pytest.mark.parametrize(("records", "topic"), [(GROUP_RECORDS, "group"), (TRANSACTION_RECORDS, "transaction")])
def test_record_types_are_those_of_the_facts(records: dict[int, StoredRecord], topic: str) -> None:
    stored: dict[int, dict[str, str]] = {}
    for path in FACTS.glob("*.json"):
        facts = json.loads(path.read_text())
        if facts.get("type", "").startswith("coordinator-") and (topic == "transaction") == (
            "Transaction" in path.stem
        ):
            stored.setdefault(facts["apiKey"], {})[facts["type"].removeprefix("coordinator-")] = facts["name"]
    assert stored == {
        record_type: {"key": record.key.__name__, "value": record.value.__name__}
        for record_type, record in records.items()
    }


@pytest.mark.parametrize(
    ("partition", "records"),
    [
        ("__consumer_offsets-20", GROUP_RECORDS),
        ("__consumer_offsets-49", GROUP_RECORDS),
        ("__transaction_state-20", TRANSACTION_RECORDS),
    ],
)
def test_records_of_kafka_decode_and_encode_to_the_same_bytes(partition: str, records: dict[int, StoredRecord]) -> None:
    log = (GOLDEN_DIRS / partition / "00000000000000000000.log").read_bytes()
    seen = 0
    for position, header in batch_headers(log):
        for record in iter_records(log, position, header):
            if header.is_control:
                continue
            assert record.key is not None
            record_type = struct.unpack_from(">h", record.key)[0]
            round_trip(records[record_type].key, record.key, version=0)
            if record.value is not None:
                round_trip(records[record_type].value, record.value)
            seen += 1
    assert seen > 3


def round_trip(cls: type[Message], data: bytes, version: int | None = None) -> None:
    if version is None:
        version = struct.unpack_from(">h", data)[0]
    assert version is not None
    assert version <= LAST_VERSION
    assert codec.encode(codec.decode(cls, version, data, 2), version) == data[2:]


def test_a_snapshot_of_kafka_decodes_and_encodes_to_the_same_bytes() -> None:
    data = (GOLDEN_DIRS / "transactional-0" / "00000000000000000066.snapshot").read_bytes()
    assert len(codec.decode(ProducerSnapshot, 1, data, 2).producer_entries) == 1
    round_trip(ProducerSnapshot, data)
