from __future__ import annotations

import pytest

from odradek.broker.quotas.entities import (
    LONGEST_NAME,
    canonical_address,
    describe,
    entity_of,
    entity_problem,
    value_problem,
)

ALICE = entity_of([("user", "alice")])
ADDRESS = entity_of([("ip", "192.0.2.7")])


def test_the_parts_of_an_entity_have_one_order_and_the_last_of_two_names_counts() -> None:
    assert entity_of([("user", "a"), ("client-id", None)]) == (("client-id", None), ("user", "a"))
    assert entity_of([("user", "a"), ("user", "b")]) == (("user", "b"),)


@pytest.mark.parametrize(
    "parts",
    [
        [("user", "alice")],
        [("user", None)],
        [("client-id", "c"), ("user", "alice")],
        [("client-id", None)],
        [("ip", None)],
        [("ip", "192.0.2.7")],
        [("ip", "::1")],
        [("ip", "[2001:db8::1]")],
        [("user", "x" * LONGEST_NAME)],
    ],
)
def test_an_entity_is_accepted(parts: list[tuple[str, str | None]]) -> None:
    assert entity_problem(entity_of(parts)) is None


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([], "Invalid empty client quota entity"),
        ([("user", "")], "Empty user not supported"),
        ([("team", "x")], "Unhandled client quota entity type: team"),
        ([("ip", "1.2.3.4"), ("user", "a")], "Invalid quota entity combination"),
        ([("ip", "host.example")], "host.example is not a valid IP or resolvable host."),
        ([("ip", "256.1.1.1")], "256.1.1.1 is not a valid IP or resolvable host."),
        ([("client-id", "x" * (LONGEST_NAME + 1))], "The client-id has 4097 characters"),
    ],
)
def test_an_entity_is_refused(parts: list[tuple[str, str | None]], text: str) -> None:
    problem = entity_problem(entity_of(parts))

    assert problem is not None
    assert problem.startswith(text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("producer_byte_rate", 1.0),
        ("consumer_byte_rate", 1000.0000001),
        ("request_percentage", 0.01),
        ("controller_mutation_rate", 0.5),
    ],
)
def test_a_limit_is_accepted(kind: str, value: float) -> None:
    assert value_problem(ALICE, kind, value) is None


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("producer_byte_rate", 1000.5, "producer_byte_rate cannot be a fractional value."),
        ("producer_byte_rate", 0.9999999, "producer_byte_rate cannot be a fractional value."),
        ("producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        ("request_percentage", -5.0, "Quota request_percentage must be greater than 0"),
        ("producer_byte_rate", 1e300, "Proposed value for producer_byte_rate is too large for a LONG."),
        ("producer_byte_rate", float("nan"), "Quota producer_byte_rate must be a finite number"),
        ("request_percentage", float("inf"), "Quota request_percentage must be a finite number"),
        ("connection_creation_rate", 5.0, "Invalid configuration key connection_creation_rate"),
        ("SCRAM-SHA-256", 5.0, "Invalid configuration key SCRAM-SHA-256"),
    ],
)
def test_a_limit_is_refused(kind: str, value: float, text: str) -> None:
    assert value_problem(ALICE, kind, value) == text


def test_an_address_has_a_limit_of_connections_and_no_other() -> None:
    assert value_problem(ADDRESS, "connection_creation_rate", 5.0) is None
    assert value_problem(ADDRESS, "producer_byte_rate", 5.0) == "Invalid configuration key producer_byte_rate"
    too_large = "Proposed value for connection_creation_rate is too large for an INT."
    assert value_problem(ADDRESS, "connection_creation_rate", 3e9) == too_large


@pytest.mark.parametrize(
    ("text", "address"),
    [("::FFFF:192.0.2.7", "192.0.2.7"), ("[::0001]", "::1"), ("192.0.2.7", "192.0.2.7"), ("localhost", None)],
)
def test_an_address_is_compared_in_one_form(text: str, address: str | None) -> None:
    assert canonical_address(text) == address


def test_an_entity_is_described_as_kafka_does() -> None:
    assert describe(entity_of([("user", "z"), ("client-id", None)])) == (
        "ClientQuotaEntity(entries={client-id=null, user=z})"
    )
