"""Hands out what the fetcher has brought: the partitions take turns, and what a group needs is done in between.

```
look: tend the group --> records there? --yes--> hand out from `SubscriptionState.current` until its fetch is used up
  ^                          | no
  +---- the fetcher brings something, or has an error, or was interrupted ----+ wait
```
A partition has its turn for as long as one fetch lasts; then the fetcher is told that there is room, and the one that
waited longest is next. What cannot be read raises when nothing that can be comes before it. Between two looks no record
is in the user's hands, which is when partitions may come and go.
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

    async def take(self, limit: int, timeout_ms: float | None) -> list[ConsumerRecord]:
        """Up to `limit` records, as soon as there is one; [] after `timeout_ms`. Raises what `Consumer.poll` does."""
        arrived = self._fetcher.arrived
        deadline = None if timeout_ms is None else asyncio.get_running_loop().time() + timeout_ms / 1000
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._poll_group()
                    arrived.clear()
                    if records := self.buffered(limit):
                        return records
                    self._raise_error()
                    await arrived.wait()
            except TimeoutError:
                return []

    def buffered(self, limit: int) -> list[ConsumerRecord]:
        """What is there, up to `limit` records, without a look. Raises ClientError for what cannot be read."""
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
                    break  # it is fetched again, and raises then
                raise
            records += taken
            if not state.buffered or len(taken) < limit - len(records):
                self._fetcher.buffer_consumed(state)
        return records

    async def next_record(self) -> ConsumerRecord:
        """The first record of another fetch, when it comes. Raises what `Consumer.poll` does."""
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
        """Look again before the next record is handed out."""
        self._subscription.current = None
        self._fetcher.arrived.set()

    def _raise_error(self) -> None:
        for state in self._subscription.states.values():
            if (error := state.error) is not None:
                state.error = None
                self._fetcher.wakeup()
                raise error
