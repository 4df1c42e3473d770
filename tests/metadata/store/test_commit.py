from __future__ import annotations

import asyncio
from itertools import repeat

import pytest

from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import (
    Delete,
    DeletePrefix,
    Put,
    StoreFullError,
    absent,
    still,
)
from tests.metadata.uncertain import (
    ANSWER,
    FULL,
    FULL_AFTERWARDS,
    LOSE_ANSWER,
    LOSE_REQUEST,
    UNREACHABLE,
    UncertainStore,
)

LOSSES = [(first, second) for first in (LOSE_REQUEST, LOSE_ANSWER) for second in (LOSE_REQUEST, LOSE_ANSWER)]


@pytest.mark.parametrize("losses", LOSSES)
async def test_a_transaction_is_repeated_until_its_outcome_is_known(losses: tuple[str, ...]) -> None:
    store = UncertainStore(iter(losses))

    assert await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),)) == (True, 1)
    assert (await store.range(b""))[1] == 1


@pytest.mark.parametrize("losses", LOSSES)
async def test_a_transaction_that_failed_is_reported_as_failed(losses: tuple[str, ...]) -> None:
    store = UncertainStore(iter((ANSWER, *losses)))
    await store.txn((), (Put(b"a", b"theirs"),))

    assert await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),)) == (False, 1)


@pytest.mark.parametrize("op", [Delete(b"a"), DeletePrefix(b"a")])
async def test_a_deletion_whose_answer_was_lost_is_reported_as_applied(op: Delete | DeletePrefix) -> None:
    store = UncertainStore(iter((ANSWER, LOSE_ANSWER)))
    await store.txn((), (Put(b"a", b"x"),))

    assert await commit(store, (still(b"a", 1),), (op,)) == (True, 2)


async def test_a_deletion_that_came_too_late_is_reported_as_failed() -> None:
    store = UncertainStore(iter((ANSWER, ANSWER, LOSE_REQUEST)))
    await store.txn((), (Put(b"a", b"x"),))
    await store.txn((), (Put(b"a", b"y"),))

    assert await commit(store, (still(b"a", 1),), (Delete(b"a"),)) == (False, 2)


async def test_a_deletion_is_reported_as_applied_although_longer_keys_remain() -> None:
    store = UncertainStore(iter((ANSWER, LOSE_ANSWER)))
    await store.txn((), (Put(b"a", b"x"), Put(b"ab", b"x")))

    assert await commit(store, (still(b"a", 1),), (Delete(b"a"),)) == (True, 2)


async def test_a_store_that_cannot_be_reached_is_tried_again() -> None:
    store = UncertainStore(iter((UNREACHABLE, UNREACHABLE)))

    assert await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),)) == (True, 1)


async def test_a_failure_after_attempts_without_effect_is_a_failure() -> None:
    """Although the store has the same value: another writer put it."""
    store = UncertainStore(iter((ANSWER, UNREACHABLE)))
    await store.txn((), (Put(b"a", b"same"),))

    assert await commit(store, (absent(b"a"),), (Put(b"a", b"same"),)) == (False, 1)


@pytest.mark.parametrize("loss", [UNREACHABLE, LOSE_REQUEST])
async def test_a_caller_may_limit_the_time_of_the_attempts(loss: str) -> None:
    store = UncertainStore(repeat(loss))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),))


async def test_a_transaction_that_a_full_store_did_not_apply_raises_its_error() -> None:
    store = UncertainStore(iter((FULL,)))

    with pytest.raises(StoreFullError):
        await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),))


async def test_a_transaction_that_filled_the_store_is_reported_as_applied() -> None:
    store = UncertainStore(iter((FULL_AFTERWARDS,)))

    assert await commit(store, (absent(b"a"),), (Put(b"a", b"mine"),)) == (True, 1)
