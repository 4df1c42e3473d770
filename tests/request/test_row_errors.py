"""A defect of the broker in one partition fails only its row of Produce or Fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.disk.files import BytesLike, OsFiles
from odradek.broker.storage.index.transaction_index import AbortedTransaction, TransactionIndex
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.handlers.requests import batch, create, fetch, produce, values_in
from tests.wire import Wire

DEFECT = ZeroDivisionError
LARGE = LARGE_APPEND_BYTES  # bytes: it is appended on a thread


@pytest.mark.parametrize("value_bytes", [1, LARGE])
async def test_produce(broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch, value_bytes: int) -> None:
    await create(wire, "t", 3)
    write = OsFiles.pwrite

    def pwrite(files: OsFiles, descriptor: int, written: BytesLike, position: int) -> None:
        if "/t-1/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise DEFECT
        write(files, descriptor, written, position)

    monkeypatch.setattr(OsFiles, "pwrite", pwrite)
    data = [PartitionProduceData(index, batch(bytes(value_bytes))) for index in range(3)]

    [topic] = (
        await wire.ask(ProduceRequest(acks=1, topic_data=[TopicProduceData("t", partition_data=data)]), 9)
    ).responses

    codes = [row.error_code for row in topic.partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert broker.services.metrics.unexpected_errors == 1
    assert values_in(await fetch(wire, "t", partition=2)) == [bytes(value_bytes)]


async def test_fetch(broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    await create(wire, "t", 3)
    for index in range(3):
        await produce(wire, "t", batch(b"a"), partition=index)

    def end_offset_for(*_: object) -> None:
        raise DEFECT

    monkeypatch.setattr(LeaderEpochs, "end_offset_for", end_offset_for)
    wanted = [
        FetchPartition(index, partition_max_bytes=1 << 20, last_fetched_epoch=9 if index == 1 else -1)
        for index in range(3)
    ]

    # Without the error it would wait for more bytes until the timeout.
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1 << 20, topics=[FetchTopic("t", partitions=wanted)])
    [topic] = (await wire.ask(request, 12)).responses

    assert [row.error_code for row in topic.partitions] == [0, ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert [values_in(row) for row in topic.partitions[::2]] == [[b"a"], [b"a"]]
    assert broker.services.metrics.unexpected_errors == 1


async def test_records_are_released_if_the_look_up_of_aborted_transactions_fails(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    segment = broker.services.partitions.get("t", 0).log.active_segment
    segment.transaction_index.append(AbortedTransaction(1, 0, 0, 0))

    def overlapping(*_: object) -> None:
        raise DEFECT

    monkeypatch.setattr(TransactionIndex, "overlapping", overlapping)

    row = await fetch(wire, "t", isolation_level=1)

    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    pinned = segment.log.descriptors.pin(segment.log.path)
    assert pinned.pins == 1, "nobody else"
    segment.log.descriptors.unpin(pinned)
