"""Growing from one worker to several, and back: nothing is lost, recovered, or without a leader."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.broker.inspection.verification import Verification
from odradek.broker.storage.names import WORKERS_PLAN
from odradek.protocol.errors import ErrorCode
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import batch, create, produce
from tests.handlers.test_delete_records import deleted, offset_at
from tests.handlers.test_transactional_produce import committed_values
from tests.handlers.transactional_batches import ProducingProducer
from tests.workers.hosts import GROUP, TRANSACTION, Host, Running

EARLIEST = -2
GROUP_ID = "group"
DATA = {"one": 1, "seven": 7, "worker": 1, "worker.1": 1, "ten": 10, "compacted": 2}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "a", tmp_path / "b")


async def _fill(running: Running) -> ProducingProducer:
    """Create topics, records, committed offsets and a transaction, which is open."""
    async with running.wire(1) as wire:
        for topic, partitions in DATA.items():
            await create(wire, topic, partitions, **({"cleanup_policy": "compact"} if topic == "compacted" else {}))
            for index in range(partitions):
                for number in range(3):
                    assert not (await produce(wire, topic, batch(b"%d" % number), index)).error_code
        assert await deleted(wire, "one", 2) == 2
        await find_coordinator(wire, GROUP_ID)
        assert await GroupMember(wire, GROUP_ID).commit("one", 3) is ErrorCode.NONE
        producer = ProducingProducer(wire)
        await producer.start()
        assert (await producer.produce("seven", b"open", index=3)).error_code == ErrorCode.NONE
    broker = running.brokers[1]
    for (topic, _), log in broker.log_dirs.logs.items():
        if topic == "compacted":
            log.cleaned_offset = 2
    for directory in broker.log_dirs.directories:
        directory.checkpoint_cleaned_offsets()
    return producer


async def _check(running: Running) -> None:
    """Check every record and committed offset, and that each worker serves what it leads."""
    for topic, partitions in DATA.items():
        for index in range(partitions):
            found = await running.values(topic, index, 2 if topic == "one" else 0)
            expected = [b"2"] if topic == "one" else [b"0", b"1", b"2"]
            assert found[: len(expected)] == expected, f"{topic}-{index}"
            partition = running.partition(topic, index)
            assert [partition.leader] == partition.replicas == list(partition.isr)
    async with running.leader("one") as wire:
        assert await offset_at(wire, "one", EARLIEST) == 2
    async with await running.coordinator(GROUP_ID, GROUP) as wire:
        assert await GroupMember(wire, GROUP_ID).committed("one") == 3
    async with running.leader("seven", 3) as wire:
        assert await committed_values(wire, "seven", 3) == [b"0", b"1", b"2"]
    cleaned = [
        log.cleaned_offset
        for broker in running.brokers.values()
        for (topic, _), log in broker.log_dirs.logs.items()
        if topic == "compacted"
    ]
    assert cleaned == [2, 2]


def _epochs(running: Running) -> dict[tuple[str, int], int]:
    topics = running.image.topics.values()
    return {
        (topic.name, index): partition.leader_epoch
        for topic in topics
        for index, partition in enumerate(topic.partitions)
    }


def _problems(host: Host) -> list[str]:
    found: list[str] = []
    for directory in host.log_dirs:
        for place in (directory, *directory.glob("worker.?")):
            Verification(str(place), lambda problem: found.append(str(problem)), lambda done, total: None).run()
    return found


async def test_from_one_to_three_two_and_one_workers(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    async with host.running(1) as running:
        producer = await _fill(running)
        epochs = _epochs(running)
    caplog.clear()
    for count in (3, 2, 1):
        outcome = await host.spread(count)
        assert outcome.moved
        assert outcome.remaining == []
        assert not (host.log_dirs[0] / WORKERS_PLAN).exists()
        assert _problems(host) == []
        for worker in range(4):
            directories = host.partitions(worker)
            assert bool(directories) == (worker < count)
            assert {f"seven-{index}" for index in range(worker, 7, count)} == {
                name for name in directories if name.startswith("seven-")
            } or worker >= count
        assert not list(host.log_dirs[0].glob(f"worker.[{count}-9]")), "Apache Kafka would refuse it"

        async with host.running(count) as running:
            await _check(running)
            now = _epochs(running)
            assert all(now[partition] >= epoch for partition, epoch in epochs.items())
            epochs = now
            assert not list(host.log_dirs[0].parent.rglob("*-stray"))
            assert not list(host.log_dirs[0].parent.rglob("*-delete"))
        assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []
    async with host.running(1) as running:
        async with await running.coordinator(producer.transactional_id, TRANSACTION) as wire:
            producer.wire = wire
            await producer.finish(commit=True)
        async with running.leader("seven", 3) as wire:
            assert await committed_values(wire, "seven", 3) == [b"0", b"1", b"2", b"open", None]


async def test_an_open_transaction_ends_at_its_new_coordinator(host: Host) -> None:
    async with host.running(1) as running:
        producer = await _fill(running)
    await host.spread(3)
    async with host.running(3) as running:
        async with await running.coordinator(producer.transactional_id, TRANSACTION) as wire:
            producer.wire = wire
            await producer.finish(commit=True)
            while (await producer.describe()).transaction_state != "CompleteCommit":
                pass
        async with running.leader("seven", 3) as wire:
            assert await committed_values(wire, "seven", 3) == [b"0", b"1", b"2", b"open", None]


async def test_a_second_time_nothing_moves(host: Host) -> None:
    async with host.running(1) as running:
        await _fill(running)
    assert (await host.spread(3)).moved
    before = [host.partitions(worker) for worker in range(3)]

    assert (await host.spread(3)).moved == 0

    assert [host.partitions(worker) for worker in range(3)] == before


async def test_a_start_with_fewer_workers_is_refused_until_their_directories_are_empty(host: Host) -> None:
    from odradek.broker.storage.log_dir import LogDirRefusedError

    async with host.running(1) as running:
        await _fill(running)
    await host.spread(3)
    with pytest.raises(LogDirRefusedError, match=r"worker\.1 holds \d+ partitions.*odradek workers --spread"):
        async with host.running(1):
            pass
    await host.spread(1)
    async with host.running(1) as running:
        await _check(running)
