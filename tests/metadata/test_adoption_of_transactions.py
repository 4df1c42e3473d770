"""The first start on log directories of another broker: its transactions, and the offsets that belong to them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.protocol.errors import ErrorCode
from tests.handlers.committing_producer import CommittingProducer
from tests.handlers.group_members import find_coordinator
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.handlers.write_markers import write_marker
from tests.storage.test_golden import HERE
from tests.wire import Wire

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def forget_metadata(path: Path) -> None:
    for file in path.glob(f"{FILE_NAME}*"):
        file.unlink()


def properties(path: Path) -> dict[str, str]:
    return {
        "log.dirs": str(path),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "3",
        "log.retention.ms": "-1",
    }


async def leave_an_open_transaction(path: Path) -> CommittingProducer:
    """A directory without metadata in which the topic `t` and the group have something of an open transaction."""
    async with Broker(properties(path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 2)
        producer = CommittingProducer(wire, "g")
        await find_coordinator(wire, "g")
        await producer.init()
        assert await producer.commit_one(5) == ErrorCode.NONE
    forget_metadata(path)
    return producer


@asynccontextmanager
async def adopted(path: Path, producer: CommittingProducer) -> AsyncIterator[Broker]:
    """A broker on the directory, which the producer uses."""
    async with Broker(properties(path)) as broker, Wire("127.0.0.1", broker.port) as producer.wire:
        await find_coordinator(producer.wire, "g")
        yield broker


async def test_transactional_ids_of_kafka_go_on(tmp_path: Path) -> None:
    """The directory has one of the 50 partitions of their topic."""
    path = Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))
    async with Broker({"log.dirs": str(path), "log.retention.ms": "-1"}) as broker:
        assert len(broker.services.metadata.image.topics[STATE].partitions) == 50
        async with Wire("127.0.0.1", broker.port) as wire:
            producer = TransactionalProducer(wire, "tx-golden")
            await producer.find_coordinator()
            state = await producer.describe()
            assert (state.transaction_state, state.producer_id, state.producer_epoch) == ("CompleteCommit", 1, 0)

            await producer.start()

            assert (producer.producer_id, producer.epoch) == (1, 1)


@pytest.mark.parametrize(("committed", "offset"), [(True, 5), (False, -1)])
async def test_an_open_transaction_and_its_offsets_are_adopted(tmp_path: Path, committed: bool, offset: int) -> None:
    producer = await leave_an_open_transaction(tmp_path)
    async with adopted(tmp_path, producer):
        assert await producer.read() == UNSTABLE

        await producer.end(5, committed=committed)

        assert await producer.read_stable() == offset


@pytest.mark.parametrize(("damaged", "other"), [(STATE, OFFSETS), (OFFSETS, STATE)])
async def test_offsets_and_transactions_are_adopted_together_or_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: str, other: str
) -> None:
    await leave_an_open_transaction(tmp_path)
    shutil.copytree(tmp_path / f"{damaged}-0", tmp_path / f"{damaged}-9")
    metadata = tmp_path / f"{damaged}-9" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: 2eUHgRqfStWy-DpSiN8B4w\n")

    async with Broker(properties(tmp_path)) as broker:
        assert set(broker.services.metadata.image.topics) == {"t"}
        assert broker.log_dir.logs[other, 0].log_end_offset >= 0, "the records stay"

    said = [message for message in caplog.messages if "not adopted" in message]
    assert any(damaged in message and "ids of several" in message for message in said)
    assert any(other in message and "because the other topic" in message for message in said)


async def test_open_transactions_without_a_coordinator_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    producer = await leave_an_open_transaction(tmp_path)
    for index in range(3):
        shutil.rmtree(tmp_path / f"{STATE}-{index}")

    async with adopted(tmp_path, producer):
        assert await producer.read() == UNSTABLE
        [line] = [message for message in caplog.messages if "open transactions have no coordinator" in message]
        assert f"{OFFSETS}-0" in line

        await write_marker(producer.wire, OFFSETS, producer.producer_id, producer.epoch)

        assert await producer.read() == 5


async def test_a_directory_without_transactions_is_adopted_silently(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await find_coordinator(wire, "g")
    forget_metadata(tmp_path)

    async with Broker(properties(tmp_path)) as broker:
        assert set(broker.services.metadata.image.topics) == {OFFSETS}
    assert not any("transactions" in message for message in caplog.messages)
