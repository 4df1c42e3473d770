from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.handlers.requests import create
from tests.wire import Wire


async def move(wire: Wire, path: str, topic: str = "t", index: int = 0, version: int = 2) -> int:
    wanted = AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])
    [result] = (await wire.ask(AlterReplicaLogDirsRequest([wanted]), version)).results
    [row] = result.partitions
    assert (result.topic_name, row.partition_index) == (topic, index)
    code: int = row.error_code
    return code


@pytest.mark.parametrize("version", [1, 2])
async def test_a_log_stays_where_it_is(broker: Broker, wire: Wire, version: int) -> None:
    await create(wire, "t")

    assert await move(wire, str(broker.log_dir.path), version=version) == ErrorCode.NONE


async def test_invalid_moves_are_refused(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    ours = str(broker.log_dir.path)

    assert await move(wire, "/elsewhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert await move(wire, ours, index=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await move(wire, ours, "missing") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.log_dir.failure.fail("testing", OSError(5, "Input/output error"))
    assert await move(wire, ours) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.usefixtures("only_here")  # it starts its own broker
async def test_logs_are_not_moved_between_directories(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two")]
    async with Broker({"log.dirs": ",".join(directories)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        codes = [await move(wire, path) for path in directories]

        assert sorted(codes) == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
