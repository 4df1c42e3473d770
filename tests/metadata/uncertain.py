"""A metadata store whose answers get lost, as those of a remote store may."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import (
    Cmp,
    Op,
    StoreFullError,
    StoreUnreachableError,
    TxnResult,
    UnknownOutcomeError,
)

ANSWER, LOSE_REQUEST, LOSE_ANSWER = "answer", "lose the request", "lose the answer"
UNREACHABLE, FULL, FULL_AFTERWARDS = "unreachable", "full", "full after this transaction"


class UncertainStore(InMemoryStore):
    """Treats each transaction as the next item of `script` says, and answers all after its end."""

    def __init__(self, script: Iterator[str]) -> None:
        super().__init__()
        self.script = script

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        what = next(self.script, ANSWER)
        await asyncio.sleep(0)
        if what == LOSE_REQUEST:
            raise UnknownOutcomeError(what)
        if what == UNREACHABLE:
            raise StoreUnreachableError(what)
        if what == FULL:
            raise StoreFullError(what)
        result = await super().txn(when, then)
        if what == LOSE_ANSWER:
            raise UnknownOutcomeError(what)
        if what == FULL_AFTERWARDS:
            raise StoreFullError(what)
        return result
