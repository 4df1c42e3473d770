from __future__ import annotations

import pytest

from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import Delete, DeletePrefix, Put, absent, still
from tests.metadata.uncertain import ANSWER, LOSE_ANSWER, LOSE_REQUEST, UncertainStore

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
