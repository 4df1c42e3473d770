"""Transactions with a definite outcome, whatever happens between here and the store."""

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

    A definite "no" after an unknown outcome may mean that an earlier attempt won; then what is stored is what `then`
    says. For that, values that are put must be such as nobody else writes (they carry ids and epochs), and comparisons
    must no longer hold once the transaction has been applied. Raises what `store.txn` raises, except that.
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
            # The store waits between attempts: only it knows how many servers are left to ask.
            continue
    return result if result.ok else await _look(store, then, result)


async def _look(store: MetadataStore, then: Sequence[Op], refused: TxnResult) -> TxnResult:
    """Tell whether an earlier attempt was applied, by the first operation that shows."""
    op = then[0]
    prefix = op.prefix if isinstance(op, DeletePrefix) else op.key
    found, revision = await store.range(prefix)
    if not isinstance(op, Put):
        return TxnResult(not found, revision)
    for kv in found:
        if kv.key == op.key and kv.value == op.value:
            return TxnResult(True, kv.mod_revision)
    return refused
