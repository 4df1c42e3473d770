"""Returns the fetched records to the user, partition by partition; between them the group is polled.

```
poll the group --> records there? --yes--> return records of `SubscriptionState.current` until its fetch is used up
  ^                    | no
  +---- wait until the fetcher has records or an error, or `interrupt` is called
```
One partition's fetch is returned as a whole; then the fetcher may refill its buffer, and the partition that has waited
longest is next. An error is raised when no record precedes it. The user holds no record while the group is polled, so
partitions may be assigned and revoked then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from odradek.client.consumer.fetcher import Fetcher
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import ClientError
from odradek.client.record import ConsumerRecord


class FetchCollector:
    """Returns the fetched records of one consumer; `poll_group` is awaited before each search for records."""

    def __init__(
        self, subscription: SubscriptionState, fetcher: Fetcher, poll_group: Callable[[], Awaitable[None]]
    ) -> None:
        self._subscription = subscription
        self._fetcher = fetcher
        self._poll_group = poll_group

    async def collect(self, limit: int, timeout_ms: float | None) -> list[ConsumerRecord]:
        """Return up to `limit` records as soon as there are any; [] after `timeout_ms`. Raises as `Consumer.poll`."""
        arrived = self._fetcher.arrived
        deadline = None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            waiting = asyncio.timeout_at(deadline)
            try:
                async with waiting:
                    await self._poll_group()
                    arrived.clear()
                    if records := self.collect_buffered(limit):
                        return records
                    self._raise_error()
                    await arrived.wait()
            except TimeoutError:
                if not waiting.expired():
                    raise  # that of a request, or of the user's listener
                return []

    def collect_buffered(self, limit: int) -> list[ConsumerRecord]:
        """Return up to `limit` buffered records, without a poll of the group. Raises CorruptRecordsError."""
        subscription = self._subscription
        records: list[ConsumerRecord] = []
        while len(records) < limit:
            state = subscription.current
            if state is None or not state.buffered:
                state = subscription.current = subscription.next_with_records()
            if state is None:
                break
            try:
                taken = state.take(limit - len(records))
            except ClientError:
                if records:
                    break  # the batch is fetched again, and raises then
                raise
            records += taken
            if not state.buffered or len(taken) < limit - len(records):
                self._fetcher.buffer_consumed(state)
        return records

    async def next_record(self) -> ConsumerRecord:
        """Wait for the first record of the next fetch. Raises as `Consumer.poll`."""
        subscription = self._subscription
        arrived = self._fetcher.arrived
        while True:
            if subscription.current is not None:
                self._fetcher.buffer_consumed(subscription.current)
            await self._poll_group()
            arrived.clear()
            state = subscription.current = subscription.next_with_records()
            if state is None:
                self._raise_error()
                await arrived.wait()
            elif (record := state.next_record()) is not None:
                return record

    def interrupt(self) -> None:
        """Poll the group again before the next record is returned."""
        self._subscription.current = None
        self._fetcher.arrived.set()

    def _raise_error(self) -> None:
        for state in self._subscription.states.values():
            if (error := state.error) is not None:
                state.error = None
                self._fetcher.wakeup()
                raise error
