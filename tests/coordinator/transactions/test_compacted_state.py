"""Compaction of `__consumer_offsets` and `__transaction_state` loses nothing that a coordinator loads again."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.broker import Broker
from odradek.broker.storage.log import Log
from odradek.protocol.errors import ErrorCode
from tests.handlers.committing_producer import CommittingProducer
from tests.handlers.group_members import find_coordinator
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.storage.compaction.compacted import SETTINGS, in_process
from tests.wire import Wire

TOPICS = ("__consumer_offsets", "__transaction_state")
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.enable": "false",  # the test compacts, in this process
}
ROUNDS = 10


def roll(broker: Broker) -> list[Log]:
    """Begin a segment in both logs, and return them."""
    logs = [broker.services.partitions.get(topic, 0).log for topic in TOPICS]
    for log in logs:
        log.roll()
    return logs


def compact(broker: Broker) -> list[tuple[int, int]]:
    """Compact both topics but for their last segment; return their sizes in bytes before and after."""
    logs = roll(broker)
    before = [_size(log) for log in logs]
    cleaner = broker.periodic_tasks.compaction.cleaner
    clean = in_process(broker.log_dir.resources)
    while cleaner.run_once(clean, SETTINGS):
        pass
    return list(zip(before, [_size(log) for log in logs], strict=True))


def _size(log: Log) -> int:
    return sum([segment.size for segment in log.segments])


async def test_offsets_and_open_transactions_survive_compaction_and_a_restart(tmp_path: Path) -> None:
    properties = {**PROPERTIES, "log.dirs": f"{tmp_path}"}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 3)
        await find_coordinator(wire, "g")
        ended, waiting = CommittingProducer(wire, "g"), CommittingProducer(wire, "g")
        waiting.transactional_id = "waiting"
        await ended.init()
        await waiting.init()
        for number in range(ROUNDS):
            for committed in (True, False):
                assert await ended.commit_one(5, number if committed else 1000 + number) is ErrorCode.NONE
                await ended.end(5, committed=committed)
        roll(broker)  # compaction ends at the segment in which an open transaction begins
        assert await waiting.commit(5, {("t", 0): 777}) == {("t", 0): ErrorCode.NONE}
        assert await ended.commit(5, {("t", 1): 5}) == {("t", 1): ErrorCode.NONE}
        before = [await _described(wire, each) for each in (ended, waiting)]

        for size, compacted in compact(broker):
            assert compacted < size / 2

    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        ended.wire = waiting.wire = wire
        await find_coordinator(wire, "g")
        assert [await _described(wire, each) for each in (ended, waiting)] == before
        assert await ended.read(stable=False) == ROUNDS - 1
        assert await ended.read() is ErrorCode.UNSTABLE_OFFSET_COMMIT
        await ended.end(5, committed=False)
        assert await ended.read() is ErrorCode.UNSTABLE_OFFSET_COMMIT, "the other one is open"
        await waiting.end(5)
        assert await ended.read() == 777
        assert await ended.commit_one(5, 778) is ErrorCode.NONE
        await ended.end(5)
        assert await ended.read() == 778


async def _described(wire: Wire, producer: CommittingProducer) -> tuple[str, int, int, int]:
    """Return the state of the transactional id, its producer id and epoch, and the number of its topics."""
    described = TransactionalProducer(wire, producer.transactional_id)
    await described.find_coordinator()
    row = await described.describe()
    return row.transaction_state, row.producer_id, row.producer_epoch, len(row.topics)
