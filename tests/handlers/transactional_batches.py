"""A transactional producer that also produces; its batches need a verification."""

from __future__ import annotations

from itertools import count
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import batch
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire

_NAMES = count()


class ProducingProducer(TransactionalProducer):
    """`is_new`: the producer speaks version 2 of the protocol of transactions (KIP-890)."""

    def __init__(self, wire: Wire, *, is_new: bool = True) -> None:
        super().__init__(wire, f"producing-{next(_NAMES)}")
        self.is_new = is_new

    async def add_partition(self, topic: str, index: int) -> None:
        """Add a partition, after CONCURRENT_TRANSACTIONS of the last transaction."""
        while (code := (await self.add({topic: [index]}))[topic, index]) is not ErrorCode.NONE:
            assert code is ErrorCode.CONCURRENT_TRANSACTIONS

    def request(self, *batches: tuple[str, int, bytes], acks: int = -1) -> ProduceRequest:
        """A request with these batches, of topic, partition and records."""
        return ProduceRequest(
            self.transactional_id,
            acks,
            30_000,
            [TopicProduceData(topic, partition_data=[PartitionProduceData(i, data)]) for topic, i, data in batches],
        )

    def batch(self, *values: bytes, sequence: int = 0, **fields: Any) -> bytes:
        made = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "is_transactional": True, **fields}
        return batch(*values, base_sequence=sequence, **made)

    async def produce(
        self, topic: str, *values: bytes, index: int = 0, sequence: int = 0, version: int | None = None, **fields: Any
    ) -> Any:
        """Produce one batch and return its row; the version is that of the producer, if none is given."""
        request = self.request((topic, index, self.batch(*values, sequence=sequence, **fields)))
        version = (12 if self.is_new else 9) if version is None else version
        [[row]] = [answered.partition_responses for answered in (await self.wire.ask(request, version)).responses]
        return row

    async def finish(self, *, commit: bool) -> None:
        """End the transaction, in the version of the producer."""
        assert await self.end(commit=commit, version=5 if self.is_new else 3) is ErrorCode.NONE
