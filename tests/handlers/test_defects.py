"""A partition that runs into a defect of the broker fails its own row of Produce and Fetch, and no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.broker import Broker
from broker.replication.partition import Partition
from broker.storage.log import Log
from broker.storage.log_slice import LogSlice
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire


def fail_for_partition_1(monkeypatch: pytest.MonkeyPatch, name: str, *, later: bool = False) -> None:
    """Let a method of Partition meet a defect, at once or in the future that it returns."""
    real = getattr(Partition, name)

    def method(self: Partition, *args: Any) -> Any:
        if self.index != 1:
            return real(self, *args)
        if not later:
            raise ZeroDivisionError
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ZeroDivisionError())
        return future

    monkeypatch.setattr(Partition, name, method)


@pytest.mark.parametrize("later", [False, True])
async def test_produce(broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch, later: bool) -> None:
    await create(wire, "t", 3)
    fail_for_partition_1(monkeypatch, "append_as_leader", later=later)
    data = [PartitionProduceData(index, batch(b"a")) for index in range(3)]

    [topic] = (
        await wire.ask(ProduceRequest(acks=1, topic_data=[TopicProduceData("t", partition_data=data)]), 9)
    ).responses

    codes = [row.error_code for row in topic.partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert broker.services.metrics.unexpected_errors == 1
    assert values_in(await fetch(wire, "t", partition=2)) == [b"a"]


async def test_fetch(broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(wire, "t", 3)
    for index in range(3):
        await produce(wire, "t", batch(b"a"), partition=index)
    fail_for_partition_1(monkeypatch, "read_for_fetch")
    wanted = [FetchPartition(index, partition_max_bytes=1 << 20) for index in range(3)]

    # It would wait for ever for more bytes, were an error not told at once.
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1 << 20, topics=[FetchTopic("t", partitions=wanted)])
    [topic] = (await wire.ask(request, 12)).responses

    assert [row.error_code for row in topic.partitions] == [0, ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert [values_in(row) for row in topic.partitions[::2]] == [[b"a"], [b"a"]]
    assert broker.services.metrics.unexpected_errors == 1


async def test_records_whose_aborted_transactions_cannot_be_looked_up_are_let_go_of(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    released: list[LogSlice] = []
    real = LogSlice.release

    def release(self: LogSlice) -> None:
        released.append(self)
        real(self)

    def aborted_transactions(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LogSlice, "release", release)
    monkeypatch.setattr(Log, "aborted_transactions", aborted_transactions)

    row = await fetch(wire, "t", isolation_level=1)

    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(released) == 1
