"""Transactions with a definite outcome: repeated while it is unknown."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.metadata.store.store import (
    Cmp,
    DeletePrefix,
    MetadataStore,
    Op,
    Put,
    TxnResult,
    UnknownOutcomeError,
)


async def commit(store: MetadataStore, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
    """Like `store.txn`, but repeats the identical transaction while its outcome is unknown.

    A definite failure after an unknown outcome may mean that an earlier attempt was applied. To detect that, the stored
    values are compared with `then`: no other writer may put the same values (they contain ids and epochs), and the
    comparisons must no longer hold after the transaction. Raises what `store.txn` raises, except `UnknownOutcomeError`.
    """
    try:
        return await store.txn(when, then)
    except UnknownOutcomeError:
        return await _until_definite(store, when, then)


async def _until_definite(store: MetadataStore, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
    while True:
        try:
            result = await store.txn(when, then)
            break
        except UnknownOutcomeError:
            # The store itself waits between attempts, because it has the list of servers.
            continue
    return result if result.ok else await _earlier_outcome(store, then, result)


async def _earlier_outcome(store: MetadataStore, then: Sequence[Op], refused: TxnResult) -> TxnResult:
    """Return success if the store has the effect of the first operation, else `refused`."""
    op = then[0]
    prefix = op.prefix if isinstance(op, DeletePrefix) else op.key
    found, revision = await store.range(prefix)
    if not isinstance(op, Put):
        return TxnResult(not found, revision)
    for kv in found:
        if kv.key == op.key and kv.value == op.value:
            return TxnResult(True, kv.mod_revision)
    return refused
