"""The allocation of producer ids: unique in the cluster, from blocks of 1,000 that a broker reserves (KIP-730).

Logs identify producers by their ids. If an id were allocated twice, the first batches of the new producer would look
like duplicates of the old one's: they would be acknowledged, and lost. Therefore:

| the ids in the logs | then |
|---|---|
| are from another cluster, or from lost metadata: the directories are adopted | ids begin at `FIRST_ADOPTED` |
| are newer than the metadata (an older copy), or from logs that were copied here | a start skips them |
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
"""The first producer id in adopted directories. Kafka counts from 0 and does not reach it, so the directories can go
back to Kafka: it will not allocate an id that was allocated here."""

_LAST = 0x7FFF_FFFF_FFFF_FFFF


class ProducerIdBlocks:
    """The producer ids of this broker. The rest of a block is never used after the broker stops."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._next = 0
        self._end = 0
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        """Allocate a producer id. Raises `KafkaError` KAFKA_STORAGE_ERROR."""
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
    """Allocate no id below `producer_id` from now on; return the id that would have been the next.

    Raises `KafkaError` KAFKA_STORAGE_ERROR.
    """
    while True:
        kv = await metadata.read(metadata.keys.next_producer_id)
        first = _next(kv)
        if first >= producer_id or await _write(metadata, kv, producer_id):
            return first


async def skip_known_ids(metadata: Metadata, highest: int) -> None:
    """Allocate no id up to `highest`, which is in a log, and none of its possible block, from now on.

    The rest of the block may belong to producers that have not written yet. Raises `KafkaError` KAFKA_STORAGE_ERROR.
    """
    first = _next(await metadata.read(metadata.keys.next_producer_id))
    if first <= highest:
        await skip_to(metadata, highest + BLOCK_SIZE)
        _LOG.warning("producer ids in the logs are newer than the metadata", highest=highest, next=highest + BLOCK_SIZE)


def _next(kv: KV | None) -> int:
    return decode_producer_ids(kv.value).next if kv is not None else 0


async def _write(metadata: Metadata, before: KV | None, first: int) -> bool:
    """Store `first` as the next id; return False if another broker has changed it."""
    key = metadata.keys.next_producer_id
    put = Put(
        key, encode(ProducerIds(first, metadata.config.node_id, metadata.broker_epoch), before.value if before else b"")
    )
    result = await metadata.commit((still(key, before.mod_revision if before else 0),), (put,))
    return result.ok
