"""Producer ids: unique in the cluster, handed out from blocks of 1,000 that a broker takes from the store (KIP-730).

The logs remember producers by their ids. If an id is handed out a second time, the first batches of the new producer
look like those of the old one: they are acknowledged as duplicates, and lost. So:

| the ids in the logs are | then |
|---|---|
| of another cluster, or of metadata that are lost: the directories are adopted | ids begin at `FIRST_ADOPTED` |
| newer than the metadata, which are an older copy; or of logs that were put here | a start skips them |
"""

from __future__ import annotations

import asyncio

from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import KV, Put, still
from odradek.broker.metadata.values import ProducerIds, decode_producer_ids, encode
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)

BLOCK_SIZE = 1000

FIRST_ADOPTED = 1 << 40
"""The first producer id in adopted directories. Kafka counts from 0 and does not come that far, so the directories can
go back to it: it hands out no id that was handed out here."""

_LAST = 0x7FFF_FFFF_FFFF_FFFF


class ProducerIdBlocks:
    """This broker's supply. What is left of a block when the broker stops is never used."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._next = 0
        self._end = 0
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        """Return a producer id that nobody was ever given. Raises `KafkaError` KAFKA_STORAGE_ERROR."""
        async with self._turn:
            if self._next == self._end:
                self._next = await self._take_block()
                self._end = self._next + BLOCK_SIZE
            producer_id = self._next
            self._next += 1
            return producer_id

    async def _take_block(self) -> int:
        metadata = self._metadata
        while True:
            kv = await metadata.read(metadata.keys.next_producer_id)
            first = _next(kv)
            if first > _LAST - BLOCK_SIZE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids are used up")
            if await _write(metadata, kv, first + BLOCK_SIZE):
                return first


async def skip_to(metadata: Metadata, producer_id: int) -> int:
    """Hand out no id below `producer_id` any more; return which would have been the next.

    Raises `KafkaError` KAFKA_STORAGE_ERROR.
    """
    while True:
        kv = await metadata.read(metadata.keys.next_producer_id)
        first = _next(kv)
        if first >= producer_id or await _write(metadata, kv, producer_id):
            return first


async def skip_known_ids(metadata: Metadata, highest: int) -> None:
    """Hand out no id up to `highest` any more, which is in a log, nor others of the block that it may be from.

    Those may belong to producers that have not written yet. Raises `KafkaError` KAFKA_STORAGE_ERROR.
    """
    first = _next(await metadata.read(metadata.keys.next_producer_id))
    if first <= highest:
        await skip_to(metadata, highest + BLOCK_SIZE)
        _LOG.warning("producer ids in the logs are newer than the metadata", highest=highest, next=highest + BLOCK_SIZE)


def _next(kv: KV | None) -> int:
    return decode_producer_ids(kv.value).next if kv is not None else 0


async def _write(metadata: Metadata, before: KV | None, first: int) -> bool:
    """Make `first` the next id; False if another broker was quicker."""
    key = metadata.keys.next_producer_id
    put = Put(
        key, encode(ProducerIds(first, metadata.config.node_id, metadata.broker_epoch), before.value if before else b"")
    )
    result = await metadata.commit((still(key, before.mod_revision if before else 0),), (put,))
    return result.ok
