"""The stores of this process: what only they can do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, Op, Put


async def test_a_store_that_is_closed_in_the_turn_in_which_a_transaction_ends_closes() -> None:
    """The transaction has then ended, but the callbacks of its end have not run."""
    store = InMemoryStore()
    closing: list[asyncio.Task[None]] = []

    def plan(_: Sequence[KV]) -> Sequence[Op]:
        closing.append(asyncio.create_task(store.close()))
        return [Put(b"a", b"1")]

    assert (await store.rewrite(plan)).ok
    await closing[0]
