"""AlterClientQuotas. `tests/interop` compares refusals with those of Apache Kafka."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData
from tests.handlers.quotas import alter, describe, entry, set_quota
from tests.wire import Wire

ALICE: list[tuple[str, str | None]] = [("user", "alice")]
RATE = "producer_byte_rate"
INVALID = ErrorCode.INVALID_REQUEST


async def quotas(wire: Wire) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    described = await wire.ask(describe(), 1)
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in described.entries
    }


def outcome(response: Any) -> list[tuple[ErrorCode, str | None]]:
    return [(row.error_code, row.error_message) for row in response.entries]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_limit_is_set_changed_and_removed(wire: Wire, version: int) -> None:
    for limits in ((RATE, 1000.0), ("request_percentage", 12.5)), ((RATE, 2000.0),):
        response = await wire.ask(alter(ALICE, *limits), version)
        assert outcome(response) == [(ErrorCode.NONE, None)]
        assert [(part.entity_type, part.entity_name) for part in response.entries[0].entity] == ALICE
    assert await quotas(wire) == {(("user", "alice"),): {RATE: 2000.0, "request_percentage": 12.5}}

    await wire.ask(alter(ALICE, (RATE, None), ("request_percentage", None)), version)
    assert await quotas(wire) == {}


async def test_the_entity_of_a_pair_has_one_order(wire: Wire) -> None:
    await set_quota(wire, [("user", "alice"), ("client-id", None)], (RATE, 1.0))
    await set_quota(wire, [("client-id", None), ("user", "alice")], ("consumer_byte_rate", 2.0))

    assert await quotas(wire) == {(("client-id", None), ("user", "alice")): {RATE: 1.0, "consumer_byte_rate": 2.0}}


async def test_nothing_changes_when_it_is_only_validated(wire: Wire) -> None:
    assert outcome(await wire.ask(alter(ALICE, (RATE, 1.0), validate_only=True), 1)) == [(ErrorCode.NONE, None)]
    assert outcome(await wire.ask(alter(ALICE, ("x", 1.0), validate_only=True), 1)) == [
        (INVALID, "Invalid configuration key x")
    ]

    assert await quotas(wire) == {}


async def test_an_entity_fails_as_a_whole_and_the_others_do_not(wire: Wire) -> None:
    request = AlterClientQuotasRequest(
        [entry(ALICE, (RATE, 1.0), ("unknown", 1.0)), entry([("client-id", "app")], (RATE, 1.0))]
    )

    assert [code for code, _ in outcome(await wire.ask(request, 1))] == [INVALID, ErrorCode.NONE]
    assert await quotas(wire) == {(("client-id", "app"),): {RATE: 1.0}}


async def test_removing_what_was_never_set_succeeds(wire: Wire) -> None:
    assert outcome(await wire.ask(alter(ALICE, (RATE, None), ("unknown", None)), 1)) == [(ErrorCode.NONE, None)]
    assert await quotas(wire) == {}


async def test_of_two_alterations_of_an_entity_the_first_applies_and_the_row_says_so(wire: Wire) -> None:
    request = AlterClientQuotasRequest([entry(ALICE, (RATE, 1.0)), entry(ALICE, (RATE, 2.0))])

    assert outcome(await wire.ask(request, 1)) == [
        (INVALID, "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})")
    ]
    assert await quotas(wire) == {(("user", "alice"),): {RATE: 1.0}}


async def test_a_kind_that_is_named_twice_refuses_its_entity(wire: Wire) -> None:
    request = alter(ALICE, (RATE, 1.0))
    request.entries[0].ops.append(OpData(RATE, 2.0))

    assert [code for code, _ in outcome(await wire.ask(request, 1))] == [INVALID]
    assert await quotas(wire) == {}


async def test_hundreds_of_entities_are_changed_by_one_request(wire: Wire) -> None:
    names = [f"user-{number}" for number in range(300)]
    request = AlterClientQuotasRequest([entry([("user", name)], (RATE, 1.0)) for name in names])

    assert {code for code, _ in outcome(await wire.ask(request, 1))} == {ErrorCode.NONE}
    assert len(await quotas(wire)) == 300


@pytest.mark.parametrize(
    "request_",
    [
        alter([("x" * 32_000, "a")], (RATE, 1.0)),
        alter([("ip", "x" * 32_000)], ("connection_creation_rate", 1.0)),
        alter([("user", "x" * 32_000)], (RATE, 1.0)),
        alter(ALICE, ("x" * 32_000, 1.0)),
        AlterClientQuotasRequest([entry([("y" * 32_000, "x" * 32_000)], (RATE, 1.0))] * 2),
        alter([(f"{number}" * 100, None) for number in range(1000)], (RATE, 1.0)),
        AlterClientQuotasRequest([entry([(f"{number}" * 50, "x" * 50) for number in range(1000)], (RATE, 1.0))] * 2),
        alter(ALICE, *((f"{number}", 1.0) for number in range(10_000))),
    ],
    ids=lambda request: f"{len(request.entries)} entries",
)
async def test_long_names_are_refused_with_short_texts(wire: Wire, request_: AlterClientQuotasRequest) -> None:
    ((code, text),) = outcome(await wire.ask(request_, 1))

    assert code == INVALID
    assert text is not None
    assert len(text) < 1000
    assert await quotas(wire) == {}


async def test_two_changes_at_once_both_apply(wire: Wire) -> None:
    async with Wire(wire.host, wire.port) as other:
        await asyncio.gather(set_quota(wire, ALICE, (RATE, 1.0)), set_quota(other, ALICE, ("consumer_byte_rate", 2.0)))

    assert await quotas(wire) == {(("user", "alice"),): {RATE: 1.0, "consumer_byte_rate": 2.0}}


async def test_a_store_that_fails_is_reported_for_every_entity(wire: Wire, broker: Any) -> None:
    from odradek.broker.handlers.alter_client_quotas import error_response

    response = error_response(alter(ALICE, (RATE, 1.0)), ErrorCode.KAFKA_STORAGE_ERROR, "gone")

    assert outcome(response) == [(ErrorCode.KAFKA_STORAGE_ERROR, "gone")]
