from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from odradek.broker.metadata.administration.access_rules import (
    BYTES_PER_TRANSACTION,
    RULES_PER_TRANSACTION,
    create_rules,
    delete_rules,
)
from odradek.broker.metadata.image import ImageChange
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.security.access.rule import MOST_CHARACTERS, AccessRule
from odradek.broker.security.principal import Principal
from odradek.broker.startup.authorizer import make_authorizer
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from tests.effort import cases
from tests.metadata.conftest import Start, until
from tests.security.access import model

RULE = AccessRule(
    ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*", Operation.READ, PermissionType.ALLOW
)
OTHER = msgspec.structs.replace(RULE, permission=PermissionType.DENY)
MANY = [msgspec.structs.replace(RULE, name=f"orders-{number}") for number in range(2 * RULES_PER_TRANSACTION + 1)]


async def test_rules_are_created_once(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    assert await create_rules(metadata, [RULE, OTHER, RULE]) == [RULE, OTHER]
    revision = metadata.image.revision

    assert await create_rules(metadata, [OTHER, RULE]) == []

    assert set(metadata.image.rules) == {RULE, OTHER}
    assert metadata.image.revision == revision


async def test_others_run_between_transactions_that_have_nothing_to_do(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    pauses = 0

    async def pause() -> None:
        nonlocal pauses
        pauses += 1

    await create_rules(metadata, MANY)
    await create_rules(metadata, MANY, pause)
    assert pauses == 3
    await delete_rules(metadata, MANY)
    await delete_rules(metadata, MANY, pause)
    assert pauses == 6


async def test_rules_are_deleted_once(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    await create_rules(metadata, [RULE, OTHER])

    assert await delete_rules(metadata, [RULE, MANY[0], RULE]) == [RULE]
    assert await delete_rules(metadata, [RULE]) == []

    assert list(metadata.image.rules) == [OTHER]


async def test_callbacks_have_the_change_before_a_creation_returns(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    seen: list[ImageChange] = []
    metadata.on_change(seen.append)

    await create_rules(metadata, [RULE])

    assert seen[-1].after.rules.change_since(seen[-1].before.rules) == ([], [RULE])


async def test_any_number_of_rules_is_created_and_deleted(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    large = [msgspec.structs.replace(rule, name="ü" * (MOST_CHARACTERS - 9) + rule.name) for rule in MANY]
    assert sum(len(rule.name.encode()) for rule in large) > 2 * BYTES_PER_TRANSACTION

    assert await create_rules(metadata, MANY + large) == MANY + large
    assert len(metadata.image.rules) == 2 * len(MANY)
    assert await delete_rules(metadata, MANY + large) == MANY + large
    assert len(metadata.image.rules) == 0


async def test_a_broker_that_starts_has_the_rules(store: MetadataStore, start: Start) -> None:
    first = await start(store)
    await create_rules(first, MANY)
    await first.stop()

    second = await start(store)

    assert set(second.image.rules) == set(MANY)


async def test_brokers_that_change_the_same_rules_agree(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)

    created = await asyncio.gather(create_rules(first, [RULE, *MANY]), create_rules(second, [*MANY, OTHER]))
    assert sorted([*created[0], *created[1]]) == sorted([RULE, OTHER, *MANY])

    deleted = await asyncio.gather(delete_rules(first, [OTHER, *MANY]), delete_rules(second, [*MANY, OTHER]))
    assert sorted([*deleted[0], *deleted[1]]) == sorted([OTHER, *MANY])
    for metadata in (first, second):
        await until(metadata, lambda image: list(image.rules) == [RULE])


@pytest.mark.parametrize("seed", range(cases(20)))
async def test_random_changes_and_restarts_leave_the_rules_of_a_set(
    store: MetadataStore, start: Start, seed: int
) -> None:
    """CVE-2024-27309: no change brings back or loses a rule, also of the index by which decisions are made."""
    source = random.Random(seed)
    vocabulary = model.random_rules(source, 60, ["a", "ab", "*"], ["User:alice", "User:*"], ["*", "10.0.0.7"])
    expected: set[AccessRule] = set()
    metadata = await start(store)
    authorizer = make_authorizer(metadata, [], allow_everyone=False)
    for _ in range(30):
        some = source.sample(vocabulary, source.randint(1, 10))
        action = source.choice(["create", "create", "delete", "restart"])
        if action == "create":
            assert set(await create_rules(metadata, some)) == set(some) - expected
            expected |= set(some)
        elif action == "delete":
            assert set(await delete_rules(metadata, some)) == set(some) & expected
            expected -= set(some)
        else:
            await metadata.stop()
            metadata = await start(store)
            authorizer = make_authorizer(metadata, [], allow_everyone=False)
        assert set(metadata.image.rules) == expected
        assert authorizer.rule_count == len(expected)
        for name in ("a", "abc", "b"):
            for operation in model.OPERATIONS:
                asked = operation, ResourceType.TOPIC, name
                decision = authorizer.allows(Principal("User", "alice"), "10.0.0.7", *asked)
                assert decision is model.allows(expected, "User:alice", "10.0.0.7", *asked, allow_everyone=False)
