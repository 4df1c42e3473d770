from __future__ import annotations

import pytest

from odradek.broker.quotas.entities import Entity, entity_of
from odradek.broker.quotas.limits import Limit, Limits

KIND = "producer_byte_rate"
# From the most specific to the least: the order of Kafka's ClientQuotaManager, and who shares the limit.
PRECEDENCE: list[tuple[list[tuple[str, str | None]], tuple[str, str]]] = [
    ([("user", "alice"), ("client-id", "app")], ("alice", "app")),
    ([("user", "alice"), ("client-id", None)], ("alice", "app")),
    ([("user", "alice")], ("alice", "")),
    ([("user", None), ("client-id", "app")], ("alice", "app")),
    ([("user", None), ("client-id", None)], ("alice", "app")),
    ([("user", None)], ("alice", "")),
    ([("client-id", "app")], ("", "app")),
    ([("client-id", None)], ("", "app")),
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_specific_entity_decides(first: int) -> None:
    quotas = {entity_of(parts): {KIND: 100.0 + place} for place, (parts, _) in enumerate(PRECEDENCE) if place >= first}

    assert Limits(quotas).find(KIND, "alice", "app") == Limit(*PRECEDENCE[first][1], 100.0 + first)


@pytest.mark.parametrize(
    "parts",
    [
        [("user", "bob")],
        [("client-id", "other")],
        [("user", "bob"), ("client-id", "app")],
        [("user", "alice"), ("client-id", "other")],
        [("ip", None)],
    ],
)
def test_the_quotas_of_others_do_not_count(parts: list[tuple[str, str | None]]) -> None:
    assert Limits({entity_of(parts): {KIND: 1.0}}).find(KIND, "alice", "app") is None


def test_each_kind_has_its_own_precedence() -> None:
    quotas: dict[Entity, dict[str, float]] = {
        entity_of([("user", "alice"), ("client-id", "app")]): {"consumer_byte_rate": 1.0},
        entity_of([("client-id", None)]): {KIND: 2.0},
    }

    assert Limits(quotas).find(KIND, "alice", "app") == Limit("", "app", 2.0)


def test_a_connection_without_client_id_has_the_defaults_only() -> None:
    quotas = {entity_of([("user", "alice")]): {KIND: 1.0}, entity_of([("client-id", "app")]): {KIND: 2.0}}
    assert Limits(quotas).find(KIND, "alice", "") == Limit("alice", "", 1.0)
    assert Limits(quotas).find(KIND, "bob", "") is None

    default = {entity_of([("user", "alice"), ("client-id", None)]): {KIND: 3.0}, **quotas}
    assert Limits(default).find(KIND, "alice", "") == Limit("alice", "", 3.0)


def test_without_quotas_of_clients_there_is_nothing_to_find() -> None:
    assert not Limits({})
    assert not Limits({entity_of([("ip", "192.0.2.7")]): {"connection_creation_rate": 1.0}})
    assert Limits({entity_of([("user", None)]): {KIND: 1.0}})


def test_limits_that_another_version_stored_have_no_effect() -> None:
    assert not Limits({entity_of([("user", None)]): {KIND: 0.0, "unknown_rate": 5.0}})
