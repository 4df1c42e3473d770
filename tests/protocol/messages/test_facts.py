"""Every message class against the facts of Apache Kafka 4.3.1 (`data/facts/*.json`).

Compared are names, order, types, versions, nulls, tags and defaults.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol import api
from odradek.protocol.schema import LAST_VERSION, ZERO_UUID, Field, Message, Scalar, Structure, fields, spec

FACTS = Path(__file__).parents[1] / "data" / "facts"
MESSAGES = [message for key in api.NAMES for message in (api.by_key(key).request, api.by_key(key).response)]


def facts_of(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FACTS / f"{name}.json").read_text())
    return facts


def version_range(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return int(text[:-1]), LAST_VERSION
    return int(first), int(last or first)


def snake_case(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def expected_default(facts: dict[str, Any], kind: Any, is_array: bool) -> Any:
    default = facts.get("default")
    if default == "null":
        return None
    if is_array:
        return []
    if not isinstance(kind, Scalar):
        return kind
    if kind.name == "records":
        return None
    if kind.name == "bool":
        return str(default).lower() == "true"
    if kind.name == "uuid":
        return ZERO_UUID
    if kind.name in ("string", "bytes"):
        return default or ("" if kind.name == "string" else b"")
    return float(default or 0) if kind.name == "float64" else int(str(default or 0), 0)


def compare_structure(
    cls: type[Structure], facts: list[dict[str, Any]], common: dict[str, Any], first: int, last: int
) -> None:
    declared = fields(cls)
    assert [f.name for f in declared] == [snake_case(f["name"]) for f in facts]
    for field, fact in zip(declared, facts, strict=True):
        compare_field(cls, field, fact, common, first, last)


def compare_field(
    cls: type[Structure], field: Field, fact: dict[str, Any], common: dict[str, Any], first: int, last: int
) -> None:
    where = f"{cls.__name__}.{field.name}"
    type_name = fact["type"].removeprefix("[]")
    assert field.is_array == fact["type"].startswith("[]"), where
    since, until = version_range(fact["versions"])
    null_since, null_until = version_range(fact["nullableVersions"]) if "nullableVersions" in fact else (1, 0)
    for version in range(first, last + 1):
        exists = since <= version <= until
        assert field.exists_in(version) == exists, f"{where} in version {version}"
        if exists:
            assert field.is_nullable_in(version) == (null_since <= version <= null_until), (
                f"{where} in version {version}"
            )
    assert field.tag == fact.get("tag"), where
    assert field.default == expected_default(fact, field.kind, field.is_array), where
    if isinstance(field.kind, Scalar):
        assert field.kind.name == type_name, where
    else:
        assert field.kind.__name__ in (type_name, f"Request{type_name}", f"Response{type_name}"), where
        parts = fact.get("fields") or common[type_name]
        compare_structure(field.kind, parts, common, max(first, since), min(last, until))


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_class_states_the_facts(cls: type[Message]) -> None:
    facts = facts_of(cls.__name__)
    declared = spec(cls)
    first, last = version_range(facts["validVersions"])
    assert (declared.key, declared.first_version, declared.last_version) == (facts["apiKey"], first, last)
    flexible = version_range(facts["flexibleVersions"]) if facts["flexibleVersions"] != "none" else (last + 1, last)
    for version in range(first, last + 1):
        assert declared.is_flexible(version) == (flexible[0] <= version <= flexible[1])
    common = {part["name"]: part["fields"] for part in facts.get("commonStructs", [])}
    compare_structure(cls, facts["fields"], common, first, last)


def test_every_api_that_a_broker_serves_is_here() -> None:
    served = {
        facts["apiKey"]
        for facts in (json.loads(path.read_text()) for path in FACTS.glob("*Request.json"))
        if facts["validVersions"] != "none" and "broker" in facts["listeners"]
    }
    assert served == set(api.NAMES)
