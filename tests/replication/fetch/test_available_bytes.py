"""The running sum of a parked fetch, compared with what reads of all its partitions return."""

from __future__ import annotations

import random
from typing import Self

import pytest

from odradek.broker.broker import Broker
from odradek.broker.replication.fetch.available_bytes import AvailableBytes
from odradek.broker.replication.partition import Partition
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.messages.fetch import FetchPartition
from tests.effort import cases
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

PARTITIONS = 5
LIMIT = 400


def read_all(wanted: dict[Partition, FetchPartition]) -> dict[Partition, int]:
    sizes = {}
    for partition, request in wanted.items():
        found = partition.read_for_fetch(request.fetch_offset, 1 << 20, True, False)
        sizes[partition] = min(len(found.records), request.partition_max_bytes)
        if isinstance(found.records, LogSlice):
            found.records.release()
    return sizes


@pytest.mark.parametrize("seed", range(cases(10)))
async def test_the_sum_is_what_reads_of_all_partitions_return(broker: Broker, wire: Wire, seed: int) -> None:
    chosen = random.Random(seed)
    await create(wire, "t", PARTITIONS)
    partitions = [broker.services.partitions.get("t", index) for index in range(PARTITIONS)]
    for index in chosen.choices(range(PARTITIONS), k=8):
        await produce(wire, "t", batch(b"before"), partition=index)
    wanted = {
        each: FetchPartition(each.index, fetch_offset=chosen.randint(0, each.log.log_end_offset),
                             partition_max_bytes=LIMIT)
        for each in partitions
    }  # fmt: skip
    available = AvailableBytes(read_all(wanted))

    for index in chosen.choices(range(PARTITIONS), k=40):
        await produce(wire, "t", batch(b"x" * chosen.randrange(50)), partition=index)
        partition = partitions[index]
        assert not available.count(partition, wanted[partition], partition.high_watermark)
        assert available.total == sum(read_all(wanted).values())


class Added(int):
    """A number that counts how often it was added to another."""

    times = 0

    def __radd__(self, other: int) -> Self:
        type(self).times += 1
        return type(self)(int(other) + int(self))


async def test_an_append_counts_its_own_partition_and_no_other(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", PARTITIONS)
    wanted = {
        broker.services.partitions.get("t", index): FetchPartition(index, partition_max_bytes=LIMIT)
        for index in range(PARTITIONS)
    }
    available = AvailableBytes(dict.fromkeys(wanted, Added(0)))
    counted = Added.times
    records = batch(b"x")
    await produce(wire, "t", records)
    partition = next(iter(wanted))

    assert not available.count(partition, wanted[partition], 1)

    assert available.total == len(records)
    assert Added.times <= counted + 1


async def test_an_offset_outside_the_log_ends_the_wait(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    partition = broker.services.partitions.get("t", 0)

    assert AvailableBytes({}).count(partition, FetchPartition(0, fetch_offset=1), 0)


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
async def test_a_limit_below_zero_counts_as_zero(broker: Broker, wire: Wire, limit: int) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"x"))
    partition, available = broker.services.partitions.get("t", 0), AvailableBytes({})

    assert not available.count(partition, FetchPartition(0, partition_max_bytes=limit), 1)

    assert available.total == 0
