from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.clock import ManualClock
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import NOW, batch, create, produce
from tests.wire import Wire


class Lagging:
    """A broker with a topic of two records, written 30 s ago, and a group; the lag is refreshed only by `seconds`."""

    def __init__(self, broker: Broker, member: GroupMember, clock: ManualClock) -> None:
        self.lag = broker.group_lag
        self.member = member
        self.clock = clock

    async def commit(self, offset: int) -> None:
        await self.member.commit("t", offset)

    async def seconds(self) -> float | None:
        await self.lag.refresh()
        return self.lag.seconds("g", "t", 0)


@pytest.fixture
async def lagging() -> AsyncIterator[Lagging]:
    clock = ManualClock(NOW)
    async with Broker(clock=clock) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        for _ in range(2):
            await produce(wire, "t", batch(b"a"))
        await find_coordinator(wire, "g")
        clock.advance(30_000)
        yield Lagging(broker, GroupMember(wire, "g"), clock)


async def test_the_lag_is_the_age_of_what_the_group_reads_next(lagging: Lagging) -> None:
    await lagging.commit(1)
    assert await lagging.seconds() == 30
    lagging.clock.advance(2_000)
    assert lagging.lag.seconds("g", "t", 0) == 32
    assert await lagging.seconds() == 32


async def test_there_is_no_lag_after_everything_was_read(lagging: Lagging) -> None:
    await lagging.commit(1)
    assert await lagging.seconds() == 30
    await lagging.commit(2)
    assert await lagging.seconds() is None


async def test_deleted_records_do_not_count_as_lag(lagging: Lagging) -> None:
    await lagging.commit(-5)
    assert await lagging.seconds() == 30
