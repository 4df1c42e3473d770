"""Functions for `Broker.script` that several test modules use, and batches for logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.client.scripted_broker import DROP, Broker


def now() -> float:
    """The virtual time in seconds."""
    return asyncio.get_running_loop().time()


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def drop_unread(broker: Broker, request: Any) -> object:
    """Lose the request."""
    return DROP


async def serve_and_drop(broker: Broker, request: Any) -> object:
    """Lose the response."""
    await broker.serve(request)
    return DROP


def refuse(code: ErrorCode) -> Any:
    """Return this error for every partition of a Produce, without an append."""

    async def answer(broker: Broker, request: ProduceRequest) -> Any:
        broker.network.logs, logs = {}, broker.network.logs
        answer = await broker.serve(request)
        broker.network.logs = logs
        assert isinstance(answer, ProduceResponse)
        for topic in answer.responses:
            for row in topic.partition_responses:
                row.error_code = code
        return answer

    return answer


class Gate:
    """Holds a request until the gate is opened; then the broker serves it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def __call__(self, broker: Broker, request: Any) -> Any:
        self.reached.set()
        await self._opened.wait()
        return await broker.serve(request)

    def open(self) -> None:
        self._opened.set()


def batch(
    values: Sequence[bytes | None],
    base_offset: int = 0,
    *,
    timestamp: int = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    is_transactional: bool = False,
    leader_epoch: int = 0,
) -> bytearray:
    """Build a batch; timestamps increase by one from record to record."""
    builder = BatchBuilder(codec, producer_id=producer_id, producer_epoch=0, is_transactional=is_transactional)
    for index, value in enumerate(values):
        builder.append(timestamp + index, None, value)
    return builder.build(base_offset, leader_epoch)
