"""Producer ids: unique in the cluster, handed out from blocks of 1,000 that a broker takes from the store (KIP-730)."""

from __future__ import annotations

import asyncio

from broker.metadata.metadata import Metadata
from broker.metadata.store import Put, still
from broker.metadata.values import ProducerIds, decode_producer_ids, encode
from protocol.errors import ErrorCode, KafkaError

BLOCK_SIZE = 1000
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
        key = metadata.keys.next_producer_id
        while True:
            kv = await metadata.read(key)
            first = decode_producer_ids(kv.value).next if kv is not None else 0
            if first > _LAST - BLOCK_SIZE:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids are used up")
            taken = ProducerIds(first + BLOCK_SIZE, metadata.config.node_id, metadata.broker_epoch)
            put = Put(key, encode(taken, kv.value if kv is not None else b""))
            result = await metadata.commit((still(key, kv.mod_revision if kv is not None else 0),), (put,))
            if result.ok:
                return first
