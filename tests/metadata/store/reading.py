"""Short calls of a metadata store."""

from __future__ import annotations

import asyncio

from odradek.broker.metadata.store.store import (
    Batch,
    MetadataStore,
    Put,
    Watch,
)


async def put(store: MetadataStore, key: bytes, value: bytes) -> int:
    result = await store.txn((), (Put(key, value),))
    assert result.ok
    return result.revision


async def keys(store: MetadataStore, prefix: bytes) -> list[bytes]:
    return [kv.key.removeprefix(prefix) for kv in (await store.range(prefix))[0]]


async def next_change(watch: Watch) -> Batch:
    """The next batch that is not only progress."""
    while True:
        batch = await asyncio.wait_for(anext(watch), 30)
        if batch.changes:
            return batch
