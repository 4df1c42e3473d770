from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire


async def describe(
    wire: Wire, topics: list[DescribableLogDirTopic] | None = None, version: int = 5
) -> DescribeLogDirsResult:
    response = await wire.ask(DescribeLogDirsRequest(topics), version)
    assert isinstance(response, DescribeLogDirsResponse)
    assert response.error_code == ErrorCode.NONE
    [result] = response.results
    return result


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
async def test_the_size_of_every_log(wire: Wire, version: int) -> None:
    await create(wire, "t", 2)
    records = batch(b"a", b"b")
    await produce(wire, "t", records, 1)

    result = await describe(wire, version=version)

    assert result.error_code == ErrorCode.NONE
    assert result.log_dir.startswith("/")
    assert {key: size for key, size in sizes(result).items() if key[0] == "t"} == {("t", 0): 0, ("t", 1): len(records)}
    assert (0 < result.usable_bytes <= result.total_bytes) is (version >= 4)
    assert not result.is_cordoned
    for topic in result.topics:
        assert all((row.offset_lag, row.is_future_key) == (0, False) for row in topic.partitions)


async def test_partitions_can_be_selected(wire: Wire) -> None:
    await create(wire, "t", 2)
    await create(wire, "u", 1)
    wanted = [DescribableLogDirTopic("t", [1, 1, 7, -1]), DescribableLogDirTopic("missing", [0])]

    assert sizes(await describe(wire, wanted)) == {("t", 1): 0}
    assert sizes(await describe(wire, [])) == {}


async def test_a_failed_directory_is_an_error(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    broker.log_dir.failure.fail("testing", OSError(5, "Input/output error"))

    result = await describe(wire)

    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
    assert result.log_dir == str(broker.log_dir.path)


async def test_a_log_without_a_topic_has_no_lag(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    log = broker.log_dir.logs["t", 0]
    broker.log_dir.logs["stray", 3] = log

    result = await describe(wire)

    [stray] = [topic for topic in result.topics if topic.name == "stray"]
    assert [(row.partition_index, row.offset_lag) for row in stray.partitions] == [(3, -1)]
    del broker.log_dir.logs["stray", 3]


@pytest.mark.usefixtures("only_here")  # it starts its own broker
async def test_each_of_several_directories_has_its_own_logs(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two")]
    async with Broker({"log.dirs": ",".join(directories)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 4)

        results = (await wire.ask(DescribeLogDirsRequest(None), 5)).results

        assert [result.log_dir for result in results] == directories
        found = [sizes(result).keys() for result in results]
        assert [len(keys) for keys in found] == [2, 2]
        assert found[0] | found[1] == {("t", index) for index in range(4)}
