"""A broker with a runtime of counters beside its own coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from odradek.broker.broker import Broker
from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch
from odradek.broker.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.broker.purgatory import DelayedOperation
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.replication.partition import Partition
from odradek.broker.replication.transaction_markers import TransactionMarker
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.counters import TOPIC, Add, Counters

LARGE = b"x" * LARGE_APPEND_BYTES
TOO_LARGE = b"x" * 400_000
PRODUCER = ProducerIdAndEpoch(7, 0)

Start = Callable[[], AbstractAsyncContextManager["Place"]]


class Place:
    """A broker with a runtime of counters."""

    def __init__(self, broker: Broker) -> None:
        services = broker.services
        self.broker = broker
        self.tasks = BackgroundTasks(lambda what, error: None)
        self.runtime = CoordinatorRuntime(
            TOPIC,
            Counters,
            key_name="counter",
            node_id=broker.config.node_id,
            clock=services.clock,
            metadata=services.metadata,
            partitions=services.partitions,
            threads=services.partitions.threads,
            tasks=self.tasks,
            purgatory=cast("Any", services.produce_purgatory),
        )
        services.metadata.on_change(self.runtime.image_changed)

    @property
    def partition(self) -> Partition:
        return self.broker.services.partitions.get(TOPIC.name, 0)

    @property
    def counters(self) -> Counters:
        return self.runtime.shard_of("any")

    def submit(self, key: str, amount: int, padding: bytes = b"", **effects: Any) -> Any:
        return self.runtime.submit(key, Add(PendingReply(), amount, padding, effects))

    async def add(self, key: str, amount: int, padding: bytes = b"", **effects: Any) -> int:
        """Return the sum. Raises KafkaError."""
        answer = self.submit(key, amount, padding, **effects)
        reply = await answer if isinstance(answer, asyncio.Future) else answer
        return cast("int", reply.count)

    async def error(self, key: str = "a", amount: int = 1, padding: bytes = b"") -> ErrorCode:
        """Return the code of the error, or NONE."""
        try:
            await self.add(key, amount, padding)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    async def until(self, code: ErrorCode, *, instead_of: set[ErrorCode]) -> None:
        """Read the counter until that has this outcome."""
        while (found := await self.error(amount=0)) is not code:
            assert found in instead_of
            await asyncio.sleep(0)


class AddOnAppend(DelayedOperation[None]):
    """Adds 2 to `b` when an append is in the log, before the callback of that append has run."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.reply: Any = None

    def is_ready(self, key: Hashable) -> bool:
        if self.reply is None:
            self.reply = ...  # the append below comes here, too
            self.reply = self._place.submit("b", 2)
        return False

    def answer(self) -> None:
        """Do nothing: no client waits for the answer."""


class MarkerOnAppend(AddOnAppend):
    """Ends the transaction when its append is in the log, before the callback of that append has run."""

    shown: Any = None

    def is_ready(self, key: Hashable) -> bool:
        if self.shown is None:
            self.shown = ...
            self.shown = self._place.runtime.write_marker(0, marker())
            assert not self.shown.done()
        return False


def marker(*, epoch: int = 0, committed: bool = True) -> TransactionMarker:
    return TransactionMarker(PRODUCER.producer_id, epoch, committed, coordinator_epoch=0, transaction_version=1)
