from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.broker.apis.docs import PAGE, apis_page, kafka_versions
from odradek.broker.apis.not_served import NOT_SERVED
from odradek.broker.apis.table import ROWS
from odradek.protocol.api import NAMES, by_key

ROOT = Path(__file__).parents[2]


class Fact(NamedTuple):
    """An API as Apache Kafka 4.3.1 offers it, by its own answer to ApiVersions."""

    key: int
    name: str
    min_version: int
    max_version: int


def facts() -> list[Fact]:
    lines = (Path(__file__).parent / "data" / "apis.tsv").read_text().splitlines()
    return [Fact(int(key), name, int(first), int(last)) for key, name, first, last in (x.split("\t") for x in lines)]


def test_the_page_equals_the_tables() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == apis_page(), "run `make docs`"


def test_every_api_of_kafka_is_served_or_has_a_reason_not_to_be() -> None:
    served = {by_key(key).name for key in ROWS}

    assert served | NOT_SERVED.keys() == set(NAMES.values())
    assert served & NOT_SERVED.keys() == set()
    assert {fact.name for fact in facts()} <= set(NAMES.values())


def test_every_reason_is_a_sentence() -> None:
    assert all(reason[0].isupper() and reason.endswith(".") for reason in NOT_SERVED.values())


@pytest.mark.parametrize("fact", facts(), ids=lambda fact: fact.name)
def test_the_versions_are_kafkas(fact: Fact) -> None:
    # Produce: Kafka advertises 0 for librdkafka (KIP-896), and accepts 3.
    first = 3 if fact.name == "Produce" else fact.min_version
    assert kafka_versions(fact.name) == (first, fact.max_version)

    row = ROWS.get(fact.key)
    if row is not None:
        assert (row.min_version, row.max_version) == kafka_versions(fact.name)


@pytest.mark.parametrize("key", ROWS)
def test_a_row_names_the_module_of_its_api(key: int) -> None:
    assert by_key(key).request.__module__ == f"odradek.protocol.messages.{ROWS[key].module}"
