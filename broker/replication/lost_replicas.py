"""The losses of a broker's logs, reported to the cluster so that other replicas lead.

```
log directory fails, or a log is missing ─► losses.on_loss ─────► report_losses ─► its id leaves the registration
this broker registers (again)            ─► report_losses, before it registers as running
```

If the metadata store cannot be reached for `log.dir.failure.timeout.ms` after a failure, the broker stops: until then
it leads partitions that it cannot serve.
"""

from __future__ import annotations

import asyncio
from typing import Final

from odradek.broker.metadata.leaders.lost_replicas import report_losses
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import StoreError
from odradek.broker.replication.partitions import Partitions
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS: Final = 0.5


class LostReplicas:
    """Reports what `partitions` have lost; begins when it is made."""

    def __init__(self, metadata: Metadata, partitions: Partitions, tasks: BackgroundTasks) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._limit = metadata.config.log_dir_failure_timeout_ms / 1000
        self._changed = asyncio.Event()
        partitions.losses.are_reported = True
        partitions.losses.on_loss = self._changed.set
        metadata.before_serving.append(self._report_at_registration)
        tasks.start("lost replicas", self._run())

    async def _report_at_registration(self) -> None:
        await self._partitions.settled()  # now it is known which logs are missing
        await self._report()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                async with asyncio.timeout(self._limit):
                    await self._report()
            except TimeoutError:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"lost logs could not be reported to the metadata store for {self._limit} s",
                ) from None

    async def _report(self) -> None:
        while True:
            try:
                await report_losses(self._metadata, self._partitions.losses.all(self._partitions))
                if self._metadata.membership is not None:
                    await self._metadata.membership.set_log_dirs(self._online())
            except (KafkaError, StoreError) as error:
                _LOG.warning("lost logs not reported yet", reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    def _online(self) -> tuple[str, ...]:
        return tuple(each.meta.directory_id for each in self._partitions.log_dirs if each.failure.error is None)
