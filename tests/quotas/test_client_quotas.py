from __future__ import annotations

import pytest

from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.quotas.entities import Entity, entity_of
from odradek.broker.quotas.samples import Windows
from odradek.broker.quotas.usage import MutationUsage, Usage

KIND = "producer_byte_rate"
WINDOWS = Windows(11, 1.0)


def quotas(most: int = 100, **limits: float) -> ClientQuotas:
    made = ClientQuotas(WINDOWS, WINDOWS, most=most)
    made.set({entity_of([("client-id", None)]): limits or {KIND: 100.0}})
    return made


def found(of: ClientQuotas, kind: str, user: str, client_id: str, now: float) -> Usage:
    usage = of.find(kind, user, client_id, now)
    assert usage is not None
    return usage


def test_without_quotas_there_is_none() -> None:
    made = ClientQuotas(WINDOWS, WINDOWS)

    assert not made
    assert made.find(KIND, "alice", "app", 0.0) is None


def test_users_share_the_quota_of_a_client_id() -> None:
    made = quotas()
    found(made, KIND, "alice", "app", 0.0).charge(2000, 0.0)

    assert found(made, KIND, "bob", "app", 0.0).throttle_ms(0.0) == 10_000
    assert found(made, KIND, "alice", "other", 0.0).throttle_ms(0.0) == 0


def test_a_changed_quota_holds_at_once_and_a_removed_one_no_more() -> None:
    made = quotas()
    found(made, KIND, "alice", "app", 0.0).charge(1000, 0.0)

    app = entity_of([("client-id", "app")])
    made.set({app: {KIND: 50.0}})
    assert found(made, KIND, "alice", "app", 0.0).throttle_ms(0.0) == 10_000
    assert found(made, KIND, "alice", "app", 0.0).limit == 50

    made.set({app: {}, entity_of([("client-id", None)]): {}})
    assert made.find(KIND, "alice", "app", 0.0) is None
    assert not made
    assert len(made) == 0


def test_what_was_used_can_be_forgotten() -> None:
    made = quotas()
    found(made, KIND, "alice", "app", 0.0).charge(2000, 0.0)

    made.forget()

    assert found(made, KIND, "alice", "app", 0.0).throttle_ms(0.0) == 0


def test_invented_client_ids_take_bounded_memory_and_do_not_disturb_one_that_is_in_use() -> None:
    made = quotas(most=10)
    found(made, KIND, "alice", "mine", 0.0).charge(2000, 0.0)
    for number in range(1000):
        found(made, KIND, "mallory", f"invented-{number}", 0.0).charge(1, 0.0)
        assert found(made, KIND, "alice", "mine", 0.0).throttle_ms(0.0) == 10_000

    assert len(made) == 10


def test_what_is_idle_for_an_hour_is_forgotten() -> None:
    made = quotas()
    found(made, KIND, "alice", "idle", 0.0)
    found(made, KIND, "alice", "busy", 0.0)
    found(made, KIND, "alice", "busy", 3000.0)

    assert [use.client_id for use in made.uses(3600.0)] == ["busy"]


def test_each_kind_is_measured_for_itself() -> None:
    made = quotas(producer_byte_rate=100.0, request_percentage=1.0, controller_mutation_rate=2.0)

    assert found(made, "request_percentage", "alice", "app", 0.0).charge(1e6, 0.0) == 1000  # one window at most
    assert isinstance(found(made, "controller_mutation_rate", "alice", "app", 0.0), MutationUsage)
    assert found(made, KIND, "alice", "app", 0.0).throttle_ms(0.0) == 0
    assert [(use.kind, use.user, use.client_id) for use in made.uses(0.0)] == [
        ("request_percentage", "", "app"),
        ("controller_mutation_rate", "", "app"),
        (KIND, "", "app"),
    ]


def test_the_quotas_of_addresses_are_not_those_of_clients() -> None:
    made = ClientQuotas(WINDOWS, WINDOWS)
    of_addresses: dict[Entity, dict[str, float]] = {entity_of([("ip", None)]): {"connection_creation_rate": 1.0}}
    made.set(of_addresses)

    assert not made


def test_long_client_ids_take_little_memory() -> None:
    made = quotas()
    made.find(KIND, "alice", "x" * 30_000, 0.0)

    assert [len(use.client_id) for use in made.uses(0.0)] == [256]


@pytest.mark.parametrize("client_id", ["", "x" * 30_000, "<default>", "/"])
def test_any_client_id_may_be_looked_up(client_id: str) -> None:
    assert quotas().find(KIND, "alice", client_id, 0.0) is not None
