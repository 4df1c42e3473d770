"""Transactions with a definite outcome: repeated while it is unknown. Reads that wait for the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from odradek.broker.metadata.store.store import (
    KV,
    Cmp,
    Delete,
    DeletePrefix,
    MetadataStore,
    Op,
    StoreFullError,
    StoreUnreachableError,
    TxnResult,
    UnknownOutcomeError,
)

T = TypeVar("T")

_RETRY_SECONDS: Final = 0.1


async def until_reached(call: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `call`, which is repeated while no server of the store answers.

    Waits as long as that is so. A caller that has a time-out cancels it. Raises what else `call` raises.
    """
    while True:
        try:
            return await call()
        except StoreUnreachableError:
            await asyncio.sleep(_RETRY_SECONDS)  # the store itself has waited, too, unless a connection broke


async def commit(store: MetadataStore, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
    """Like `store.txn`, but repeats the identical transaction until its outcome is definite.

    A definite failure after an unknown outcome may mean that an earlier attempt was applied. To detect that, the stored
    values are compared with `then`: no other writer may put the same values (they contain ids and epochs), and the
    comparisons must no longer hold after the transaction.

    Waits as long as the store cannot be reached. A caller that has a time-out cancels it (`asyncio.timeout`); the last
    attempt may still be applied. Raises what else `store.txn` raises.
    """
    return await _Transaction(store, when, then).until_definite()


class _Transaction:
    """The attempts at one transaction. The store itself waits between them, because it has the list of servers."""

    def __init__(self, store: MetadataStore, when: Sequence[Cmp], then: Sequence[Op]) -> None:
        self._store = store
        self._when = when
        self._then = then

    async def until_definite(self) -> TxnResult:
        may_be_applied = False
        while True:
            try:
                result = await self._store.txn(self._when, self._then)
            except UnknownOutcomeError:
                may_be_applied = True
            except StoreUnreachableError:
                continue
            except StoreFullError as error:
                return await self._unless_applied(error)
            else:
                return result if result.ok or not may_be_applied else await self._earlier_outcome(result)

    async def _unless_applied(self, error: StoreFullError) -> TxnResult:
        """Return success if the transaction was applied, and raise `error` otherwise."""
        result = await self._earlier_outcome(TxnResult(False, 0))
        if not result.ok:
            raise error
        return result

    async def _earlier_outcome(self, refused: TxnResult) -> TxnResult:
        """Return success if the store has the effect of the first operation, else `refused`."""
        op = self._then[0]
        prefix = op.prefix if isinstance(op, DeletePrefix) else op.key
        found, revision = await self._range(prefix)
        if isinstance(op, DeletePrefix):
            return TxnResult(not found, revision)
        kv = next((kv for kv in found if kv.key == op.key), None)
        if isinstance(op, Delete):
            return TxnResult(kv is None, revision)
        return TxnResult(True, kv.mod_revision) if kv is not None and kv.value == op.value else refused

    async def _range(self, prefix: bytes) -> tuple[list[KV], int]:
        while True:
            try:
                return await self._store.range(prefix)
            except StoreUnreachableError:
                continue
